/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions, included once by the file of each level. Every pair of types goes through one of five pivots:
 * 12 loops that load and 60 that store instead of 144.
 *
 * Rounding to an integer adds 1.5 × 2^23 (f32) or 1.5 × 2^52 (f64): the sum's last place is 1, so that the
 * addition rounds to nearest even, and its low bits are the integer in two's complement. This needs no
 * instruction that a baseline lacks, and no other rounding mode than the default.
 */
#ifndef HR_OP_KERNEL_CAST_H
#define HR_OP_KERNEL_CAST_H

#include "base/half.h"
#include "op/kernels.h"

/* NaN fails both comparisons and becomes 0 first. */
static inline int32_t round_f32(float value, float lowest, float highest)
{
    value = value == value ? value : 0.0f;
    value = value < lowest ? lowest : value;
    value = value > highest ? highest : value;
    return (int32_t)(hr_float_bits(value + 0x1.8p23f) << 9) >> 9;
}

static inline uint32_t round_f64(double value, double lowest, double highest)
{
    value = value == value ? value : 0.0;
    value = value < lowest ? lowest : value;
    value = value > highest ? highest : value;
    value += 0x1.8p52;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint32_t)bits;
}

static inline int64_t i64_of_f64(double value)
{
    if (value != value) {
        return 0;
    }
    if (value >= 0x1p63) {
        return INT64_MAX;
    }
    return value <= -0x1p63 ? INT64_MIN : (int64_t)nearbyint(value);
}

static inline uint64_t u64_of_f64(double value)
{
    if (!(value > 0.0)) {
        return 0;
    }
    return value >= 0x1p64 ? UINT64_MAX : (uint64_t)nearbyint(value);
}

static inline int64_t clamp_i64(int64_t value, int64_t lowest, int64_t highest)
{
    value = value < lowest ? lowest : value;
    return value > highest ? highest : value;
}

static inline int32_t clamp_i32(int32_t value, int32_t lowest, int32_t highest)
{
    value = value < lowest ? lowest : value;
    return value > highest ? highest : value;
}

static inline uint64_t clamp_u64(uint64_t value, uint64_t highest)
{
    return value > highest ? highest : value;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and functions. */
#define CAST_LOOP(name, source, target, expression)        \
    static void name(const void *src, void *dst, size_t n) \
    {                                                      \
        const source *restrict a = (const source *)src;    \
        target *restrict b = (target *)dst;                \
        for (size_t i = 0; i < n; i++) {                   \
            const source x = a[i];                         \
            b[i] = (target)(expression);                   \
        }                                                  \
    }

/* Loads. */
#ifdef HR_HAVE_F16C
static void f32_of_f16(const void *src, void *dst, size_t n)
{
    const uint16_t *a = (const uint16_t *)src;
    float *b = (float *)dst;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(b + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(a + i))));
    }
    for (; i < n; i++) {
        b[i] = hr_float_from_half(a[i]);
    }
}

static void f16_of_f32(const void *src, void *dst, size_t n)
{
    const float *a = (const float *)src;
    uint16_t *b = (uint16_t *)dst;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128((__m128i *)(void *)(b + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < n; i++) {
        b[i] = hr_half_from_float(a[i]);
    }
}
#else
CAST_LOOP(f32_of_f16, uint16_t, float, hr_float_from_half(x))
CAST_LOOP(f16_of_f32, float, uint16_t, hr_half_from_float(x))
#endif
CAST_LOOP(f32_of_bf16, uint16_t, float, hr_float_from_bf16(x))
CAST_LOOP(copy_32, uint32_t, uint32_t, x)
CAST_LOOP(copy_64, uint64_t, uint64_t, x)
CAST_LOOP(i32_of_i8, int8_t, int32_t, x)
CAST_LOOP(i32_of_u8, uint8_t, int32_t, x)
CAST_LOOP(i32_of_i16, int16_t, int32_t, x)
CAST_LOOP(i32_of_u16, uint16_t, int32_t, x)
CAST_LOOP(i64_of_u32, uint32_t, int64_t, x)
CAST_LOOP(f32_of_i8, int8_t, float, x)
CAST_LOOP(f32_of_u8, uint8_t, float, x)
CAST_LOOP(f32_of_i16, int16_t, float, x)
CAST_LOOP(f32_of_u16, uint16_t, float, x)
CAST_LOOP(f64_of_i8, int8_t, double, x)
CAST_LOOP(f64_of_u8, uint8_t, double, x)
CAST_LOOP(f64_of_i16, int16_t, double, x)
CAST_LOOP(f64_of_u16, uint16_t, double, x)
CAST_LOOP(f64_of_i32, int32_t, double, x)
CAST_LOOP(f64_of_u32, uint32_t, double, x)

/* Stores from f32. */
CAST_LOOP(bf16_of_f32, float, uint16_t, hr_bf16_from_float(x))
CAST_LOOP(f64_of_f32, float, double, x)
CAST_LOOP(i8_of_f32, float, int8_t, round_f32(x, -128.0f, 127.0f))
CAST_LOOP(u8_of_f32, float, uint8_t, round_f32(x, 0.0f, 255.0f))
CAST_LOOP(i16_of_f32, float, int16_t, round_f32(x, -32768.0f, 32767.0f))
CAST_LOOP(u16_of_f32, float, uint16_t, round_f32(x, 0.0f, 65535.0f))
CAST_LOOP(i32_of_f32, float, int32_t, round_f64(x, -2147483648.0, 2147483647.0))
CAST_LOOP(u32_of_f32, float, uint32_t, round_f64(x, 0.0, 4294967295.0))
CAST_LOOP(i64_of_f32, float, int64_t, i64_of_f64(x))
CAST_LOOP(u64_of_f32, float, uint64_t, u64_of_f64(x))

/* Stores from f64. */
CAST_LOOP(f16_of_f64, double, uint16_t, hr_half_from_double(x))
CAST_LOOP(bf16_of_f64, double, uint16_t, hr_bf16_from_double(x))
CAST_LOOP(f32_of_f64, double, float, x)
CAST_LOOP(i8_of_f64, double, int8_t, round_f64(x, -128.0, 127.0))
CAST_LOOP(u8_of_f64, double, uint8_t, round_f64(x, 0.0, 255.0))
CAST_LOOP(i16_of_f64, double, int16_t, round_f64(x, -32768.0, 32767.0))
CAST_LOOP(u16_of_f64, double, uint16_t, round_f64(x, 0.0, 65535.0))
CAST_LOOP(i32_of_f64, double, int32_t, round_f64(x, -2147483648.0, 2147483647.0))
CAST_LOOP(u32_of_f64, double, uint32_t, round_f64(x, 0.0, 4294967295.0))
CAST_LOOP(i64_from_f64, double, int64_t, i64_of_f64(x))
CAST_LOOP(u64_from_f64, double, uint64_t, u64_of_f64(x))

/* Stores from i32. An f32 made to odd of an f64 that holds the integer is what rounds once to 16 bits. */
CAST_LOOP(f16_of_i32, int32_t, uint16_t, hr_half_from_double((double)x))
CAST_LOOP(bf16_of_i32, int32_t, uint16_t, hr_bf16_from_double((double)x))
CAST_LOOP(f32_of_i32, int32_t, float, x)
CAST_LOOP(i8_of_i32, int32_t, int8_t, clamp_i32(x, INT8_MIN, INT8_MAX))
CAST_LOOP(u8_of_i32, int32_t, uint8_t, clamp_i32(x, 0, UINT8_MAX))
CAST_LOOP(i16_of_i32, int32_t, int16_t, clamp_i32(x, INT16_MIN, INT16_MAX))
CAST_LOOP(u16_of_i32, int32_t, uint16_t, clamp_i32(x, 0, UINT16_MAX))
CAST_LOOP(u32_of_i32, int32_t, uint32_t, x < 0 ? 0 : x)
CAST_LOOP(i64_of_i32, int32_t, int64_t, x)
CAST_LOOP(u64_of_i32, int32_t, uint64_t, x < 0 ? 0 : x)

/* Stores from i64. */
CAST_LOOP(f16_of_i64, int64_t, uint16_t, hr_half_from_float(hr_float_from_i64_to_odd(x)))
CAST_LOOP(bf16_of_i64, int64_t, uint16_t, hr_bf16_from_float(hr_float_from_i64_to_odd(x)))
CAST_LOOP(f32_of_i64, int64_t, float, x)
CAST_LOOP(f64_of_i64, int64_t, double, x)
CAST_LOOP(i8_of_i64, int64_t, int8_t, clamp_i64(x, INT8_MIN, INT8_MAX))
CAST_LOOP(u8_of_i64, int64_t, uint8_t, clamp_i64(x, 0, UINT8_MAX))
CAST_LOOP(i16_of_i64, int64_t, int16_t, clamp_i64(x, INT16_MIN, INT16_MAX))
CAST_LOOP(u16_of_i64, int64_t, uint16_t, clamp_i64(x, 0, UINT16_MAX))
CAST_LOOP(i32_of_i64, int64_t, int32_t, clamp_i64(x, INT32_MIN, INT32_MAX))
CAST_LOOP(u32_of_i64, int64_t, uint32_t, clamp_i64(x, 0, UINT32_MAX))
CAST_LOOP(u64_of_i64, int64_t, uint64_t, x < 0 ? 0 : x)

/* Stores from u64. */
CAST_LOOP(f16_of_u64, uint64_t, uint16_t, hr_half_from_float(hr_float_from_u64_to_odd(x)))
CAST_LOOP(bf16_of_u64, uint64_t, uint16_t, hr_bf16_from_float(hr_float_from_u64_to_odd(x)))
CAST_LOOP(f32_of_u64, uint64_t, float, x)
CAST_LOOP(f64_of_u64, uint64_t, double, x)
CAST_LOOP(i8_of_u64, uint64_t, int8_t, clamp_u64(x, INT8_MAX))
CAST_LOOP(u8_of_u64, uint64_t, uint8_t, clamp_u64(x, UINT8_MAX))
CAST_LOOP(i16_of_u64, uint64_t, int16_t, clamp_u64(x, INT16_MAX))
CAST_LOOP(u16_of_u64, uint64_t, uint16_t, clamp_u64(x, UINT16_MAX))
CAST_LOOP(i32_of_u64, uint64_t, int32_t, clamp_u64(x, INT32_MAX))
CAST_LOOP(u32_of_u64, uint64_t, uint32_t, clamp_u64(x, UINT32_MAX))
CAST_LOOP(i64_of_u64, uint64_t, int64_t, clamp_u64(x, INT64_MAX))

#define CAST_LOADS                                                                              \
    {                                                                                           \
        [HR_F16] = f32_of_f16, [HR_BF16] = f32_of_bf16, [HR_F32] = copy_32, [HR_F64] = copy_64, \
        [HR_I8] = i32_of_i8, [HR_I16] = i32_of_i16, [HR_I32] = copy_32, [HR_I64] = copy_64,     \
        [HR_U8] = i32_of_u8, [HR_U16] = i32_of_u16, [HR_U32] = i64_of_u32, [HR_U64] = copy_64,  \
    }
#define CAST_LOADS_F32                                                                           \
    {                                                                                            \
        [HR_F16] = f32_of_f16, [HR_BF16] = f32_of_bf16, [HR_F32] = copy_32, [HR_I8] = f32_of_i8, \
        [HR_I16] = f32_of_i16, [HR_U8] = f32_of_u8, [HR_U16] = f32_of_u16,                       \
    }
#define CAST_LOADS_F64                                                                            \
    {                                                                                             \
        [HR_F32] = f64_of_f32, [HR_F64] = copy_64, [HR_I8] = f64_of_i8, [HR_I16] = f64_of_i16,    \
        [HR_I32] = f64_of_i32, [HR_U8] = f64_of_u8, [HR_U16] = f64_of_u16, [HR_U32] = f64_of_u32, \
    }
#define CAST_STORES                                                                                         \
    {                                                                                                       \
        [HR_PIVOT_F32] =                                                                                    \
            {[HR_F16] = f16_of_f32, [HR_BF16] = bf16_of_f32, [HR_F32] = copy_32,    [HR_F64] = f64_of_f32,  \
             [HR_I8] = i8_of_f32,   [HR_I16] = i16_of_f32,   [HR_I32] = i32_of_f32, [HR_I64] = i64_of_f32,  \
             [HR_U8] = u8_of_f32,   [HR_U16] = u16_of_f32,   [HR_U32] = u32_of_f32, [HR_U64] = u64_of_f32}, \
        [HR_PIVOT_F64] = {[HR_F16] = f16_of_f64, [HR_BF16] = bf16_of_f64, [HR_F32] = f32_of_f64,            \
                          [HR_F64] = copy_64,    [HR_I8] = i8_of_f64,     [HR_I16] = i16_of_f64,            \
                          [HR_I32] = i32_of_f64, [HR_I64] = i64_from_f64, [HR_U8] = u8_of_f64,              \
                          [HR_U16] = u16_of_f64, [HR_U32] = u32_of_f64,   [HR_U64] = u64_from_f64},         \
        [HR_PIVOT_I32] =                                                                                    \
            {[HR_F16] = f16_of_i32, [HR_BF16] = bf16_of_i32, [HR_F32] = f32_of_i32, [HR_F64] = f64_of_i32,  \
             [HR_I8] = i8_of_i32,   [HR_I16] = i16_of_i32,   [HR_I32] = copy_32,    [HR_I64] = i64_of_i32,  \
             [HR_U8] = u8_of_i32,   [HR_U16] = u16_of_i32,   [HR_U32] = u32_of_i32, [HR_U64] = u64_of_i32}, \
        [HR_PIVOT_I64] =                                                                                    \
            {[HR_F16] = f16_of_i64, [HR_BF16] = bf16_of_i64, [HR_F32] = f32_of_i64, [HR_F64] = f64_of_i64,  \
             [HR_I8] = i8_of_i64,   [HR_I16] = i16_of_i64,   [HR_I32] = i32_of_i64, [HR_I64] = copy_64,     \
             [HR_U8] = u8_of_i64,   [HR_U16] = u16_of_i64,   [HR_U32] = u32_of_i64, [HR_U64] = u64_of_i64}, \
        [HR_PIVOT_U64] = {                                                                                  \
            [HR_F16] = f16_of_u64, [HR_BF16] = bf16_of_u64, [HR_F32] = f32_of_u64, [HR_F64] = f64_of_u64,   \
            [HR_I8] = i8_of_u64,   [HR_I16] = i16_of_u64,   [HR_I32] = i32_of_u64, [HR_I64] = i64_of_u64,   \
            [HR_U8] = u8_of_u64,   [HR_U16] = u16_of_u64,   [HR_U32] = u32_of_u64, [HR_U64] = copy_64},     \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

#endif
