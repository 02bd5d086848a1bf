/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the plain filter of bench/baseline: in turn, and in four streams. */
#include "backend/cuda/bench.h"
#include "base/samples.h"

#include <baseline.h> /* of bench/baseline: programs that know nothing of Headrace */

#include <string.h>

#define SAMPLES 9
#define EDGE    5
#define REACH   2

/* Whole numbers, so that sums are exact in any order, and not the product of a row and a column. */
static void make_weights(float weights[EDGE * EDGE])
{
    for (int i = 0; i < EDGE * EDGE; i++) {
        weights[i] = (float)(i * i % 13 - 4);
    }
}

static void fill(float *in, size_t count)
{
    unsigned state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        in[i] = (float)(state >> 24);
    }
}

static int reflected(int at, int count)
{
    at = at < 0 ? -at : at;
    return at >= count ? 2 * count - 2 - at : at;
}

static bool row_is_right(const float *weights, const float *in, const float *out, int y, int rows,
                         int columns)
{
    const float *row[EDGE];
    for (int dy = 0; dy < EDGE; dy++) {
        row[dy] = in + (size_t)reflected(y + dy - REACH, rows) * (size_t)columns;
    }
    for (int x = 0; x < columns; x++) {
        bool inside = x >= REACH && x < columns - REACH;
        float sum = 0.0f;
        for (int i = 0; i < EDGE * EDGE; i++) {
            int at = x + i % EDGE - REACH;
            sum += weights[i] * row[i / EDGE][inside ? at : reflected(at, columns)];
        }
        if (sum != out[(size_t)y * (size_t)columns + (size_t)x]) {
            return false;
        }
    }
    return true;
}

/* The rows at both ends, and every thirteenth: no part begins at a multiple of that each time. */
static int verify(const float *weights, const float *in, const float *out, int rows, int columns)
{
    for (int y = 0; y < rows; y++) {
        bool looked_at = y < 4 || y >= rows - 4 || y % 13 == 0;
        if (looked_at && !row_is_right(weights, in, out, y, rows, columns)) {
            return 0;
        }
    }
    return 1;
}

static hr_status run_with(hr_cuda_bench_run *run, baseline_filter *program, int streams, const float *in,
                          float *out, const char *name, hr_error *error)
{
    float weights[EDGE * EDGE];
    make_weights(weights);
    uint64_t bytes = (uint64_t)program->rows * (uint64_t)program->columns * sizeof(float);
    memset(out, 0xFF, bytes);
    double ms[SAMPLES];
    int samples = run->options->quick ? 3 : SAMPLES;
    hr_status status = HR_OK;
    for (int i = -1; i < samples && status == HR_OK; i++) {
        double one;
        status = hr_cuda_check(run->device, baseline_filter_run(program, streams, in, out, &one), error,
                               "bench baseline: filter");
        ms[i < 0 ? 0 : i] = one;
    }
    if (status == HR_OK) {
        hr_cuda_figure figure = {.bytes = bytes,
                                 .unit = "ms",
                                 .samples = ms,
                                 .count = (size_t)samples,
                                 .verified = verify(weights, in, out, program->rows, program->columns)};
        hr_cuda_bench_row(run, &figure, "%s", name);
    }
    return status;
}

hr_status hr_cuda_bench_baseline_conv2d(hr_cuda_bench_run *run, hr_error *error)
{
    int edge = run->options->quick ? 4096 : 16384;
    uint64_t bytes = (uint64_t)edge * (uint64_t)edge * sizeof(float);
    hr_bmemory in = {.kind = HR_MEMORY_PINNED, .bytes = bytes};
    hr_bmemory out = {.kind = HR_MEMORY_PINNED, .bytes = bytes};
    baseline_filter program = {0};
    hr_status status = hr_cuda_memory_take(run->device, &in, error);
    if (status == HR_OK) {
        status = hr_cuda_memory_take(run->device, &out, error);
    }
    if (status == HR_OK) {
        float weights[EDGE * EDGE];
        make_weights(weights);
        fill(in.base, (size_t)edge * (size_t)edge);
        status = hr_cuda_check(run->device, baseline_filter_open(&program, edge, edge, weights), error,
                               "bench baseline: filter");
    }
    if (status == HR_OK) {
        status = run_with(run, &program, 1, in.base, out.base, "conv2d: one stream by hand, pinned, in turn",
                          error);
    }
    if (status == HR_OK) {
        status = run_with(run, &program, 4, in.base, out.base,
                          "conv2d: four streams by hand, pinned, a quarter each", error);
    }
    baseline_filter_close(&program);
    hr_bmemory *both[2] = {&in, &out};
    for (int i = 0; i < 2; i++) {
        if (both[i]->backend_data != NULL) {
            hr_cuda_memory_release(run->device, both[i]);
        }
    }
    return status;
}
