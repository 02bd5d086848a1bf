/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpng reports errors by a jump. Everything that must survive one lives in a struct outside the function
 * that sets the jump's mark, and the jump ends in a plain status.
 */
#include "io/image.h"

#include "base/checked.h"
#include "io/deflate.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HR_HAVE_PNG
#include <png.h>

/* A chunk of text or colour profile larger than this is no part of a picture. */
#define CHUNK_LIMIT (8u << 20)

typedef struct png_state {
    const char *name;
    hr_error *error;
    hr_status status;
    char text[128]; /* what libpng said */
    const unsigned char *at;
    const unsigned char *end;
    uint64_t encoded_bytes;
    unsigned char *out;
    uint64_t out_bytes;
    uint64_t out_room;
    hr_image image;
    hr_deflated deflated;
    png_structp png;
    png_infop info;
} png_state;

static void on_error(png_structp png, png_const_charp text)
{
    png_state *s = png_get_error_ptr(png);
    if (s->text[0] == '\0') {
        snprintf(s->text, sizeof s->text, "%s", text);
    }
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* libpng words a failed allocation in several ways; here it is one. */
static png_voidp take_memory(png_structp png, png_alloc_size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) {
        png_state *s = png_get_mem_ptr(png);
        s->status = HR_E_HOST_MEMORY;
    }
    return memory;
}

static void give_memory(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

static void give_bytes(png_structp png, png_bytep to, size_t bytes)
{
    png_state *s = png_get_io_ptr(png);
    if (bytes > (uint64_t)(s->end - s->at)) {
        png_error(png, "the file is cut short");
    }
    memcpy(to, s->at, bytes);
    s->at += bytes;
}

static void take_bytes(png_structp png, png_bytep from, size_t bytes)
{
    png_state *s = png_get_io_ptr(png);
    if (bytes > s->out_room - s->out_bytes) {
        uint64_t room = hr_max_u64(2 * s->out_room, s->out_bytes + bytes + (1u << 20));
        unsigned char *grown = realloc(s->out, room);
        if (grown == NULL) {
            s->status = HR_E_HOST_MEMORY;
            png_error(png, "no memory for the encoded image");
        }
        s->out = grown;
        s->out_room = room;
    }
    memcpy(s->out + s->out_bytes, from, bytes);
    s->out_bytes += bytes;
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

/* Every kind of PNG becomes 8 or 16 bits of gray, gray and alpha, RGB, or RGBA; values are left as they are.
 */
static void set_transforms(png_state *s)
{
    png_byte type = png_get_color_type(s->png, s->info);
    png_byte depth = png_get_bit_depth(s->png, s->info);
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_set_palette_to_rgb(s->png);
    }
    if (type == PNG_COLOR_TYPE_GRAY && depth < 8) {
        png_set_expand_gray_1_2_4_to_8(s->png);
    }
    if (png_get_valid(s->png, s->info, PNG_INFO_tRNS) != 0) {
        png_set_tRNS_to_alpha(s->png);
    }
    if (depth == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        png_set_swap(s->png);
    }
}

/* May jump. */
static hr_status decode(png_state *s)
{
    png_set_read_fn(s->png, s, give_bytes);
    png_set_user_limits(s->png, HR_IMAGE_EDGE_LIMIT, HR_IMAGE_EDGE_LIMIT);
    png_set_chunk_malloc_max(s->png, CHUNK_LIMIT);
    png_read_info(s->png, s->info);
    uint64_t packed = png_get_rowbytes(s->png, s->info);
    set_transforms(s);
    int passes = png_set_interlace_handling(s->png);
    png_read_update_info(s->png, s->info);
    uint64_t rows = png_get_image_height(s->png, s->info);
    hr_dtype dtype = png_get_bit_depth(s->png, s->info) == 16 ? HR_U16 : HR_U8;
    hr_status status =
        hr_image_make(s->name, rows, png_get_image_width(s->png, s->info), png_get_channels(s->png, s->info),
                      dtype, packed, s->encoded_bytes, &s->image, s->error);
    if (status != HR_OK) {
        return status;
    }
    uint64_t row_bytes = png_get_rowbytes(s->png, s->info);
    if (row_bytes * rows != s->image.bytes) {
        return hr_fail(s->error, HR_E_INTERNAL, "%s: PNG: rows of %" PRIu64 " bytes do not make %" PRIu64,
                       s->name, row_bytes, s->image.bytes);
    }
    for (int pass = 0; pass < passes; pass++) {
        for (uint64_t row = 0; row < rows; row++) {
            png_read_row(s->png, (png_bytep)s->image.pixels + row * row_bytes, NULL);
        }
    }
    png_read_end(s->png, NULL);
    return HR_OK;
}

/* May jump. libpng writes the frame around what was compressed by several threads. */
static hr_status encode(png_state *s)
{
    static const int types[5] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA};
    static const png_byte data_chunk[5] = "IDAT";
    static const png_byte end_chunk[5] = "IEND";
    const hr_image *image = &s->image;
    png_set_write_fn(s->png, s, take_bytes, flush_nothing);
    png_set_user_limits(s->png, HR_IMAGE_EDGE_LIMIT, HR_IMAGE_EDGE_LIMIT);
    png_set_IHDR(s->png, s->info, (png_uint_32)image->shape.extent[1], (png_uint_32)image->shape.extent[0],
                 image->dtype == HR_U16 ? 16 : 8, types[hr_image_channels(&image->shape)], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(s->png, s->info);
    for (uint64_t i = 0; i < s->deflated.count; i++) {
        png_write_chunk(s->png, data_chunk, s->deflated.strips[i].data, s->deflated.strips[i].bytes);
    }
    png_write_chunk(s->png, end_chunk, NULL, 0);
    return HR_OK;
}

/* Runs one of the two with the mark set; a jump becomes a status. */
static hr_status guarded(png_state *s, hr_status (*body)(png_state *))
{
    if (s->png != NULL) {
        s->info = png_create_info_struct(s->png);
    }
    if (s->png == NULL || s->info == NULL) {
        return hr_fail(s->error, HR_E_HOST_MEMORY, "%s: PNG: no memory for libpng", s->name);
    }
    if (setjmp(png_jmpbuf(s->png)) != 0) {
        if (s->status == HR_E_HOST_MEMORY) {
            return hr_fail(s->error, HR_E_HOST_MEMORY, "%s: PNG: no memory", s->name);
        }
        return hr_fail(s->error, s->status, "%s: PNG: %s", s->name, s->text);
    }
    return body(s);
}

hr_status hr_png_decode(const char *name, const void *encoded, uint64_t bytes, hr_image *image,
                        hr_error *error)
{
    png_state s = {
        .name = name, .error = error, .status = HR_E_FORMAT, .at = encoded, .encoded_bytes = bytes};
    s.end = s.at + bytes;
    s.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning, &s, take_memory,
                                     give_memory);
    hr_status status = guarded(&s, decode);
    png_destroy_read_struct(&s.png, &s.info, NULL);
    if (status != HR_OK) {
        free(s.image.pixels);
        return status;
    }
    *image = s.image;
    return HR_OK;
}

hr_status hr_png_encode(const char *name, const hr_image *image, void **encoded, uint64_t *bytes,
                        hr_error *error)
{
    png_state s = {.name = name, .error = error, .status = HR_E_INTERNAL, .image = *image};
    uint64_t rows = image->shape.extent[0];
    hr_status status = hr_deflate_rows(name, image->pixels, rows, image->bytes / rows,
                                       hr_dtype_bytes(image->dtype), image->stop, &s.deflated, error);
    if (status != HR_OK) {
        hr_deflated_free(&s.deflated);
        return status;
    }
    s.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning, &s, take_memory,
                                      give_memory);
    status = guarded(&s, encode);
    hr_deflated_free(&s.deflated);
    png_destroy_write_struct(&s.png, &s.info);
    if (status != HR_OK) {
        free(s.out);
        return status;
    }
    *encoded = s.out;
    *bytes = s.out_bytes;
    return HR_OK;
}

#endif
