/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/cost.h"
#include "support/unit.h"

#include <math.h>

static void a_straight_link_is_found_again(void **state)
{
    (void)state;
    double bytes[10], seconds[10];
    for (int i = 0; i < 10; i++) {
        bytes[9 - i] = 4096.0 * pow(4.0, i);
        seconds[9 - i] = 8e-6 + bytes[9 - i] / 53e9;
    }
    hr_cost_link link;
    assert_int_equal(hr_cost_link_make(bytes, seconds, 10, &link), HR_OK);
    hr_cost_stage fit = hr_cost_link_fit(&link);
    assert_true(fabs(fit.start_s - 8e-6) < 1e-9);
    assert_true(fabs(fit.bytes_per_s - 53e9) < 1e6);
    assert_true(fabs(hr_cost_link_s(&link, 16384.0) - (8e-6 + 16384.0 / 53e9)) < 1e-12);
    assert_true(fabs(hr_cost_link_s(&link, 1024.0) - (8e-6 + 1024.0 / 53e9)) < 1e-9);
    assert_true(fabs(hr_cost_link_s(&link, 2 * bytes[0]) - 2 * seconds[0]) < 1e-12);
    assert_true(fabs(hr_cost_link_rate(&link) - bytes[0] / seconds[0]) < 1.0);
}

static void noise_never_makes_a_larger_transfer_faster(void **state)
{
    (void)state;
    const double bytes[] = {1e4, 1e5, 1e6, 1e7, 1e8};
    const double seconds[] = {3e-6, 9e-6, 5e-6, 4e-4, 2e-3};
    hr_cost_link link;
    assert_int_equal(hr_cost_link_make(bytes, seconds, 5, &link), HR_OK);
    assert_true(fabs(hr_cost_link_s(&link, 1e5) - 7e-6) < 1e-12);
    assert_true(fabs(hr_cost_link_s(&link, 1e6) - 7e-6) < 1e-12);
    double before = 0.0;
    for (double size = 1.0; size < 1e9; size *= 1.1) {
        double now = hr_cost_link_s(&link, size);
        assert_true(now >= before);
        before = now;
    }
}

static void the_fit_never_goes_below_zero(void **state)
{
    (void)state;
    /* A line through these would start below zero. */
    const double bytes[] = {1e6, 2e6};
    const double seconds[] = {1e-4, 4e-4};
    hr_cost_link link;
    assert_int_equal(hr_cost_link_make(bytes, seconds, 2, &link), HR_OK);
    hr_cost_stage fit = hr_cost_link_fit(&link);
    assert_true(fit.start_s == 0.0);
    assert_true(fit.bytes_per_s >= 5e9 && fit.bytes_per_s <= 1e10);
    /* All the same time: no slope to be found, still a usable speed. */
    const double flat[] = {1e-4, 1e-4};
    assert_int_equal(hr_cost_link_make(bytes, flat, 2, &link), HR_OK);
    assert_true(hr_cost_link_fit(&link).bytes_per_s > 0.0);
}

static void points_that_say_nothing_are_refused(void **state)
{
    (void)state;
    const double bytes[] = {0.0, 1e6, 1e6};
    const double seconds[] = {1e-6, 0.0, NAN};
    hr_cost_link link = {.count = 77};
    assert_int_equal(hr_cost_link_make(bytes, seconds, 3, &link), HR_E_INVALID);
    assert_int_equal(link.count, 77);
    const double good[] = {2e-4};
    assert_int_equal(hr_cost_link_make(&bytes[1], good, 1, &link), HR_OK);
    assert_true(fabs(hr_cost_link_fit(&link).bytes_per_s - 5e9) < 1.0);
    assert_true(fabs(hr_cost_link_s(&link, 5e5) - 1e-4) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_straight_link_is_found_again),
        cmocka_unit_test(noise_never_makes_a_larger_transfer_faster),
        cmocka_unit_test(the_fit_never_goes_below_zero),
        cmocka_unit_test(points_that_say_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
