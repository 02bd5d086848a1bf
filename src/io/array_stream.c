/* SPDX-License-Identifier: Apache-2.0 */
#include "io/array_stream.h"

#include "base/checked.h"
#include "host/topology.h"
#include "io/fortran.h"
#include "io/order.h"

#include <inttypes.h>
#include <stdlib.h>

void hr_array_stream_init(hr_array_stream *array, const char *name, hr_io_stream *stream,
                          const hr_array_info *info, bool swapped)
{
    uint64_t step = hr_dtype_bytes(info->dtype);
    for (uint32_t i = 1; i < info->shape.rank; i++) {
        step *= info->shape.extent[i];
    }
    *array = (hr_array_stream){
        .name = name, .stream = stream, .info = info, .step_bytes = step, .swapped = swapped};
}

static hr_status ended_early(const hr_array_stream *array, hr_error *error)
{
    char text[HR_SHAPE_TEXT_BYTES];
    const hr_array_info *info = array->info;
    return hr_fail(error, HR_E_FORMAT,
                   "%s: shape %s of %s needs %" PRIu64 " bytes of data, the stream ends after %" PRIu64,
                   array->name, hr_shape_text(&info->shape, text), hr_dtype_name(info->dtype), info->bytes,
                   array->position);
}

/* All that was promised is there: is that the end? Waits for the writer to say so. */
static hr_status check_end(hr_array_stream *array, hr_error *error)
{
    unsigned char more;
    uint64_t got = 0;
    hr_status status = hr_io_stream_read(array->stream, &more, 1, &got, error);
    if (status != HR_OK) {
        return status;
    }
    if (got != 0) {
        char text[HR_SHAPE_TEXT_BYTES];
        return hr_fail(error, HR_E_FORMAT,
                       "%s: shape %s of %s needs %" PRIu64
                       " bytes of data, the stream goes on: more than was promised",
                       array->name, hr_shape_text(&array->info->shape, text),
                       hr_dtype_name(array->info->dtype), array->info->bytes);
    }
    array->ended = true;
    return HR_OK;
}

static hr_status read_flow(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                           hr_error *error)
{
    hr_array_stream *array = self;
    uint64_t width = hr_dtype_bytes(array->info->dtype);
    bool known = array->info->bytes != HR_LENGTH_UNKNOWN;
    if (offset != array->position) {
        return hr_fail(error, HR_E_INVALID,
                       "%s: a stream is read front to back; it stands at %" PRIu64 ", not at %" PRIu64,
                       array->name, array->position, offset);
    }
    if (array->swapped && (offset % width != 0 || bytes % width != 0)) {
        return hr_fail(error, HR_E_INVALID, "%s: big-endian streams are read in whole elements", array->name);
    }
    if (known && bytes > array->info->bytes - offset) {
        return hr_fail(error, HR_E_RANGE, "%s: a read past the array's end", array->name);
    }
    uint64_t n = 0;
    hr_status status = HR_OK;
    if (!array->ended) {
        status = hr_io_stream_read(array->stream, buffer, bytes, &n, error);
    }
    if (status != HR_OK) {
        return status;
    }
    array->position += n;
    if (known && n < bytes) {
        return ended_early(array, error);
    }
    if (known && array->position == array->info->bytes && !array->ended) {
        status = check_end(array, error);
    } else if (n < bytes) {
        array->ended = true;
        if (array->position % array->step_bytes != 0) {
            char text[HR_SHAPE_TEXT_BYTES];
            return hr_fail(error, HR_E_FORMAT,
                           "%s: the stream ends after %" PRIu64 " bytes, no multiple of %" PRIu64
                           ", which shape %s of %s needs",
                           array->name, array->position, array->step_bytes,
                           hr_shape_text(&array->info->shape, text), hr_dtype_name(array->info->dtype));
        }
    }
    if (status != HR_OK) {
        return status;
    }
    if (array->swapped) {
        hr_swap_elements(buffer, n, width);
    }
    *got = n;
    return n == 0 && bytes > 0 ? HR_END : HR_OK;
}

static void interrupt_flow(void *self)
{
    hr_array_stream *array = self;
    hr_io_stream_interrupt(array->stream);
}

hr_source hr_array_stream_source(hr_array_stream *array)
{
    hr_source source = HR_SOURCE_INIT;
    source.self = array;
    source.bytes = array->info->bytes;
    source.sequential = true;
    source.read = read_flow;
    source.interrupt = interrupt_flow;
    return source;
}

hr_status hr_array_stream_read_fortran(hr_array_stream *array, void **c, hr_error *error)
{
    uint64_t bytes = array->info->bytes;
    uint64_t total_bytes;
    uint64_t free_bytes;
    hr_host_memory_room(&total_bytes, &free_bytes);
    /* Asked before, because the system hands out memory that it does not have. */
    if (bytes > free_bytes / 2) {
        return hr_fail(error, HR_E_HOST_MEMORY,
                       "%s: a Fortran-ordered array on a stream is held in memory twice: 2 × %" PRIu64
                       " bytes are needed, %" PRIu64 " are free; a file needs less",
                       array->name, bytes, free_bytes);
    }
    void *fortran = malloc(bytes);
    void *turned = malloc(bytes);
    if (fortran == NULL || turned == NULL) {
        free(fortran);
        free(turned);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for 2 × %" PRIu64 " bytes", array->name,
                       bytes);
    }
    uint64_t got;
    hr_status status = read_flow(array, 0, fortran, bytes, &got, error);
    if (status == HR_OK) {
        hr_fortran_to_c(fortran, &array->info->shape, hr_dtype_bytes(array->info->dtype), turned);
        *c = turned;
        turned = NULL;
    }
    free(fortran);
    free(turned);
    return status;
}
