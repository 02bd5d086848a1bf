/* SPDX-License-Identifier: Apache-2.0 */
/* Launching built-in ops without a pipeline: workers of several threads, views, and data that is awkward. */
#ifndef HR_TESTS_OP_SUPPORT_H
#define HR_TESTS_OP_SUPPORT_H

#include "support/elements.h"
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

#endif
