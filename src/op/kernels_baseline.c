/* SPDX-License-Identifier: Apache-2.0 */
/* The level that every machine has: what the compiler makes for the plain target. */
#define HR_LEVEL_NAME      "baseline"
#define HR_LEVEL_TABLE     hr_kernels_baseline
#define HR_VECTOR_BYTES    16
#define FILTER_ROWS        2
#define FILTER_VECTORS     4
#define FILTER_VECTORS_ONE 8
#define GEMM_ROWS          4

#include "op/kernel_table.h"
