/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg reports errors by a jump, as libpng does; see image_png.c. */
#include "io/image.h"

#include "base/checked.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HR_HAVE_JPEG
#include <jpeglib.h>

#include <jerror.h>

#define DEFAULT_QUALITY 92
/* A progressive file may go over the picture as often as it likes; real ones do it ten times. */
#define SCAN_LIMIT      500
#define OUT_BYTES_FIRST (UINT64_C(1) << 20)

typedef struct jpeg_state {
    struct jpeg_error_mgr manager; /* first: libjpeg hands it back */
    jmp_buf mark;
    const char *name;
    hr_error *error;
    char text[JMSG_LENGTH_MAX];
    const unsigned char *encoded;
    uint64_t encoded_bytes;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_destination_mgr destination;
    unsigned char *out_data;
    uint64_t out_room;
    uint32_t quality;
    hr_image image;
} jpeg_state;

static jpeg_state *state_of(j_common_ptr jpeg)
{
    return (jpeg_state *)jpeg->err;
}

static void on_error(j_common_ptr jpeg)
{
    jpeg_state *s = state_of(jpeg);
    jpeg->err->format_message(jpeg, s->text);
    longjmp(s->mark, 1);
}

/* libjpeg fills what is missing or broken with gray and warns; that is not the picture. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level >= 0) {
        return;
    }
    int code = jpeg->err->msg_code;
    bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
    if (!harmless) {
        on_error(jpeg);
    }
}

static void on_progress(j_common_ptr jpeg)
{
    if (jpeg->is_decompressor && ((j_decompress_ptr)jpeg)->input_scan_number > SCAN_LIMIT) {
        jpeg_state *s = state_of(jpeg);
        snprintf(s->text, sizeof s->text, "more than %d scans", SCAN_LIMIT);
        longjmp(s->mark, 1);
    }
}

static void set_manager(jpeg_state *s)
{
    (void)jpeg_std_error(&s->manager);
    s->manager.error_exit = on_error;
    s->manager.emit_message = on_message;
    s->progress.progress_monitor = on_progress;
}

/* May jump. */
static hr_status decode(jpeg_state *s)
{
    struct jpeg_decompress_struct *in = &s->in;
    jpeg_mem_src(in, s->encoded, s->encoded_bytes);
    (void)jpeg_read_header(in, TRUE);
    if (in->jpeg_color_space == JCS_CMYK || in->jpeg_color_space == JCS_YCCK) {
        return hr_fail(s->error, HR_E_UNSUPPORTED, "%s: JPEG: CMYK pictures are not taken; gray and RGB are",
                       s->name);
    }
    bool gray = in->jpeg_color_space == JCS_GRAYSCALE;
    in->out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
    uint64_t channels = gray ? 1 : 3;
    hr_status status = hr_image_make(s->name, in->image_height, in->image_width, channels, HR_U8,
                                     in->image_width * channels, s->encoded_bytes, &s->image, s->error);
    if (status != HR_OK) {
        return status;
    }
    in->progress = &s->progress;
    (void)jpeg_start_decompress(in);
    uint64_t row_bytes = in->image_width * channels;
    while (in->output_scanline < in->output_height) {
        JSAMPROW row = (JSAMPROW)s->image.pixels + in->output_scanline * row_bytes;
        (void)jpeg_read_scanlines(in, &row, 1);
    }
    (void)jpeg_finish_decompress(in);
    return HR_OK;
}

/* Twice the room, of which `used` bytes are taken. */
static void grow(j_compress_ptr out, uint64_t used)
{
    jpeg_state *s = state_of((j_common_ptr)out);
    uint64_t room = hr_max_u64(2 * s->out_room, OUT_BYTES_FIRST);
    unsigned char *grown = realloc(s->out_data, room);
    if (grown == NULL) {
        ERREXIT1(out, JERR_OUT_OF_MEMORY, 0);
    }
    s->out_data = grown;
    s->out_room = room;
    s->destination.next_output_byte = grown + used;
    s->destination.free_in_buffer = room - used;
}

/* libjpeg's own memory destination loses track of what it has when it cannot grow. */
static void start_output(j_compress_ptr out)
{
    grow(out, 0);
}

static boolean grow_output(j_compress_ptr out)
{
    grow(out, state_of((j_common_ptr)out)->out_room);
    return TRUE;
}

static void end_output(j_compress_ptr out)
{
    (void)out;
}

/* May jump. */
static hr_status encode(jpeg_state *s)
{
    struct jpeg_compress_struct *out = &s->out;
    const hr_image *image = &s->image;
    uint64_t channels = hr_image_channels(&image->shape);
    s->destination.init_destination = start_output;
    s->destination.empty_output_buffer = grow_output;
    s->destination.term_destination = end_output;
    out->dest = &s->destination;
    out->image_width = (JDIMENSION)image->shape.extent[1];
    out->image_height = (JDIMENSION)image->shape.extent[0];
    out->input_components = (int)channels;
    out->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(out);
    jpeg_set_quality(out, s->quality == 0 ? DEFAULT_QUALITY : (int)s->quality, TRUE);
    jpeg_start_compress(out, TRUE);
    uint64_t row_bytes = image->bytes / image->shape.extent[0];
    while (out->next_scanline < out->image_height) {
        if (image->stop != NULL && atomic_load(image->stop)) {
            return hr_fail(s->error, HR_E_CANCELLED, "%s: cancelled", s->name);
        }
        JSAMPROW row = (JSAMPROW)image->pixels + out->next_scanline * row_bytes;
        (void)jpeg_write_scanlines(out, &row, 1);
    }
    jpeg_finish_compress(out);
    return HR_OK;
}

/* Runs one of the two with the mark set; a jump becomes a status. */
static hr_status guarded(jpeg_state *s, hr_status (*body)(jpeg_state *), hr_status failure)
{
    if (setjmp(s->mark) != 0) {
        if (s->manager.msg_code == JERR_OUT_OF_MEMORY) {
            return hr_fail(s->error, HR_E_HOST_MEMORY, "%s: JPEG: no memory", s->name);
        }
        return hr_fail(s->error, failure, "%s: JPEG: %s", s->name, s->text);
    }
    return body(s);
}

static hr_status start_and_decode(jpeg_state *s)
{
    jpeg_create_decompress(&s->in);
    return decode(s);
}

static hr_status start_and_encode(jpeg_state *s)
{
    jpeg_create_compress(&s->out);
    return encode(s);
}

hr_status hr_jpeg_decode(const char *name, const void *encoded, uint64_t bytes, hr_image *image,
                         hr_error *error)
{
    jpeg_state *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: JPEG: no memory for libjpeg", name);
    }
    s->name = name;
    s->error = error;
    s->encoded = encoded;
    s->encoded_bytes = bytes;
    set_manager(s);
    s->in.err = &s->manager;
    hr_status status = guarded(s, start_and_decode, HR_E_FORMAT);
    jpeg_destroy_decompress(&s->in);
    if (status == HR_OK) {
        *image = s->image;
    } else {
        free(s->image.pixels);
    }
    free(s);
    return status;
}

hr_status hr_jpeg_encode(const char *name, const hr_image *image, uint32_t quality, void **encoded,
                         uint64_t *bytes, hr_error *error)
{
    jpeg_state *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: JPEG: no memory for libjpeg", name);
    }
    s->name = name;
    s->error = error;
    s->image = *image;
    s->quality = quality;
    set_manager(s);
    s->out.err = &s->manager;
    hr_status status = guarded(s, start_and_encode, HR_E_INTERNAL);
    jpeg_destroy_compress(&s->out);
    if (status == HR_OK) {
        *encoded = s->out_data;
        *bytes = s->out_room - s->destination.free_in_buffer;
    } else {
        free(s->out_data);
    }
    free(s);
    return status;
}

#endif
