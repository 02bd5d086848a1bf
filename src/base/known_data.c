/* SPDX-License-Identifier: Apache-2.0 */
#include "base/known_data.h"

#include <stdlib.h>

#define EDGE  HR_KNOWN_FILTER_EDGE
#define REACH (EDGE / 2)
/* Rows and columns of a product that are looked at. */
#define LOOKED_AT UINT64_C(64)

void hr_known_fill(float *values, uint64_t count, unsigned seed, unsigned bits, float below)
{
    unsigned state = seed;
    for (uint64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> (32 - bits)) - below;
    }
}

float hr_known_weight(int index)
{
    return (float)(index * index % 13 - 4);
}

static int64_t reflected(int64_t at, int64_t count)
{
    at = at < 0 ? -at : at;
    return at >= count ? 2 * count - 2 - at : at;
}

static bool row_is_right(const float *weights, const float *in, const float *out, int64_t y, int64_t rows,
                         int64_t columns)
{
    const float *row[EDGE];
    for (int64_t dy = 0; dy < EDGE; dy++) {
        row[dy] = in + reflected(y + dy - REACH, rows) * columns;
    }
    for (int64_t x = 0; x < columns; x++) {
        bool inside = x >= REACH && x < columns - REACH;
        float sum = 0.0f;
        for (int64_t i = 0; i < EDGE * EDGE; i++) {
            int64_t at = x + i % EDGE - REACH;
            sum += weights[i] * row[i / EDGE][inside ? at : reflected(at, columns)];
        }
        if (sum != out[y * columns + x]) {
            return false;
        }
    }
    return true;
}

bool hr_known_filtered(const float *in, const float *out, uint64_t rows, uint64_t columns)
{
    float weights[EDGE * EDGE];
    for (int i = 0; i < EDGE * EDGE; i++) {
        weights[i] = hr_known_weight(i);
    }
    for (uint64_t y = 0; y < rows; y++) {
        bool looked_at = y < 4 || y + 4 >= rows || y % 13 == 0;
        if (looked_at && !row_is_right(weights, in, out, (int64_t)y, (int64_t)rows, (int64_t)columns)) {
            return false;
        }
    }
    return true;
}

static uint64_t looked_at(uint64_t edge, uint64_t i, uint64_t step)
{
    return (i * (edge / LOOKED_AT) + i * step) % edge;
}

bool hr_known_product(const float *a, const float *b, const float *c, uint64_t edge)
{
    /* The columns of B are put side by side first: they lie far apart. */
    float *columns = malloc(LOOKED_AT * edge * sizeof *columns);
    if (columns == NULL) {
        return false;
    }
    for (uint64_t k = 0; k < edge; k++) {
        for (uint64_t j = 0; j < LOOKED_AT; j++) {
            columns[j * edge + k] = b[k * edge + looked_at(edge, j, 5)];
        }
    }
    bool right = true;
    for (uint64_t i = 0; i < LOOKED_AT && right; i++) {
        uint64_t row = looked_at(edge, i, 7);
        for (uint64_t j = 0; j < LOOKED_AT && right; j++) {
            float sum = 0.0f;
            for (uint64_t k = 0; k < edge; k++) {
                sum += a[row * edge + k] * columns[j * edge + k];
            }
            right = sum == c[row * edge + looked_at(edge, j, 5)];
        }
    }
    free(columns);
    return right;
}
