/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a PNG as one zlib stream, made by several threads. */
#ifndef HR_IO_DEFLATE_H
#define HR_IO_DEFLATE_H

#include <headrace/status.h>
#include <stdatomic.h>

/* A stretch of the stream; all of them, in order, are the stream. */
typedef struct hr_strip {
    unsigned char *data;
    uint64_t bytes;
    uint64_t plain_bytes;
    uint32_t adler; /* of the plain bytes */
} hr_strip;

typedef struct hr_deflated {
    hr_strip *strips;
    uint64_t count;
} hr_deflated;

/*
 * Filters each row by the one above (PNG's filter 2) and compresses. Samples of two bytes are put into PNG's byte
 * order. The caller gives *deflated to hr_deflated_free(), after a failure as well. HR_E_HOST_MEMORY;
 * HR_E_CANCELLED soon after *stop is set, which may be null.
 */
hr_status hr_deflate_rows(const char *name, const void *pixels, uint64_t rows, uint64_t row_bytes,
                          uint64_t sample_bytes, const atomic_bool *stop, hr_deflated *deflated,
                          hr_error *error);
void hr_deflated_free(hr_deflated *deflated);

#endif
