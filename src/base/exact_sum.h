/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums that do not depend on the order in which their parts arrive. Floats: a block of HR_SUM_BLOCK elements,
 * aligned in the whole array, is added in one fixed order in f64 (HR_SUM_LANES running sums, then a tree),
 * and the sums of the blocks go into a fixed-point number that is wide enough for every f64, so that adding
 * them is exact. The answer is the same to the bit on one thread and many, in any chunks of whole blocks, and
 * on every device. Integers: 128 bits.
 */
#ifndef HR_BASE_EXACT_SUM_H
#define HR_BASE_EXACT_SUM_H

#include "base/device.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HR_SUM_BLOCK 1024
#define HR_SUM_LANES 32

/* A signed 128-bit number in two's complement. */
typedef struct hr_sum128 {
    uint64_t low, high;
} hr_sum128;

/*
 * Digit i counts for 2^(32·i − 1088). Digits are signed and carry late: 2³⁰ values can be added before
 * hr_exact_sum_carry() must be called. An f64 touches three digits at most. Sums of magnitudes up to 2^1087
 * fit.
 */
#define HR_EXACT_DIGITS 68
typedef struct hr_exact_sum {
    int64_t digit[HR_EXACT_DIGITS];
    uint64_t nan, plus_infinity, minus_infinity; /* how many of them */
} hr_exact_sum;

/* What a finite f64 adds: `part[i]` to digit[first + i]. */
typedef struct hr_exact_parts {
    uint32_t first;
    int64_t part[3];
} hr_exact_parts;

/* `bits` are those of a finite f64. */
HR_SHARED_INLINE hr_exact_parts hr_exact_split(uint64_t bits)
{
    const uint32_t biased = (uint32_t)(bits >> 52) & 0x7ffu;
    uint64_t significand = bits & 0xfffffffffffffULL;
    if (biased != 0) {
        significand |= 1ULL << 52;
    }
    /* The value is significand × 2^(exponent − 1074), and 1088 − 1074 = 14. */
    const uint32_t position = (biased != 0 ? biased - 1 : 0) + 14;
    const uint32_t shift = position % 32;
    hr_exact_parts parts;
    parts.first = position / 32;
    parts.part[0] = (int64_t)((significand << shift) & 0xffffffffULL);
    parts.part[1] = (int64_t)((significand >> (32 - shift)) & 0xffffffffULL);
    parts.part[2] = (int64_t)(shift == 0 ? 0 : significand >> (64 - shift));
    if ((bits >> 63) != 0) {
        parts.part[0] = -parts.part[0];
        parts.part[1] = -parts.part[1];
        parts.part[2] = -parts.part[2];
    }
    return parts;
}

static inline void hr_exact_sum_add(hr_exact_sum *sum, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7ff0000000000000ULL) == 0x7ff0000000000000ULL) {
        sum->nan += (bits & 0xfffffffffffffULL) != 0;
        sum->plus_infinity += bits == 0x7ff0000000000000ULL;
        sum->minus_infinity += bits == 0xfff0000000000000ULL;
        return;
    }
    const hr_exact_parts parts = hr_exact_split(bits);
    sum->digit[parts.first] += parts.part[0];
    sum->digit[parts.first + 1] += parts.part[1];
    sum->digit[parts.first + 2] += parts.part[2];
}

/* Brings all digits but the last into 0 … 2³² − 1. */
void hr_exact_sum_carry(hr_exact_sum *sum);
/* Adds `other`, which may need carrying, to a carried sum; the sum comes out carried. */
void hr_exact_sum_merge(hr_exact_sum *sum, const hr_exact_sum *other);
/* The nearest f64, ties to even. The sum is carried. */
double hr_exact_sum_value(const hr_exact_sum *sum);

static inline hr_sum128 hr_sum128_add(hr_sum128 a, hr_sum128 b)
{
    hr_sum128 sum;
    sum.low = a.low + b.low;
    sum.high = a.high + b.high + (sum.low < a.low ? 1u : 0u);
    return sum;
}

#endif
