/* SPDX-License-Identifier: Apache-2.0 */
/* Writing an array: its header, its bytes at any offset, and the moment when it takes its name. */
#include <headrace/io.h>

#include "base/checked.h"
#include "io/fail.h"
#include "io/format.h"
#include "io/image.h"
#include "io/npy.h"
#include "io/order.h"
#include "io/target.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct hr_output {
    hr_sink sink;
    hr_array_info info;
    char *path;
    hr_create_options options;
    hr_target *target;
    uint64_t header_bytes;
    hr_image image; /* pixels not null: collected here, encoded by the commit */
    bool committed;
    bool was_told; /* by a finish, how much was written … */
    uint64_t told_bytes;
    atomic_bool interrupted;
};

static hr_status write_array(void *self, uint64_t offset, const void *buffer, uint64_t bytes, hr_error *error)
{
    hr_output *out = self;
    if (out->info.bytes != HR_LENGTH_UNKNOWN &&
        (offset > out->info.bytes || bytes > out->info.bytes - offset)) {
        return hr_fail(error, HR_E_RANGE, "%s: a write past the array's end", hr_target_name(out->target));
    }
    if (out->image.pixels != NULL) {
        memcpy((unsigned char *)out->image.pixels + offset, buffer, bytes);
        return HR_OK;
    }
    return hr_target_write(out->target, out->header_bytes + offset, buffer, bytes, error);
}

static hr_status write_header(hr_output *out, hr_error *error)
{
    if (out->info.format != HR_FORMAT_NPY) {
        return HR_OK;
    }
    unsigned char header[HR_NPY_FORMAT_BYTES];
    out->header_bytes = hr_npy_format(out->info.dtype, &out->info.shape, header);
    return hr_target_write(out->target, 0, header, out->header_bytes, error);
}

/* An array whose first extent was not known: it follows from what was written. */
static hr_status settle_shape(hr_output *out, uint64_t bytes, hr_error *error)
{
    const char *name = hr_target_name(out->target);
    hr_shape row = out->info.shape;
    row.extent[0] = 1;
    uint64_t row_bytes;
    if (hr_shape_bytes(&row, out->info.dtype, &row_bytes) != HR_OK || row_bytes == 0 ||
        bytes % row_bytes != 0) {
        char text[HR_SHAPE_TEXT_BYTES];
        return hr_fail(error, HR_E_INVALID,
                       "%s: %" PRIu64 " bytes were written, no whole rows of shape %s of %s", name, bytes,
                       hr_shape_text(&out->info.shape, text), hr_dtype_name(out->info.dtype));
    }
    out->info.shape.extent[0] = bytes / row_bytes;
    out->info.bytes = bytes;
    return hr_target_sequential(out->target) ? HR_OK : write_header(out, error);
}

static hr_status encode_image(hr_output *out, uint64_t *bytes, hr_error *error)
{
    void *encoded = NULL;
    hr_status status = hr_image_encode(hr_target_name(out->target), out->info.format, out->options.quality,
                                       &out->image, &encoded, bytes, error);
    if (status == HR_OK) {
        status = hr_target_write(out->target, 0, encoded, *bytes, error);
    }
    free(encoded);
    return status;
}

static hr_status finish(void *self, uint64_t bytes, hr_error *error)
{
    hr_output *out = self;
    if (out->committed) {
        return HR_OK;
    }
    out->was_told = true;
    out->told_bytes = bytes;
    hr_status status = HR_OK;
    if (out->info.bytes == HR_LENGTH_UNKNOWN) {
        status = settle_shape(out, bytes, error);
    } else if (bytes != out->info.bytes) {
        status = hr_fail(error, HR_E_INVALID, "%s: %" PRIu64 " bytes were written, %" PRIu64 " belong to it",
                         hr_target_name(out->target), bytes, out->info.bytes);
    }
    uint64_t file_bytes = out->header_bytes + bytes;
    if (status == HR_OK && out->image.pixels != NULL) {
        status = encode_image(out, &file_bytes, error);
    }
    if (status == HR_OK) {
        status = hr_target_commit(out->target, file_bytes, error);
    }
    out->committed = status == HR_OK;
    return status;
}

static void interrupt_output(void *self)
{
    hr_output *out = self;
    atomic_store(&out->interrupted, true);
    hr_target_interrupt(out->target);
}

static hr_status choose_format(hr_output *out, hr_error *error)
{
    bool unknown = out->info.bytes == HR_LENGTH_UNKNOWN;
    bool stream = hr_target_sequential(out->target);
    hr_format format = out->options.format;
    if (format == HR_FORMAT_AUTO) {
        format = hr_format_of_name(out->path);
    }
    if (format == HR_FORMAT_AUTO) {
        bool standard = strcmp(out->path, "-") == 0;
        /* Not by whether it is a pipe: `> file` and `| cat > file` should write the same. */
        format = standard && !unknown ? HR_FORMAT_NPY : HR_FORMAT_RAW;
    }
    out->info.format = format;
    const char *name = hr_target_name(out->target);
    if (format == HR_FORMAT_NPY && unknown && stream) {
        return hr_fail(
            error, HR_E_UNSUPPORTED,
            "%s: a .npy header tells the shape first, and the length is not known yet; raw output or a file "
            "can be written",
            name);
    }
    if (format == HR_FORMAT_NPY || format == HR_FORMAT_RAW) {
        return HR_OK;
    }
    return hr_image_check(name, out->path, format, out->info.dtype, &out->info.shape, error);
}

static hr_status prepare_image(hr_output *out, hr_error *error)
{
    out->image = (hr_image){out->info.dtype, out->info.shape, out->info.bytes, malloc(out->info.bytes),
                            &out->interrupted};
    if (out->image.pixels == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for %" PRIu64 " bytes of pixels",
                       hr_target_name(out->target), out->info.bytes);
    }
    out->sink.data = out->image.pixels;
    out->info.method = "image";
    return HR_OK;
}

static hr_status prepare_output(hr_output *out, hr_error *error)
{
    if (out->options.quality > 100) {
        return hr_fail(error, HR_E_INVALID, "%s: a quality of %" PRIu32 "; it goes from 1 to 100",
                       hr_target_name(out->target), out->options.quality);
    }
    hr_status status = choose_format(out, error);
    if (status != HR_OK) {
        return status;
    }
    out->sink = (hr_sink)HR_SINK_INIT;
    out->sink.self = out;
    out->sink.room_bytes = out->info.bytes;
    out->sink.write = write_array;
    out->sink.finish = finish;
    out->sink.interrupt = interrupt_output;
    if (out->info.format != HR_FORMAT_NPY && out->info.format != HR_FORMAT_RAW) {
        return prepare_image(out, error);
    }
    out->sink.sequential = hr_target_sequential(out->target);
    out->info.method = out->sink.sequential ? "stream" : "pwrite threads";
    if (out->info.bytes != HR_LENGTH_UNKNOWN) {
        unsigned char header[HR_NPY_FORMAT_BYTES];
        uint64_t header_bytes =
            out->info.format == HR_FORMAT_NPY ? hr_npy_format(out->info.dtype, &out->info.shape, header) : 0;
        status = hr_target_reserve(out->target, header_bytes + out->info.bytes, error);
    }
    return status == HR_OK ? write_header(out, error) : status;
}

static hr_status check_array(const char *name, hr_dtype dtype, const hr_shape *shape, uint64_t *bytes,
                             hr_error *error)
{
    if (shape == NULL || shape->rank > HR_MAX_RANK || hr_dtype_bytes(dtype) == 0) {
        return hr_fail(error, HR_E_INVALID, "%s: no such dtype, or a shape of more than %d dimensions", name,
                       HR_MAX_RANK);
    }
    if (shape->rank > 0 && shape->extent[0] == HR_LENGTH_UNKNOWN) {
        *bytes = HR_LENGTH_UNKNOWN;
        return HR_OK;
    }
    if (hr_shape_bytes(shape, dtype, bytes) != HR_OK || *bytes > INT64_MAX - HR_NPY_FORMAT_BYTES) {
        char text[HR_SHAPE_TEXT_BYTES];
        return hr_fail(error, HR_E_RANGE, "%s: shape %s of %s: the number of bytes does not fit in 63 bits",
                       name, hr_shape_text(shape, text), hr_dtype_name(dtype));
    }
    return HR_OK;
}

hr_status hr_output_create(const char *path, hr_dtype dtype, const hr_shape *shape,
                           const hr_create_options *options, hr_output **output, hr_error *error)
{
    if (path == NULL || *path == '\0' || output == NULL || (options != NULL && options->size == 0)) {
        return hr_fail(error, HR_E_INVALID, "output: no path or an empty one, or options without their size");
    }
    uint64_t bytes;
    hr_status status = check_array(hr_io_output_name(path), dtype, shape, &bytes, error);
    if (status != HR_OK) {
        return status;
    }
    hr_output *out = calloc(1, sizeof *out);
    char *copy = strdup(path);
    if (out == NULL || copy == NULL) {
        free(out);
        free(copy);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to open it", hr_io_output_name(path));
    }
    out->path = copy;
    out->options = (hr_create_options)HR_CREATE_OPTIONS_INIT;
    if (options != NULL) {
        memcpy(&out->options, options, hr_min_u64(options->size, sizeof out->options));
    }
    out->info = (hr_array_info){.dtype = dtype, .shape = *shape, .bytes = bytes, .path = copy};
    status = hr_format_check(hr_io_output_name(copy), out->options.format, error);
    if (status == HR_OK) {
        status = hr_target_open(copy, out->options.no_sync, &out->target, error);
    }
    if (status == HR_OK) {
        status = prepare_output(out, error);
    }
    if (status != HR_OK) {
        hr_output_close(&out);
        return status;
    }
    *output = out;
    return HR_OK;
}

void hr_output_info(const hr_output *output, hr_array_info *info)
{
    size_t size = hr_min_u64(info->size, sizeof *info);
    memcpy((char *)info + sizeof info->size, (const char *)&output->info + sizeof info->size,
           size > sizeof info->size ? size - sizeof info->size : 0);
}

hr_sink *hr_output_sink(hr_output *output)
{
    return &output->sink;
}

hr_status hr_output_commit(hr_output *output, hr_error *error)
{
    if (!output->committed && output->info.bytes == HR_LENGTH_UNKNOWN) {
        return hr_fail(error, HR_E_INVALID, "%s: its length is not known; the sink's finish tells it",
                       hr_target_name(output->target));
    }
    return finish(output, output->was_told ? output->told_bytes : output->info.bytes, error);
}

void hr_output_close(hr_output **output)
{
    if (output == NULL || *output == NULL) {
        return;
    }
    hr_output *out = *output;
    hr_target_close(&out->target);
    free(out->image.pixels);
    free(out->path);
    free(out);
    *output = NULL;
}
