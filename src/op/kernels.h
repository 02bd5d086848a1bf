/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loops of the ops, once for each level of vector units. A launcher takes the table of the level
 * that the machine has. All levels give the same bits, but for float conv2d and matmul, where a machine with
 * fused multiply-add rounds less often.
 */
#ifndef HR_OP_KERNELS_H
#define HR_OP_KERNELS_H

#include <headrace/dtype.h>

#include "base/exact_sum.h"

/* What a conversion goes through: the narrowest type that holds every value of the source. */
typedef enum hr_pivot {
    HR_PIVOT_F32 = 0, /* f16, bf16, f32 */
    HR_PIVOT_F64,     /* f64 */
    HR_PIVOT_I32,     /* i8, u8, i16, u16, i32 */
    HR_PIVOT_I64,     /* u32, i64 */
    HR_PIVOT_U64,     /* u64 */
    HR_PIVOT_COUNT
} hr_pivot;

hr_pivot hr_pivot_of(hr_dtype dtype);
/* Bytes of one element of a pivot. */
size_t hr_pivot_bytes(hr_pivot pivot);

/* Converts n elements; src and dst do not overlap, and need no alignment beyond an element's. */
typedef void (*hr_cast_fn)(const void *src, void *dst, size_t n);
typedef void (*hr_add_fn)(const void *a, const void *b, void *c, size_t n);

/* Rows of a filter, all in the type that the op accumulates in. Output element (r, x) is the sum over i, j of
 * weight[i × columns + j] × row[r + i][x + j × step]. */
typedef struct hr_filter_rows {
    const void *const *row; /* rows + out_rows − 1 of them, each of n + (columns − 1) × step elements */
    const void *weight;
    uint32_t rows, columns;
    size_t step; /* the channels */
    void *const *out;
    uint32_t out_rows;
    size_t n;
} hr_filter_rows;

/* A block of C (m × n, ldc elements a row) += A × B, both packed: A in panels of tile_rows rows, B in panels
 * of tile_columns columns, each panel k long, padded with zeros. */
typedef struct hr_gemm_block {
    const void *a, *b;
    void *c;
    size_t m, n, k, ldc;
} hr_gemm_block;

typedef struct hr_gemm_kernel {
    size_t tile_rows, tile_columns;
    void (*run)(const hr_gemm_block *block);
} hr_gemm_kernel;

typedef struct hr_kernels {
    const char *name;                                 /* "baseline", "avx2", "avx512" */
    hr_cast_fn load[HR_DTYPE_COUNT];                  /* dtype → its pivot */
    hr_cast_fn store[HR_PIVOT_COUNT][HR_DTYPE_COUNT]; /* pivot → dtype: rounds to nearest even, saturates */
    hr_cast_fn load_f32[HR_DTYPE_COUNT];              /* of types of at most 16 bits, and f32 */
    hr_cast_fn load_f64[HR_DTYPE_COUNT];              /* of types that f64 holds exactly */
    hr_add_fn add[HR_DTYPE_COUNT];                    /* f16 and bf16: null, they go through f32 */
    void (*scale_f32)(float *x, size_t n, float by, float plus);
    void (*scale_f64)(double *x, size_t n, double by, double plus);
    /* mean and std_dev hold `period` values, used round and round from the first element. */
    void (*normalize)(const uint8_t *a, float *c, size_t n, const float *mean, const float *std_dev,
                      size_t period);
    /* Sums of blocks of HR_SUM_BLOCK elements, the last maybe shorter; `lane` is the first element's place in
     * its block. */
    double (*sum_block)(const void *a, hr_dtype dtype, size_t lane, size_t n);
    hr_sum128 (*sum_integers)(const void *a, hr_dtype dtype, size_t n);
    uint32_t (*crc32c)(uint32_t crc, const void *data, size_t bytes);
    void (*filter_f32)(const hr_filter_rows *rows);
    void (*filter_exact)(const hr_filter_rows *rows); /* f32, each product and sum rounded: for integers */
    void (*filter_f64)(const hr_filter_rows *rows);
    hr_gemm_kernel gemm_f32, gemm_f64;
} hr_kernels;

/* The table for this machine, or the one that the environment variable HEADRACE_SIMD names, if the machine
 * can run it. Looked up once; any thread. */
const hr_kernels *hr_kernels_here(void);
/* The table of a level by its name; null: there is none, or this machine cannot run it. */
const hr_kernels *hr_kernels_named(const char *name);

extern const hr_kernels hr_kernels_baseline;
extern const hr_kernels hr_kernels_avx2;
extern const hr_kernels hr_kernels_avx512;

#endif
