/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/exact_sum.h"

#include <float.h>
#include <math.h>

static double sum_of(const double *x, size_t n)
{
    hr_exact_sum sum;
    memset(&sum, 0, sizeof sum);
    for (size_t i = 0; i < n; i++) {
        hr_exact_sum_add(&sum, x[i]);
    }
    hr_exact_sum_carry(&sum);
    return hr_exact_sum_value(&sum);
}
#define SUM(...) sum_of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void same(double found, double wanted)
{
    if (isnan(wanted) ? !isnan(found) : found != wanted) {
        fail_msg("%a, wanted %a", found, wanted);
    }
}

static void one_value_comes_back(void **state)
{
    (void)state;
    const double at[] = {0,       1,        -1,      0.1,       -1e300,       1e-300,
                         DBL_MAX, -DBL_MAX, DBL_MIN, 0x1p-1074, -0x1.8p-1073, 0x1p52 + 1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        same(SUM(at[i]), at[i]);
    }
}

static void cancelling_leaves_what_plain_addition_loses(void **state)
{
    (void)state;
    same(SUM(1e300, 1, -1e300), 1);
    same(SUM(DBL_MAX, DBL_MAX, -DBL_MAX, -DBL_MAX, 0x1p-1074), 0x1p-1074);
    same(SUM(1, 0x1p-60, -1), 0x1p-60);
    same(SUM(-1, 0x1p-1074), -1);
    same(SUM(0.1, 0.2, 0.3, -0.6),
         0x1p-54 - 0x1p-55 + 0x1p-55 - 0x1p-55); /* 0.1 + 0.2 + 0.3 − 0.6, exactly */
}

static void the_end_rounds_to_nearest_even(void **state)
{
    (void)state;
    same(SUM(1, 0x1p-53), 1);
    same(SUM(1, 0x1p-53, 0x1p-1074), 1 + 0x1p-52);
    same(SUM(1 + 0x1p-52, 0x1p-53), 1 + 0x1p-51);
    same(SUM(-1 - 0x1p-52, -0x1p-53), -1 - 0x1p-51);
    same(SUM(0x1.fffffffffffffp0, 0x1p-53), 2);
    same(SUM(DBL_MAX, DBL_MAX), (double)INFINITY);
    same(SUM(-DBL_MAX, -0x1p970), -(double)INFINITY);
    same(SUM(DBL_MIN, -0x1p-1074), DBL_MIN - 0x1p-1074);
}

static void infinities_and_nan_stay(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    same(SUM(inf, 1), inf);
    same(SUM(-inf, DBL_MAX), -inf);
    same(SUM(inf, -inf), (double)NAN);
    same(SUM(1, (double)NAN), (double)NAN);
}

/* Against sums of integers in 128 bits: every value is a multiple of 2^-40 below 2^23. */
static void any_order_and_any_grouping_give_the_exact_sum(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double x[N];
    uint64_t r = 88172645463325252u;
    hr_sum128 wanted = {0, 0};
    for (int i = 0; i < N; i++) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        const int64_t value = (int64_t)r >> (1 + r % 50);
        const int64_t kept = (int64_t)(double)(value >> 11);
        x[i] = ldexp((double)kept, -40);
        wanted = hr_sum128_add(wanted, (hr_sum128){(uint64_t)kept, kept < 0 ? UINT64_MAX : 0});
    }
    assert_true(wanted.high == 0 || wanted.high == UINT64_MAX);
    const double exact = ldexp((double)(int64_t)wanted.low, -40);
    same(sum_of(x, N), exact);
    hr_exact_sum total;
    memset(&total, 0, sizeof total);
    for (int begin = N - 7; begin > -7; begin -= 7) {
        hr_exact_sum part;
        memset(&part, 0, sizeof part);
        for (int i = begin < 0 ? 0 : begin; i < begin + 7; i++) {
            hr_exact_sum_add(&part, x[i]);
        }
        hr_exact_sum_merge(&total, &part);
    }
    same(hr_exact_sum_value(&total), exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_comes_back),
        cmocka_unit_test(cancelling_leaves_what_plain_addition_loses),
        cmocka_unit_test(the_end_rounds_to_nearest_even),
        cmocka_unit_test(infinities_and_nan_stay),
        cmocka_unit_test(any_order_and_any_grouping_give_the_exact_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
