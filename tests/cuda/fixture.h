/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA device of the test double, and what most tests want of it. */
#ifndef HR_TESTS_CUDA_FIXTURE_H
#define HR_TESTS_CUDA_FIXTURE_H

#include "support/unit.h"

#include "core/registry.h"
#include "double.h"

#include <headrace/headrace.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

typedef struct fixture {
    hr_runtime *runtime;
    hr_device *device;
    hr_stream *stream;
    hr_pool *pinned, *on_device;
    unsigned char *host, *host_back; /* pinned */
    unsigned char *there;            /* device */
    uint64_t bytes;                  /* of each */
    unsigned char *pageable, *pageable_back;
} fixture;

/* cmocka's setup and teardown: a fresh double, cuda:0 opened, buffers of 8 MiB with a pattern. The teardown
 * fails if anything of CUDA's is left. */
int fixture_open(void **state);
int fixture_close(void **state);

void fill_pattern(void *base, uint64_t bytes, uint64_t seed);
uint64_t counter_of(hr_device *device, const char *name);
const char *reason_of(hr_device *device, const char *name);

#define assert_ok(call)                                   \
    do {                                                  \
        hr_error assert_error = HR_ERROR_INIT;            \
        hr_error *problem = &assert_error;                \
        if ((call) != HR_OK) {                            \
            fail_msg("%s: %s", #call, assert_error.text); \
        }                                                 \
    } while (0)

#endif
