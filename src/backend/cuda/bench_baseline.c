/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the plain programs of bench/baseline, whose rows `bench pipeline` compares with. */
#include "backend/cuda/bench.h"
#include "base/samples.h"

#include <baseline.h> /* of bench/baseline: programs that know nothing of Headrace */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 9

typedef struct add_data {
    hr_bmemory a, b, c, device;
    size_t count;
} add_data;

static int verify(const add_data *data, const float *c)
{
    const float *a = data->a.base;
    const float *b = data->b.base;
    for (size_t i = 0; i < data->count; i++) {
        float sum = a[i] + b[i];
        if (memcmp(&sum, &c[i], sizeof sum) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Small integers: finite whatever their bits, and no two neighbours alike. */
static void fill(hr_bmemory *memory, size_t count, unsigned step)
{
    float *values = memory->base;
    unsigned state = step;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 12);
    }
}

/* One chunk size: the milliseconds of each run, and whether the sums are right. */
static hr_status four_streams(hr_cuda_bench_run *run, add_data *data, size_t chunk, double *ms, int *verified,
                              hr_error *error)
{
    baseline_streams program;
    cudaError_t code = baseline_streams_open(&program, chunk);
    memset(data->c.base, 0xFF, data->count * sizeof(float));
    for (int k = -1; k < SAMPLES && code == cudaSuccess; k++) {
        double one;
        code = baseline_streams_add(&program, data->a.base, data->b.base, data->c.base, data->count, &one);
        ms[k < 0 ? 0 : k] = one;
    }
    baseline_streams_close(&program);
    *verified = code == cudaSuccess && verify(data, data->c.base);
    return hr_cuda_check(run->device, code, error, "bench baseline: four streams");
}

/* As it is taught: each stream has a quarter. And with the best of several chunk sizes, which is what someone who
 * measures would have found. */
static hr_status classic(hr_cuda_bench_run *run, add_data *data, hr_error *error)
{
    double ms[SAMPLES];
    int verified = 0;
    hr_status status = four_streams(run, data, data->count / 4, ms, &verified, error);
    if (status != HR_OK) {
        return status;
    }
    hr_cuda_figure figure = {.bytes = data->count * sizeof(float),
                             .unit = "ms",
                             .samples = ms,
                             .count = SAMPLES,
                             .verified = verified};
    hr_cuda_bench_row(run, &figure, "add: four streams by hand, pinned, a quarter each");

    static const size_t chunks[] = {(size_t)1 << 20, (size_t)1 << 21, (size_t)1 << 22, (size_t)1 << 23};
    double best[SAMPLES];
    size_t best_chunk = 0;
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0] && status == HR_OK; i++) {
        int right = 0;
        status = four_streams(run, data, chunks[i], ms, &right, error);
        verified = verified && right;
        if (status == HR_OK &&
            (best_chunk == 0 || hr_samples_median(ms, SAMPLES) < hr_samples_median(best, SAMPLES))) {
            memcpy(best, ms, sizeof best);
            best_chunk = chunks[i];
        }
    }
    if (status == HR_OK) {
        figure.samples = best;
        figure.verified = verified;
        hr_cuda_bench_row(run, &figure, "add: four streams by hand, pinned, the best chunk of four (%zu MiB)",
                          best_chunk * sizeof(float) >> 20);
    }
    return status;
}

static hr_status pageable(hr_cuda_bench_run *run, add_data *data, hr_error *error)
{
    size_t bytes = data->count * sizeof(float);
    float *a = malloc(bytes);
    float *b = malloc(bytes);
    float *c = malloc(bytes);
    double ms[SAMPLES];
    hr_status status = HR_OK;
    int samples = 5;
    if (a == NULL || b == NULL || c == NULL) {
        status =
            hr_fail(error, HR_E_HOST_MEMORY, "bench baseline: three times %zu bytes could not be had", bytes);
    } else {
        memcpy(a, data->a.base, bytes);
        memcpy(b, data->b.base, bytes);
        memset(c, 0xFF, bytes);
        float *device = data->device.base;
        for (int i = -1; i < samples && status == HR_OK; i++) {
            double one;
            status = hr_cuda_check(run->device,
                                   baseline_pageable_add(a, b, c, data->count, device, device + data->count,
                                                         device + 2 * data->count, &one),
                                   error, "bench baseline: cudaMemcpy");
            ms[i < 0 ? 0 : i] = one;
        }
    }
    if (status == HR_OK) {
        hr_cuda_figure figure = {.bytes = bytes,
                                 .unit = "ms",
                                 .samples = ms,
                                 .count = (size_t)samples,
                                 .verified = verify(data, c)};
        hr_cuda_bench_row(run, &figure, "add: cudaMemcpy by hand, pageable");
    }
    free(a);
    free(b);
    free(c);
    return status;
}

hr_status hr_cuda_bench_baseline_add(hr_cuda_bench_run *run, hr_error *error)
{
    add_data data = {.count = run->options->quick ? (size_t)1 << 24 : (size_t)1 << 27};
    uint64_t bytes = data.count * sizeof(float);
    hr_bmemory *pinned[3] = {&data.a, &data.b, &data.c};
    hr_status status = HR_OK;
    for (int i = 0; i < 3 && status == HR_OK; i++) {
        *pinned[i] = (hr_bmemory){.kind = HR_MEMORY_PINNED, .bytes = bytes};
        status = hr_cuda_memory_take(run->device, pinned[i], error);
    }
    if (status == HR_OK) {
        data.device = (hr_bmemory){.kind = HR_MEMORY_DEVICE, .bytes = 3 * bytes};
        status = hr_cuda_memory_take(run->device, &data.device, error);
    }
    if (status == HR_OK) {
        fill(&data.a, data.count, 1);
        fill(&data.b, data.count, 2);
        status = classic(run, &data, error);
    }
    if (status == HR_OK) {
        status = pageable(run, &data, error);
    }
    hr_bmemory *all[4] = {&data.a, &data.b, &data.c, &data.device};
    for (int i = 0; i < 4; i++) {
        if (all[i]->backend_data != NULL) {
            hr_cuda_memory_release(run->device, all[i]);
        }
    }
    return status;
}
