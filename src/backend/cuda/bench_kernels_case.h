/* SPDX-License-Identifier: Apache-2.0 */
/* A case of `bench kernels`, and what the files with the cases share. */
#ifndef HEADRACE_CUDA_BENCH_KERNELS_CASE_H
#define HEADRACE_CUDA_BENCH_KERNELS_CASE_H

#include "kernel/kernel.h"

#include <headrace/bench.h>
#include <stdbool.h>

#define HR_KBENCH_PATTERN UINT64_C(16777213) /* floats; prime, so that no row of an image repeats another */

typedef struct hr_kbench {
    const hr_bench_options *options;
    bool quick;
    float *pattern;
    uint16_t *halves; /* the pattern in bf16, made when first needed */
    cudaStream_t stream;
    cudaEvent_t begin, end;
    uint32_t *go; /* pinned: the stream is held until it is not 0 */
    uint64_t seed;

} hr_kbench;

typedef struct hr_kbench_case {
    const char *name;
    void *job;
    hr_status (*launch)(void *job, hr_mechanism mechanism, cudaStream_t stream, hr_error *error);
    /* 1 right, 0 wrong, −1 a device error (in *error). Null: nothing to verify. */
    int (*verify)(hr_kbench *b, void *job, hr_error *error);
    void *out;
    uint64_t out_bytes;
    double bytes, flops; /* of one launch; flops 0: reported as bytes; both 0: as time */
    int launches;        /* a batch; 0: 10 */
    int steps;           /* the time is reported over these; 0: 1 */
    bool plain;          /* the name stands alone, without the mechanism's */
    const char *vs;
    double vs_value; /* in the figure's unit; 0: not known */
    const struct hr_kbench_case
        *beside; /* the same work by what `vs` names, timed in turns with ours; or null */
} hr_kbench_case;

hr_status hr_kbench_check(cudaError_t code, const char *what, hr_error *error);
/* Verifies, times and reports one case; `seconds` may be null. */
hr_status hr_kbench_run(hr_kbench *b, const hr_kbench_case *c, hr_mechanism m, double *seconds,
                        hr_error *error);
hr_status hr_kbench_every(hr_kbench *b, hr_kbench_case *c, const hr_mechanism *mechanisms, int count,
                          hr_error *error);
/* Device memory, filled with the pattern if `random`. Give back with cudaFree. */
hr_status hr_kbench_take(hr_kbench *b, void **device, uint64_t bytes, bool random, hr_error *error);
void hr_kbench_fill(hr_kbench *b, void *device, uint64_t bytes, hr_status *status, hr_error *error);
/* Device memory filled with `count` values of the pattern in bf16. */
hr_status hr_kbench_fill_halves(hr_kbench *b, void *device, uint64_t count, hr_error *error);
uint64_t hr_kbench_random(hr_kbench *b, uint64_t below);

/* The suites, in the order in which they run; ends with a null. */
extern hr_status (*const hr_kbench_suites[])(hr_kbench *b, hr_error *error);

#endif
