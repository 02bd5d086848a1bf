/* SPDX-License-Identifier: Apache-2.0 */
/* The dealing out of an address range, against a map of bytes. No memory lies behind the addresses. */
#include "support/unit.h"

#include "core/blocks.h"

#include <stdlib.h>
#include <string.h>

#define BASE  UINT64_C(0x700000000000)
#define BYTES UINT64_C(40000)

static void everything_given_back_is_one_piece_again(void **state)
{
    (void)state;
    hr_blocks blocks;
    hr_block *out[30];
    assert_int_equal(hr_blocks_open(&blocks, BASE, BYTES, 30), HR_OK);
    for (unsigned i = 0; i < 30; i++) {
        assert_int_equal(hr_blocks_take(&blocks, 100 + i * 37, 64, "x", &out[i]), HR_OK);
    }
    for (unsigned i = 0; i < 30; i++) { /* every third, then the others: joins before, after, both and none */
        hr_blocks_give(&blocks, out[i * 7 % 30]);
    }
    hr_block *whole;
    assert_int_equal(hr_blocks_take(&blocks, BYTES, 64, "whole", &whole), HR_OK);
    assert_int_equal(whole->at, BASE);
    hr_blocks_close(&blocks);
}

static void the_smallest_that_fits_is_taken(void **state)
{
    (void)state;
    hr_blocks blocks;
    hr_block *a, *gap, *b, *large_gap, *c, *fit;
    assert_int_equal(hr_blocks_open(&blocks, BASE, BYTES, 10), HR_OK);
    assert_int_equal(hr_blocks_take(&blocks, 64, 64, "a", &a), HR_OK);
    assert_int_equal(hr_blocks_take(&blocks, 2048, 64, "large gap", &large_gap), HR_OK);
    assert_int_equal(hr_blocks_take(&blocks, 64, 64, "b", &b), HR_OK);
    assert_int_equal(hr_blocks_take(&blocks, 512, 64, "gap", &gap), HR_OK);
    assert_int_equal(hr_blocks_take(&blocks, 64, 64, "c", &c), HR_OK);
    uint64_t where = gap->at;
    hr_blocks_give(&blocks, large_gap);
    hr_blocks_give(&blocks, gap);
    assert_int_equal(hr_blocks_take(&blocks, 500, 64, "fit", &fit), HR_OK);
    assert_int_equal(fit->at, where);
    hr_blocks_close(&blocks);
}

/* Random takes and gives; the map knows which bytes are taken. */
static void pieces_never_overlap(void **state)
{
    (void)state;
    enum { OUT = 40 };
    static unsigned char taken[BYTES];
    memset(taken, 0, sizeof taken);
    hr_blocks blocks;
    hr_block *out[OUT] = {NULL};
    uint32_t random = 12345;
    unsigned gave = 0;
    assert_int_equal(hr_blocks_open(&blocks, BASE, BYTES, OUT), HR_OK);
    for (int i = 0; i < 200000; i++) {
        random = random * 1664525 + 1013904223;
        unsigned slot = (random >> 8) % OUT;
        uint64_t bytes = (random >> 4) % 3000, align = UINT64_C(1) << ((random >> 20) % 11);
        if (out[slot] != NULL) {
            assert_ptr_equal(hr_blocks_find(&blocks, out[slot]->at), out[slot]);
            memset(taken + (out[slot]->at - BASE), 0, out[slot]->bytes);
            hr_blocks_give(&blocks, out[slot]);
            out[slot] = NULL;
        } else if (hr_blocks_take(&blocks, bytes, align, "x", &out[slot]) == HR_OK) {
            assert_int_equal(out[slot]->at % align, 0);
            assert_true(out[slot]->at >= BASE && out[slot]->at + bytes <= BASE + BYTES);
            for (uint64_t k = 0; k < bytes; k++) {
                assert_int_equal(taken[out[slot]->at - BASE + k], 0);
                taken[out[slot]->at - BASE + k] = 1;
            }
            gave++;
        } else {
            out[slot] = NULL;
        }
    }
    assert_true(gave > 50000);
    hr_blocks_close(&blocks);
}

/* The table must find every address after many have come and gone. */
static void addresses_are_found_after_others_have_gone(void **state)
{
    (void)state;
    enum { OUT = 500 };
    hr_blocks blocks;
    static hr_block *out[OUT];
    assert_int_equal(hr_blocks_open(&blocks, BASE, OUT * 64, OUT), HR_OK);
    for (int i = 0; i < OUT; i++) {
        assert_int_equal(hr_blocks_take(&blocks, 64, 64, "x", &out[i]), HR_OK);
    }
    hr_block *none;
    assert_int_equal(hr_blocks_take(&blocks, 1, 64, "x", &none), HR_AGAIN);
    for (int i = 0; i < OUT; i += 2) {
        hr_blocks_give(&blocks, out[i]);
    }
    for (int i = 0; i < OUT; i++) {
        hr_block *found = hr_blocks_find(&blocks, BASE + (uint64_t)i * 64);
        if (i % 2 == 0) {
            assert_null(found);
        } else {
            assert_ptr_equal(found, out[i]);
        }
    }
    hr_blocks_close(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_given_back_is_one_piece_again),
        cmocka_unit_test(the_smallest_that_fits_is_taken),
        cmocka_unit_test(pieces_never_overlap),
        cmocka_unit_test(addresses_are_found_after_others_have_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
