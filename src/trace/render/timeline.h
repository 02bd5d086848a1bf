/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of one typical step in characters: a row for each stream and for the host. */
#ifndef HR_TRACE_RENDER_TIMELINE_H
#define HR_TRACE_RENDER_TIMELINE_H

#include "trace/model/model.h"

#include <stdio.h>

/* At most 100 columns and a dozen rows. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_render_timeline(const hr_report *report, FILE *out, hr_error *error);

#endif
