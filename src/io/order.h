/* SPDX-License-Identifier: Apache-2.0 */
/* Byte order of elements, and shapes in words. */
#ifndef HR_IO_ORDER_H
#define HR_IO_ORDER_H

#include <headrace/dtype.h>

/* Turns the bytes of each element around, in place. `bytes` is a multiple of `width` (1, 2, 4 or 8). */
void hr_swap_elements(void *data, uint64_t bytes, uint64_t width);

#define HR_SHAPE_TEXT_BYTES 200
/* "(4, 7)", as NumPy writes it. Returns out. */
const char *hr_shape_text(const hr_shape *shape, char out[HR_SHAPE_TEXT_BYTES]);

#endif
