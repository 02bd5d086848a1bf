/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HR_PIPELINE_REPORT_H
#define HR_PIPELINE_REPORT_H

#include "pipeline/run.h"

/* Fills all of a report but the result. `end_ns`: when the last sink was finished. */
void hr_report_fill(hr_pipeline *pipeline, uint64_t end_ns, hr_report *report);

#endif
