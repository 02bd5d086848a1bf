/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that are the same for all devices, done before anything is queued: a backend sees only copies and
 * fills whose every byte has an address and lies inside the array or symbol that it names.
 */
#include "base/checked.h"
#include "core/internal.h"

#include <inttypes.h>
#include <string.h>

typedef struct extents {
    uint64_t width, height, depth; /* at least 1 each */
} extents;

/* Bytes from the first to the last of a pitched shape. False if it does not fit 64 bits. */
static bool reach(const hr_bend *end, const extents *shape, uint64_t *bytes)
{
    uint64_t rows, slices;
    return !hr_mul_overflows(shape->height - 1, end->row_pitch_bytes, &rows) &&
           !hr_mul_overflows(shape->depth - 1, end->slice_pitch_bytes, &slices) &&
           !hr_add_overflows(rows, slices, bytes) && !hr_add_overflows(*bytes, shape->width, bytes);
}

static hr_status fail_overflow(const char *what, const char *which, hr_error *error)
{
    return hr_fail(error, HR_E_RANGE,
                   "%s: %s: its offsets and pitches lead past the end of the address space", what, which);
}

/* Fills in pitches that were left out and checks those that were given. */
static hr_status check_pitches(const char *what, const char *which, const hr_end *end, const extents *shape,
                               hr_bend *out, hr_error *error)
{
    out->row_pitch_bytes = end->row_pitch_bytes != 0 ? end->row_pitch_bytes : shape->width;
    if (shape->height > 1 && out->row_pitch_bytes < shape->width) {
        return hr_fail(error, HR_E_INVALID, "%s: %s: row pitch is %" PRIu64 ", a row has %" PRIu64 " bytes",
                       what, which, out->row_pitch_bytes, shape->width);
    }
    uint64_t slice;
    if (shape->height == 1 && shape->depth == 1) {
        slice = out->row_pitch_bytes;
    } else if (hr_mul_overflows(out->row_pitch_bytes, shape->height, &slice)) {
        return fail_overflow(what, which, error);
    }
    out->slice_pitch_bytes = end->slice_pitch_bytes != 0 ? end->slice_pitch_bytes : slice;
    uint64_t least = slice - out->row_pitch_bytes + shape->width;
    if (shape->depth > 1 && out->slice_pitch_bytes < least) {
        return hr_fail(error, HR_E_INVALID,
                       "%s: %s: slice pitch is %" PRIu64 ", a slice has %" PRIu64 " bytes", what, which,
                       out->slice_pitch_bytes, least);
    }
    return HR_OK;
}

/* Host or device memory whose last byte is `bytes` after its first. */
static hr_status check_memory(const char *what, const char *which, const hr_end *end, uint64_t bytes,
                              hr_bend *out, hr_error *error)
{
    uint64_t first, last;
    if (end->base == NULL) {
        return hr_fail(error, HR_E_INVALID, "%s: %s: base is null", what, which);
    }
    if (hr_add_overflows((uintptr_t)end->base, end->offset_bytes, &first) ||
        hr_add_overflows(first, bytes - 1, &last)) {
        return fail_overflow(what, which, error);
    }
    out->base = (void *)(uintptr_t)first;
    return HR_OK;
}

static hr_status check_symbol(const char *what, const char *which, const hr_end *end, uint64_t bytes,
                              hr_bend *out, hr_error *error)
{
    uint64_t past;
    if (hr_add_overflows(end->offset_bytes, bytes, &past) || past > end->symbol->bytes) {
        return hr_fail(error, HR_E_RANGE,
                       "%s: %s: %" PRIu64 " bytes from offset %" PRIu64
                       " end after symbol %s, which has %" PRIu64,
                       what, which, bytes, end->offset_bytes, end->symbol->name, end->symbol->bytes);
    }
    out->symbol = end->symbol->impl;
    out->offset_bytes = end->offset_bytes;
    return HR_OK;
}

static bool axis_fits(uint64_t first, uint64_t count, uint64_t extent)
{
    uint64_t past;
    return !hr_add_overflows(first, count, &past) && past <= extent;
}

static hr_status check_array(const char *what, const char *which, const hr_end *end, const extents *shape,
                             hr_bend *out, hr_error *error)
{
    const hr_array *array = end->array;
    if (shape->width % array->element_bytes != 0) {
        return hr_fail(error, HR_E_INVALID,
                       "%s: %s: width is %" PRIu64 " bytes, elements of the array have %" PRIu64, what, which,
                       shape->width, array->element_bytes);
    }
    if (!axis_fits(end->x, shape->width / array->element_bytes, array->width) ||
        !axis_fits(end->y, shape->height, array->height) || !axis_fits(end->z, shape->depth, array->depth)) {
        return hr_fail(error, HR_E_RANGE,
                       "%s: %s: (%" PRIu64 ", %" PRIu64 ", %" PRIu64 ") elements from (%" PRIu64 ", %" PRIu64
                       ", %" PRIu64 ") end after the array of (%" PRIu64 ", %" PRIu64 ", %" PRIu64 ")",
                       what, which, shape->width / array->element_bytes, shape->height, shape->depth, end->x,
                       end->y, end->z, array->width, array->height, array->depth);
    }
    out->array = array->impl;
    out->x = end->x;
    out->y = end->y;
    out->z = end->z;
    return HR_OK;
}

/* Is there what the place needs, and is it of a device that this stream can reach? */
static hr_status check_place(const char *what, const char *which, const hr_device *own, const hr_end *end,
                             hr_bend *out, hr_error *error)
{
    const hr_device *other = NULL;
    out->place = end->place;
    switch (end->place) {
    case HR_PLACE_HOST:
        return HR_OK;
    case HR_PLACE_DEVICE:
        other = end->device != NULL ? end->device : own;
        out->device = other->impl;
        break;
    case HR_PLACE_ARRAY:
        other = end->array != NULL ? end->array->device : NULL;
        break;
    case HR_PLACE_SYMBOL:
        other = end->symbol != NULL ? end->symbol->device : NULL;
        break;
    default:
        return hr_fail(error, HR_E_INVALID, "%s: %s: place %d is none", what, which, (int)end->place);
    }
    if (other == NULL) {
        return hr_fail(error, HR_E_INVALID, "%s: %s: the %s is null", what, which,
                       end->place == HR_PLACE_ARRAY ? "array" : "symbol");
    }
    if (other->backend != own->backend) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "%s: %s: device %s cannot reach device %s; go through host memory", what, which,
                       own->spec, other->spec);
    }
    if (end->place != HR_PLACE_DEVICE && other != own) {
        return hr_fail(error, HR_E_INVALID, "%s: %s: it is of device %s, the stream of %s", what, which,
                       other->spec, own->spec);
    }
    return HR_OK;
}

static hr_status check_end(const char *what, const char *which, const hr_device *own, const hr_end *end,
                           const extents *shape, hr_bend *out, hr_error *error)
{
    hr_status status = check_place(what, which, own, end, out, error);
    if (status != HR_OK) {
        return status;
    }
    if (end->place == HR_PLACE_ARRAY) {
        return check_array(what, which, end, shape, out, error);
    }
    uint64_t bytes;
    status = check_pitches(what, which, end, shape, out, error);
    if (status != HR_OK) {
        return status;
    }
    if (!reach(out, shape, &bytes)) {
        return fail_overflow(what, which, error);
    }
    return end->place == HR_PLACE_SYMBOL ? check_symbol(what, which, end, bytes, out, error)
                                         : check_memory(what, which, end, bytes, out, error);
}

static bool is_memory(const hr_bend *end)
{
    return end->place == HR_PLACE_HOST || end->place == HR_PLACE_DEVICE;
}

/*
 * Two plain rows in the same memory: copying one onto the other has no defined result. An address means the same byte
 * whichever place it is called: a device may share the host's memory, and where it does not, no address is in both.
 */
static hr_status check_overlap(const hr_bcopy *copy, hr_error *error)
{
    const hr_bend *dst = &copy->dst, *src = &copy->src;
    bool memory = is_memory(dst) && is_memory(src);
    bool symbol =
        dst->place == HR_PLACE_SYMBOL && src->place == HR_PLACE_SYMBOL && dst->symbol == src->symbol;
    if (copy->height != 1 || copy->depth != 1 || (!memory && !symbol)) {
        return HR_OK;
    }
    uint64_t a = memory ? (uintptr_t)dst->base : dst->offset_bytes;
    uint64_t b = memory ? (uintptr_t)src->base : src->offset_bytes;
    if ((a < b ? b - a : a - b) < copy->width_bytes) {
        return hr_fail(error, HR_E_INVALID,
                       "copy: source and destination overlap: %" PRIu64 " bytes at %s%" PRIx64
                       " and %s%" PRIx64,
                       copy->width_bytes, memory ? "0x" : "offset 0x", b, memory ? "0x" : "offset 0x", a);
    }
    return HR_OK;
}

/* A GPU counts such a copy in the elements of both arrays at once. */
static hr_status check_elements(const hr_end *dst, const hr_end *src, hr_error *error)
{
    if (dst->place == HR_PLACE_ARRAY && src->place == HR_PLACE_ARRAY &&
        dst->array->element_bytes != src->array->element_bytes) {
        return hr_fail(error, HR_E_INVALID,
                       "copy: elements of the source have %" PRIu64
                       " bytes, those of the destination %" PRIu64 "; go through memory",
                       src->array->element_bytes, dst->array->element_bytes);
    }
    return HR_OK;
}

static hr_status copy_shape(hr_stream *stream, const hr_copy *copy, hr_error *error)
{
    if (copy->width_bytes == 0 || copy->height == 0 || copy->depth == 0) {
        return HR_OK;
    }
    const extents shape = {copy->width_bytes, copy->height, copy->depth};
    hr_bcopy checked = {.width_bytes = shape.width, .height = shape.height, .depth = shape.depth};
    hr_status status = check_end("copy", "source", stream->device, &copy->src, &shape, &checked.src, error);
    if (status == HR_OK) {
        status = check_end("copy", "destination", stream->device, &copy->dst, &shape, &checked.dst, error);
    }
    if (status == HR_OK) {
        status = check_elements(&copy->dst, &copy->src, error);
    }
    if (status == HR_OK) {
        status = check_overlap(&checked, error);
    }
    return status == HR_OK ? stream->device->ops->copy(stream->impl, &checked, error) : status;
}

/* One end of all segments: the farthest byte must be inside. */
static hr_status check_segment_end(const char *which, const hr_device *own, const hr_end *end,
                                   uint64_t farthest, hr_bend *out, hr_error *error)
{
    hr_status status = check_place("copy", which, own, end, out, error);
    if (status != HR_OK) {
        return status;
    }
    if (end->place == HR_PLACE_ARRAY) {
        return hr_fail(error, HR_E_INVALID,
                       "copy: %s: segments of an array; only memory and symbols have them", which);
    }
    return end->place == HR_PLACE_SYMBOL ? check_symbol("copy", which, end, farthest, out, error)
                                         : check_memory("copy", which, end, farthest, out, error);
}

static hr_status copy_segments(hr_stream *stream, const hr_copy *copy, hr_error *error)
{
    const hr_segment *segments = copy->segments;
    if (segments == NULL) {
        return hr_fail(error, HR_E_INVALID, "copy: %" PRIu64 " segments at null", copy->segment_count);
    }
    uint64_t src_past = 0, dst_past = 0;
    for (uint64_t i = 0; i < copy->segment_count; i++) {
        uint64_t src, dst;
        if (hr_add_overflows(segments[i].src_offset_bytes, segments[i].bytes, &src) ||
            hr_add_overflows(segments[i].dst_offset_bytes, segments[i].bytes, &dst)) {
            return hr_fail(error, HR_E_RANGE, "copy: segment %" PRIu64 ": its end does not fit 64 bits", i);
        }
        if (segments[i].bytes > 0) {
            src_past = hr_max_u64(src_past, src);
            dst_past = hr_max_u64(dst_past, dst);
        }
    }
    if (src_past == 0) {
        return HR_OK; /* every segment is empty */
    }
    hr_bcopy checked = {.width_bytes = 1, .height = 1, .depth = 1};
    hr_status status = check_segment_end("source", stream->device, &copy->src, src_past, &checked.src, error);
    if (status == HR_OK) {
        status = check_segment_end("destination", stream->device, &copy->dst, dst_past, &checked.dst, error);
    }
    /* Backends are promised segments with something in them: empty ones cut the list. */
    for (uint64_t begin = 0, end; begin < copy->segment_count && status == HR_OK; begin = end) {
        while (begin < copy->segment_count && segments[begin].bytes == 0) {
            begin++;
        }
        end = begin;
        while (end < copy->segment_count && segments[end].bytes > 0) {
            end++;
        }
        if (end > begin) {
            checked.segments = segments + begin;
            checked.segment_count = end - begin;
            status = stream->device->ops->copy(stream->impl, &checked, error);
        }
    }
    return status;
}

hr_status hr_copy_async(hr_stream *stream, const hr_copy *copy, hr_error *error)
{
    if (stream == NULL || copy == NULL || copy->size != sizeof *copy) {
        return hr_fail(error, HR_E_INVALID, "copy: a null argument, or size is not sizeof(hr_copy)");
    }
    if (hr_device_forked(stream->device)) {
        return hr_fail_forked(stream->device, error, "copy");
    }
    return copy->segment_count > 0 ? copy_segments(stream, copy, error) : copy_shape(stream, copy, error);
}

hr_status hr_fill_async(hr_stream *stream, const hr_fill *fill, hr_error *error)
{
    if (stream == NULL || fill == NULL || fill->size != sizeof *fill) {
        return hr_fail(error, HR_E_INVALID, "fill: a null argument, or size is not sizeof(hr_fill)");
    }
    if (hr_device_forked(stream->device)) {
        return hr_fail_forked(stream->device, error, "fill");
    }
    if (fill->dst.place != HR_PLACE_DEVICE && fill->dst.place != HR_PLACE_HOST) {
        return hr_fail(error, HR_E_INVALID, "fill: place %d; needs device or host memory",
                       (int)fill->dst.place);
    }
    if (fill->value_bytes != 1 && fill->value_bytes != 2 && fill->value_bytes != 4) {
        return hr_fail(error, HR_E_INVALID, "fill: a value of %" PRIu32 " bytes; needs 1, 2 or 4",
                       fill->value_bytes);
    }
    if (fill->width_bytes == 0 || fill->height == 0 || fill->depth == 0) {
        return HR_OK;
    }
    const extents shape = {fill->width_bytes, fill->height, fill->depth};
    hr_bfill checked = {.width_bytes = shape.width,
                        .height = shape.height,
                        .depth = shape.depth,
                        .value = fill->value,
                        .value_bytes = fill->value_bytes};
    hr_status status =
        check_end("fill", "destination", stream->device, &fill->dst, &shape, &checked.dst, error);
    if (status != HR_OK) {
        return status;
    }
    uint64_t odd = shape.width | (uintptr_t)checked.dst.base;
    odd |= shape.height > 1 ? checked.dst.row_pitch_bytes : 0;
    odd |= shape.depth > 1 ? checked.dst.slice_pitch_bytes : 0;
    if (odd % fill->value_bytes != 0) {
        return hr_fail(error, HR_E_INVALID,
                       "fill: width, address and pitches must be multiples of the value's %" PRIu32 " bytes",
                       fill->value_bytes);
    }
    return stream->device->ops->fill(stream->impl, &checked, error);
}

hr_status hr_copy_to_device(hr_stream *stream, void *device_dst, const void *host_src, uint64_t bytes,
                            hr_error *error)
{
    hr_copy copy = HR_COPY_INIT;
    copy.dst.place = HR_PLACE_DEVICE;
    copy.dst.base = device_dst;
    copy.src.base = (void *)(uintptr_t)host_src; /* never written */
    copy.width_bytes = bytes;
    return hr_copy_async(stream, &copy, error);
}

hr_status hr_copy_to_host(hr_stream *stream, void *host_dst, const void *device_src, uint64_t bytes,
                          hr_error *error)
{
    hr_copy copy = HR_COPY_INIT;
    copy.dst.base = host_dst;
    copy.src.place = HR_PLACE_DEVICE;
    copy.src.base = (void *)(uintptr_t)device_src; /* never written */
    copy.width_bytes = bytes;
    return hr_copy_async(stream, &copy, error);
}
