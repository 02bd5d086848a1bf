/* SPDX-License-Identifier: Apache-2.0 */
/* An array inside a regular file: its bytes in C order and in this machine's byte order, whatever the file
 * has. */
#ifndef HR_IO_ARRAY_FILE_H
#define HR_IO_ARRAY_FILE_H

#include "io/bands.h"
#include "io/file.h"

#include <headrace/io.h>

typedef struct hr_array_file {
    const char *name;
    hr_file *file;
    uint64_t data_offset; /* of the first element in the file */
    uint64_t bytes;
    uint64_t width; /* bytes of an element */
    bool swapped;
    hr_fortran turned; /* Fortran order only */
    hr_bands *bands;   /* not null in Fortran order */
} hr_array_file;

/* Makes it a Fortran-ordered array of this shape; the other fields are set. HR_E_HOST_MEMORY. */
hr_status hr_array_file_turn(hr_array_file *array, const hr_shape *shape, hr_error *error);

/* What hr_source asks for, on a `hr_array_file *`. Any thread. */
hr_status hr_array_file_read(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                             hr_error *error);
hr_status hr_array_file_read_rows(void *self, uint64_t offset, uint64_t row_bytes, uint64_t rows,
                                  uint64_t src_pitch, void *buffer, uint64_t dst_pitch, hr_error *error);
void hr_array_file_prepare(void *self, void *const *buffers, const uint64_t *bytes, uint32_t count);
void hr_array_file_will_need(void *self, uint64_t offset, uint64_t bytes);

#endif
