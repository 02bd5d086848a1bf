/* SPDX-License-Identifier: Apache-2.0 */
#include "io/array_file.h"

#include "base/checked.h"
#include "io/fail.h"
#include "io/fortran.h"
#include "io/order.h"

#include <string.h>

/* Whole elements, as the file has them except for their order. */
static hr_status read_elements(const hr_array_file *array, uint64_t first, uint64_t count, void *buffer,
                               hr_error *error)
{
    hr_status status;
    if (array->fortran) {
        status = hr_fortran_read(array, first, count, buffer, error);
    } else {
        status = hr_file_read(array->file, array->data_offset + first * array->width, buffer,
                              count * array->width, error);
    }
    if (status == HR_OK && array->swapped) {
        hr_swap_elements(buffer, count * array->width, array->width);
    }
    return status;
}

/* `bytes` of one element, from its byte `skip` on. */
static hr_status read_part(const hr_array_file *array, uint64_t element, uint64_t skip, void *buffer,
                           uint64_t bytes, hr_error *error)
{
    unsigned char whole[8];
    hr_status status = read_elements(array, element, 1, whole, error);
    if (status == HR_OK) {
        memcpy(buffer, whole + skip, bytes);
    }
    return status;
}

static hr_status read_turned(const hr_array_file *array, uint64_t offset, unsigned char *buffer,
                             uint64_t bytes, hr_error *error)
{
    uint64_t width = array->width;
    uint64_t skip = offset % width;
    if (skip != 0) {
        uint64_t part = hr_min_u64(width - skip, bytes);
        hr_status status = read_part(array, offset / width, skip, buffer, part, error);
        if (status != HR_OK) {
            return status;
        }
        offset += part;
        buffer += part;
        bytes -= part;
    }
    uint64_t count = bytes / width;
    if (count > 0) {
        hr_status status = read_elements(array, offset / width, count, buffer, error);
        if (status != HR_OK) {
            return status;
        }
    }
    uint64_t rest = bytes - count * width;
    return rest == 0 ? HR_OK
                     : read_part(array, offset / width + count, 0, buffer + count * width, rest, error);
}

hr_status hr_array_file_read(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                             hr_error *error)
{
    const hr_array_file *array = self;
    if (offset > array->bytes || bytes > array->bytes - offset) {
        return hr_fail(error, HR_E_RANGE, "%s: a read past the array's end", array->name);
    }
    hr_status status = array->fortran || array->swapped
                           ? read_turned(array, offset, buffer, bytes, error)
                           : hr_file_read(array->file, array->data_offset + offset, buffer, bytes, error);
    if (status == HR_OK) {
        *got = bytes;
    }
    return status;
}

hr_status hr_array_file_read_rows(void *self, uint64_t offset, uint64_t row_bytes, uint64_t rows,
                                  uint64_t src_pitch, void *buffer, uint64_t dst_pitch, hr_error *error)
{
    if (src_pitch == row_bytes && dst_pitch == row_bytes) {
        uint64_t got;
        return hr_array_file_read(self, offset, buffer, row_bytes * rows, &got, error);
    }
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t got;
        hr_status status =
            hr_array_file_read(self, offset + row * src_pitch, (unsigned char *)buffer + row * dst_pitch,
                               row_bytes, &got, error);
        if (status != HR_OK) {
            return status;
        }
    }
    return HR_OK;
}

void hr_array_file_prepare(void *self, void *const *buffers, const uint64_t *bytes, uint32_t count)
{
    const hr_array_file *array = self;
    hr_file_prepare(array->file, buffers, bytes, count);
}

void hr_array_file_will_need(void *self, uint64_t offset, uint64_t bytes)
{
    const hr_array_file *array = self;
    if (!array->fortran) {
        hr_file_will_need(array->file, array->data_offset + offset, bytes);
    }
}
