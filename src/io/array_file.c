/* SPDX-License-Identifier: Apache-2.0 */
#include "io/array_file.h"

#include "base/checked.h"
#include "io/fail.h"
#include "io/order.h"

#include <string.h>

/* Whole elements, as the file has them except for their order. */
static hr_status read_elements(const hr_array_file *array, uint64_t first, uint64_t count, void *buffer,
                               hr_error *error)
{
    hr_status status;
    if (array->bands != NULL) {
        status = hr_bands_read(array->bands, first, count, buffer, error);
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
    hr_status status = array->bands != NULL || array->swapped
                           ? read_turned(array, offset, buffer, bytes, error)
                           : hr_file_read(array->file, array->data_offset + offset, buffer, bytes, error);
    if (status == HR_OK) {
        *got = bytes;
    }
    return status;
}

hr_status hr_array_file_turn(hr_array_file *array, const hr_shape *shape, hr_error *error)
{
    array->turned = (hr_fortran){array->name, array->file, array->data_offset, array->width, *shape};
    return hr_bands_open(&array->turned, &array->bands, error);
}

/* A tile of a Fortran-ordered matrix is fetched as it lies in the file: a part of each of its columns. */
static hr_status read_tile(const hr_array_file *array, uint64_t offset, uint64_t row_bytes, uint64_t rows,
                           unsigned char *buffer, uint64_t dst_pitch, hr_error *error)
{
    uint64_t width = array->width;
    uint64_t columns = array->turned.shape.extent[1];
    uint64_t first = offset / width;
    hr_box box = {2, {first / columns, first % columns}, {rows, row_bytes / width}, {dst_pitch / width, 1}};
    hr_status status = hr_fortran_read_box(&array->turned, &box, buffer, error);
    for (uint64_t row = 0; status == HR_OK && array->swapped && row < rows; row++) {
        hr_swap_elements(buffer + row * dst_pitch, row_bytes, width);
    }
    return status;
}

/* Do these rows make a tile of a Fortran-ordered matrix, in whole elements? */
static bool is_tile(const hr_array_file *array, uint64_t offset, uint64_t row_bytes, uint64_t rows,
                    uint64_t src_pitch, uint64_t dst_pitch)
{
    uint64_t width = array->width;
    return array->bands != NULL && array->turned.shape.rank == 2 && rows > 0 && row_bytes > 0 &&
           src_pitch == array->turned.shape.extent[1] * width && offset % width == 0 &&
           row_bytes % width == 0 && dst_pitch % width == 0 && offset % src_pitch + row_bytes <= src_pitch;
}

hr_status hr_array_file_read_rows(void *self, uint64_t offset, uint64_t row_bytes, uint64_t rows,
                                  uint64_t src_pitch, void *buffer, uint64_t dst_pitch, hr_error *error)
{
    const hr_array_file *array = self;
    if (src_pitch == row_bytes && dst_pitch == row_bytes) {
        uint64_t got;
        return hr_array_file_read(self, offset, buffer, row_bytes * rows, &got, error);
    }
    uint64_t last;
    if (rows > 0 &&
        (hr_mul_overflows(rows - 1, src_pitch, &last) || hr_add_overflows(last, row_bytes, &last) ||
         hr_add_overflows(last, offset, &last) || last > array->bytes)) {
        return hr_fail(error, HR_E_RANGE, "%s: rows past the array's end", array->name);
    }
    if (is_tile(array, offset, row_bytes, rows, src_pitch, dst_pitch)) {
        return read_tile(array, offset, row_bytes, rows, buffer, dst_pitch, error);
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
    if (array->bands == NULL) {
        hr_file_will_need(array->file, array->data_offset + offset, bytes);
    }
}
