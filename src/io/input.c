/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an array: what kind of file it is, whether it holds what it says, and which source reads it. */
#include <headrace/io.h>

#include "base/checked.h"
#include "io/array_file.h"
#include "io/array_stream.h"
#include "io/fail.h"
#include "io/format.h"
#include "io/image.h"
#include "io/npy.h"
#include "io/order.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct hr_input {
    hr_source source;
    hr_array_info info;
    char *path;
    const char *name;
    hr_open_options options;
    hr_array_file array;     /* regular files */
    hr_io_stream *stream;    /* pipes */
    hr_array_stream flowing; /* an array on the stream */
    bool fortran;            /* what a .npy header said */
    void *memory;            /* images, and what had to be read whole */
};

/* What the start of the file and the options say that it is. */
static hr_status choose_format(const hr_input *input, const unsigned char *start, uint64_t have,
                               hr_format *format, hr_error *error)
{
    hr_format wanted = input->options.format;
    hr_format content = hr_format_of_content(start, have);
    hr_format name = hr_format_of_name(input->path);
    /* With a dtype any bytes may stand in a raw file, also those that others start with. */
    bool described = input->options.dtype != HR_DTYPE_NONE;
    bool raw = described && (name == HR_FORMAT_RAW || (content == HR_FORMAT_AUTO && name == HR_FORMAT_AUTO));
    if (wanted != HR_FORMAT_AUTO) {
        *format = wanted;
    } else if (raw) {
        *format = HR_FORMAT_RAW;
    } else if (content != HR_FORMAT_AUTO) {
        *format = content;
    } else if (name != HR_FORMAT_AUTO && name != HR_FORMAT_RAW) {
        /* Its own reader says best what is wrong with it. */
        *format = name;
    } else if (have == 0) {
        return hr_fail(error, HR_E_FORMAT, "%s: the file is empty", input->name);
    } else {
        return hr_fail(error, HR_E_FORMAT, "%s: not .npy, PNG, JPEG, PGM or PPM; raw data needs a dtype",
                       input->name);
    }
    if (*format == HR_FORMAT_RAW && input->options.dtype == HR_DTYPE_NONE) {
        return hr_fail(error, HR_E_INVALID, "%s: raw data needs a dtype", input->name);
    }
    if (*format != HR_FORMAT_RAW && have == 0) {
        return hr_fail(error, HR_E_FORMAT, "%s: the file is empty", input->name);
    }
    return HR_OK;
}

/* Fills info from a .npy header. */
static void take_npy(hr_input *input, const hr_npy *npy)
{
    input->info.dtype = npy->dtype;
    input->info.shape = npy->shape;
    input->info.bytes = npy->bytes;
    input->array.swapped = npy->swapped;
    input->fortran = npy->fortran;
}

/*
 * Fills info from the options and the length of the data (HR_LENGTH_UNKNOWN for a pipe): finds the extent
 * that is left open, or checks that the shape and the length agree.
 */
static hr_status take_raw(hr_input *input, uint64_t length, hr_error *error)
{
    const char *dtype = hr_dtype_name(input->options.dtype);
    hr_shape shape = input->options.shape;
    if (shape.rank > HR_MAX_RANK) {
        return hr_fail(error, HR_E_INVALID, "%s: a shape of %" PRIu32 " dimensions; at most %d are possible",
                       input->name, shape.rank, HR_MAX_RANK);
    }
    if (shape.rank == 0) {
        shape = (hr_shape){1, {HR_LENGTH_UNKNOWN}};
    }
    uint32_t open_axis = shape.rank;
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (shape.extent[i] == HR_LENGTH_UNKNOWN) {
            if (open_axis != shape.rank) {
                return hr_fail(error, HR_E_INVALID, "%s: the shape leaves more than one extent open",
                               input->name);
            }
            open_axis = i;
        }
    }
    char text[HR_SHAPE_TEXT_BYTES];
    uint64_t bytes = HR_LENGTH_UNKNOWN;
    if (open_axis < shape.rank) {
        hr_shape rest = shape;
        rest.extent[open_axis] = 1;
        uint64_t step;
        if (hr_shape_bytes(&rest, input->options.dtype, &step) != HR_OK || step == 0) {
            return hr_fail(error, HR_E_RANGE, "%s: shape %s: the open extent does not follow from the length",
                           input->name, hr_shape_text(&shape, text));
        }
        if (length == HR_LENGTH_UNKNOWN && open_axis != 0) {
            return hr_fail(error, HR_E_UNSUPPORTED,
                           "%s: shape %s: of a stream only the first extent can be left open", input->name,
                           hr_shape_text(&shape, text));
        }
        if (length != HR_LENGTH_UNKNOWN) {
            if (length % step != 0) {
                return hr_fail(error, HR_E_FORMAT,
                               "%s: %" PRIu64 " bytes are no multiple of %" PRIu64
                               ", which shape %s of %s needs",
                               input->name, length, step, hr_shape_text(&shape, text), dtype);
            }
            shape.extent[open_axis] = length / step;
            bytes = length;
        }
    } else {
        if (hr_shape_bytes(&shape, input->options.dtype, &bytes) != HR_OK) {
            return hr_fail(error, HR_E_RANGE,
                           "%s: shape %s of %s: the number of bytes does not fit in 63 bits", input->name,
                           hr_shape_text(&shape, text), dtype);
        }
    }
    input->info.dtype = input->options.dtype;
    input->info.shape = shape;
    input->info.bytes = bytes;
    return HR_OK;
}

static hr_status check_length(const hr_input *input, uint64_t there, hr_error *error)
{
    if (input->info.bytes == there) {
        return HR_OK;
    }
    char text[HR_SHAPE_TEXT_BYTES];
    return hr_fail(error, HR_E_FORMAT,
                   "%s: shape %s of %s needs %" PRIu64 " bytes of data, the file has %" PRIu64 "%s",
                   input->name, hr_shape_text(&input->info.shape, text), hr_dtype_name(input->info.dtype),
                   input->info.bytes, there, there > input->info.bytes ? ": more than was promised" : "");
}

static void use_memory(hr_input *input, const void *memory, const char *method)
{
    input->source = hr_source_from_memory(memory, input->info.bytes);
    input->info.method = method;
}

/* ---- regular files ---- */

static hr_status open_npy_file(hr_input *input, uint64_t base, hr_error *error)
{
    hr_file *file = input->array.file;
    uint64_t length = hr_file_bytes(file) - base;
    unsigned char prefix[HR_NPY_PREFIX_BYTES];
    uint64_t have = hr_min_u64(sizeof prefix, length);
    hr_status status = hr_file_read(file, base, prefix, have, error);
    if (status != HR_OK) {
        return status;
    }
    uint64_t header_bytes;
    status = hr_npy_header_bytes(input->name, prefix, have, &header_bytes, error);
    if (status != HR_OK) {
        return status;
    }
    have = hr_min_u64(header_bytes, length);
    unsigned char *header = malloc(have);
    if (header == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for the header", input->name);
    }
    hr_npy npy;
    status = hr_file_read(file, base, header, have, error);
    if (status == HR_OK) {
        status = hr_npy_parse(input->name, header, have, input->options.dtype, &npy, error);
    }
    free(header);
    if (status != HR_OK) {
        return status;
    }
    take_npy(input, &npy);
    input->array.data_offset = base + npy.header_bytes;
    return check_length(input, length - npy.header_bytes, error);
}

static hr_status open_image_file(hr_input *input, uint64_t base, hr_error *error)
{
    hr_file *file = input->array.file;
    uint64_t length = hr_file_bytes(file) - base;
    if (length > HR_IMAGE_FILE_LIMIT) {
        return hr_fail(error, HR_E_RANGE,
                       "%s: an image file of %" PRIu64 " bytes; at most %" PRIu64 " are read", input->name,
                       length, HR_IMAGE_FILE_LIMIT);
    }
    unsigned char *encoded = malloc(length);
    if (encoded == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for %" PRIu64 " bytes", input->name, length);
    }
    hr_status status = hr_file_read(file, base, encoded, length, error);
    if (status == HR_OK) {
        status = hr_image_decode(input->name, input->info.format, encoded, length, &input->info,
                                 &input->memory, error);
    }
    free(encoded);
    if (status == HR_OK) {
        use_memory(input, input->memory, "image");
    }
    return status;
}

static hr_status open_regular(hr_input *input, int fd, uint64_t bytes, uint64_t base, hr_error *error)
{
    hr_status status =
        hr_file_open(input->name, fd, bytes, input->options.direct_above_bytes, &input->array.file, error);
    if (status != HR_OK) {
        return status;
    }
    hr_file *file = input->array.file;
    input->array.name = input->name;
    unsigned char start[HR_FORMAT_PROBE_BYTES];
    uint64_t have = hr_min_u64(sizeof start, bytes - base);
    status = hr_file_read(file, base, start, have, error);
    if (status == HR_OK) {
        status = choose_format(input, start, have, &input->info.format, error);
    }
    if (status != HR_OK) {
        return status;
    }
    if (input->info.format == HR_FORMAT_NPY) {
        status = open_npy_file(input, base, error);
    } else if (input->info.format == HR_FORMAT_RAW) {
        input->array.data_offset = base;
        status = take_raw(input, bytes - base, error);
        status = status == HR_OK ? check_length(input, bytes - base, error) : status;
    } else {
        return open_image_file(input, base, error);
    }
    if (status != HR_OK) {
        return status;
    }
    input->array.bytes = input->info.bytes;
    input->array.width = hr_dtype_bytes(input->info.dtype);
    if (input->fortran) {
        status = hr_array_file_turn(&input->array, &input->info.shape, error);
        if (status != HR_OK) {
            return status;
        }
    }
    input->info.method = hr_file_method(file);
    input->source = (hr_source)HR_SOURCE_INIT;
    input->source.self = &input->array;
    input->source.bytes = input->info.bytes;
    input->source.read = hr_array_file_read;
    input->source.read_rows = hr_array_file_read_rows;
    input->source.prepare = hr_array_file_prepare;
    input->source.will_need = hr_array_file_will_need;
    return HR_OK;
}

/* ---- streams ---- */

static hr_status open_npy_stream(hr_input *input, hr_error *error)
{
    const unsigned char *start;
    uint64_t have;
    hr_status status = hr_io_stream_peek(input->stream, HR_NPY_PREFIX_BYTES, &start, &have, error);
    if (status != HR_OK) {
        return status;
    }
    uint64_t header_bytes;
    status = hr_npy_header_bytes(input->name, start, have, &header_bytes, error);
    if (status == HR_OK) {
        status = hr_io_stream_peek(input->stream, header_bytes, &start, &have, error);
    }
    hr_npy npy;
    if (status == HR_OK) {
        status = hr_npy_parse(input->name, start, hr_min_u64(have, header_bytes), input->options.dtype, &npy,
                              error);
    }
    if (status != HR_OK) {
        return status;
    }
    take_npy(input, &npy);
    unsigned char *skipped = malloc(header_bytes);
    if (skipped == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for the header", input->name);
    }
    uint64_t got;
    status = hr_io_stream_read(input->stream, skipped, header_bytes, &got, error);
    free(skipped);
    return status;
}

static hr_status open_image_stream(hr_input *input, hr_error *error)
{
    void *encoded = NULL;
    uint64_t bytes = 0;
    hr_status status = hr_io_stream_read_to_end(input->stream, HR_IMAGE_FILE_LIMIT, &encoded, &bytes, error);
    if (status != HR_OK) {
        return status;
    }
    status =
        hr_image_decode(input->name, input->info.format, encoded, bytes, &input->info, &input->memory, error);
    free(encoded);
    if (status == HR_OK) {
        use_memory(input, input->memory, "image");
    }
    return status;
}

static hr_status open_stream(hr_input *input, int fd, hr_error *error)
{
    hr_status status = hr_io_stream_open(input->name, fd, &input->stream, error);
    if (status != HR_OK) {
        return status;
    }
    const unsigned char *start;
    uint64_t have;
    status = hr_io_stream_peek(input->stream, HR_FORMAT_PROBE_BYTES, &start, &have, error);
    if (status == HR_OK) {
        status = choose_format(input, start, have, &input->info.format, error);
    }
    if (status != HR_OK) {
        return status;
    }
    if (input->info.format == HR_FORMAT_NPY) {
        status = open_npy_stream(input, error);
    } else if (input->info.format == HR_FORMAT_RAW) {
        status = take_raw(input, HR_LENGTH_UNKNOWN, error);
    } else {
        return open_image_stream(input, error);
    }
    if (status != HR_OK) {
        return status;
    }
    hr_array_stream_init(&input->flowing, input->name, input->stream, &input->info, input->array.swapped);
    if (input->fortran) {
        status = hr_array_stream_read_fortran(&input->flowing, &input->memory, error);
        if (status == HR_OK) {
            use_memory(input, input->memory, "stream");
        }
        return status;
    }
    input->info.method = "stream";
    input->source = hr_array_stream_source(&input->flowing);
    return HR_OK;
}

/* ---- all of them ---- */

static hr_status open_path(hr_input *input, hr_error *error)
{
    bool standard = strcmp(input->path, "-") == 0;
    int fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(input->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return hr_io_fail(error, errno, input->name, "open");
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int errnum = errno;
        close(fd);
        return hr_io_fail(error, errnum, input->name, "look at");
    }
    if (S_ISDIR(st.st_mode)) {
        close(fd);
        return hr_fail(error, HR_E_INVALID, "%s: a folder; a file is needed", input->name);
    }
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
        return open_stream(input, fd, error);
    }
    off_t base = standard ? lseek(fd, 0, SEEK_CUR) : 0;
    off_t length = S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
    if (base < 0 || length < 0) {
        int errnum = errno;
        close(fd);
        return hr_io_fail(error, errnum, input->name, "find the length");
    }
    /* Standard input may have been read past its end by someone before. */
    base = base > length ? length : base;
    return open_regular(input, fd, (uint64_t)length, (uint64_t)base, error);
}

hr_status hr_input_open(const char *path, const hr_open_options *options, hr_input **input, hr_error *error)
{
    if (path == NULL || *path == '\0' || input == NULL || (options != NULL && options->size == 0)) {
        return hr_fail(error, HR_E_INVALID, "input: no path or an empty one, or options without their size");
    }
    hr_input *in = calloc(1, sizeof *in);
    char *copy = strdup(path);
    if (in == NULL || copy == NULL) {
        free(in);
        free(copy);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to open it", hr_io_input_name(path));
    }
    in->path = copy;
    in->name = hr_io_input_name(copy);
    in->options = (hr_open_options)HR_OPEN_OPTIONS_INIT;
    if (options != NULL) {
        memcpy(&in->options, options, hr_min_u64(options->size, sizeof in->options));
    }
    in->info.path = copy;
    hr_status status = hr_format_check(in->name, in->options.format, error);
    if (status == HR_OK) {
        status = open_path(in, error);
    }
    if (status != HR_OK) {
        hr_input_close(&in);
        return status;
    }
    *input = in;
    return HR_OK;
}

void hr_input_info(const hr_input *input, hr_array_info *info)
{
    size_t size = hr_min_u64(info->size, sizeof *info);
    memcpy((char *)info + sizeof info->size, (const char *)&input->info + sizeof info->size,
           size > sizeof info->size ? size - sizeof info->size : 0);
}

hr_source *hr_input_source(hr_input *input)
{
    return &input->source;
}

void hr_input_close(hr_input **input)
{
    if (input == NULL || *input == NULL) {
        return;
    }
    hr_input *in = *input;
    hr_bands_close(&in->array.bands);
    hr_file_close(&in->array.file);
    hr_io_stream_close(&in->stream);
    free(in->memory);
    free(in->path);
    free(in);
    *input = NULL;
}
