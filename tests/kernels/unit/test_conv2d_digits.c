/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as fixed-point numbers: put together again they are what they were, or as close as is promised. */
#include "backend/cuda/kernel/conv2d_digits.h"

#include "support/unit.h"

static double whole(const hr_conv2d_digits *s, unsigned i)
{
    return ldexp(s->digit[0][i] + 256.0 * s->digit[1][i] + 65536.0 * s->digit[2][i], -s->shift);
}

/* All are exact with so many digits, and the digits above are zero. */
static void exact(const double *weights, unsigned count, int digits)
{
    hr_conv2d_digits s;
    hr_conv2d_split(weights, count, &s);
    assert_int_equal(s.digits, digits);
    for (unsigned i = 0; i < count; i++) {
        assert_true(whole(&s, i) == weights[i]);
        for (int d = digits; d < 3; d++) {
            assert_int_equal(s.digit[d][i], 0);
        }
    }
}

static void takes_as_few_digits_as_are_exact(void **state)
{
    (void)state;
    exact((const double[]){0.0625, 0.125, 0.25, -0.5}, 4, 1);
    exact((const double[]){127, -127, 0}, 3, 1);
    exact((const double[]){128, 1}, 2, 2);
    exact((const double[]){128, 256}, 2, 1); /* multiples of 128 */
    exact((const double[]){32639, -32639, -128, 127}, 4, 2);
    exact((const double[]){32640, 1}, 2, 3);
    exact((const double[]){8355711, -8355711, 1, -1, 128, -129, 32768}, 7, 3);
    exact((const double[]){0x0.3fffffp0}, 1, 3);
    exact((const double[]){0x1p127, -0x1p120}, 2, 2);
    exact((const double[]){0, 0, 0}, 3, 1);
}

static void rounds_the_others_to_24_bits_of_the_largest(void **state)
{
    (void)state;
    uint64_t bits = 88172645463325252U;
    for (int round = 0; round < 10000; round++) {
        double weights[49], largest = 0;
        hr_conv2d_digits s;
        const int scale = (int)(bits % 100) - 10;
        for (int i = 0; i < 49; i++) {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            weights[i] = ldexp((double)(float)(int32_t)(bits >> 32), scale - 31 - (int)(bits % 16));
            largest = fmax(largest, fabs(weights[i]));
        }
        hr_conv2d_split(weights, 49, &s);
        assert_int_equal(s.digits, largest < 0x1p-15 ? 1 : 3);
        for (unsigned i = 0; i < 49; i++) {
            const double off = fabs(whole(&s, i) - weights[i]);
            assert_true(off <= (largest < 0x1p-15 ? 0x1p-15 : largest * 0x1.01p-23));
        }
    }
}

/* The largest number that three digits hold is a little below 2^23. */
static void keeps_what_rounds_up_in_range(void **state)
{
    (void)state;
    const double weights[] = {8388607.9, 8355711.4, 8355711.6, -8388607.9};
    for (unsigned i = 0; i < 4; i++) {
        hr_conv2d_digits s;
        hr_conv2d_split(&weights[i], 1, &s);
        assert_true(fabs(whole(&s, 0) - weights[i]) <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_as_few_digits_as_are_exact),
                                       cmocka_unit_test(rounds_the_others_to_24_bits_of_the_largest),
                                       cmocka_unit_test(keeps_what_rounds_up_in_range)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
