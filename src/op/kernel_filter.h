/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Correlation of rows with a filter, included once by the file of each level. The taps of an output element
 * are added in the order of the filter's rows and columns, whatever the number of rows or vectors done at
 * once.
 *
 * One input vector serves every output row that it reaches: a block of R output rows and V vectors keeps R ×
 * V sums in registers and loads each input vector once a column of the filter instead of once a tap.
 */
#ifndef HR_OP_KERNEL_FILTER_H
#define HR_OP_KERNEL_FILTER_H

#include "op/kernels.h"
#include "op/vector.h"

#define ALWAYS static inline __attribute__((always_inline))

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and functions. */
/* DEFINE_FILTER(suffix, element, vector, multiply-add of vectors, multiply-add of elements) */
#define DEFINE_FILTER(suffix, element, vector, vmad, smad)                                            \
    ALWAYS void block_##suffix(const hr_filter_rows *f, uint32_t rows, uint32_t columns, uint32_t r0, \
                               const uint32_t R, const uint32_t V, size_t x)                          \
    {                                                                                                 \
        const element *weight = (const element *)f->weight;                                           \
        const size_t lanes = sizeof(vector) / sizeof(element);                                        \
        vector sum[4][8];                                                                             \
        _Pragma("GCC unroll 4") for (uint32_t r = 0; r < R; r++)                                      \
        {                                                                                             \
            _Pragma("GCC unroll 8") for (uint32_t v = 0; v < V; v++)                                  \
            {                                                                                         \
                sum[r][v] = (vector){0};                                                              \
            }                                                                                         \
        }                                                                                             \
        _Pragma("GCC unroll 16") for (uint32_t i = 0; i < rows + R - 1; i++)                          \
        {                                                                                             \
            const element *row = (const element *)f->row[r0 + i] + x;                                 \
            _Pragma("GCC unroll 1") for (uint32_t j = 0; j < columns; j++)                            \
            {                                                                                         \
                const element *at = row + j * f->step;                                                \
                vector in[8];                                                                         \
                _Pragma("GCC unroll 8") for (uint32_t v = 0; v < V; v++)                              \
                {                                                                                     \
                    in[v] = load_##vector(at + v * lanes);                                            \
                }                                                                                     \
                _Pragma("GCC unroll 4") for (uint32_t r = 0; r < R; r++)                              \
                {                                                                                     \
                    if (i >= r && i - r < rows) {                                                     \
                        const element tap = weight[(i - r) * columns + j];                            \
                        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < V; v++)                      \
                        {                                                                             \
                            sum[r][v] = vmad(in[v], tap, sum[r][v]);                                  \
                        }                                                                             \
                    }                                                                                 \
                }                                                                                     \
            }                                                                                         \
        }                                                                                             \
        _Pragma("GCC unroll 4") for (uint32_t r = 0; r < R; r++)                                      \
        {                                                                                             \
            element *out = (element *)f->out[r0 + r] + x;                                             \
            _Pragma("GCC unroll 8") for (uint32_t v = 0; v < V; v++)                                  \
            {                                                                                         \
                store_##vector(out + v * lanes, sum[r][v]);                                           \
            }                                                                                         \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    ALWAYS void tail_##suffix(const hr_filter_rows *f, uint32_t r, size_t x)                          \
    {                                                                                                 \
        const element *weight = (const element *)f->weight;                                           \
        for (; x < f->n; x++) {                                                                       \
            element sum = 0;                                                                          \
            for (uint32_t i = 0; i < f->rows; i++) {                                                  \
                const element *row = (const element *)f->row[r + i] + x;                              \
                for (uint32_t j = 0; j < f->columns; j++) {                                           \
                    sum = smad(row[j * f->step], weight[i * f->columns + j], sum);                    \
                }                                                                                     \
            }                                                                                         \
            ((element *)f->out[r])[x] = sum;                                                          \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    /* R rows from r0 on, V vectors at a time, then one, then elements. */                            \
    ALWAYS void band_##suffix(const hr_filter_rows *f, uint32_t rows, uint32_t columns, uint32_t r0,  \
                              const uint32_t R, const uint32_t V)                                     \
    {                                                                                                 \
        const size_t lanes = sizeof(vector) / sizeof(element);                                        \
        size_t x = 0;                                                                                 \
        for (; x + V * lanes <= f->n; x += V * lanes) {                                               \
            block_##suffix(f, rows, columns, r0, R, V, x);                                            \
        }                                                                                             \
        for (; x + lanes <= f->n; x += lanes) {                                                       \
            block_##suffix(f, rows, columns, r0, R, 1, x);                                            \
        }                                                                                             \
        for (uint32_t r = 0; r < R; r++) {                                                            \
            tail_##suffix(f, r0 + r, x);                                                              \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    static void filter_3_##suffix(const hr_filter_rows *f)                                            \
    {                                                                                                 \
        uint32_t r = 0;                                                                               \
        for (; r + FILTER_ROWS <= f->out_rows; r += FILTER_ROWS) {                                    \
            band_##suffix(f, 3, 3, r, FILTER_ROWS, FILTER_VECTORS);                                   \
        }                                                                                             \
        for (; r < f->out_rows; r++) {                                                                \
            band_##suffix(f, 3, 3, r, 1, FILTER_VECTORS_ONE);                                         \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    static void filter_5_##suffix(const hr_filter_rows *f)                                            \
    {                                                                                                 \
        uint32_t r = 0;                                                                               \
        for (; r + FILTER_ROWS <= f->out_rows; r += FILTER_ROWS) {                                    \
            band_##suffix(f, 5, 5, r, FILTER_ROWS, FILTER_VECTORS);                                   \
        }                                                                                             \
        for (; r < f->out_rows; r++) {                                                                \
            band_##suffix(f, 5, 5, r, 1, FILTER_VECTORS_ONE);                                         \
        }                                                                                             \
    }                                                                                                 \
                                                                                                      \
    static void filter_##suffix(const hr_filter_rows *f)                                              \
    {                                                                                                 \
        if (f->rows == 3 && f->columns == 3) {                                                        \
            filter_3_##suffix(f);                                                                     \
        } else if (f->rows == 5 && f->columns == 5) {                                                 \
            filter_5_##suffix(f);                                                                     \
        } else {                                                                                      \
            for (uint32_t r = 0; r < f->out_rows; r++) {                                              \
                band_##suffix(f, f->rows, f->columns, r, 1, FILTER_VECTORS_ONE);                      \
            }                                                                                         \
        }                                                                                             \
    }

DEFINE_FILTER(f32, float, vf32, fused_vf32, fused_f32)
DEFINE_FILTER(exact, float, vf32, plain_vf32, plain_f32)
DEFINE_FILTER(f64, double, vf64, fused_vf64, fused_f64)

/* NOLINTEND(bugprone-macro-parentheses) */

#endif
