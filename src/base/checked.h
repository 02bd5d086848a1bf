/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on sizes that says when it overflows. */
#ifndef HR_BASE_CHECKED_H
#define HR_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool hr_mul_overflows(uint64_t a, uint64_t b, uint64_t *product)
{
    return __builtin_mul_overflow(a, b, product);
}

static inline bool hr_add_overflows(uint64_t a, uint64_t b, uint64_t *sum)
{
    return __builtin_add_overflow(a, b, sum);
}

static inline uint64_t hr_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t hr_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Rounded up to a multiple of `unit` (not 0); the caller knows that the sum fits. */
static inline uint64_t hr_round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static inline uint64_t hr_div_up(uint64_t value, uint64_t unit)
{
    return value / unit + (value % unit != 0);
}

#endif
