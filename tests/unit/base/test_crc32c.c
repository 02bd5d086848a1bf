/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/crc32c.h"

#include <string.h>

/* Bit by bit, from the definition. */
static uint32_t plain(const unsigned char *data, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n * 8; i++) {
        const uint32_t bit = (uint32_t)(data[i / 8] >> (i % 8) & 1);
        crc = (crc >> 1) ^ (((crc ^ bit) & 1) != 0 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void the_known_answers(void **state)
{
    (void)state;
    unsigned char zeros[32] = {0};
    unsigned char ones[32];
    memset(ones, 0xff, sizeof ones);
    /* RFC 3720, B.4, and the check value of the catalogues. */
    assert_int_equal(hr_crc32c(0, zeros, 32), 0x8a9136aau);
    assert_int_equal(hr_crc32c(0, ones, 32), 0x62a8ab43u);
    assert_int_equal(hr_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(hr_crc32c(0, "", 0), 0);
}

static void pieces_combine_to_the_whole(void **state)
{
    (void)state;
    unsigned char data[3000];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * i + i / 7);
    }
    for (size_t n = 0; n < sizeof data; n += n < 40 ? 1 : 97) {
        const uint32_t whole = hr_crc32c(0, data, n);
        assert_int_equal(whole, plain(data, n));
        for (size_t cut = 0; cut <= n; cut += n < 40 ? 1 : 131) {
            const uint32_t first = hr_crc32c(0, data, cut);
            assert_int_equal(hr_crc32c(first, data + cut, n - cut), whole);
            assert_int_equal(hr_crc32c_combine(first, hr_crc32c(0, data + cut, n - cut), n - cut), whole);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_answers),
        cmocka_unit_test(pieces_combine_to_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
