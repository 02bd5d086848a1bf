/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/cost.h"

#include <math.h>

static int exists(const hr_cost_stage *stage)
{
    return stage->bytes_per_s > 0.0;
}

double hr_cost_stage_s(const hr_cost_stage *stage, double chunk_bytes)
{
    return exists(stage) ? stage->start_s + chunk_bytes / stage->bytes_per_s : 0.0;
}

size_t hr_cost_slowest(const hr_cost_stage *stages, size_t count, double chunk_bytes)
{
    size_t slowest = count;
    double most = -1.0;
    for (size_t i = 0; i < count; i++) {
        double seconds = hr_cost_stage_s(&stages[i], chunk_bytes);
        if (exists(&stages[i]) && seconds > most) {
            most = seconds;
            slowest = i;
        }
    }
    return slowest;
}

double hr_cost_pipeline_s(const hr_cost_stage *stages, size_t count, double total_bytes, double chunk_bytes)
{
    if (total_bytes <= 0.0 || chunk_bytes <= 0.0) {
        return 0.0;
    }
    double chunk = fmin(chunk_bytes, total_bytes);
    double sum = 0.0, most = 0.0;
    for (size_t i = 0; i < count; i++) {
        double seconds = hr_cost_stage_s(&stages[i], chunk);
        sum += seconds;
        most = fmax(most, seconds);
    }
    return sum + (total_bytes / chunk - 1.0) * most;
}

double hr_cost_best_chunk(const hr_cost_stage *stages, size_t count, double total_bytes, double least,
                          double most)
{
    double low = least, high = fmin(most, fmax(total_bytes, least));
    /* Each step of the search keeps two thirds of the range: 100 steps leave less than a byte of any size. */
    for (int step = 0; step < 100 && high - low > 1.0; step++) {
        double third = (high - low) / 3.0;
        double left = hr_cost_pipeline_s(stages, count, total_bytes, low + third);
        double right = hr_cost_pipeline_s(stages, count, total_bytes, high - third);
        if (left <= right) {
            high -= third;
        } else {
            low += third;
        }
    }
    return low + (high - low) / 2.0;
}

uint32_t hr_cost_depth(const hr_cost_stage *stages, size_t count, double chunk_bytes, double return_s)
{
    size_t slowest = hr_cost_slowest(stages, count, chunk_bytes);
    if (slowest == count) {
        return 2;
    }
    double others = return_s;
    for (size_t i = 0; i < count; i++) {
        others += i == slowest ? 0.0 : hr_cost_stage_s(&stages[i], chunk_bytes);
    }
    double bound = hr_cost_stage_s(&stages[slowest], chunk_bytes);
    if (bound <= 0.0) {
        return 2;
    }
    /* Stages alone make at most count − 1 of it; the margin keeps rounding from adding a slot. */
    return 2 + (uint32_t)ceil(others / bound - 1e-9);
}

double hr_cost_line_add(hr_cost_line *line, const hr_cost_stage *stages, size_t count, uint32_t depth,
                        double chunk_bytes)
{
    size_t slots = depth < 1 ? 1 : depth > HR_COST_MAX_DEPTH ? HR_COST_MAX_DEPTH : depth;
    double *left = &line->left_s[line->chunks % slots];
    double ready = *left;
    for (size_t i = 0; i < count && i < HR_COST_MAX_STAGES; i++) {
        if (exists(&stages[i])) {
            ready = fmax(ready, line->free_s[i]) + hr_cost_stage_s(&stages[i], chunk_bytes);
            line->free_s[i] = ready;
        }
    }
    line->chunks++;
    *left = ready;
    return ready;
}

double hr_cost_duplex_s(const hr_cost_duplex *link, double in_bytes, double out_bytes)
{
    double in = link->in > 0.0 ? link->in : link->in_with_out;
    double out = link->out > 0.0 ? link->out : link->out_with_in;
    if (in <= 0.0 || out <= 0.0) {
        return in > 0.0 ? in_bytes / in : out > 0.0 ? out_bytes / out : 0.0;
    }
    double in_with_out = link->in_with_out > 0.0 ? link->in_with_out : in;
    double out_with_in = link->out_with_in > 0.0 ? link->out_with_in : out;
    double both = fmin(in_bytes / in_with_out, out_bytes / out_with_in);
    double at_once = both + fmax(0.0, in_bytes - both * in_with_out) / in +
                     fmax(0.0, out_bytes - both * out_with_in) / out;
    return fmin(at_once, in_bytes / in + out_bytes / out);
}

double hr_cost_floor_s(const hr_cost_stage *stages, size_t count, double total_bytes)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (exists(&stages[i])) {
            most = fmax(most, total_bytes / stages[i].bytes_per_s);
        }
    }
    return most;
}

double hr_cost_overlap(const double *busy_s, size_t count, double wall_s)
{
    double sum = 0.0, most = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += busy_s[i];
        most = fmax(most, busy_s[i]);
    }
    if (sum - most <= 0.0) {
        return 1.0;
    }
    return fmin(1.0, fmax(0.0, (sum - wall_s) / (sum - most)));
}
