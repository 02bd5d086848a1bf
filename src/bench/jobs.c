/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays are whole numbers, so small that f32 sums are exact in any order: what comes out is right or wrong. */
#include "bench/bench_jobs.h"

#include <stdlib.h>
#include <string.h>

#define EDGE  5
#define REACH 2
/* Rows and columns of a product that are looked at. */
#define LOOKED_AT UINT64_C(64)

uint64_t hr_bench_job_bytes(const hr_bench_job *job)
{
    uint64_t bytes = sizeof(float);
    for (uint32_t i = 0; i < job->shape.rank; i++) {
        bytes *= job->shape.extent[i];
    }
    return bytes;
}

/* Whole numbers of so many bits, from −`below` on. */
static void fill_with(const hr_bench_job *job, uint32_t input, float *values, unsigned bits, float below)
{
    unsigned state = input + 1;
    for (uint64_t i = 0; i < hr_bench_job_bytes(job) / sizeof *values; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> (32 - bits)) - below;
    }
}

static void fill_terms(const hr_bench_job *job, uint32_t input, float *values)
{
    fill_with(job, input, values, 20, 0.0f);
}

static void fill_pixels(const hr_bench_job *job, uint32_t input, float *values)
{
    fill_with(job, input, values, 8, 0.0f);
}

static void fill_factors(const hr_bench_job *job, uint32_t input, float *values)
{
    fill_with(job, input, values, 4, 8.0f);
}

static bool sums_are_right(const hr_bench_job *job, const float *const *in, const float *out)
{
    for (uint64_t i = 0; i < job->shape.extent[0]; i++) {
        float sum = in[0][i] + in[1][i];
        if (memcmp(&sum, &out[i], sizeof sum) != 0) {
            return false;
        }
    }
    return true;
}

static int64_t reflected(int64_t at, int64_t count)
{
    at = at < 0 ? -at : at;
    return at >= count ? 2 * count - 2 - at : at;
}

static bool row_is_right(const hr_bench_job *job, const float *in, const float *out, int64_t y)
{
    int64_t rows = (int64_t)job->shape.extent[0], columns = (int64_t)job->shape.extent[1];
    const float *row[EDGE];
    for (int64_t dy = 0; dy < EDGE; dy++) {
        row[dy] = in + reflected(y + dy - REACH, rows) * columns;
    }
    for (int64_t x = 0; x < columns; x++) {
        bool inside = x >= REACH && x < columns - REACH;
        float sum = 0.0f;
        for (int64_t i = 0; i < EDGE * EDGE; i++) {
            int64_t at = x + i % EDGE - REACH;
            sum += (float)job->params.conv2d.weight[i] * row[i / EDGE][inside ? at : reflected(at, columns)];
        }
        if (sum != out[y * columns + x]) {
            return false;
        }
    }
    return true;
}

/* The rows at both ends, and every thirteenth: chunks do not all begin at a multiple of that. */
static bool pixels_are_right(const hr_bench_job *job, const float *const *in, const float *out)
{
    int64_t rows = (int64_t)job->shape.extent[0];
    for (int64_t y = 0; y < rows; y++) {
        bool looked_at = y < 4 || y >= rows - 4 || y % 13 == 0;
        if (looked_at && !row_is_right(job, in[0], out, y)) {
            return false;
        }
    }
    return true;
}

static uint64_t looked_at(uint64_t edge, uint64_t i, uint64_t step)
{
    return (i * (edge / LOOKED_AT) + i * step) % edge;
}

/* 64 × 64 elements from all over the product. The columns are put side by side first: they lie far apart. */
static bool products_are_right(const hr_bench_job *job, const float *const *in, const float *out)
{
    uint64_t edge = job->shape.extent[0];
    float *columns = malloc(LOOKED_AT * edge * sizeof *columns);
    if (columns == NULL) {
        return false;
    }
    for (uint64_t k = 0; k < edge; k++) {
        for (uint64_t j = 0; j < LOOKED_AT; j++) {
            columns[j * edge + k] = in[1][k * edge + looked_at(edge, j, 5)];
        }
    }
    bool right = true;
    for (uint64_t i = 0; i < LOOKED_AT && right; i++) {
        uint64_t row = looked_at(edge, i, 7);
        for (uint64_t j = 0; j < LOOKED_AT && right; j++) {
            float sum = 0.0f;
            for (uint64_t k = 0; k < edge; k++) {
                sum += in[0][row * edge + k] * columns[j * edge + k];
            }
            right = sum == out[row * edge + looked_at(edge, j, 5)];
        }
    }
    free(columns);
    return right;
}

hr_bench_job hr_bench_add(bool quick)
{
    return (hr_bench_job){.op = "add",
                          .inputs = 2,
                          .shape = {.rank = 1, .extent = {quick ? UINT64_C(1) << 24 : UINT64_C(1) << 27}},
                          .fill = fill_terms,
                          .is_right = sums_are_right};
}

hr_bench_job hr_bench_conv2d(bool quick, bool fast)
{
    uint64_t edge = quick ? 4096 : fast ? 16384 : 8192;
    hr_bench_job job = {.op = "conv2d",
                        .inputs = 1,
                        .shape = {.rank = 2, .extent = {edge, edge}},
                        .params.conv2d = {.rows = EDGE, .columns = EDGE, .border = HR_BORDER_REFLECT},
                        .fill = fill_pixels,
                        .is_right = pixels_are_right};
    for (int i = 0; i < EDGE * EDGE; i++) {
        /* Not the product of a row and a column. */
        job.params.conv2d.weight[i] = (double)(i * i % 13 - 4);
    }
    return job;
}

hr_bench_job hr_bench_matmul(bool quick, bool fast)
{
    uint64_t edge = !fast ? (quick ? 1024 : 4096) : quick ? 4096 : 16384;
    return (hr_bench_job){.op = "matmul",
                          .inputs = 2,
                          .shape = {.rank = 2, .extent = {edge, edge}},
                          .fill = fill_factors,
                          .is_right = products_are_right};
}
