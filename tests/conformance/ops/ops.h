/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ops_device share: comparing two results. */
#ifndef HR_TESTS_CONFORMANCE_OPS_H
#define HR_TESTS_CONFORMANCE_OPS_H

#include "support/elements.h"

#include <headrace/headrace.h>

#include <stdbool.h>

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
