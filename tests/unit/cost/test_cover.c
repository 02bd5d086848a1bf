/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/cover.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 4000 };

static void the_union_is_what_marking_a_line_gives(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 50; seed++) {
        unsigned char line[LINE] = {0};
        hr_cover cover = {0};
        unsigned random = seed;
        for (int i = 0; i < 300; i++) {
            /* Roughly in order: begins jump back by up to 150 of 4000. */
            int64_t begin = (int64_t)i * 12 - rand_r(&random) % 150;
            begin = begin < 0 ? 0 : begin;
            int64_t end = begin + rand_r(&random) % 30;
            hr_cover_add(&cover, (uint64_t)begin, (uint64_t)end);
            memset(line + begin, 1, (size_t)(end - begin));
        }
        uint64_t marked = 0;
        for (int i = 0; i < LINE; i++) {
            marked += line[i];
        }
        assert_int_equal(hr_cover_length(&cover), marked);
    }
}

static void more_pieces_than_there_is_room_for_still_add_up(void **state)
{
    (void)state;
    hr_cover cover = {0};
    for (uint64_t i = 0; i < 10 * HR_COVER_ROOM; i++) {
        hr_cover_add(&cover, 100 * i, 100 * i + 10);
    }
    assert_int_equal(hr_cover_length(&cover), 10 * 10 * HR_COVER_ROOM);
    /* Something older than all that is kept is not counted twice. */
    hr_cover_add(&cover, 0, 10);
    assert_int_equal(hr_cover_length(&cover), 10 * 10 * HR_COVER_ROOM);
    /* One that spans all pieces swallows them. */
    hr_cover whole = {0};
    hr_cover_add(&whole, 5, 6);
    hr_cover_add(&whole, 8, 9);
    hr_cover_add(&whole, 0, 100);
    hr_cover_add(&whole, 100, 100);
    assert_int_equal(hr_cover_length(&whole), 100);
    assert_int_equal(whole.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_union_is_what_marking_a_line_gives),
        cmocka_unit_test(more_pieces_than_there_is_room_for_still_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
