/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data for measurements that are verified: whole numbers, so small that sums of f32 are exact in any order, so that what
 * comes out is right or wrong. Used by benches on every side of a module's boundary.
 */
#ifndef HR_BASE_KNOWN_DATA_H
#define HR_BASE_KNOWN_DATA_H

#include <stdbool.h>
#include <stdint.h>

/* Whole numbers of so many bits, from −`below` on. Another seed, another sequence. */
void hr_known_fill(float *values, uint64_t count, unsigned seed, unsigned bits, float below);

/* A filter of 5 × 5 that is not the product of a row and a column, border reflected, for pixels of 8 bits. */
#define HR_KNOWN_FILTER_EDGE 5
float hr_known_weight(int index);
/* Looks at some rows at both ends and at every thirteenth: chunks do not all begin at a multiple of that. At least 3 rows
 * and columns. */
bool hr_known_filtered(const float *in, const float *out, uint64_t rows, uint64_t columns);

/* Looks at 64 × 64 elements from all over C = A · B, each edge × edge of numbers from −8 to 7. False also where the memory
 * for that (256 · edge bytes) cannot be had. */
bool hr_known_product(const float *a, const float *b, const float *c, uint64_t edge);

#endif
