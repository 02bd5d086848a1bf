/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_jobs.h"

#include "base/known_data.h"

#include <string.h>

#define EDGE HR_KNOWN_FILTER_EDGE

uint64_t hr_bench_job_bytes(const hr_bench_job *job)
{
    uint64_t bytes = sizeof(float);
    for (uint32_t i = 0; i < job->shape.rank; i++) {
        bytes *= job->shape.extent[i];
    }
    return bytes;
}

static void fill_with(const hr_bench_job *job, uint32_t input, float *values, unsigned bits, float below)
{
    hr_known_fill(values, hr_bench_job_bytes(job) / sizeof *values, input + 1, bits, below);
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

static bool pixels_are_right(const hr_bench_job *job, const float *const *in, const float *out)
{
    return hr_known_filtered(in[0], out, job->shape.extent[0], job->shape.extent[1]);
}

static bool products_are_right(const hr_bench_job *job, const float *const *in, const float *out)
{
    return hr_known_product(in[0], in[1], out, job->shape.extent[0]);
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
        job.params.conv2d.weight[i] = hr_known_weight(i);
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
