/* SPDX-License-Identifier: Apache-2.0 */
/* What a gauge says of stages whose speed is known. Times are made up: nothing here depends on the machine. */
#include "pipeline/gauge.h"
#include "support/unit.h"

#include <math.h>
#include <stdbool.h>

#define MS UINT64_C(1000000)

static bool near(double value, double expected, double share)
{
    return fabs(value - expected) <= share * expected;
}

static void a_stage_that_is_always_full_shows_its_speed(void **state)
{
    (void)state;
    hr_gauge gauge;
    hr_gauge_init(&gauge);
    gauge.width = 2;
    for (uint64_t i = 0; i < 100; i++) {
        hr_mark a = hr_gauge_enter(&gauge, 10 * MS * i), b = hr_gauge_enter(&gauge, 10 * MS * i);
        hr_gauge_leave(&gauge, a, 10 * MS * (i + 1), 1000000);
        hr_gauge_leave(&gauge, b, 10 * MS * (i + 1), 1000000);
    }
    assert_true(near(hr_gauge_busy_s(&gauge), 1.0, 1e-9));
    assert_int_equal(hr_gauge_bytes(&gauge), 200000000);
    assert_true(near(hr_gauge_ceiling(&gauge), 200e6, 1e-6));
    assert_true(near(hr_gauge_mean_rate(&gauge), 100e6, 1e-6));
    hr_gauge_destroy(&gauge);
}

static void a_stage_that_is_never_full_is_taken_at_its_best_spans(void **state)
{
    (void)state;
    hr_gauge gauge;
    hr_gauge_init(&gauge);
    gauge.width = 4;
    /* One thread at a time; every fifth span is twice as fast. */
    for (uint64_t i = 0; i < 100; i++) {
        hr_mark mark = hr_gauge_enter(&gauge, 10 * MS * i);
        hr_gauge_leave(&gauge, mark, 10 * MS * i + (i % 5 == 0 ? 4 : 8) * MS, 1000000);
    }
    /* 250 MB/s each, four at once; bins are an eighth of an octave wide. */
    double ceiling = hr_gauge_ceiling(&gauge);
    assert_true(ceiling >= 1000e6 && ceiling <= 1000e6 * exp2(1.0 / 8.0));
    hr_gauge_destroy(&gauge);
}

static void the_finish_belongs_to_the_stage(void **state)
{
    (void)state;
    hr_gauge gauge;
    hr_gauge_init(&gauge);
    gauge.width = 1;
    hr_mark mark = hr_gauge_enter(&gauge, 0);
    hr_gauge_leave(&gauge, mark, 100 * MS, 100000000);
    hr_gauge_finish(&gauge, 100 * MS, 1000 * MS);
    assert_true(near(hr_gauge_ceiling(&gauge), 100e6, 1e-6));
    assert_true(near(hr_gauge_busy_s(&gauge), 1.0, 1e-9));
    hr_gauge_destroy(&gauge);
}

static void a_stage_that_only_finishes_takes_that_long(void **state)
{
    (void)state;
    hr_gauge gauge;
    hr_gauge_init(&gauge);
    gauge.width = 2;
    hr_gauge_finish(&gauge, 100 * MS, 1000 * MS);
    assert_true(near(hr_gauge_alone_s(&gauge), 0.9, 1e-9));
    assert_true(hr_gauge_ceiling(&gauge) == 0.0);
    hr_gauge_destroy(&gauge);
}

static void a_ceiling_is_never_below_what_was_done(void **state)
{
    (void)state;
    hr_gauge gauge;
    hr_gauge_init(&gauge);
    gauge.width = 2;
    /* Both threads are in it for a while in which nearly nothing moves; one alone does the work. */
    hr_mark slow = hr_gauge_enter(&gauge, 0), other = hr_gauge_enter(&gauge, 0);
    hr_gauge_leave(&gauge, other, 500 * MS, 10000000);
    hr_gauge_leave(&gauge, slow, 500 * MS, 10000000);
    for (uint64_t i = 0; i < 50; i++) {
        hr_mark mark = hr_gauge_enter(&gauge, (500 + 10 * i) * MS);
        hr_gauge_leave(&gauge, mark, (510 + 10 * i) * MS, 10000000);
    }
    assert_true(hr_gauge_ceiling(&gauge) >= 520e6 / 1.0 * (1.0 - 1e-9));
    hr_gauge_destroy(&gauge);
}

static void nothing_measured_is_zero(void **state)
{
    (void)state;
    hr_gauge gauge;
    hr_gauge_init(&gauge);
    assert_true(hr_gauge_ceiling(&gauge) == 0.0 && hr_gauge_mean_rate(&gauge) == 0.0);
    hr_gauge_add(&gauge, 5, 5, 100);
    assert_true(hr_gauge_busy_s(&gauge) == 0.0);
    hr_gauge_destroy(&gauge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_that_is_always_full_shows_its_speed),
        cmocka_unit_test(a_stage_that_is_never_full_is_taken_at_its_best_spans),
        cmocka_unit_test(the_finish_belongs_to_the_stage),
        cmocka_unit_test(a_stage_that_only_finishes_takes_that_long),
        cmocka_unit_test(a_ceiling_is_never_below_what_was_done),
        cmocka_unit_test(nothing_measured_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
