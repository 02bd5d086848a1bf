/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies. First it is decided which way a copy goes: what CUDA does without blocking is handed to the driver;
 * an end in pageable memory, host to host, and peers that cannot reach each other are staged (stage.c). Then
 * the shape decides which call of the family it is, the flattest that says the same.
 */
#include "backend/cuda/cuda_backend.h"

#include <inttypes.h>

/* The first byte of an end that is no array. */
static void *end_base(const hr_bend *end)
{
    return end->place == HR_PLACE_SYMBOL ? (char *)end->symbol->address + end->offset_bytes : end->base;
}

static bool is_linear(const hr_bend *end)
{
    return end->place != HR_PLACE_ARRAY;
}

/* Bytes from the first to the last of a box at an end. Checked by the core, so nothing overflows. */
static uint64_t box_span(const hr_bend *end, uint64_t width, uint64_t height, uint64_t depth)
{
    return (depth - 1) * end->slice_pitch_bytes + (height - 1) * end->row_pitch_bytes + width;
}

/* The kind of what a list touches at its host end: of the whole span, or piece by piece where that is mixed. */
static hr_memory_kind list_kind(hr_bdevice *device, const hr_bcopy *copy, const char *base, bool is_source)
{
    uint64_t from = UINT64_MAX;
    uint64_t to = 0;
    for (uint64_t i = 0; i < copy->segment_count; i++) {
        const hr_segment *s = &copy->segments[i];
        uint64_t at = is_source ? s->src_offset_bytes : s->dst_offset_bytes;
        from = hr_min_u64(from, at);
        to = hr_max_u64(to, at + s->bytes);
    }
    hr_memory_kind kind = hr_cuda_host_kind(device, base + from, to - from);
    /* Between the segments there may be anything. */
    for (uint64_t i = 0; i < copy->segment_count && kind != HR_MEMORY_PINNED && kind != HR_MEMORY_MANAGED;
         i++) {
        const hr_segment *s = &copy->segments[i];
        uint64_t at = is_source ? s->src_offset_bytes : s->dst_offset_bytes;
        hr_memory_kind one = hr_cuda_host_kind(device, base + at, s->bytes);
        if (one != HR_MEMORY_PINNED && one != HR_MEMORY_MANAGED) {
            return one;
        }
        if (i + 1 == copy->segment_count) {
            kind = HR_MEMORY_PINNED;
        }
    }
    return kind;
}

static hr_status host_end_kind(hr_bdevice *device, const hr_bcopy *copy, bool is_source, hr_memory_kind *kind,
                               hr_error *error)
{
    const hr_bend *end = is_source ? &copy->src : &copy->dst;
    *kind = copy->segment_count > 0
                ? list_kind(device, copy, end->base, is_source)
                : hr_cuda_host_kind(device, end->base,
                                    box_span(end, copy->width_bytes, copy->height, copy->depth));
    if (*kind == HR_MEMORY_DEVICE) {
        return hr_fail(error, HR_E_INVALID,
                       "copy: the %s is said to be host memory, and %p is memory of a device",
                       is_source ? "source" : "destination", end->base);
    }
    return HR_OK;
}

static bool staged_kind(hr_memory_kind kind)
{
    return kind == HR_MEMORY_PAGEABLE || kind == HR_MEMORY_MIXED || kind == HR_MEMORY_UNKNOWN;
}

static hr_bdevice *end_device(const hr_bend *end, hr_bdevice *none)
{
    switch (end->place) {
    case HR_PLACE_DEVICE:
        return end->device;
    case HR_PLACE_ARRAY:
        return end->array->device;
    case HR_PLACE_SYMBOL:
        return end->symbol->device;
    default:
        return none;
    }
}

static hr_status peer_way(hr_bdevice *device, hr_bdevice *other, hr_cuda_stage_way *way, hr_error *error)
{
    hr_cuda_peer_path path = HR_CUDA_PEER_UNKNOWN;
    hr_status status = hr_cuda_peer_path_to(device, other, &path, error);
    if (status == HR_OK && path == HR_CUDA_PEER_STAGED) {
        *way = HR_CUDA_WAY_PEER;
    }
    return status;
}

static hr_status choose_way(hr_bdevice *device, const hr_bcopy *copy, hr_cuda_stage_way *way, hr_error *error)
{
    bool from_host = copy->src.place == HR_PLACE_HOST;
    bool to_host = copy->dst.place == HR_PLACE_HOST;
    hr_memory_kind from = HR_MEMORY_DEVICE;
    hr_memory_kind to = HR_MEMORY_DEVICE;
    hr_status status = HR_OK;
    *way = HR_CUDA_WAY_NONE;
    if (from_host) {
        status = host_end_kind(device, copy, true, &from, error);
    }
    if (status == HR_OK && to_host) {
        status = host_end_kind(device, copy, false, &to, error);
    }
    if (status != HR_OK) {
        return status;
    }
    if (from_host && to_host) {
        *way = HR_CUDA_WAY_HOST; /* CUDA does these on the calling thread, whatever the memory */
    } else if (from_host && staged_kind(from)) {
        *way = HR_CUDA_WAY_IN;
    } else if (to_host && staged_kind(to)) {
        *way = HR_CUDA_WAY_OUT;
    }
    hr_bdevice *src = end_device(&copy->src, device);
    hr_bdevice *dst = end_device(&copy->dst, device);
    if (src->ordinal != device->ordinal) {
        return peer_way(device, src, way, error);
    }
    if (dst->ordinal != device->ordinal) {
        return peer_way(device, dst, way, error);
    }
    return HR_OK;
}

static int ordinal_of(const hr_bend *end)
{
    hr_bdevice *device = end_device(end, NULL);
    return device != NULL ? device->ordinal : -1;
}

/* Between devices the addresses tell which, and only they. */
static enum cudaMemcpyKind kind_of(const hr_bcopy *copy)
{
    if (copy->src.place == HR_PLACE_HOST) {
        return cudaMemcpyHostToDevice;
    }
    if (copy->dst.place == HR_PLACE_HOST) {
        return cudaMemcpyDeviceToHost;
    }
    return ordinal_of(&copy->src) == ordinal_of(&copy->dst) ? cudaMemcpyDeviceToDevice : cudaMemcpyDefault;
}

static hr_status submit_1d(hr_bdevice *device, cudaStream_t native, void *dst, const void *src,
                           uint64_t bytes, enum cudaMemcpyKind kind, hr_error *error)
{
    return hr_cuda_check(device, cudaMemcpyAsync(dst, src, (size_t)bytes, kind, native), error,
                         "copy of %" PRIu64 " bytes", bytes);
}

static hr_status submit_rows_singly(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, char *dst,
                                    const char *src, hr_error *error)
{
    hr_cuda_count(device, HR_CUDA_ROW_CALLS, "a pitch is over the device's limit");
    hr_status status = HR_OK;
    for (uint64_t y = 0; y < copy->height && status == HR_OK; y++) {
        status = submit_1d(device, native, dst + y * copy->dst.row_pitch_bytes,
                           src + y * copy->src.row_pitch_bytes, copy->width_bytes, kind_of(copy), error);
    }
    return status;
}

static hr_status submit_2d(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, uint64_t height,
                           void *dst, const void *src, hr_error *error)
{
    if (copy->src.row_pitch_bytes == copy->width_bytes && copy->dst.row_pitch_bytes == copy->width_bytes) {
        return submit_1d(device, native, dst, src, copy->width_bytes * height, kind_of(copy), error);
    }
    if (hr_max_u64(copy->src.row_pitch_bytes, copy->dst.row_pitch_bytes) > device->max_pitch_bytes) {
        hr_bcopy rows = *copy;
        rows.height = height;
        return submit_rows_singly(device, native, &rows, dst, src, error);
    }
    return hr_cuda_check(device,
                         cudaMemcpy2DAsync(dst, (size_t)copy->dst.row_pitch_bytes, src,
                                           (size_t)copy->src.row_pitch_bytes, (size_t)copy->width_bytes,
                                           (size_t)height, kind_of(copy), native),
                         error, "copy of %" PRIu64 " rows of %" PRIu64 " bytes", height, copy->width_bytes);
}

/* CUDA's 3-D calls know a slice as a number of rows: the slice pitch must be a multiple of the row pitch. */
static bool slices_are_rows(const hr_bend *end)
{
    return end->slice_pitch_bytes % end->row_pitch_bytes == 0;
}

static bool slices_follow_rows(const hr_bend *end, uint64_t height)
{
    return end->slice_pitch_bytes == end->row_pitch_bytes * height;
}

static struct cudaPitchedPtr pitched(const hr_bend *end, uint64_t width)
{
    return (struct cudaPitchedPtr){end_base(end), (size_t)end->row_pitch_bytes, (size_t)width,
                                   (size_t)(end->slice_pitch_bytes / end->row_pitch_bytes)};
}

static hr_status submit_3d_linear(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy,
                                  hr_error *error)
{
    struct cudaMemcpy3DParms parms = {0};
    parms.srcPtr = pitched(&copy->src, copy->width_bytes);
    parms.dstPtr = pitched(&copy->dst, copy->width_bytes);
    parms.extent = (struct cudaExtent){(size_t)copy->width_bytes, (size_t)copy->height, (size_t)copy->depth};
    parms.kind = kind_of(copy);
    return hr_cuda_check(device, cudaMemcpy3DAsync(&parms, native), error,
                         "copy of %" PRIu64 " × %" PRIu64 " × %" PRIu64 " bytes", copy->width_bytes,
                         copy->height, copy->depth);
}

static hr_status submit_linear(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, hr_error *error)
{
    char *dst = end_base(&copy->dst);
    const char *src = end_base(&copy->src);
    if (copy->depth == 1) {
        return copy->height == 1
                   ? submit_1d(device, native, dst, src, copy->width_bytes, kind_of(copy), error)
                   : submit_2d(device, native, copy, copy->height, dst, src, error);
    }
    if (slices_follow_rows(&copy->dst, copy->height) && slices_follow_rows(&copy->src, copy->height)) {
        return submit_2d(device, native, copy, copy->height * copy->depth, dst, src, error);
    }
    if (slices_are_rows(&copy->dst) && slices_are_rows(&copy->src) &&
        hr_max_u64(copy->src.row_pitch_bytes, copy->dst.row_pitch_bytes) <= device->max_pitch_bytes) {
        return submit_3d_linear(device, native, copy, error);
    }
    hr_cuda_count(device, HR_CUDA_ROW_CALLS, "a slice pitch is no multiple of the row pitch");
    hr_status status = HR_OK;
    for (uint64_t z = 0; z < copy->depth && status == HR_OK; z++) {
        status = submit_2d(device, native, copy, copy->height, dst + z * copy->dst.slice_pitch_bytes,
                           src + z * copy->src.slice_pitch_bytes, error);
    }
    return status;
}

static struct cudaPos position(const hr_bend *end)
{
    return is_linear(end) ? (struct cudaPos){0, 0, 0}
                          : (struct cudaPos){(size_t)end->x, (size_t)end->y, (size_t)end->z};
}

static struct cudaPitchedPtr memory_of(const hr_bend *end, uint64_t width)
{
    return is_linear(end) ? pitched(end, width) : (struct cudaPitchedPtr){0};
}

/* Where an array takes part CUDA counts the extent in its elements. Between devices it is another call. */
static hr_status submit_array_box(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy,
                                  uint64_t element, hr_error *error)
{
    cudaArray_t src = is_linear(&copy->src) ? NULL : copy->src.array->native;
    cudaArray_t dst = is_linear(&copy->dst) ? NULL : copy->dst.array->native;
    struct cudaExtent extent = {(size_t)(copy->width_bytes / element), (size_t)copy->height,
                                (size_t)copy->depth};
    int from = ordinal_of(&copy->src);
    int to = ordinal_of(&copy->dst);
    cudaError_t code;
    if (from >= 0 && to >= 0 && from != to) {
        struct cudaMemcpy3DPeerParms parms = {.srcArray = src,
                                              .srcPos = position(&copy->src),
                                              .srcPtr = memory_of(&copy->src, copy->width_bytes),
                                              .srcDevice = from,
                                              .dstArray = dst,
                                              .dstPos = position(&copy->dst),
                                              .dstPtr = memory_of(&copy->dst, copy->width_bytes),
                                              .dstDevice = to,
                                              .extent = extent};
        code = cudaMemcpy3DPeerAsync(&parms, native);
    } else {
        struct cudaMemcpy3DParms parms = {.srcArray = src,
                                          .srcPos = position(&copy->src),
                                          .srcPtr = memory_of(&copy->src, copy->width_bytes),
                                          .dstArray = dst,
                                          .dstPos = position(&copy->dst),
                                          .dstPtr = memory_of(&copy->dst, copy->width_bytes),
                                          .extent = extent,
                                          .kind = kind_of(copy)};
        code = cudaMemcpy3DAsync(&parms, native);
    }
    return hr_cuda_check(device, code, error,
                         "copy of %" PRIu64 " × %" PRIu64 " × %" PRIu64 " bytes of an array",
                         copy->width_bytes, copy->height, copy->depth);
}

static hr_status submit_array(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, hr_error *error)
{
    uint64_t element =
        is_linear(&copy->dst) ? copy->src.array->element_bytes : copy->dst.array->element_bytes;
    if (copy->width_bytes % element != 0) {
        return hr_fail(error, HR_E_INVALID,
                       "copy: a width of %" PRIu64
                       " bytes is no multiple of the array's elements of %" PRIu64,
                       copy->width_bytes, element);
    }
    if ((is_linear(&copy->src) && !slices_are_rows(&copy->src)) ||
        (is_linear(&copy->dst) && !slices_are_rows(&copy->dst))) {
        hr_cuda_count(device, HR_CUDA_ROW_CALLS, "a slice pitch is no multiple of the row pitch");
        hr_status status = HR_OK;
        for (uint64_t z = 0; z < copy->depth && status == HR_OK; z++) {
            hr_bcopy slice = *copy;
            slice.depth = 1;
            slice.src.slice_pitch_bytes = slice.src.row_pitch_bytes * slice.height;
            slice.dst.slice_pitch_bytes = slice.dst.row_pitch_bytes * slice.height;
            slice.src.z += z;
            slice.dst.z += z;
            slice.src.base = (char *)copy->src.base + z * copy->src.slice_pitch_bytes;
            slice.dst.base = (char *)copy->dst.base + z * copy->dst.slice_pitch_bytes;
            slice.src.offset_bytes += z * copy->src.slice_pitch_bytes;
            slice.dst.offset_bytes += z * copy->dst.slice_pitch_bytes;
            status = submit_array_box(device, native, &slice, element, error);
        }
        return status;
    }
    return submit_array_box(device, native, copy, element, error);
}

/* Between devices that reach each other, the plain calls need to know the device of each end only for arrays;
 * unified addressing tells for the rest. */
hr_status hr_cuda_copy_submit(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, hr_error *error)
{
    if (copy->segment_count > 0) {
        return hr_cuda_segments_submit(device, native, copy, error);
    }
    hr_bcopy full = *copy;
    /* What is not needed may be 0; the arithmetic below divides by it. */
    hr_bend *ends[2] = {&full.dst, &full.src};
    for (int i = 0; i < 2; i++) {
        if (ends[i]->row_pitch_bytes == 0 || full.height == 1) {
            ends[i]->row_pitch_bytes = hr_max_u64(ends[i]->row_pitch_bytes, full.width_bytes);
        }
        if (ends[i]->slice_pitch_bytes == 0 || full.depth == 1) {
            ends[i]->slice_pitch_bytes = ends[i]->row_pitch_bytes * full.height;
        }
    }
    return is_linear(&full.dst) && is_linear(&full.src) ? submit_linear(device, native, &full, error)
                                                        : submit_array(device, native, &full, error);
}

static hr_status refuse_in_capture(hr_cuda_stage_way way, hr_error *error)
{
    static const char *const why[] = {[HR_CUDA_WAY_IN] = "from pageable memory",
                                      [HR_CUDA_WAY_OUT] = "to pageable memory",
                                      [HR_CUDA_WAY_HOST] = "from host memory to host memory",
                                      [HR_CUDA_WAY_PEER] = "between devices that do not reach each other"};
    return hr_fail(
        error, HR_E_UNSUPPORTED,
        "copy %s: the stream is being captured, and threads of the host cannot be part of a graph: "
        "needs pinned memory",
        why[way]);
}

static hr_status queue_copy(hr_bstream *stream, const hr_bcopy *copy, hr_error *error)
{
    hr_cuda_stage_way way;
    hr_status status = choose_way(stream->device, copy, &way, error);
    if (status != HR_OK) {
        return status;
    }
    if (__builtin_expect(way == HR_CUDA_WAY_NONE, 1)) {
        return hr_cuda_stream_deferred(stream)
                   ? hr_cuda_defer_copy(stream, copy, way, error)
                   : hr_cuda_copy_submit(stream->device, stream->native, copy, error);
    }
    if (hr_cuda_stream_captures(stream)) {
        return refuse_in_capture(way, error);
    }
    return hr_cuda_defer_copy(stream, copy, way, error);
}

hr_status hr_cuda_copy(hr_bstream *stream, const hr_bcopy *copy, hr_error *error)
{
    hr_status status = hr_cuda_stream_ready(stream, error);
    if (status != HR_OK) {
        return status;
    }
    hr_cuda_scope scope;
    status = hr_cuda_enter(stream->device, &scope, error);
    if (status == HR_OK) {
        status = queue_copy(stream, copy, error);
        hr_cuda_leave(&scope);
    }
    return status;
}
