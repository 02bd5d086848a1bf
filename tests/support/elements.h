/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of any dtype by the definition of its format, and arrays filled with them. */
#ifndef HR_TESTS_SUPPORT_ELEMENTS_H
#define HR_TESTS_SUPPORT_ELEMENTS_H

#include <headrace/dtype.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

static inline bool is_float(hr_dtype dtype)
{
    return dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F32 || dtype == HR_F64;
}

static inline double small_float(uint16_t bits, int exponent_bits, int fraction_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1) {
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, 1 - bias - fraction_bits);
    } else {
        value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    }
    return bits >> 15 != 0 ? -value : value;
}

/* Element i as f64; wide integers lose their low bits. */
static inline double element(const void *data, hr_dtype dtype, uint64_t i)
{
    switch (dtype) {
    case HR_F16:
        return small_float(((const uint16_t *)data)[i], 5, 10);
    case HR_BF16:
        return small_float(((const uint16_t *)data)[i], 8, 7);
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

/* f16 and bf16 are cut off, not rounded: for test data that is as good. */
static inline void set_element(void *data, hr_dtype dtype, uint64_t i, double value)
{
    if (dtype == HR_F64) {
        ((double *)data)[i] = value;
    } else if (dtype == HR_F32) {
        ((float *)data)[i] = (float)value;
    } else if (dtype == HR_BF16) {
        const float f = (float)value;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    } else {
        const double magnitude = fabs(value);
        int exponent;
        const double fraction = frexp(magnitude, &exponent);
        uint32_t bits = 0x7c00;
        if (isnan(value)) {
            bits = 0x7e01;
        } else if (magnitude < 0x1p-14) {
            bits = (uint32_t)(magnitude * 0x1p24);
        } else if (magnitude < 65536) {
            bits = (uint32_t)(exponent + 14) << 10 | ((uint32_t)(fraction * 2048) & 0x3ff);
        }
        ((uint16_t *)data)[i] = (uint16_t)(bits | (signbit(value) ? 0x8000u : 0));
    }
}

/* xorshift: the same numbers in each run. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Floats in -1 ... 1, integers over their whole range. */
static inline void fill_plain(void *data, hr_dtype dtype, uint64_t n, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    const uint64_t bytes = hr_dtype_bytes(dtype);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t r = next_random(&state);
        if (is_float(dtype)) {
            set_element(data, dtype, i, (double)(int64_t)r * 0x1p-63);
        } else {
            memcpy((char *)data + i * bytes, &r, bytes);
        }
    }
}

/* Any bits at all, and the values at which something changes: ties, ends of ranges, NaN, infinities, subnormals. */
static inline void fill_awkward(void *data, hr_dtype dtype, uint64_t n, uint64_t seed)
{
    static const double values[] = {0.5,
                                    1.5,
                                    2.5,
                                    -0.5,
                                    -1.5,
                                    0.49999999999999994,
                                    127.5,
                                    128.5,
                                    -128.5,
                                    254.5,
                                    255.5,
                                    32767.5,
                                    -32768.5,
                                    65534.5,
                                    65535.5,
                                    2147483647.5,
                                    -2147483648.5,
                                    4294967295.5,
                                    9.3e18,
                                    -9.3e18,
                                    1.9e19,
                                    0x1p63,
                                    -0x1p63,
                                    0x1p64,
                                    1e30,
                                    -1e30,
                                    65519.0,
                                    65520.0,
                                    8388607.5,
                                    8388609.0,
                                    0x1p-24,
                                    0x1p-25,
                                    0.0,
                                    -0.0,
                                    0x1p-149,
                                    (double)NAN,
                                    (double)INFINITY,
                                    -(double)INFINITY,
                                    0x1.fffffep127,
                                    1e-310,
                                    3.4e38};
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 99;
    const uint64_t bytes = hr_dtype_bytes(dtype);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t r = next_random(&state);
        memcpy((char *)data + i * bytes, &r, bytes);
        if (is_float(dtype) && i % 3 == 0) {
            const uint64_t k = i / 3 % (2 * (sizeof values / sizeof values[0]));
            const double beside = (double)((int64_t)(i % 4096) - 2048) * 0.25;
            set_element(data, dtype, i, k < sizeof values / sizeof values[0] ? values[k] : beside);
        } else if (!is_float(dtype) && i % 3 == 0) {
            /* Small numbers, which random bits of a wide integer never are. */
            const int64_t small = (int64_t)(i % 200000) - 100000;
            memcpy((char *)data + i * bytes, &small, bytes);
        }
    }
}

/* The magnitudes of floats. */
static inline void make_positive(void *data, hr_dtype dtype, uint64_t n)
{
    for (uint64_t i = 0; i < n && is_float(dtype); i++) {
        ((unsigned char *)data)[(i + 1) * hr_dtype_bytes(dtype) - 1] &= 0x7f;
    }
}

#endif
