/* SPDX-License-Identifier: Apache-2.0 */
/* The one clock that every span is measured by. */
#ifndef HR_BASE_CLOCK_H
#define HR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define HR_NS_PER_S UINT64_C(1000000000)

static inline uint64_t hr_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * HR_NS_PER_S + (uint64_t)now.tv_nsec;
}

#endif
