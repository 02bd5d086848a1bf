/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of the level's width (HR_VECTOR_BYTES) for the loops that a compiler does not make into vectors as
 * well as one would by hand. `fused` rounds once where the level has such an instruction, `plain` rounds
 * product and sum.
 */
#ifndef HR_OP_VECTOR_H
#define HR_OP_VECTOR_H

#include <math.h>
#include <string.h>

typedef float vf32 __attribute__((vector_size(HR_VECTOR_BYTES)));
typedef double vf64 __attribute__((vector_size(HR_VECTOR_BYTES)));

static inline vf32 load_vf32(const float *from)
{
    vf32 v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void store_vf32(float *to, vf32 v)
{
    memcpy(to, &v, sizeof v);
}

static inline vf64 load_vf64(const double *from)
{
    vf64 v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void store_vf64(double *to, vf64 v)
{
    memcpy(to, &v, sizeof v);
}

static inline vf32 plain_vf32(vf32 a, float b, vf32 c)
{
    return a * b + c;
}

static inline float plain_f32(float a, float b, float c)
{
    return a * b + c;
}

#if defined(HR_HAVE_FMA) && HR_VECTOR_BYTES == 64
static inline vf32 fused_vf32(vf32 a, float b, vf32 c)
{
    return (vf32)_mm512_fmadd_ps((__m512)a, _mm512_set1_ps(b), (__m512)c);
}

static inline vf64 fused_vf64(vf64 a, double b, vf64 c)
{
    return (vf64)_mm512_fmadd_pd((__m512d)a, _mm512_set1_pd(b), (__m512d)c);
}
#elif defined(HR_HAVE_FMA)
static inline vf32 fused_vf32(vf32 a, float b, vf32 c)
{
    return (vf32)_mm256_fmadd_ps((__m256)a, _mm256_set1_ps(b), (__m256)c);
}

static inline vf64 fused_vf64(vf64 a, double b, vf64 c)
{
    return (vf64)_mm256_fmadd_pd((__m256d)a, _mm256_set1_pd(b), (__m256d)c);
}
#else
#define fused_vf32 plain_vf32
static inline vf64 fused_vf64(vf64 a, double b, vf64 c)
{
    return a * b + c;
}
#endif

#ifdef HR_HAVE_FMA
static inline float fused_f32(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

static inline double fused_f64(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}
#else
#define fused_f32 plain_f32
static inline double fused_f64(double a, double b, double c)
{
    return a * b + c;
}
#endif

#endif
