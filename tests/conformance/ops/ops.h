/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ops_device share: awkward data, and comparing two results. */
#ifndef HR_TESTS_CONFORMANCE_OPS_H
#define HR_TESTS_CONFORMANCE_OPS_H

#include <headrace/headrace.h>

#include <stdbool.h>

bool is_float(hr_dtype dtype);
/* Element i as f64; wide integers lose their low bits. */
double element(const void *data, hr_dtype dtype, uint64_t i);
void set_element(void *data, hr_dtype dtype, uint64_t i, double value);

/* Any bits at all, then the values at which something changes: ties, ends of ranges, NaN, infinities, subnormals. */
void fill_awkward(void *data, hr_dtype dtype, uint64_t n, uint64_t seed);
/* Floats in -1 ... 1, integers over their whole range. */
void fill_plain(void *data, hr_dtype dtype, uint64_t n, uint64_t seed);
/* The magnitudes of floats. */
void make_positive(void *data, hr_dtype dtype, uint64_t n);

/* What two arrays differ in. */
typedef struct difference {
    uint64_t count; /* elements that differ by more than is allowed */
    uint64_t first; /* of them */
    double found, wanted;
    double largest; /* as a part of the sum of magnitudes; of floats with a bound only */
} difference;

/* To the bit, but that a NaN equals a NaN. */
void compare_bits(const void *found, const void *wanted, hr_dtype dtype, uint64_t n, difference *d);
/* Floats: within `bound` times the sum of magnitudes, beside one unit in the last place of a 16-bit result. */
void compare_near(const void *found, const void *wanted, const void *magnitudes, hr_dtype dtype, uint64_t n,
                  double bound, difference *d);

#endif
