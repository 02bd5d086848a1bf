/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a filter of bytes as fixed-point numbers in signed digits of base 256, as tensor cores take them. */
#ifndef HEADRACE_CUDA_CONV2D_DIGITS_H
#define HEADRACE_CUDA_CONV2D_DIGITS_H

#include <math.h>
#include <stdint.h>

typedef struct hr_conv2d_digits {
    int digits; /* 1 to 3 */
    int shift;  /* a weight is Σ digit[d][i] · 256^d · 2^-shift */
    signed char digit[3][49];
} hr_conv2d_digits;

/* The exponent of the lowest bit of a number that is not zero. */
static inline int hr_conv2d_lowest_bit(double weight)
{
    int exponent;
    uint64_t bits = (uint64_t)ldexp(frexp(fabs(weight), &exponent), 53);
    exponent -= 53;
    while (bits % 2 == 0) {
        bits /= 2;
        exponent++;
    }
    return exponent;
}

/*
 * Splits `count` (at most 49) finite weights. Exact where all of them are multiples of a power of two that fit into
 * three digits; otherwise each is rounded to 2^-23 of the largest. Weights that are all below 2^-15 cannot make a byte
 * of 1, and become zeros.
 */
static inline void hr_conv2d_split(const double *weights, unsigned count, hr_conv2d_digits *out)
{
    static const double most[3] = {127, 127 * 256 + 127, (127 * 256 + 127) * 256 + 127};
    double largest = 0;
    int lowest = INT32_MAX;
    for (unsigned i = 0; i < count; i++) {
        if (weights[i] != 0) {
            const int bit = hr_conv2d_lowest_bit(weights[i]);
            lowest = bit < lowest ? bit : lowest;
            largest = fmax(largest, fabs(weights[i]));
        }
    }
    const int any = largest >= 0x1p-15;
    out->digits = 1;
    out->shift = any ? -lowest : 0;
    while (any && out->digits < 3 && ldexp(largest, out->shift) > most[out->digits - 1]) {
        out->digits++;
    }
    if (any && ldexp(largest, out->shift) > most[2]) {
        out->shift = 22 - ilogb(largest);
        out->shift -= nearbyint(ldexp(largest, out->shift)) > most[2];
    }
    for (unsigned i = 0; i < count; i++) {
        int left = any ? (int)nearbyint(ldexp(weights[i], out->shift)) : 0;
        for (int d = 0; d < 3; d++) {
            out->digit[d][i] = (signed char)(((left + 128) & 255) - 128);
            left = (left - out->digit[d][i]) / 256;
        }
    }
}

#endif
