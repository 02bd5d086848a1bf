/* SPDX-License-Identifier: Apache-2.0 */
/* An array that comes in through a pipe, front to back. */
#ifndef HR_IO_ARRAY_STREAM_H
#define HR_IO_ARRAY_STREAM_H

#include "io/stream.h"

#include <headrace/io.h>

typedef struct hr_array_stream {
    const char *name;
    hr_io_stream *stream;
    const hr_array_info *info;
    uint64_t
        step_bytes; /* of an element, or of all below the first axis: what the length must be a multiple of */
    uint64_t position;
    bool swapped;
    bool ended;
} hr_array_stream;

/* `info` outlives it; the stream stands at the first byte of data. */
void hr_array_stream_init(hr_array_stream *array, const char *name, hr_io_stream *stream,
                          const hr_array_info *info, bool swapped);
hr_source hr_array_stream_source(hr_array_stream *array);
/* Reads a Fortran-ordered array to the end and turns it; the caller frees *c. HR_E_HOST_MEMORY where two
 * copies of it do not fit. */
hr_status hr_array_stream_read_fortran(hr_array_stream *array, void **c, hr_error *error);

#endif
