/* SPDX-License-Identifier: Apache-2.0 */
/* The report for scripts. */
#ifndef HR_TRACE_RENDER_JSON_H
#define HR_TRACE_RENDER_JSON_H

#include "trace/model/model.h"

#include <stdio.h>

/* One object and a newline. `out` stays the caller's and is not flushed. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_render_json(const hr_report *report, FILE *out, hr_error *error);

#endif
