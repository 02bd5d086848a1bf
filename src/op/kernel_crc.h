/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C by the processor's own instruction: three pieces at once hide its latency. */
#ifndef HR_OP_KERNEL_CRC_H
#define HR_OP_KERNEL_CRC_H

#include "base/crc32c.h"

#include <string.h>

#ifdef HR_HAVE_SSE42
#define CRC_PIECE 4096

static uint64_t crc_word(uint64_t crc, const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return _mm_crc32_u64(crc, word);
}

static uint32_t crc_of(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)data;
    uint64_t a = ~crc;
    if (bytes >= 3 * (size_t)CRC_PIECE) {
        const uint32_t one = hr_crc32c_power(CRC_PIECE);
        const uint32_t two = hr_crc32c_power(2 * (uint64_t)CRC_PIECE);
        for (; bytes >= 3 * (size_t)CRC_PIECE; bytes -= 3 * (size_t)CRC_PIECE, at += 3 * (size_t)CRC_PIECE) {
            uint64_t b = 0;
            uint64_t c = 0;
            for (size_t i = 0; i < CRC_PIECE; i += 8) {
                a = crc_word(a, at + i);
                b = crc_word(b, at + CRC_PIECE + i);
                c = crc_word(c, at + 2 * (size_t)CRC_PIECE + i);
            }
            a = hr_crc32c_multiply((uint32_t)a, two) ^ hr_crc32c_multiply((uint32_t)b, one) ^ (uint32_t)c;
        }
    }
    for (; bytes >= 8; bytes -= 8, at += 8) {
        a = crc_word(a, at);
    }
    for (; bytes > 0; bytes--, at++) {
        a = _mm_crc32_u8((uint32_t)a, *at);
    }
    return ~(uint32_t)a;
}
#else
#define crc_of hr_crc32c
#endif

#endif
