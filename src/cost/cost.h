/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a transfer or a schedule should take. Pure arithmetic: no clock, no memory, no device. Seconds and
 * bytes per second throughout.
 */
#ifndef HR_COST_COST_H
#define HR_COST_COST_H

#include <headrace/status.h>
#include <stddef.h>

#define HR_COST_MAX_POINTS 16

/* One stage of a pipeline: a chunk of c bytes takes start_s + c / bytes_per_s. Where a stage moves more than
 * the chunk (two inputs), bytes_per_s is its speed divided by that ratio. A stage with bytes_per_s 0 does not
 * exist. */
typedef struct hr_cost_stage {
    double start_s;
    double bytes_per_s;
} hr_cost_stage;

/* Seconds that the stage takes for one chunk. */
double hr_cost_stage_s(const hr_cost_stage *stage, double chunk_bytes);

/* Index of the slowest stage at this chunk size; `count` if no stage exists. */
size_t hr_cost_slowest(const hr_cost_stage *stages, size_t count, double chunk_bytes);

/* T(c) = Σ(a + c/b) + (N/c − 1) · max(a + c/b): `total_bytes` through all stages, in chunks of c. */
double hr_cost_pipeline_s(const hr_cost_stage *stages, size_t count, double total_bytes, double chunk_bytes);

/* The chunk between `least` and `most` for which T is least. T is convex in c, so this is the minimum. */
double hr_cost_best_chunk(const hr_cost_stage *stages, size_t count, double total_bytes, double least,
                          double most);

/* Slots that keep the slowest stage busy: 1 + ⌈(Σ others + return_s) / slowest⌉, and one for jitter. `return_s`: until a
 * slot that has left the last stage may enter the first again. */
uint32_t hr_cost_depth(const hr_cost_stage *stages, size_t count, double chunk_bytes, double return_s);

/*
 * Chunks of any sizes through the stages, one after the other, with a ring of slots: a chunk enters the first stage when
 * the one that is `depth` before it has left the last. A zeroed struct is before the first chunk.
 */
#define HR_COST_MAX_STAGES 8
#define HR_COST_MAX_DEPTH  16
typedef struct hr_cost_line {
    double free_s[HR_COST_MAX_STAGES]; /* when each stage has done what it was given */
    double left_s[HR_COST_MAX_DEPTH];  /* when the latest chunks left */
    size_t chunks;
} hr_cost_line;
/* Adds a chunk and says when it has left. At most HR_COST_MAX_STAGES stages and HR_COST_MAX_DEPTH slots. */
double hr_cost_line_add(hr_cost_line *line, const hr_cost_stage *stages, size_t count, uint32_t depth,
                        double chunk_bytes);

/* Bytes per second of the two directions of a link, each alone and each while the other is busy as well. */
typedef struct hr_cost_duplex {
    double in, out;
    double in_with_out, out_with_in;
} hr_cost_duplex;
/* The least time for so many bytes in and so many out: both at once as long as there are both, unless one after the other
 * is faster. Speeds of 0: not known, and then those alone hold for both at once too. */
double hr_cost_duplex_s(const hr_cost_duplex *link, double in_bytes, double out_bytes);

/* The slowest stage alone, in one piece of all the bytes without start-up cost. */
double hr_cost_floor_s(const hr_cost_stage *stages, size_t count, double total_bytes);

/* (Σ busy − wall) / (Σ busy − max busy), between 0 and 1; 1 where there is nothing to hide. */
double hr_cost_overlap(const double *busy_s, size_t count, double wall_s);

/* A link as measured: seconds for transfers of some sizes, made monotone. */
typedef struct hr_cost_link {
    size_t count;
    double bytes[HR_COST_MAX_POINTS]; /* growing */
    double seconds[HR_COST_MAX_POINTS];
} hr_cost_link;

/* Makes a link from points in any order; at most HR_COST_MAX_POINTS are kept. Where a larger transfer was
 * measured to be faster than a smaller one, both take their mean. HR_E_INVALID without a usable point. */
HR_CHECKED hr_status hr_cost_link_make(const double *bytes, const double *seconds, size_t count,
                                       hr_cost_link *link);
/* Seconds for a transfer of this size: between the points by straight lines, beyond them at the speed of the
 * last. */
double hr_cost_link_s(const hr_cost_link *link, double bytes);
/* The line a + c/b nearest to the points, by relative error, with a ≥ 0 and b > 0. */
hr_cost_stage hr_cost_link_fit(const hr_cost_link *link);
/* Bytes per second of large transfers: the best of those that are within a sixteenth of the largest. */
double hr_cost_link_rate(const hr_cost_link *link);

#endif
