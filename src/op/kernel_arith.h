/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise arithmetic and sums, included once by the file of each level. */
#ifndef HR_OP_KERNEL_ARITH_H
#define HR_OP_KERNEL_ARITH_H

#include "op/kernel_cast.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and functions. */
/* Signed integers are added as unsigned ones, which wrap. */
#define ADD_LOOP(name, type)                                          \
    static void name(const void *a, const void *b, void *c, size_t n) \
    {                                                                 \
        const type *x = (const type *)a;                              \
        const type *y = (const type *)b;                              \
        type *restrict z = (type *)c;                                 \
        for (size_t i = 0; i < n; i++) {                              \
            z[i] = (type)(x[i] + y[i]);                               \
        }                                                             \
    }

ADD_LOOP(add_f32, float)
ADD_LOOP(add_f64, double)
ADD_LOOP(add_8, uint8_t)
ADD_LOOP(add_16, uint16_t)
ADD_LOOP(add_32, uint32_t)
ADD_LOOP(add_64, uint64_t)

#define ARITH_ADDS                                                                                     \
    {                                                                                                  \
        [HR_F32] = add_f32, [HR_F64] = add_f64, [HR_I8] = add_8, [HR_I16] = add_16, [HR_I32] = add_32, \
        [HR_I64] = add_64, [HR_U8] = add_8, [HR_U16] = add_16, [HR_U32] = add_32, [HR_U64] = add_64,   \
    }

static void scale_f32(float *x, size_t n, float by, float plus)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = x[i] * by + plus;
    }
}

static void scale_f64(double *x, size_t n, double by, double plus)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = x[i] * by + plus;
    }
}

static void normalize(const uint8_t *a, float *c, size_t n, const float *mean, const float *std_dev,
                      size_t period)
{
    size_t i = 0;
    for (; i + period <= n; i += period) {
        const uint8_t *restrict from = a + i;
        float *restrict to = c + i;
        for (size_t k = 0; k < period; k++) {
            to[k] = ((float)from[k] / 255.0f - mean[k]) / std_dev[k];
        }
    }
    for (size_t k = 0; i < n; i++, k++) {
        c[i] = ((float)a[i] / 255.0f - mean[k]) / std_dev[k];
    }
}

/* Adds elements to the lanes from `lane` on; a full round of lanes is what the compiler makes vectors of. */
#define SUM_LOOP(name, type, expression)                                           \
    static void name(const void *src, double *restrict sum, size_t lane, size_t n) \
    {                                                                              \
        const type *a = (const type *)src;                                         \
        size_t i = 0;                                                              \
        for (; i < n && lane != 0; i++, lane = (lane + 1) % HR_SUM_LANES) {        \
            const type x = a[i];                                                   \
            sum[lane] += (double)(expression);                                     \
        }                                                                          \
        for (; i + HR_SUM_LANES <= n; i += HR_SUM_LANES) {                         \
            for (size_t k = 0; k < HR_SUM_LANES; k++) {                            \
                const type x = a[i + k];                                           \
                sum[k] += (double)(expression);                                    \
            }                                                                      \
        }                                                                          \
        for (size_t k = 0; i < n; i++, k++) {                                      \
            const type x = a[i];                                                   \
            sum[k] += (double)(expression);                                        \
        }                                                                          \
    }

SUM_LOOP(lanes_f16, uint16_t, hr_float_from_half(x))
SUM_LOOP(lanes_bf16, uint16_t, hr_float_from_bf16(x))
SUM_LOOP(lanes_f32, float, x)
SUM_LOOP(lanes_f64, double, x)

static double sum_block(const void *a, hr_dtype dtype, size_t lane, size_t n)
{
    double sum[HR_SUM_LANES] = {0.0};
    lane %= HR_SUM_LANES;
    if (dtype == HR_F16) {
        lanes_f16(a, sum, lane, n);
    } else if (dtype == HR_BF16) {
        lanes_bf16(a, sum, lane, n);
    } else if (dtype == HR_F32) {
        lanes_f32(a, sum, lane, n);
    } else {
        lanes_f64(a, sum, lane, n);
    }
    for (size_t half = HR_SUM_LANES / 2; half > 0; half /= 2) {
        for (size_t k = 0; k < half; k++) {
            sum[k] += sum[k + half];
        }
    }
    return sum[0];
}

/* At most 2³⁰ elements: their sum fits in 64 bits. */
#define SUM_INTEGER_LOOP(name, type, wide)      \
    static wide name(const void *src, size_t n) \
    {                                           \
        const type *a = (const type *)src;      \
        wide sum = 0;                           \
        for (size_t i = 0; i < n; i++) {        \
            sum += a[i];                        \
        }                                       \
        return sum;                             \
    }

SUM_INTEGER_LOOP(sum_i8, int8_t, int64_t)
SUM_INTEGER_LOOP(sum_i16, int16_t, int64_t)
SUM_INTEGER_LOOP(sum_i32, int32_t, int64_t)
SUM_INTEGER_LOOP(sum_u8, uint8_t, uint64_t)
SUM_INTEGER_LOOP(sum_u16, uint16_t, uint64_t)
SUM_INTEGER_LOOP(sum_u32, uint32_t, uint64_t)

static hr_sum128 signed_128(int64_t value)
{
    return (hr_sum128){(uint64_t)value, value < 0 ? UINT64_MAX : 0};
}

/* 64-bit elements: low and high halves apart, so that neither sum overflows. high × 2³² + low. */
static hr_sum128 sum_halves(uint64_t low, int64_t high)
{
    const hr_sum128 upper = {(uint64_t)high << 32, (uint64_t)(high >> 32)};
    return hr_sum128_add(upper, (hr_sum128){low, 0});
}

static hr_sum128 sum_i64(const void *src, size_t n)
{
    const int64_t *a = (const int64_t *)src;
    uint64_t low = 0;
    int64_t high = 0;
    for (size_t i = 0; i < n; i++) {
        low += (uint64_t)a[i] & UINT32_MAX;
        high += a[i] >> 32;
    }
    return sum_halves(low, high);
}

static hr_sum128 sum_u64(const void *src, size_t n)
{
    const uint64_t *a = (const uint64_t *)src;
    uint64_t low = 0;
    uint64_t high = 0;
    for (size_t i = 0; i < n; i++) {
        low += a[i] & UINT32_MAX;
        high += a[i] >> 32;
    }
    return sum_halves(low, (int64_t)high);
}

/* At most 2³⁰ elements. */
static hr_sum128 sum_integers(const void *a, hr_dtype dtype, size_t n)
{
    switch (dtype) {
    case HR_I8:
        return signed_128(sum_i8(a, n));
    case HR_I16:
        return signed_128(sum_i16(a, n));
    case HR_I32:
        return signed_128(sum_i32(a, n));
    case HR_I64:
        return sum_i64(a, n);
    case HR_U8:
        return (hr_sum128){sum_u8(a, n), 0};
    case HR_U16:
        return (hr_sum128){sum_u16(a, n), 0};
    case HR_U32:
        return (hr_sum128){sum_u32(a, n), 0};
    default:
        return sum_u64(a, n);
    }
}

/* NOLINTEND(bugprone-macro-parentheses) */

#endif
