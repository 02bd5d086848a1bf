/* SPDX-License-Identifier: Apache-2.0 */
/* What one stage did: the union of its spans, its bytes, and how fast it was seen to go. Any thread. */
#ifndef HR_PIPELINE_GAUGE_H
#define HR_PIPELINE_GAUGE_H

#include "cost/cover.h"

#include <pthread.h>

/* Bins of an eighth of an octave, from 1 MB/s up to 4 TB/s and more. */
#define HR_GAUGE_BINS 176

typedef struct hr_gauge {
    pthread_mutex_t lock;
    hr_cover cover;
    uint64_t bytes;
    uint64_t bytes_at[HR_GAUGE_BINS]; /* bytes that went at the speed of this bin */
} hr_gauge;

void hr_gauge_init(hr_gauge *gauge);
void hr_gauge_destroy(hr_gauge *gauge);
void hr_gauge_add(hr_gauge *gauge, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes);
double hr_gauge_busy_s(hr_gauge *gauge);
uint64_t hr_gauge_bytes(hr_gauge *gauge);
/* Bytes per second that a span reached or passed with the fastest tenth of its bytes; 0 if nothing was
 * measured. The upper edge of a bin, so never less than what was seen. */
double hr_gauge_rate(hr_gauge *gauge);

#endif
