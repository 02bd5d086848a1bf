/* SPDX-License-Identifier: Apache-2.0 */
/* Haswell, Zen and later: 32-byte vectors, fused multiply-add, f16 conversions, CRC32C. */
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

#define HR_VECTOR_BYTES    32
#define HR_HAVE_SSE42      1
#define HR_HAVE_F16C       1
#define HR_HAVE_FMA        1
#define FILTER_ROWS        4
#define FILTER_VECTORS     3
#define FILTER_VECTORS_ONE 8
#define GEMM_ROWS          6

#include "op/kernel_arith.h"
#include "op/kernel_cast.h"
#include "op/kernel_crc.h"
#include "op/kernel_filter.h"
#include "op/kernel_gemm.h"

const hr_kernels hr_kernels_avx2 = {
    .name = "avx2",
    .load = CAST_LOADS,
    .store = CAST_STORES,
    .load_f32 = CAST_LOADS_F32,
    .load_f64 = CAST_LOADS_F64,
    .add = ARITH_ADDS,
    .scale_f32 = scale_f32,
    .scale_f64 = scale_f64,
    .normalize = normalize,
    .sum_block = sum_block,
    .sum_integers = sum_integers,
    .crc32c = crc_of,
    .filter_f32 = filter_f32,
    .filter_exact = filter_exact,
    .filter_f64 = filter_f64,
    .gemm_f32 = {GEMM_ROWS, 2 * HR_VECTOR_BYTES / sizeof(float), gemm_f32},
    .gemm_f64 = {GEMM_ROWS, 2 * HR_VECTOR_BYTES / sizeof(double), gemm_f64},
};
#else
/* The compiler does not know this level; nothing refers to the table. */
typedef int hr_no_such_level;
#endif
