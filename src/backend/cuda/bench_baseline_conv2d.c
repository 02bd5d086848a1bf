/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the plain filter of bench/baseline: in turn, and in four streams. */
#include "backend/cuda/bench.h"
#include "base/known_data.h"
#include "base/samples.h"

#include <baseline.h> /* of bench/baseline: programs that know nothing of Headrace */

#include <string.h>

#define SAMPLES 9
#define EDGE    HR_KNOWN_FILTER_EDGE

static void make_weights(float weights[EDGE * EDGE])
{
    for (int i = 0; i < EDGE * EDGE; i++) {
        weights[i] = hr_known_weight(i);
    }
}

static hr_status run_with(hr_cuda_bench_run *run, baseline_filter *program, int streams, const float *in,
                          float *out, const char *name, hr_error *error)
{
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
        hr_cuda_figure figure = {
            .bytes = bytes,
            .unit = "ms",
            .samples = ms,
            .count = (size_t)samples,
            .verified = hr_known_filtered(in, out, (uint64_t)program->rows, (uint64_t)program->columns)};
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
        hr_known_fill(in.base, (uint64_t)edge * (uint64_t)edge, 1, 8, 0.0f);
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
