/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner block of a matrix product, included once by the file of each level: GEMM_ROWS × 2 vectors of sums
 * stay in registers while k runs. Both operands are packed so that k walks through memory in order.
 */
#ifndef HR_OP_KERNEL_GEMM_H
#define HR_OP_KERNEL_GEMM_H

#include "op/kernels.h"
#include "op/vector.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and functions. */
#define DEFINE_GEMM(suffix, element, vector)                                                               \
    static inline __attribute__((always_inline)) void tile_##suffix(                                       \
        const element *a, const element *b, size_t k, element *c, size_t ldc, size_t m, size_t n)          \
    {                                                                                                      \
        enum { LANES = sizeof(vector) / sizeof(element) };                                                 \
        vector sum[GEMM_ROWS][2];                                                                          \
        _Pragma("GCC unroll 16") for (int i = 0; i < GEMM_ROWS; i++)                                       \
        {                                                                                                  \
            sum[i][0] = (vector){0};                                                                       \
            sum[i][1] = (vector){0};                                                                       \
        }                                                                                                  \
        for (size_t p = 0; p < k; p++, a += GEMM_ROWS, b += 2 * LANES) {                                   \
            const vector b0 = load_##vector(b);                                                            \
            const vector b1 = load_##vector(b + LANES);                                                    \
            _Pragma("GCC unroll 16") for (int i = 0; i < GEMM_ROWS; i++)                                   \
            {                                                                                              \
                sum[i][0] = fused_##vector(b0, a[i], sum[i][0]);                                           \
                sum[i][1] = fused_##vector(b1, a[i], sum[i][1]);                                           \
            }                                                                                              \
        }                                                                                                  \
        if (m == GEMM_ROWS && n == 2 * LANES) {                                                            \
            _Pragma("GCC unroll 16") for (int i = 0; i < GEMM_ROWS; i++)                                   \
            {                                                                                              \
                element *row = c + (size_t)i * ldc;                                                        \
                store_##vector(row, load_##vector(row) + sum[i][0]);                                       \
                store_##vector(row + LANES, load_##vector(row + LANES) + sum[i][1]);                       \
            }                                                                                              \
            return;                                                                                        \
        }                                                                                                  \
        element edge[GEMM_ROWS][2 * LANES];                                                                \
        memcpy(edge, sum, sizeof edge);                                                                    \
        for (size_t i = 0; i < m; i++) {                                                                   \
            for (size_t j = 0; j < n; j++) {                                                               \
                c[i * ldc + j] += edge[i][j];                                                              \
            }                                                                                              \
        }                                                                                                  \
    }                                                                                                      \
                                                                                                           \
    static void gemm_##suffix(const hr_gemm_block *g)                                                      \
    {                                                                                                      \
        const size_t columns = 2 * sizeof(vector) / sizeof(element);                                       \
        for (size_t j = 0; j < g->n; j += columns) {                                                       \
            const element *b = (const element *)g->b + j * g->k;                                           \
            const size_t n = g->n - j < columns ? g->n - j : columns;                                      \
            for (size_t i = 0; i < g->m; i += GEMM_ROWS) {                                                 \
                const size_t m = g->m - i < GEMM_ROWS ? g->m - i : GEMM_ROWS;                              \
                tile_##suffix((const element *)g->a + i * g->k, b, g->k, (element *)g->c + i * g->ldc + j, \
                              g->ldc, m, n);                                                               \
            }                                                                                              \
        }                                                                                                  \
    }

DEFINE_GEMM(f32, float, vf32)
DEFINE_GEMM(f64, double, vf64)

/* NOLINTEND(bugprone-macro-parentheses) */

#endif
