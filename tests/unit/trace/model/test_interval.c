/* SPDX-License-Identifier: Apache-2.0 */
/* Interval arithmetic against a plain count of nanoseconds, one bit each. */
#include "support/unit.h"

#include "trace/model/interval.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 400 };

typedef struct hr_bits {
    bool on[LENGTH];
} hr_bits;

static void fill(hr_intervals *set, hr_bits *bits, unsigned *seed)
{
    memset(bits, 0, sizeof *bits);
    for (int i = 0; i < 12; i++) {
        int begin = rand_r(seed) % LENGTH;
        int end = begin + rand_r(seed) % 40 - 3;
        end = end > LENGTH ? LENGTH : end;
        assert_int_equal(hr_intervals_add(set, begin, end), HR_OK);
        for (int t = begin; t < end; t++)
            bits->on[t] = true;
    }
    hr_intervals_normalise(set);
}

static int64_t count(const hr_bits *a, const hr_bits *b, int mode)
{
    int64_t sum = 0;
    for (int t = 0; t < LENGTH; t++) {
        bool both = a->on[t] && b->on[t];
        bool either = a->on[t] || b->on[t];
        bool only = a->on[t] && !b->on[t];
        sum += mode == 0 ? both : mode == 1 ? either : only;
    }
    return sum;
}

static void sets_agree_with_a_count_of_nanoseconds(void **state)
{
    (void)state;
    unsigned seed = 7;
    for (int round = 0; round < 300; round++) {
        hr_intervals a = {0};
        hr_intervals b = {0};
        hr_intervals both = {0};
        hr_bits in_a;
        hr_bits in_b;
        fill(&a, &in_a, &seed);
        fill(&b, &in_b, &seed);
        assert_int_equal(hr_intervals_common(&a, &b), count(&in_a, &in_b, 0));
        assert_int_equal(hr_intervals_exposed(&a, &b), count(&in_a, &in_b, 2));
        assert_int_equal(hr_intervals_union(&a, &b, &both), HR_OK);
        assert_int_equal(hr_intervals_length(&both), count(&in_a, &in_b, 1));
        int from = rand_r(&seed) % LENGTH;
        int to = from + rand_r(&seed) % (LENGTH - from);
        int64_t within = 0;
        for (int t = from; t < to; t++)
            within += in_a.on[t];
        assert_int_equal(hr_intervals_covered(&a, from, to), within);
        hr_intervals gaps = {0};
        assert_int_equal(hr_intervals_gaps(&a, from, to, &gaps), HR_OK);
        assert_int_equal(hr_intervals_length(&gaps), to - from - within);
        assert_int_equal(hr_intervals_common(&a, &gaps), 0);
        hr_intervals_free(&a);
        hr_intervals_free(&b);
        hr_intervals_free(&both);
        hr_intervals_free(&gaps);
    }
}

static void touching_intervals_become_one_and_empty_ones_vanish(void **state)
{
    (void)state;
    hr_intervals set = {0};
    assert_int_equal(hr_intervals_add(&set, 10, 20), HR_OK);
    assert_int_equal(hr_intervals_add(&set, 0, 10), HR_OK);
    assert_int_equal(hr_intervals_add(&set, 30, 30), HR_OK);
    assert_int_equal(hr_intervals_add(&set, 50, 40), HR_OK);
    hr_intervals_normalise(&set);
    assert_int_equal(set.count, 1);
    assert_int_equal(hr_intervals_length(&set), 20);
    hr_intervals_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_agree_with_a_count_of_nanoseconds),
        cmocka_unit_test(touching_intervals_become_one_and_empty_ones_vanish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
