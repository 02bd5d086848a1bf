/* SPDX-License-Identifier: Apache-2.0 */
#include "ops.h"

#include <math.h>
#include <string.h>

static void note(difference *d, uint64_t i, double found, double wanted)
{
    if (d->count++ == 0) {
        d->first = i;
        d->found = found;
        d->wanted = wanted;
    }
}

void compare_bits(const void *found, const void *wanted, hr_dtype dtype, uint64_t n, difference *d)
{
    const uint64_t bytes = hr_dtype_bytes(dtype);
    for (uint64_t i = 0; i < n; i++) {
        if (memcmp((const char *)found + i * bytes, (const char *)wanted + i * bytes, bytes) != 0) {
            const double x = element(found, dtype, i);
            const double y = element(wanted, dtype, i);
            if (!(isnan(x) && isnan(y))) {
                note(d, i, x, y);
            }
        }
    }
}

/* From this value of a 16-bit float to its neighbour. */
static double place_of(hr_dtype dtype, double value)
{
    int exponent;
    frexp(value, &exponent);
    if (dtype == HR_F16) {
        return ldexp(1, exponent > -13 ? exponent - 11 : -24);
    }
    return dtype == HR_BF16 ? ldexp(1, exponent - 8) : 0;
}

void compare_near(const void *found, const void *wanted, const void *magnitudes, hr_dtype dtype, uint64_t n,
                  double bound, difference *d)
{
    for (uint64_t i = 0; i < n; i++) {
        const double x = element(found, dtype, i);
        const double y = element(wanted, dtype, i);
        const double magnitude = element(magnitudes, dtype, i);
        const double apart = fabs(x - y);
        if (!(apart <= bound * magnitude + place_of(dtype, fmax(fabs(x), fabs(y)))) && x != y &&
            !(isnan(x) && isnan(y))) {
            note(d, i, x, y);
        }
        if (magnitude > 0 && apart / magnitude > d->largest) {
            d->largest = apart / magnitude;
        }
    }
}
