/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one HTML file with a timeline that can be zoomed. */
#ifndef HR_TRACE_RENDER_HTML_H
#define HR_TRACE_RENDER_HTML_H

#include "trace/model/model.h"

#include <stdio.h>

/* Writes the page to `out`, which stays the caller's and is not flushed. HR_E_IO, HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_render_html(const hr_report *report, FILE *out, hr_error *error);

#endif
