/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops and the table of one level. The file of a level says what it is before it includes this: HR_LEVEL_NAME and
 * HR_LEVEL_TABLE; HR_VECTOR_BYTES; HR_HAVE_SSE42, HR_HAVE_F16C and HR_HAVE_FMA where it has them; the rows and vectors
 * that conv2d keeps in registers (FILTER_ROWS, FILTER_VECTORS, or FILTER_VECTORS_ONE for one row), and matmul's GEMM_ROWS.
 */
#ifndef HR_OP_KERNEL_TABLE_H
#define HR_OP_KERNEL_TABLE_H

#include "op/kernel_arith.h"
#include "op/kernel_cast.h"
#include "op/kernel_crc.h"
#include "op/kernel_filter.h"
#include "op/kernel_gemm.h"

const hr_kernels HR_LEVEL_TABLE = {
    .name = HR_LEVEL_NAME,
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

#endif
