/* SPDX-License-Identifier: Apache-2.0 */
/* Between a pipeline and the costs that are kept: what is known goes into the plan, what was seen goes back.
 */
#ifndef HR_PIPELINE_TUNE_H
#define HR_PIPELINE_TUNE_H

#include "pipeline/run.h"

/* Loads what is known of the first device, measures its link where that is not known, and sets the costs that
 * the plan is made from. Never fails: what cannot be measured is assumed, with a note. */
void hr_tune_begin(hr_pipeline *pipeline);
/* After a run that succeeded: remembers how fast its stages and its op were. */
void hr_tune_learn(hr_pipeline *pipeline);
/* Keeps what was learned. A file that cannot be written costs the next run a probe and nothing else. */
void hr_tune_end(hr_pipeline *pipeline);

#endif
