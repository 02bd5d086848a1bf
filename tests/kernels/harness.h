/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of kernels on a GPU share: random data, guarded device buffers, and the count of failures.
 */
#ifndef HEADRACE_TESTS_KERNELS_HARNESS_H
#define HEADRACE_TESTS_KERNELS_HARNESS_H

#include "backend/cuda/kernel/kernel.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct harness {
    bool small; /* few and small cases, for a checker that slows everything down */
    int cases, refused, failed;
    uint64_t seed;
} harness;

/* A device buffer with poisoned guards on both sides, `offset` bytes past an aligned address. */
typedef struct guarded {
    unsigned char *whole;
    unsigned char *data;
    uint64_t bytes;
} guarded;

uint64_t random_bits(harness *h);
void random_floats(harness *h, float *to, uint64_t count); /* in [−1, 1) */
void random_bytes(harness *h, void *to, uint64_t count);

/* Stops the program on a device error: nothing after it could be trusted. */
void must(cudaError_t code, const char *what);

guarded guarded_take(uint64_t bytes, uint64_t offset);
void guarded_poison(guarded *g);
bool guarded_intact(const guarded *g);
void guarded_release(guarded *g);

/* Runs body(user, i) for i in 0 … count − 1 on all cores. */
void parallel(uint64_t count, void (*body)(void *user, uint64_t i), void *user);

/* Counts a case. `status` is the kernel's answer; `right` is looked at only where that is HR_OK. */
void verdict(harness *h, const char *name, hr_mechanism m, hr_status status, const hr_error *error,
             bool right);

void check_copy(harness *h);
void check_scale(harness *h);
void check_conv2d(harness *h);
void check_transpose(harness *h);
void check_stencil(harness *h);
void check_matmul(harness *h);
void check_histogram(harness *h);
void check_reduce(harness *h);
void check_repeat(harness *h);

#endif
