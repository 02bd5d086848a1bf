/* SPDX-License-Identifier: Apache-2.0 */
#include "io/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* memcpy in and out because the buffer may be unaligned; compilers make vector shuffles of these loops. */
void hr_swap_elements(void *data, uint64_t bytes, uint64_t width)
{
    unsigned char *p = data;
    if (width == 2) {
        for (uint64_t i = 0; i < bytes; i += 2) {
            uint16_t v;
            memcpy(&v, p + i, 2);
            v = __builtin_bswap16(v);
            memcpy(p + i, &v, 2);
        }
    } else if (width == 4) {
        for (uint64_t i = 0; i < bytes; i += 4) {
            uint32_t v;
            memcpy(&v, p + i, 4);
            v = __builtin_bswap32(v);
            memcpy(p + i, &v, 4);
        }
    } else if (width == 8) {
        for (uint64_t i = 0; i < bytes; i += 8) {
            uint64_t v;
            memcpy(&v, p + i, 8);
            v = __builtin_bswap64(v);
            memcpy(p + i, &v, 8);
        }
    }
}

const char *hr_shape_text(const hr_shape *shape, char out[HR_SHAPE_TEXT_BYTES])
{
    size_t at = (size_t)snprintf(out, HR_SHAPE_TEXT_BYTES, "(");
    for (uint32_t i = 0; i < shape->rank; i++) {
        const char *comma = i > 0 ? ", " : "";
        if (shape->extent[i] == UINT64_MAX) {
            at += (size_t)snprintf(out + at, HR_SHAPE_TEXT_BYTES - at, "%s?", comma);
        } else {
            at += (size_t)snprintf(out + at, HR_SHAPE_TEXT_BYTES - at, "%s%" PRIu64, comma, shape->extent[i]);
        }
    }
    snprintf(out + at, HR_SHAPE_TEXT_BYTES - at, shape->rank == 1 ? ",)" : ")");
    return out;
}
