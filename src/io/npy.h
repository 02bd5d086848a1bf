/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a .npy file, versions 1.0 to 3.0: bytes in, description out, and back. Does no reading
 * itself. */
#ifndef HR_IO_NPY_H
#define HR_IO_NPY_H

#include <headrace/dtype.h>
#include <stdbool.h>

/* Enough of the file's start to tell how long the header is. */
#define HR_NPY_PREFIX_BYTES 12
/* Longest header that is read. An array that Headrace can take needs a few hundred bytes. */
#define HR_NPY_HEADER_LIMIT UINT64_C(65600)
/* What hr_npy_format() needs at most. */
#define HR_NPY_FORMAT_BYTES 512

typedef struct hr_npy {
    hr_dtype dtype;
    hr_shape shape;
    bool fortran; /* first axis fastest; false where both orders are the same */
    bool swapped; /* the elements' bytes are in the other order than this machine's */
    uint64_t header_bytes;
    uint64_t bytes; /* of data */
} hr_npy;

/* Does the file start as a .npy file does? */
bool hr_npy_is(const unsigned char *start, uint64_t have);

/*
 * The length of the whole header, magic included, from the first `have` bytes (at least HR_NPY_PREFIX_BYTES,
 * unless the file is shorter). HR_E_FORMAT (no .npy, cut short), HR_E_UNSUPPORTED (version), HR_E_RANGE
 * (longer than HR_NPY_HEADER_LIMIT).
 */
hr_status hr_npy_header_bytes(const char *name, const unsigned char *start, uint64_t have,
                              uint64_t *header_bytes, hr_error *error);

/*
 * Reads the header; `header` holds all header_bytes of it. `raw_as` says what two bytes of no known type
 * ('|V2') are: HR_BF16, or HR_DTYPE_NONE to refuse them. HR_E_FORMAT, HR_E_UNSUPPORTED (a dtype that Headrace
 * does not take, by its name), HR_E_RANGE (negative or overflowing shape, too many dimensions).
 */
hr_status hr_npy_parse(const char *name, const unsigned char *header, uint64_t header_bytes, hr_dtype raw_as,
                       hr_npy *npy, hr_error *error);

/*
 * Writes the header of a C-ordered array in this machine's byte order, padded to a multiple of 64 bytes, and
 * returns its length. The length does not depend on extent[0], so that it can be filled in later.
 */
uint64_t hr_npy_format(hr_dtype dtype, const hr_shape *shape, unsigned char out[HR_NPY_FORMAT_BYTES]);

#endif
