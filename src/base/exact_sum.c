/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exact_sum.h"

#include <math.h>

void hr_exact_sum_carry(hr_exact_sum *sum)
{
    for (int i = 0; i + 1 < HR_EXACT_DIGITS; i++) {
        const int64_t low = sum->digit[i] & INT64_C(0xffffffff);
        sum->digit[i + 1] += (sum->digit[i] - low) / (INT64_C(1) << 32);
        sum->digit[i] = low;
    }
}

void hr_exact_sum_merge(hr_exact_sum *sum, const hr_exact_sum *other)
{
    for (int i = 0; i < HR_EXACT_DIGITS; i++) {
        sum->digit[i] += other->digit[i];
    }
    sum->nan += other->nan;
    sum->plus_infinity += other->plus_infinity;
    sum->minus_infinity += other->minus_infinity;
    hr_exact_sum_carry(sum);
}

/* The magnitude of a carried sum, all digits in 0 … 2³² − 1. Tells whether the sum was negative. */
static bool magnitude_of(const hr_exact_sum *sum, uint32_t *digit)
{
    const bool negative = sum->digit[HR_EXACT_DIGITS - 1] < 0;
    int64_t carry = 0;
    for (int i = 0; i < HR_EXACT_DIGITS; i++) {
        const int64_t value = (negative ? -sum->digit[i] : sum->digit[i]) + carry;
        const int64_t low = value & INT64_C(0xffffffff);
        carry = (value - low) / (INT64_C(1) << 32);
        digit[i] = (uint32_t)low;
    }
    return negative;
}

/* The 64 bits of the magnitude from bit `lowest` on. */
static uint64_t bits_from(const uint32_t *digit, int lowest)
{
    const int first = lowest / 32;
    const int shift = lowest % 32;
    uint64_t result = 0;
    for (int i = 0; i < 3; i++) {
        const int at = first + i;
        const uint64_t value = at < HR_EXACT_DIGITS ? digit[at] : 0;
        const int place = 32 * i - shift;
        if (place < 0) {
            result |= value >> -place;
        } else if (place < 64) {
            result |= value << place;
        }
    }
    return result;
}

static bool any_below(const uint32_t *digit, int bit)
{
    for (int i = 0; i < bit / 32; i++) {
        if (digit[i] != 0) {
            return true;
        }
    }
    return (digit[bit / 32] & ((UINT32_C(1) << (bit % 32)) - 1)) != 0;
}

double hr_exact_sum_value(const hr_exact_sum *sum)
{
    if (sum->nan != 0 || (sum->plus_infinity != 0 && sum->minus_infinity != 0)) {
        return NAN;
    }
    if (sum->plus_infinity != 0 || sum->minus_infinity != 0) {
        return sum->plus_infinity != 0 ? INFINITY : -INFINITY;
    }
    uint32_t digit[HR_EXACT_DIGITS];
    const bool negative = magnitude_of(sum, digit);
    int top = HR_EXACT_DIGITS - 1;
    while (top >= 0 && digit[top] == 0) {
        top--;
    }
    if (top < 0) {
        return 0.0;
    }
    const int highest = 32 * top + 31 - __builtin_clz(digit[top]);
    /* The place of the last bit that an f64 keeps: 52 below the highest, and not below 2^-1074, which is
     * bit 14. */
    const int last = highest - 52 > 14 ? highest - 52 : 14;
    uint64_t kept = bits_from(digit, last) & ((UINT64_C(1) << 53) - 1);
    /* Nothing is ever added below bit 14, so `last` is above it wherever something is cut off. */
    if (last > 14) {
        const bool half = (digit[(last - 1) / 32] >> ((last - 1) % 32) & 1u) != 0;
        const bool more = any_below(digit, last - 1);
        kept += half && (more || (kept & 1u) != 0);
    }
    const double value = ldexp((double)kept, last - 1088);
    return negative ? -value : value;
}
