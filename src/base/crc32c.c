/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

/* table[k][v]: what byte v does to the CRC, k bytes of zeros after it. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t v = 0; v < 256; v++) {
        uint32_t crc = v;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (HR_CRC32C_POLYNOMIAL & (0u - (crc & 1u)));
        }
        table[0][v] = crc;
    }
    for (int k = 1; k < 8; k++) {
        for (uint32_t v = 0; v < 256; v++) {
            const uint32_t crc = table[k - 1][v];
            table[k][v] = (crc >> 8) ^ table[0][crc & 255];
        }
    }
}

static uint32_t byte_of(const uint8_t *at, uint32_t crc)
{
    return (crc >> 8) ^ table[0][(crc ^ *at) & 255];
}

uint32_t hr_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    pthread_once(&table_once, make_table);
    const uint8_t *at = (const uint8_t *)data;
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        const uint32_t low =
            crc ^ (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
              table[4][low >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    for (; bytes > 0; bytes--, at++) {
        crc = byte_of(at, crc);
    }
    return ~crc;
}
