/* SPDX-License-Identifier: Apache-2.0 */
#include "io/image.h"

#include "base/checked.h"
#include "host/topology.h"
#include "io/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifdef HR_HAVE_PNG
#define PNG_BUILT 1
#else
#define PNG_BUILT 0
#endif
#ifdef HR_HAVE_JPEG
#define JPEG_BUILT 1
#else
#define JPEG_BUILT 0
#endif

hr_status hr_image_make(const char *name, uint64_t rows, uint64_t columns, uint64_t channels, hr_dtype dtype,
                        uint64_t packed_row_bytes, uint64_t encoded_bytes, hr_image *image, hr_error *error)
{
    if (rows == 0 || columns == 0) {
        return hr_fail(error, HR_E_FORMAT, "%s: an image of %" PRIu64 " × %" PRIu64 " pixels", name, columns,
                       rows);
    }
    if (rows > HR_IMAGE_EDGE_LIMIT || columns > HR_IMAGE_EDGE_LIMIT) {
        return hr_fail(error, HR_E_RANGE,
                       "%s: an image of %" PRIu64 " × %" PRIu64 " pixels; at most %" PRIu64
                       " an edge are read",
                       name, columns, rows, HR_IMAGE_EDGE_LIMIT);
    }
    /* Edges below 2^20, so that no product here overflows. */
    uint64_t bytes = rows * columns * channels * hr_dtype_bytes(dtype);
    if (rows * packed_row_bytes / HR_IMAGE_EXPANSION_LIMIT > encoded_bytes) {
        return hr_fail(error, HR_E_RANGE,
                       "%s: the header promises %" PRIu64 " × %" PRIu64 " pixels (%" PRIu64
                       " bytes), the file has %" PRIu64 " bytes: too few to hold them",
                       name, columns, rows, bytes, encoded_bytes);
    }
    uint64_t total_bytes;
    uint64_t free_bytes;
    hr_host_memory_room(&total_bytes, &free_bytes);
    void *pixels = bytes <= free_bytes ? malloc(bytes) : NULL;
    if (pixels == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for %" PRIu64 " bytes of pixels", name, bytes);
    }
    image->dtype = dtype;
    image->shape = (hr_shape){channels == 1 ? 2 : 3, {rows, columns, channels == 1 ? 0 : channels}};
    image->bytes = bytes;
    image->pixels = pixels;
    return HR_OK;
}

uint64_t hr_image_channels(const hr_shape *shape)
{
    return shape->rank == 3 ? shape->extent[2] : 1;
}

/* Is the format's library built in? */
static hr_status check_built(const char *name, hr_format format, hr_error *error)
{
    if (format == HR_FORMAT_PNG && !PNG_BUILT) {
        return hr_fail(error, HR_E_UNSUPPORTED, "%s: this headrace was built without PNG (libpng)", name);
    }
    if (format == HR_FORMAT_JPEG && !JPEG_BUILT) {
        return hr_fail(error, HR_E_UNSUPPORTED, "%s: this headrace was built without JPEG (libjpeg)", name);
    }
    return HR_OK;
}

static hr_status decode(const char *name, hr_format format, const void *encoded, uint64_t encoded_bytes,
                        hr_image *image, hr_error *error)
{
    switch (format) {
#ifdef HR_HAVE_PNG
    case HR_FORMAT_PNG:
        return hr_png_decode(name, encoded, encoded_bytes, image, error);
#endif
#ifdef HR_HAVE_JPEG
    case HR_FORMAT_JPEG:
        return hr_jpeg_decode(name, encoded, encoded_bytes, image, error);
#endif
    default:
        return hr_pnm_decode(name, encoded, encoded_bytes, image, error);
    }
}

hr_status hr_image_decode(const char *name, hr_format format, const void *encoded, uint64_t encoded_bytes,
                          hr_array_info *info, void **pixels, hr_error *error)
{
    hr_image image = {0};
    hr_status status = check_built(name, format, error);
    if (status == HR_OK) {
        status = decode(name, format, encoded, encoded_bytes, &image, error);
    }
    if (status == HR_OK) {
        info->dtype = image.dtype;
        info->shape = image.shape;
        info->bytes = image.bytes;
        *pixels = image.pixels;
    }
    return status;
}

/* What each format takes, in words and in numbers. */
static const struct {
    hr_format format;
    const char *name;
    bool u16;
    unsigned channels; /* bit n: n channels */
    const char *takes;
} kinds[] = {
    {HR_FORMAT_PNG, "PNG", true, 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
     "u8 or u16 of (rows, columns[, 1 to 4])"},
    {HR_FORMAT_JPEG, "JPEG", false, 1u << 1 | 1u << 3, "u8 of (rows, columns[, 1 or 3])"},
    {HR_FORMAT_PNM, "PNM", true, 1u << 1 | 1u << 3, "u8 or u16 of (rows, columns[, 1 or 3])"},
};

static unsigned channels_of_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot != NULL && strcasecmp(dot, ".pgm") == 0) {
        return 1u << 1;
    }
    return dot != NULL && strcasecmp(dot, ".ppm") == 0 ? 1u << 3 : ~0u;
}

hr_status hr_image_check(const char *name, const char *path, hr_format format, hr_dtype dtype,
                         const hr_shape *shape, hr_error *error)
{
    hr_status status = check_built(name, format, error);
    if (status != HR_OK) {
        return status;
    }
    size_t i = format == HR_FORMAT_PNG ? 0 : format == HR_FORMAT_JPEG ? 1 : 2;
    uint64_t channels = hr_image_channels(shape);
    unsigned allowed = kinds[i].channels & channels_of_name(path);
    bool fits = (shape->rank == 2 || shape->rank == 3) && channels <= 4 && (allowed >> channels & 1u) != 0 &&
                (dtype == HR_U8 || (dtype == HR_U16 && kinds[i].u16));
    char text[HR_SHAPE_TEXT_BYTES];
    if (!fits) {
        const char *takes = kinds[i].takes;
        if (format == HR_FORMAT_PNM && allowed != kinds[i].channels) {
            takes = allowed == 1u << 1 ? "in .pgm u8 or u16 of (rows, columns)"
                                       : "in .ppm u8 or u16 of (rows, columns, 3)";
        }
        return hr_fail(error, HR_E_UNSUPPORTED, "%s: %s holds %s, not %s of %s", name, kinds[i].name, takes,
                       hr_dtype_name(dtype), hr_shape_text(shape, text));
    }
    uint64_t limit = format == HR_FORMAT_JPEG ? 65500 : HR_IMAGE_EDGE_LIMIT;
    for (uint32_t k = 0; k < 2; k++) {
        if (shape->extent[k] == 0 || shape->extent[k] > limit) {
            return hr_fail(error, HR_E_UNSUPPORTED, "%s: %s holds 1 to %" PRIu64 " rows and columns, not %s",
                           name, kinds[i].name, limit, hr_shape_text(shape, text));
        }
    }
    return HR_OK;
}

hr_status hr_image_encode(const char *name, hr_format format, uint32_t quality, const hr_image *image,
                          void **encoded, uint64_t *encoded_bytes, hr_error *error)
{
    hr_status status = check_built(name, format, error);
    if (status != HR_OK) {
        return status;
    }
    (void)quality;
    switch (format) {
#ifdef HR_HAVE_PNG
    case HR_FORMAT_PNG:
        return hr_png_encode(name, image, encoded, encoded_bytes, error);
#endif
#ifdef HR_HAVE_JPEG
    case HR_FORMAT_JPEG:
        return hr_jpeg_encode(name, image, quality, encoded, encoded_bytes, error);
#endif
    default:
        return hr_pnm_encode(name, image, encoded, encoded_bytes, error);
    }
}
