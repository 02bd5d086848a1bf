/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C (Castagnoli), as iSCSI, ext4 and SSE4.2 have it: polynomial 0x1edc6f41, bits reflected, starts with
 * and ends in an exclusive-or with all ones. Checksums of pieces combine by multiplying polynomials modulo
 * the CRC's own, so that pieces can be computed anywhere and at once.
 */
#ifndef HR_BASE_CRC32C_H
#define HR_BASE_CRC32C_H

#include "base/device.h"

#include <stddef.h>
#include <stdint.h>

#define HR_CRC32C_POLYNOMIAL 0x82f63b78u
#define HR_CRC32C_ONE        0x80000000u /* the polynomial 1, bits reflected */

/* a × b modulo the CRC's polynomial. */
HR_SHARED_INLINE uint32_t hr_crc32c_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (int i = 0; i < 32; i++) {
        product ^= b & (0u - (a >> 31));
        a <<= 1;
        b = (b >> 1) ^ (HR_CRC32C_POLYNOMIAL & (0u - (b & 1u)));
    }
    return product;
}

/* x^(8 × bytes): multiplying by it is what `bytes` bytes of zeros do to a CRC. */
HR_SHARED_INLINE uint32_t hr_crc32c_power(uint64_t bytes)
{
    uint32_t square = HR_CRC32C_ONE >> 8; /* x⁸ */
    uint32_t power = HR_CRC32C_ONE;
    for (; bytes != 0; bytes >>= 1) {
        if ((bytes & 1) != 0) {
            power = hr_crc32c_multiply(power, square);
        }
        square = hr_crc32c_multiply(square, square);
    }
    return power;
}

/* The CRC of two pieces one after the other. */
HR_SHARED_INLINE uint32_t hr_crc32c_combine(uint32_t first, uint32_t second, uint64_t second_bytes)
{
    return hr_crc32c_multiply(first, hr_crc32c_power(second_bytes)) ^ second;
}

/* The CRC of what `crc` stands for (0: nothing) and the bytes after it; eight tables, on any machine. */
uint32_t hr_crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
