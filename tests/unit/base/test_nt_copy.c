/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/nt_copy.h"

#include <stdlib.h>
#include <string.h>

#define GUARD 128

/* Every length around the threshold and every misalignment of a line gives the bytes, and nothing around
 * them. */
static void test_copies_exactly_what_is_asked(void **state)
{
    (void)state;
    const size_t lengths[] = {0,      1,      63,     64,     65,     4096,   131071, 131072,
                              131073, 131135, 131136, 131327, 131328, 200001, 1 << 20};
    size_t room = ((size_t)1 << 20) + 2 * GUARD;
    unsigned char *src = malloc(room);
    unsigned char *dst = malloc(room);
    assert_non_null(src);
    assert_non_null(dst);
    uint32_t seed = 12345;
    for (size_t i = 0; i < room; i++) {
        seed = seed * 1664525u + 1013904223u;
        src[i] = (unsigned char)(seed >> 24);
    }
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        for (size_t shift = 0; shift < 64; shift += 7) {
            size_t src_shift = (shift * 5) % 64;
            memset(dst, 0xA5, room);
            hr_copy_nontemporal(dst + shift, src + src_shift, lengths[l]);
            assert_int_equal(memcmp(dst + shift, src + src_shift, lengths[l]), 0);
            for (size_t i = 0; i < shift; i++) {
                assert_int_equal(dst[i], 0xA5);
            }
            for (size_t i = 0; i < 64; i++) {
                assert_int_equal(dst[shift + lengths[l] + i], 0xA5);
            }
        }
    }
    free(src);
    free(dst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies_exactly_what_is_asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
