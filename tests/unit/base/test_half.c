/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/half.h"

#include <float.h>

/* What the bits mean, by the definition: sign, exponent, significand. */
static double meaning(uint16_t bits, int exponent_bits, int fraction_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1) {
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, 1 - bias - fraction_bits);
    } else {
        value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    }
    return bits >> 15 ? -value : value;
}

/* The nearest value of the format, ties to even, through f64's own rounding at the right place. */
static double nearest(double x, int exponent_bits, int fraction_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    if (x == 0 || isnan(x) || isinf(x)) {
        return x;
    }
    int exponent;
    frexp(x, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    const double quantum = ldexp(1, exponent - fraction_bits);
    const double rounded = nearbyint(x / quantum) * quantum;
    const double largest = ldexp((1 << (fraction_bits + 1)) - 1, bias - fraction_bits);
    return fabs(rounded) > largest ? copysign((double)INFINITY, x) : rounded;
}

static void same(double found, double wanted, double from)
{
    if (isnan(wanted) ? !isnan(found) : found != wanted || signbit(found) != signbit(wanted)) {
        fail_msg("%a becomes %a, wanted %a", from, found, wanted);
    }
}

static void every_pattern_means_what_the_format_says(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        same((double)hr_float_from_half((uint16_t)bits), meaning((uint16_t)bits, 5, 10), bits);
        same((double)hr_float_from_bf16((uint16_t)bits), meaning((uint16_t)bits, 8, 7), bits);
    }
}

static void try_value(double x)
{
    same(meaning(hr_half_from_double(x), 5, 10), nearest(x, 5, 10), x);
    same(meaning(hr_bf16_from_double(x), 8, 7), nearest(x, 8, 7), x);
    const float f = (float)x;
    same(meaning(hr_half_from_float(f), 5, 10), nearest((double)f, 5, 10), (double)f);
    same(meaning(hr_bf16_from_float(f), 8, 7), nearest((double)f, 8, 7), (double)f);
}

/* Between each two neighbours: the neighbours, the middle, and what lies one f32 and one f64 step beside the
 * middle, where rounding twice would go wrong. */
static void every_middle_rounds_once_and_to_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const double low = meaning((uint16_t)bits, 5, 10);
        const double high = bits + 1 < 0x7c00 ? meaning((uint16_t)(bits + 1), 5, 10) : 65536.0;
        const double middle = (low + high) / 2;
        const double at[] = {low,
                             middle,
                             nextafter(middle, 0),
                             nextafter(middle, 1e300),
                             middle * (1 + 0x1p-23),
                             middle * (1 - 0x1p-24)};
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
            try_value(at[i]);
            try_value(-at[i]);
        }
    }
    for (uint32_t bits = 0; bits < 0x7f80; bits++) {
        const double low = meaning((uint16_t)bits, 8, 7);
        const double high = bits + 1 < 0x7f80 ? meaning((uint16_t)(bits + 1), 8, 7) : 0x1p128;
        const double middle = (low + high) / 2;
        try_value(low);
        try_value(middle);
        try_value(-nextafter(middle, 0));
        try_value(nextafter(middle, 1e300));
    }
}

static void ends_of_the_range(void **state)
{
    (void)state;
    const double at[] = {0.0,   (double)INFINITY, (double)NAN, 65504,       65519.999,   65520,   65536,
                         1e10,  FLT_MAX,          FLT_MIN,     0x1p-149,    0x1p-25,     0x1p-24, 1e-300,
                         1e300, 0x1.8p-25,        0x1p-150,    0x1.ffep-15, 3.3961775e38};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        try_value(at[i]);
        try_value(-at[i]);
    }
}

static void integers_are_made_odd_so_that_a_second_rounding_is_harmless(void **state)
{
    (void)state;
    const uint64_t at[] = {0,
                           1,
                           255,
                           256,
                           257,
                           16777215,
                           16777216,
                           16777217,
                           UINT64_C(0x8080000000000001),
                           UINT64_C(0x8080000000000000),
                           UINT64_C(0x8180000000000000),
                           UINT64_C(0x817fffffffffffff),
                           INT64_MAX,
                           UINT64_MAX};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        /* An x87 long double holds every 64-bit integer; elsewhere it is at least an f64. */
        const long double exact = (long double)at[i];
        int exponent;
        (void)frexpl(exact, &exponent);
        const long double quantum = ldexpl(1, exponent - 8);
        const double wanted = (double)(at[i] < 256 ? exact : nearbyintl(exact / quantum) * quantum);
        same(meaning(hr_bf16_from_float(hr_float_from_u64_to_odd(at[i])), 8, 7), wanted, (double)at[i]);
    }
    same(meaning(hr_bf16_from_float(hr_float_from_i64_to_odd(INT64_MIN)), 8, 7), -0x1p63, 0);
    same(meaning(hr_half_from_float(hr_float_from_i64_to_odd(-65519)), 5, 10), -65504, 0);
    same(meaning(hr_half_from_float(hr_float_from_i64_to_odd(-65520)), 5, 10), -(double)INFINITY, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_means_what_the_format_says),
        cmocka_unit_test(every_middle_rounds_once_and_to_even),
        cmocka_unit_test(ends_of_the_range),
        cmocka_unit_test(integers_are_made_odd_so_that_a_second_rounding_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
