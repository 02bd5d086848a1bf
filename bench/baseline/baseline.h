/* SPDX-License-Identifier: Apache-2.0 */
/* Plain CUDA programs that do by hand what Headrace is compared with. Each answers what the run took. */
#ifndef HR_BENCH_BASELINE_H
#define HR_BENCH_BASELINE_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The device memory and streams of the program that overlaps. */
typedef struct baseline_streams {
    cudaStream_t stream[4];
    float *a[4], *b[4], *c[4];
    size_t chunk;
} baseline_streams;

cudaError_t baseline_streams_open(baseline_streams *program, size_t chunk);
/*
 * c = a + b from pinned memory to pinned memory, `chunk` elements at a time, the chunks handed to four
 * streams in turn: copy in twice, add, copy out, each stream its own buffers. Milliseconds until all is back.
 */
cudaError_t baseline_streams_add(baseline_streams *program, const float *a, const float *b, float *c,
                                 size_t count, double *ms);
void baseline_streams_close(baseline_streams *program);

/* The first program of every course: ordinary memory, cudaMemcpy, one kernel, cudaMemcpy. Device memory of
 * the whole arrays is the caller's. */
cudaError_t baseline_pageable_add(const float *a, const float *b, float *c, size_t count, float *device_a,
                                  float *device_b, float *device_c, double *ms);

/* The device memory and streams of a filter of 5 × 5 over f32 rows. */
typedef struct baseline_filter {
    cudaStream_t stream[4];
    float *in, *out;
    int rows, columns;
} baseline_filter;

/* `weights`: 25, row by row. */
cudaError_t baseline_filter_open(baseline_filter *program, int rows, int columns, const float *weights);
/* From pinned memory to pinned memory, in as many parts as streams (1: all of it in turn; at most 4): copy in with the
 * rows around, filter, copy out. The border is reflected without repeating the edge. Milliseconds until all is back. */
cudaError_t baseline_filter_run(baseline_filter *program, int streams, const float *in, float *out,
                                double *ms);
void baseline_filter_close(baseline_filter *program);

#ifdef __cplusplus
}
#endif
#endif
