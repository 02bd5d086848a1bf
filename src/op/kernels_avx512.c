/* SPDX-License-Identifier: Apache-2.0 */
/* Skylake-X, Zen 4 and later: 64-byte vectors. */
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>

#define HR_LEVEL_NAME      "avx512"
#define HR_LEVEL_TABLE     hr_kernels_avx512
#define HR_VECTOR_BYTES    64
#define HR_HAVE_SSE42      1
#define HR_HAVE_F16C       1
#define HR_HAVE_FMA        1
#define FILTER_ROWS        4
#define FILTER_VECTORS     4
#define FILTER_VECTORS_ONE 8
#define GEMM_ROWS          12

#include "op/kernel_table.h"

#else
/* The compiler does not know this level; nothing refers to the table. */
typedef int hr_no_such_level;
#endif
