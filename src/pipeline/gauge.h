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
    uint64_t span_ns;                 /* of all spans, one after the other */
    uint64_t bytes_at[HR_GAUGE_BINS]; /* bytes that went at the speed of this bin */
    uint32_t width, active;           /* spans that run at once at most, and now */
    uint64_t full_since_ns;           /* while active ≥ width */
    uint64_t full_ns;                 /* how long that was, in all */
    double full_bytes;                /* moved meanwhile */
    uint64_t finish_ns;               /* spent after the last byte */
} hr_gauge;

/* The begin of a span that is measured as it happens. */
typedef struct hr_mark {
    uint64_t begin_ns;
    uint64_t full_ns; /* how long the stage had been full by then */
} hr_mark;

void hr_gauge_init(hr_gauge *gauge);
void hr_gauge_destroy(hr_gauge *gauge);
/* A span that happened elsewhere: on a device. */
void hr_gauge_add(hr_gauge *gauge, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes);
/* A span of a host thread: enter when it begins, leave with what enter gave when it ends. */
hr_mark hr_gauge_enter(hr_gauge *gauge, uint64_t now_ns);
void hr_gauge_leave(hr_gauge *gauge, hr_mark mark, uint64_t now_ns, uint64_t bytes);
/* What the stage has to do after its last byte (a sink that finishes). */
void hr_gauge_finish(hr_gauge *gauge, uint64_t begin_ns, uint64_t end_ns);

double hr_gauge_busy_s(hr_gauge *gauge);
uint64_t hr_gauge_bytes(hr_gauge *gauge);
/* Bytes per second of one thread of the stage, on average; 0 if nothing was measured. */
double hr_gauge_mean_rate(hr_gauge *gauge);
/*
 * Seconds that the stage would take alone with `width` threads, as far as the run has shown: while all of its threads
 * were in it at once it had the machine for itself. A stage that hardly ever was is taken at its fastest spans, `width`
 * at once. Never more than it was busy. What comes after the last byte counts as it was, and is all of a stage that moves
 * no bytes itself (an image is encoded out of the memory into which it was computed). 0 if nothing was measured.
 */
double hr_gauge_alone_s(hr_gauge *gauge);
/* The stage's bytes over that, in bytes per second; 0 if nothing was measured, or there are none. */
double hr_gauge_ceiling(hr_gauge *gauge);

#endif
