/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/samples.h"

#include <math.h>

static void test_median_of_odd_even_and_none(void **state)
{
    (void)state;
    double odd[] = {5.0, 1.0, 3.0};
    double even[] = {4.0, 1.0, 3.0, 10.0};
    assert_true(hr_samples_median(odd, 3) == 3.0);
    assert_true(hr_samples_median(even, 4) == 3.5);
    assert_true(hr_samples_median(even, 0) == 0.0);
}

static void test_spread_is_between_the_10th_and_90th_percentile(void **state)
{
    (void)state;
    double values[11];
    for (int i = 0; i < 11; i++) {
        values[i] = 100.0 + (double)((i * 7) % 11);
    }
    /* 101 … 109 around 105. */
    assert_true(fabs(hr_samples_spread_pct(values, 11) - 800.0 / 105.0) < 1e-9);
    assert_true(hr_samples_spread_pct(values, 1) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_of_odd_even_and_none),
        cmocka_unit_test(test_spread_is_between_the_10th_and_90th_percentile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
