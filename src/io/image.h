/* SPDX-License-Identifier: Apache-2.0 */
/* Images as arrays: (rows, columns) for gray, (rows, columns, channels) otherwise, of u8 or u16. */
#ifndef HR_IO_IMAGE_H
#define HR_IO_IMAGE_H

#include <headrace/io.h>
#include <stdatomic.h>

/* Files longer than this are not read as images. */
#define HR_IMAGE_FILE_LIMIT (UINT64_C(4) << 30)
/* Rows and columns of an image: what JPEG can hold, and more than PNG and PNM files are found to have. */
#define HR_IMAGE_EDGE_LIMIT UINT64_C(1000000)
/* An image that promises more than so many bytes, as its format packs them, for each byte of its file is not
 * believed: deflate makes at most 1032 of one, and JPEG, which needs a bit for each block of 64, 1024. */
#define HR_IMAGE_EXPANSION_LIMIT UINT64_C(2064)

typedef struct hr_image {
    hr_dtype dtype;
    hr_shape shape;
    uint64_t bytes;
    void *pixels;            /* C order, this machine's byte order */
    const atomic_bool *stop; /* encoding ends with HR_E_CANCELLED soon after it is set; null: it never is */
} hr_image;

/* Decodes; fills dtype, shape and bytes of *info, and *pixels, which the caller frees. HR_E_FORMAT,
 * HR_E_RANGE (size or expansion), HR_E_UNSUPPORTED (a kind of image, or built without the library),
 * HR_E_HOST_MEMORY. */
hr_status hr_image_decode(const char *name, hr_format format, const void *encoded, uint64_t encoded_bytes,
                          hr_array_info *info, void **pixels, hr_error *error);

/* Can the format hold such an array, and is it built in? HR_E_UNSUPPORTED, saying what it can hold. `path` tells .pgm and .ppm apart.
 */
hr_status hr_image_check(const char *name, const char *path, hr_format format, hr_dtype dtype,
                         const hr_shape *shape, hr_error *error);
/* Encodes into memory that the caller frees. HR_E_CANCELLED by image->stop, HR_E_HOST_MEMORY, HR_E_UNSUPPORTED. */
hr_status hr_image_encode(const char *name, hr_format format, uint32_t quality, const hr_image *image,
                          void **encoded, uint64_t *encoded_bytes, hr_error *error);

/* What the formats share: sizes are checked and memory is taken. A row is packed_row_bytes long before the
 * format compresses it; `encoded_bytes` is the whole file's length. */
hr_status hr_image_make(const char *name, uint64_t rows, uint64_t columns, uint64_t channels, hr_dtype dtype,
                        uint64_t packed_row_bytes, uint64_t encoded_bytes, hr_image *image, hr_error *error);
uint64_t hr_image_channels(const hr_shape *shape);

/* One a format. */
hr_status hr_png_decode(const char *name, const void *encoded, uint64_t bytes, hr_image *image,
                        hr_error *error);
hr_status hr_png_encode(const char *name, const hr_image *image, void **encoded, uint64_t *bytes,
                        hr_error *error);
hr_status hr_jpeg_decode(const char *name, const void *encoded, uint64_t bytes, hr_image *image,
                         hr_error *error);
hr_status hr_jpeg_encode(const char *name, const hr_image *image, uint32_t quality, void **encoded,
                         uint64_t *bytes, hr_error *error);
hr_status hr_pnm_decode(const char *name, const void *encoded, uint64_t bytes, hr_image *image,
                        hr_error *error);
hr_status hr_pnm_encode(const char *name, const hr_image *image, void **encoded, uint64_t *bytes,
                        hr_error *error);

#endif
