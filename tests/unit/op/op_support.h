/* SPDX-License-Identifier: Apache-2.0 */
/* Launching built-in ops without a pipeline: workers of several threads, views, and data that is awkward. */
#ifndef HR_TESTS_OP_SUPPORT_H
#define HR_TESTS_OP_SUPPORT_H

#include "support/unit.h"

#include <headrace/op.h>

#include "base/half.h"
#include "op/kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TEST_THREADS 8

typedef struct test_run {
    uint64_t count;
    void (*body)(void *user, uint64_t index);
    void *user;
    _Atomic uint64_t next;
} test_run;

static inline void *test_worker(void *argument)
{
    test_run *run = (test_run *)argument;
    for (;;) {
        const uint64_t index = atomic_fetch_add(&run->next, 1);
        if (index >= run->count) {
            return NULL;
        }
        run->body(run->user, index);
    }
}

static inline void test_workers_run(void *self, uint64_t count, void (*body)(void *user, uint64_t index),
                                    void *user)
{
    const uint32_t threads = *(const uint32_t *)self;
    test_run run = {count, body, user, 0};
    pthread_t thread[MAX_TEST_THREADS];
    for (uint32_t i = 1; i < threads; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, test_worker, &run), 0);
    }
    test_worker(&run);
    for (uint32_t i = 1; i < threads; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
}

/* xorshift; the same numbers in each run. */
static inline uint64_t test_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline hr_view test_view(const void *data, hr_dtype dtype, hr_shape shape)
{
    hr_view view;
    memset(&view, 0, sizeof view);
    memcpy(&view.data, &data, sizeof data);
    view.dtype = dtype;
    view.shape = shape;
    view.whole = shape;
    view.row_pitch_bytes = hr_dtype_bytes(dtype);
    for (uint32_t i = 1; i < shape.rank; i++) {
        view.row_pitch_bytes *= shape.extent[i];
    }
    return view;
}

static inline void test_launch(const hr_op *op, hr_launch *launch, uint32_t threads)
{
    hr_workers workers = {&threads, threads, test_workers_run};
    hr_error error = HR_ERROR_INIT;
    launch->size = sizeof *launch;
    launch->workers = &workers;
    const hr_status status = op->cpu(launch, &error);
    launch->workers = NULL;
    if (status != HR_OK) {
        fail_msg("%s: %s", op->name, error.text);
    }
}

/* Runs the tests once for each level of vector units that this machine has, in a process of its own. */
static inline int test_each_level(int (*run)(void))
{
    static const char *const levels[] = {"baseline", "avx2", "avx512"};
    int failed = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (hr_kernels_named(levels[i]) == NULL) {
            printf("level %s: not on this machine\n", levels[i]);
            continue;
        }
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            setenv("HEADRACE_SIMD", levels[i], 1);
            fprintf(stderr, "level %s\n", hr_kernels_here()->name);
            exit(run());
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 0) {
            failed = 1;
        }
    }
    return failed;
}

static inline bool test_is_float(hr_dtype dtype)
{
    return dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F32 || dtype == HR_F64;
}

/* Element i as f64; 64-bit integers lose their low bits. */
static inline double test_get(const void *data, hr_dtype dtype, uint64_t i)
{
    switch (dtype) {
    case HR_F16:
        return (double)hr_float_from_half(((const uint16_t *)data)[i]);
    case HR_BF16:
        return (double)hr_float_from_bf16(((const uint16_t *)data)[i]);
    case HR_F32:
        return (double)((const float *)data)[i];
    case HR_F64:
        return ((const double *)data)[i];
    case HR_I8:
        return ((const int8_t *)data)[i];
    case HR_I16:
        return ((const int16_t *)data)[i];
    case HR_I32:
        return ((const int32_t *)data)[i];
    case HR_I64:
        return (double)((const int64_t *)data)[i];
    case HR_U8:
        return ((const uint8_t *)data)[i];
    case HR_U16:
        return ((const uint16_t *)data)[i];
    case HR_U32:
        return ((const uint32_t *)data)[i];
    default:
        return (double)((const uint64_t *)data)[i];
    }
}

/* Random elements: integers over their whole range, floats in −1 … 1. */
static inline void test_fill(void *data, hr_dtype dtype, uint64_t n, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t r = test_random(&state);
        const float f = (float)((double)(int64_t)r * 0x1p-63);
        switch (dtype) {
        case HR_F16:
            ((uint16_t *)data)[i] = hr_half_from_float(f);
            break;
        case HR_BF16:
            ((uint16_t *)data)[i] = hr_bf16_from_float(f);
            break;
        case HR_F32:
            ((float *)data)[i] = f;
            break;
        case HR_F64:
            ((double *)data)[i] = (double)(int64_t)r * 0x1p-63;
            break;
        default:
            memcpy((char *)data + i * hr_dtype_bytes(dtype), &r, hr_dtype_bytes(dtype));
        }
    }
}

#endif
