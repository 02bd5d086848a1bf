/* SPDX-License-Identifier: Apache-2.0 */
/* What the device's benches share: rows, memory, holding a stream. */
#ifndef HR_BACKEND_CUDA_BENCH_H
#define HR_BACKEND_CUDA_BENCH_H

#include "backend/cuda/cuda_backend.h"

#define HR_BENCH_MAX_SAMPLES 64

/* One bench while it runs. The device's context is current throughout. */
typedef struct hr_cuda_bench_run {
    hr_bdevice *device;
    const hr_bench_options *options;
    hr_bstream *stream[3];   /* Headrace's */
    cudaStream_t raw[3];     /* non-blocking, for plain calls */
    cudaEvent_t begin, end;  /* with timing */
    volatile uint32_t *flag; /* pinned: lets held streams go */
    hr_bmemory flag_memory;
} hr_cuda_bench_run;

hr_status hr_cuda_bench_open(hr_cuda_bench_run *run, hr_bdevice *device, const hr_bench_options *options,
                             hr_error *error);
void hr_cuda_bench_close(hr_cuda_bench_run *run);

/* Hands over a row; `name` is made from the format. */
typedef struct hr_cuda_figure {
    uint64_t bytes;
    const char *unit;
    double *samples;
    size_t count;
    int verified;
    const char *vs;
    double ratio;
    const char *answer;
    const char *skipped;
} hr_cuda_figure;
void hr_cuda_bench_row(const hr_cuda_bench_run *run, const hr_cuda_figure *figure, const char *format, ...)
    HR_PRINTF(3, 4);

/* Takes memory for a bench; pinned and pageable memory comes filled with a pattern made from `seed`. */
hr_status hr_cuda_bench_memory(const hr_cuda_bench_run *run, hr_memory_kind kind, uint64_t bytes,
                               uint64_t seed, hr_bmemory *memory, hr_error *error);
void hr_cuda_bench_pattern(void *base, uint64_t bytes, uint64_t seed);

/* Holds the stream until hr_cuda_bench_let_go(), a second at most. */
hr_status hr_cuda_bench_hold(hr_cuda_bench_run *run, cudaStream_t stream, hr_error *error);
void hr_cuda_bench_let_go(hr_cuda_bench_run *run);

hr_status hr_cuda_bench_link(hr_cuda_bench_run *run, hr_error *error);
/* The part of `link` between this device and each other. */
hr_status hr_cuda_bench_peer(hr_cuda_bench_run *run, hr_error *error);
hr_status hr_cuda_bench_calls(hr_cuda_bench_run *run, hr_error *error);
hr_status hr_cuda_bench_sync(hr_cuda_bench_run *run, hr_error *error);
hr_status hr_cuda_bench_scatter(hr_cuda_bench_run *run, hr_error *error);
/* The plain programs that `pipeline` is compared with, by op. */
hr_status hr_cuda_bench_baseline_add(hr_cuda_bench_run *run, hr_error *error);
hr_status hr_cuda_bench_baseline_conv2d(hr_cuda_bench_run *run, hr_error *error);
hr_status hr_cuda_bench_baseline_matmul(hr_cuda_bench_run *run, hr_error *error);

#endif
