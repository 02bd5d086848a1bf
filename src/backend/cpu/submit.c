/* SPDX-License-Identifier: Apache-2.0 */
/* From a checked description to an operation in a stream's queue: who runs it, and is its memory what it
 * says? */
#include "backend/cpu/internal.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bytes from the first to the last of one end; the core made sure that they fit. */
static uint64_t reach(const hr_bcopy *copy, const hr_bend *end, bool is_dst)
{
    if (copy->segment_count == 0) {
        return (copy->depth - 1) * end->slice_pitch_bytes + (copy->height - 1) * end->row_pitch_bytes +
               copy->width_bytes;
    }
    uint64_t past = 0;
    for (uint64_t i = 0; i < copy->segment_count; i++) {
        const hr_segment *segment = &copy->segments[i];
        uint64_t offset = is_dst ? segment->dst_offset_bytes : segment->src_offset_bytes;
        past = hr_max_u64(past, offset + segment->bytes);
    }
    return past;
}

/*
 * A discrete device refuses what a GPU would refuse: device memory that is not the device's, and host memory
 * that is. Programs that mix them up work on `cpu`, and find out here.
 */
static hr_status check_end(hr_bdevice *own, const hr_bend *end, const char *which, uint64_t bytes,
                           hr_error *error)
{
    if (end->place != HR_PLACE_DEVICE && end->place != HR_PLACE_HOST) {
        return HR_OK;
    }
    hr_bdevice *device = end->place == HR_PLACE_DEVICE ? end->device : own;
    if (!device->options.discrete) {
        return HR_OK;
    }
    hr_memory_kind kind = HR_MEMORY_UNKNOWN;
    hr_status status = hr_cpu_memory_kind(device, end->base, bytes, &kind);
    if (status != HR_OK) {
        return hr_fail(error, status, "%s: %" PRIu64 " bytes at %p end after the address space", which, bytes,
                       end->base);
    }
    if (end->place == HR_PLACE_DEVICE && kind != HR_MEMORY_DEVICE) {
        return hr_fail(error, HR_E_INVALID, "%s: %" PRIu64 " bytes at %p are not memory of device %s", which,
                       bytes, end->base, device->spec);
    }
    if (end->place == HR_PLACE_HOST && kind == HR_MEMORY_DEVICE) {
        return hr_fail(error, HR_E_INVALID, "%s: %p is memory of device %s, not of the host", which,
                       end->base, device->spec);
    }
    if (end->place == HR_PLACE_HOST && kind != HR_MEMORY_PINNED) {
        atomic_fetch_add_explicit(&own->pageable_ends, 1, memory_order_relaxed);
    }
    return HR_OK;
}

/* The device that an end's memory is of; null for the host. */
static const hr_bdevice *owner(const hr_bdevice *own, const hr_bend *end)
{
    switch (end->place) {
    case HR_PLACE_HOST:
        return NULL;
    case HR_PLACE_DEVICE:
        return end->device->options.discrete ? end->device : NULL;
    default:
        return own->options.discrete ? own : NULL;
    }
}

/* The link that a copy goes over. Null: it stays in one memory, and the stream's thread does it. */
static hr_cpu_engine *engine_for(hr_bdevice *own, const hr_bcopy *copy)
{
    const hr_bdevice *src = owner(own, &copy->src), *dst = owner(own, &copy->dst);
    if (!own->options.discrete || src == dst) {
        return NULL;
    }
    if (src == own) {
        return &own->engines[HR_CPU_D2H];
    }
    return dst == own ? &own->engines[HR_CPU_H2D] : NULL;
}

/* The caller's list may go once the call has returned. */
static bool keep_segments(hr_cpu_operation *operation, const hr_bcopy *copy)
{
    if (copy->segment_count > operation->segment_room) {
        uint64_t bytes;
        hr_segment *grown = NULL;
        if (!hr_mul_overflows(copy->segment_count, sizeof *grown, &bytes)) {
            grown = realloc(operation->segments, bytes);
        }
        if (grown == NULL) {
            return false;
        }
        operation->segments = grown;
        operation->segment_room = copy->segment_count;
    }
    memcpy(operation->segments, copy->segments, copy->segment_count * sizeof *copy->segments);
    operation->as.copy.segments = operation->segments;
    return true;
}

hr_status hr_cpu_copy(hr_bstream *stream, const hr_bcopy *copy, hr_error *error)
{
    hr_bdevice *own = stream->device;
    hr_status status = check_end(own, &copy->src, "copy: source", reach(copy, &copy->src, false), error);
    if (status == HR_OK) {
        status = check_end(own, &copy->dst, "copy: destination", reach(copy, &copy->dst, true), error);
    }
    if (status != HR_OK) {
        return status;
    }
    hr_cpu_engine *engine = engine_for(own, copy);
    uint64_t accepted_ns = engine != NULL ? hr_now_ns() : 0;
    hr_cpu_operation *operation;
    status = hr_cpu_stream_begin(stream, HR_CPU_COPY, &operation, error);
    if (status != HR_OK) {
        return status;
    }
    operation->engine = engine;
    operation->accepted_ns = accepted_ns;
    operation->as.copy = *copy;
    if (copy->segment_count > 0 && !keep_segments(operation, copy)) {
        hr_cpu_stream_abandon(stream, operation);
        return hr_fail(error, HR_E_HOST_MEMORY, "copy: no memory to keep %" PRIu64 " segments",
                       copy->segment_count);
    }
    hr_cpu_stream_submit(stream, operation);
    return HR_OK;
}

/* A GPU fills what it reaches; pageable memory it does not. */
static hr_status check_reached(hr_bdevice *own, const hr_bend *end, uint64_t bytes, hr_error *error)
{
    hr_memory_kind kind = HR_MEMORY_PINNED;
    bool asks = own->options.discrete && end->place == HR_PLACE_HOST;
    hr_status status = asks ? hr_cpu_memory_kind(own, end->base, bytes, &kind) : HR_OK;
    if (status == HR_OK && kind != HR_MEMORY_PINNED) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "fill: the destination is pageable host memory: needs device or pinned memory");
    }
    return status;
}

hr_status hr_cpu_queue_fill(hr_bstream *stream, const hr_bfill *fill, hr_error *error)
{
    uint64_t bytes = (fill->depth - 1) * fill->dst.slice_pitch_bytes +
                     (fill->height - 1) * fill->dst.row_pitch_bytes + fill->width_bytes;
    hr_status status = check_end(stream->device, &fill->dst, "fill: destination", bytes, error);
    if (status == HR_OK) {
        status = check_reached(stream->device, &fill->dst, bytes, error);
    }
    if (status != HR_OK) {
        return status;
    }
    hr_cpu_operation *operation;
    status = hr_cpu_stream_begin(stream, HR_CPU_FILL, &operation, error);
    if (status != HR_OK) {
        return status;
    }
    operation->as.fill = *fill;
    hr_cpu_stream_submit(stream, operation);
    return HR_OK;
}

hr_status hr_cpu_launch(hr_bstream *stream, hr_launch_fn fn, const hr_launch *launch, hr_error *error)
{
    hr_cpu_operation *operation;
    hr_status status = hr_cpu_stream_begin(stream, HR_CPU_LAUNCH, &operation, error);
    if (status != HR_OK) {
        return status;
    }
    operation->as.launch.fn = fn;
    operation->as.launch.launch = *launch;
    operation->as.launch.launch.workers = hr_crew_workers(stream->device->crew);
    operation->as.launch.launch.native_stream = NULL;
    hr_cpu_stream_submit(stream, operation);
    return HR_OK;
}
