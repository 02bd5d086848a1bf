/* SPDX-License-Identifier: Apache-2.0 */
/* The trace with the findings marked, as Chrome JSON, for Perfetto and chrome://tracing. */
#ifndef HR_TRACE_RENDER_PERFETTO_H
#define HR_TRACE_RENDER_PERFETTO_H

#include "trace/model/model.h"

#include <stdio.h>

/*
 * Calls and device work as they were, a track with what each finding speaks of, and the device work as it
 * would lie with everything repaired. `out` stays the caller's and is not flushed. HR_E_HOST_MEMORY.
 */
HR_CHECKED hr_status hr_render_perfetto(const hr_report *report, FILE *out, hr_error *error);

#endif
