/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of segments. A call for each costs 2 µs or more whatever the size; the batched call about 1 µs; a kernel that
 * reads or writes the pinned memory itself fills the link from 512 bytes a segment on, and costs a few multiprocessors.
 * So short segments go by the kernel, long ones by the batched call, and a handful by calls.
 *
 * The list travels with the launch as an argument while it is short, and in a stream that is being captured. A longer
 * one goes through blocks of the device's: pinned memory that the list is written to, and device memory that it is
 * copied to, so that no warp waits for its segment across the link. A block is free again when its event is done; when
 * none is free the argument serves, in pieces. Nothing waits.
 */
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Fewer segments than this are not worth another way than a call each. */
#define CALLS_UP_TO_SEGMENTS 3
/* From this average on the copy engine is as fast as the kernel, and leaves the multiprocessors alone. */
#define BATCH_FROM_BYTES   ((uint64_t)64 << 10)
#define KERNEL_HOST_BLOCKS 32
/* The first piece of a long list is short, so that the device begins while the rest is cut. */
#define FIRST_PIECES 2048
/* One warp works on one piece: long segments are cut, so that the last warp is not alone for long. */
#define PIECE_BYTES    ((uint64_t)32 << 10)
#define BATCH_SEGMENTS 512

/* Where the pieces of a list come from: the list, and how far into it. */
typedef struct cutter {
    const hr_segment *segments;
    uint64_t count;
    uint64_t index;
    uint64_t inside; /* bytes of the current segment that are cut off already */
} cutter;

/* Cuts up to `room` pieces; how many. */
static uint32_t cut(cutter *from, hr_segment *pieces, uint32_t room)
{
    uint32_t made = 0;
    while (made < room && from->index < from->count) {
        const hr_segment *s = &from->segments[from->index];
        uint64_t bytes = hr_min_u64(PIECE_BYTES, s->bytes - from->inside);
        pieces[made++] =
            (hr_segment){s->dst_offset_bytes + from->inside, s->src_offset_bytes + from->inside, bytes};
        from->inside += bytes;
        if (from->inside == s->bytes) {
            from->index++;
            from->inside = 0;
        }
    }
    return made;
}

static bool more(const cutter *from)
{
    return from->index < from->count;
}

static uint32_t blocks_for(hr_bdevice *device, const hr_bcopy *copy)
{
    bool host = copy->src.place == HR_PLACE_HOST || copy->dst.place == HR_PLACE_HOST;
    return host ? KERNEL_HOST_BLOCKS : (uint32_t)device->multiprocessors * 2;
}

static void *address_of(const hr_bend *end)
{
    return end->place == HR_PLACE_SYMBOL ? (char *)end->symbol->address + end->offset_bytes : end->base;
}

static hr_status launch_by_value(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, cutter *from,
                                 hr_error *error)
{
    hr_segment pieces[HR_CUDA_SEGMENTS_BY_VALUE];
    uint32_t count = cut(from, pieces, HR_CUDA_SEGMENTS_BY_VALUE);
    return hr_cuda_check(device,
                         hr_cuda_kernel_segments_by_value(native, address_of(&copy->dst),
                                                          address_of(&copy->src), pieces, count,
                                                          blocks_for(device, copy)),
                         error, "copy of %" PRIu64 " segments by a kernel", copy->segment_count);
}

/* A block of pinned memory for a list, or null: none is free. */
static hr_cuda_list_block *free_block(hr_bdevice *device)
{
    hr_cuda_list_block *found = NULL;
    pthread_mutex_lock(&device->lock);
    for (int i = 0; i < HR_CUDA_LIST_BLOCKS && found == NULL; i++) {
        hr_cuda_list_block *block = &device->list_block[i];
        if (block->segments != NULL && !block->taken) {
            cudaError_t code = cudaEventQuery(block->event);
            if (code == cudaSuccess) {
                block->taken = true;
                found = block;
            } else {
                (void)cudaGetLastError();
            }
        }
    }
    pthread_mutex_unlock(&device->lock);
    return found;
}

/* The list goes to the device's own memory first, in the same stream. */
static hr_status launch_listed(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy,
                               hr_cuda_list_block *block, uint32_t room, cutter *from, hr_error *error)
{
    uint32_t count = cut(from, block->segments, room);
    hr_status status =
        hr_cuda_check(device,
                      cudaMemcpyAsync(block->on_device, block->segments, count * sizeof *block->segments,
                                      cudaMemcpyHostToDevice, native),
                      error, "copy of segments: sending its list");
    if (status == HR_OK) {
        status = hr_cuda_check(device,
                               hr_cuda_kernel_segments(native, address_of(&copy->dst), address_of(&copy->src),
                                                       block->on_device, count, blocks_for(device, copy)),
                               error, "copy of %" PRIu64 " segments by a kernel", copy->segment_count);
    }
    /* Also after a failure: what was sent reads the block. */
    hr_status marked = hr_cuda_check(device, cudaEventRecord(block->event, native),
                                     status == HR_OK ? error : NULL, "copy of segments: marking its list");
    pthread_mutex_lock(&device->lock);
    block->taken = false;
    pthread_mutex_unlock(&device->lock);
    return status == HR_OK ? marked : status;
}

static bool captures(cudaStream_t native)
{
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(native, &state) != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return state != cudaStreamCaptureStatusNone;
}

static hr_status by_kernel(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, hr_error *error)
{
    cutter from = {copy->segments, copy->segment_count, 0, 0};
    hr_status status = HR_OK;
    bool in_graph = captures(native);
    uint32_t room = FIRST_PIECES;
    while (status == HR_OK && more(&from)) {
        bool is_long = !in_graph && from.count - from.index > HR_CUDA_SEGMENTS_BY_VALUE;
        hr_cuda_list_block *block = is_long ? free_block(device) : NULL;
        status = block != NULL ? launch_listed(device, native, copy, block, room, &from, error)
                               : launch_by_value(device, native, copy, &from, error);
        room = HR_CUDA_LIST_SEGMENTS;
    }
    hr_cuda_count(device, HR_CUDA_SEGMENT_KERNEL, NULL);
    return status;
}

static hr_status by_calls(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy,
                          enum cudaMemcpyKind kind, hr_error *error)
{
    char *dst = address_of(&copy->dst);
    const char *src = address_of(&copy->src);
    hr_status status = HR_OK;
    for (uint64_t i = 0; i < copy->segment_count && status == HR_OK; i++) {
        const hr_segment *s = &copy->segments[i];
        status = hr_cuda_check(device,
                               cudaMemcpyAsync(dst + s->dst_offset_bytes, src + s->src_offset_bytes,
                                               (size_t)s->bytes, kind, native),
                               error, "copy of segment %" PRIu64 " of %" PRIu64 " bytes", i, s->bytes);
    }
    hr_cuda_count(device, HR_CUDA_SEGMENT_CALLS, NULL);
    return status;
}

#if CUDART_VERSION >= 13000
/* Refused in a capture while the capture stays valid, so its answer is looked at like any other. */
static hr_status by_batches(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, hr_error *error)
{
    char *dst = address_of(&copy->dst);
    const char *src = address_of(&copy->src);
    struct cudaMemcpyAttributes how = {0};
    /* Both ends are what streams order: pinned or device memory. */
    how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    hr_status status = HR_OK;
    for (uint64_t at = 0; at < copy->segment_count && status == HR_OK; at += BATCH_SEGMENTS) {
        void *to[BATCH_SEGMENTS];
        const void *from[BATCH_SEGMENTS];
        size_t bytes[BATCH_SEGMENTS];
        size_t count = (size_t)hr_min_u64(BATCH_SEGMENTS, copy->segment_count - at);
        for (size_t i = 0; i < count; i++) {
            const hr_segment *s = &copy->segments[at + i];
            to[i] = dst + s->dst_offset_bytes;
            from[i] = src + s->src_offset_bytes;
            bytes[i] = (size_t)s->bytes;
        }
        status = hr_cuda_check(device, cudaMemcpyBatchAsync(to, from, bytes, count, &how, &first, 1, native),
                               error, "copy of %zu segments in a batch", count);
    }
    hr_cuda_count(device, HR_CUDA_SEGMENT_BATCH, NULL);
    return status;
}
#endif

hr_cuda_segment_method hr_cuda_segments_choose(hr_bdevice *device, const hr_bcopy *copy)
{
    if (copy->segment_count <= CALLS_UP_TO_SEGMENTS) {
        return HR_CUDA_SEGMENTS_CALLS;
    }
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < copy->segment_count; i++) {
        bytes += copy->segments[i].bytes;
    }
    return device->host_pointers_work && bytes / copy->segment_count < BATCH_FROM_BYTES
               ? HR_CUDA_SEGMENTS_KERNEL
               : HR_CUDA_SEGMENTS_BATCH;
}

hr_status hr_cuda_segments_by(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy,
                              hr_cuda_segment_method method, hr_error *error)
{
    enum cudaMemcpyKind kind = copy->src.place == HR_PLACE_HOST   ? cudaMemcpyHostToDevice
                               : copy->dst.place == HR_PLACE_HOST ? cudaMemcpyDeviceToHost
                                                                  : cudaMemcpyDefault;
    switch (method) {
    case HR_CUDA_SEGMENTS_KERNEL:
        return by_kernel(device, native, copy, error);
#if CUDART_VERSION >= 13000
    case HR_CUDA_SEGMENTS_BATCH:
        if (!captures(native)) {
            return by_batches(device, native, copy, error);
        }
        return by_calls(device, native, copy, kind, error);
#endif
    default:
        return by_calls(device, native, copy, kind, error);
    }
}

hr_status hr_cuda_segments_submit(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy,
                                  hr_error *error)
{
    if (copy->dst.place == HR_PLACE_ARRAY || copy->src.place == HR_PLACE_ARRAY) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "copy of segments: an end is an array: needs memory or a symbol");
    }
    return hr_cuda_segments_by(device, native, copy, hr_cuda_segments_choose(device, copy), error);
}
