/* SPDX-License-Identifier: Apache-2.0 */
/* What repeated measurements say. */
#ifndef HR_BASE_SAMPLES_H
#define HR_BASE_SAMPLES_H

#include <stddef.h>

/* The middle of the values (mean of the two middle ones of an even count); 0 of none. Sorts them. */
double hr_samples_median(double *values, size_t count);
/* (90th − 10th percentile) / median, in per cent; 0 for fewer than two. Sorts them. */
double hr_samples_spread_pct(double *values, size_t count);

#endif
