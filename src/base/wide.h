/* SPDX-License-Identifier: Apache-2.0 */
/* a·X + Y for 64-bit integers and f64 factors, exact before it is rounded once. */
#ifndef HR_BASE_WIDE_H
#define HR_BASE_WIDE_H

#include "base/device.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef __int128 hr_int128;
__extension__ typedef unsigned __int128 hr_uint128;

HR_SHARED_INLINE int64_t hr_wide_to_i64(hr_int128 value)
{
    if (value > INT64_MAX) {
        return INT64_MAX;
    }
    return value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

HR_SHARED_INLINE uint64_t hr_wide_to_u64(hr_int128 value)
{
    if (value < 0) {
        return 0;
    }
    return value > (hr_int128)UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

/* A number as whole + part × 2^-128, and whether something positive below 2^-128 was cut off. */
typedef struct hr_fixed {
    hr_uint128 whole; /* two's complement */
    hr_uint128 part;
    bool more;
} hr_fixed;

/* magnitude × 2^exponent, which is below 2^126. */
HR_SHARED_INLINE hr_fixed hr_fixed_make(bool negative, hr_uint128 magnitude, int exponent)
{
    hr_fixed f = {0, 0, false};
    if (exponent >= 0) {
        f.whole = exponent < 128 ? magnitude << exponent : 0;
    } else if (exponent > -128) {
        f.whole = magnitude >> -exponent;
        f.part = magnitude << (128 + exponent);
    } else {
        const int below = -exponent - 128;
        f.part = below < 128 ? magnitude >> below : 0;
        f.more = below < 128 ? f.part << below != magnitude : magnitude != 0;
    }
    if (negative) {
        /* -(v + rest) = not(v) + (1 - rest): the complement alone where something was cut off. */
        f.whole = ~f.whole;
        f.part = ~f.part;
        if (!f.more) {
            f.part++;
            f.whole += f.part == 0;
        }
    }
    return f;
}

/* The significand and exponent of a finite f64's magnitude. */
HR_SHARED_INLINE uint64_t hr_significand_of(double value, int *exponent)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int biased = (int)(bits >> 52 & 0x7ff);
    *exponent = (biased != 0 ? biased : 1) - 1075;
    return (bits & 0xfffffffffffffULL) | (biased != 0 ? 1ULL << 52 : 0);
}

/* The nearest integer to a·by + plus, ties to even, where both terms stay below 2^126; beyond, a value far
 * outside 64 bits with the sign of the f64 result. NaN gives 0. */
HR_SHARED_INLINE hr_int128 hr_wide_scale(hr_int128 a, double by, double plus)
{
    const double nearly = (double)a * by + plus;
    const double term = (double)a * by;
    if (nearly != nearly) {
        return 0;
    }
    const double most = 42535295865117307932921825928971026432.0; /* 2^125 */
    if (!(fabs(term) < most && fabs(plus) < most)) {
        return nearly < 0 ? -((hr_int128)1 << 100) : (hr_int128)1 << 100;
    }
    int by_exponent;
    int plus_exponent;
    const uint64_t by_significand = hr_significand_of(by, &by_exponent);
    const uint64_t plus_significand = hr_significand_of(plus, &plus_exponent);
    const hr_uint128 magnitude = a < 0 ? -(hr_uint128)a : (hr_uint128)a;
    const hr_fixed x = hr_fixed_make((a < 0) != (by < 0), magnitude * by_significand, by_exponent);
    const hr_fixed y = hr_fixed_make(plus < 0, plus_significand, plus_exponent);
    hr_uint128 part = x.part + y.part;
    hr_uint128 whole = x.whole + y.whole + (part < x.part);
    const hr_uint128 half = (hr_uint128)1 << 127;
    if (part > half || (part == half && (x.more || y.more || (whole & 1) != 0))) {
        whole++;
    }
    return (hr_int128)whole;
}

#endif
