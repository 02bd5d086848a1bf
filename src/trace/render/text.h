/* SPDX-License-Identifier: Apache-2.0 */
/* The report for people at a terminal. */
#ifndef HR_TRACE_RENDER_TEXT_H
#define HR_TRACE_RENDER_TEXT_H

#include "trace/model/model.h"

#include <stdio.h>

/* At most 100 columns. `out` stays the caller's and is not flushed. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_render_text(const hr_report *report, FILE *out, hr_error *error);

#endif
