/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f16 and bf16 as bits, and the conversions that round once, to nearest even. Branches are written so that a
 * compiler can turn them into selects. A narrow float that is made from something wider than f32 goes through
 * an f32 that is rounded to odd, which loses nothing that the second rounding could miss.
 */
#ifndef HR_BASE_HALF_H
#define HR_BASE_HALF_H

#include "base/device.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

HR_SHARED_INLINE uint32_t hr_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

HR_SHARED_INLINE float hr_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

HR_SHARED_INLINE float hr_float_from_half(uint16_t half)
{
    const uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    /* Exponents are 112 apart; infinity and NaN need the largest one. */
    const uint32_t normal = magnitude + (UINT32_C(112) << 23);
    const uint32_t special = magnitude + (UINT32_C(224) << 23);
    /* A subnormal is its significand times 2^-24. */
    const uint32_t subnormal = hr_float_bits((float)(int32_t)(half & 0x3ffu) * 0x1p-24f);
    uint32_t bits = magnitude >= (UINT32_C(0x7c00) << 13) ? special : normal;
    bits = magnitude < (UINT32_C(0x0400) << 13) ? subnormal : bits;
    return hr_float_of_bits(bits | sign);
}

HR_SHARED_INLINE uint16_t hr_half_from_float(float value)
{
    const uint32_t bits = hr_float_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    /* Add just under half of the last kept place, or half where that place is odd; a carry moves the
     * exponent. */
    const uint32_t normal = (magnitude - (UINT32_C(112) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    /* Next to 0.5 the last place of an f32 is 2^-24, a subnormal's: the addition does the rounding. */
    const uint32_t subnormal = hr_float_bits(hr_float_of_bits(magnitude) + 0.5f) - hr_float_bits(0.5f);
    const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t half = magnitude >= (UINT32_C(143) << 23) ? special : normal;
    half = magnitude < (UINT32_C(113) << 23) ? subnormal : half;
    return (uint16_t)(half | sign);
}

HR_SHARED_INLINE float hr_float_from_bf16(uint16_t bf16)
{
    return hr_float_of_bits((uint32_t)bf16 << 16);
}

HR_SHARED_INLINE uint16_t hr_bf16_from_float(float value)
{
    const uint32_t bits = hr_float_bits(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t nan = (bits >> 16) | 0x0040u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* The f32 towards zero, with its last bit set where that was not exact. */
HR_SHARED_INLINE float hr_float_from_double_to_odd(double value)
{
    const float nearest = (float)value;
    const double back = (double)nearest;
    uint32_t bits = hr_float_bits(nearest);
    bits -= fabs(back) > fabs(value) ? 1u : 0u;
    bits |= 1u;
    return back == value || value != value ? nearest : hr_float_of_bits(bits);
}

HR_SHARED_INLINE float hr_float_from_u64_to_odd(uint64_t value)
{
    /* Below 2^53 an f64 is exact; above, the 53 highest bits are, with the rest in the last of them. */
    const int64_t kept = (int64_t)(value >> 11) | ((value & 0x7ffu) != 0 ? 1 : 0);
    const double high = (double)kept * 2048.0;
    const double exact = (double)(int64_t)value;
    return hr_float_from_double_to_odd(value >> 53 != 0 ? high : exact);
}

HR_SHARED_INLINE float hr_float_from_i64_to_odd(int64_t value)
{
    return value < 0 ? -hr_float_from_u64_to_odd(-(uint64_t)value)
                     : hr_float_from_u64_to_odd((uint64_t)value);
}

HR_SHARED_INLINE uint16_t hr_half_from_double(double value)
{
    return hr_half_from_float(hr_float_from_double_to_odd(value));
}

HR_SHARED_INLINE uint16_t hr_bf16_from_double(double value)
{
    return hr_bf16_from_float(hr_float_from_double_to_odd(value));
}

#endif
