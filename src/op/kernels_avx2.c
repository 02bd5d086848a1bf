/* SPDX-License-Identifier: Apache-2.0 */
/* Haswell, Zen and later: 32-byte vectors, fused multiply-add, f16 conversions, CRC32C. */
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

#define HR_LEVEL_NAME      "avx2"
#define HR_LEVEL_TABLE     hr_kernels_avx2
#define HR_VECTOR_BYTES    32
#define HR_HAVE_SSE42      1
#define HR_HAVE_F16C       1
#define HR_HAVE_FMA        1
#define FILTER_ROWS        4
#define FILTER_VECTORS     3
#define FILTER_VECTORS_ONE 8
#define GEMM_ROWS          6

#include "op/kernel_table.h"

#else
/* The compiler does not know this level; nothing refers to the table. */
typedef int hr_no_such_level;
#endif
