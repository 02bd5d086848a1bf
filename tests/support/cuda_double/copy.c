/* SPDX-License-Identifier: Apache-2.0 */
/* The double's copies: every shape, checked against what was allocated when the work runs. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* A box of bytes between two places with pitches. */
typedef struct box {
    char *dst;
    const char *src;
    size_t dst_row, dst_slice, src_row, src_slice;
    size_t width, height, depth;
    int device;
    bool dst_is_device, src_is_device;
    bool dropped; /* a peer copy that the hardware loses */
} box;

static size_t span(const box *b, size_t row, size_t slice)
{
    return (b->depth - 1) * slice + (b->height - 1) * row + b->width;
}

/* What the real thing would answer with an illegal address. */
static bool addresses_are_good(const box *b)
{
    pthread_mutex_lock(&the_double.lock);
    bool good = (!b->dst_is_device || double_find(b->dst, span(b, b->dst_row, b->dst_slice)) != NULL) &&
                (!b->src_is_device || double_find(b->src, span(b, b->src_row, b->src_slice)) != NULL);
    if (!good) {
        double_kill_device(b->device, cudaErrorIllegalAddress);
    }
    pthread_mutex_unlock(&the_double.lock);
    return good;
}

static void run_box(void *argument)
{
    const box *b = argument;
    if (b->dropped || b->width == 0 || b->height == 0 || b->depth == 0 || !addresses_are_good(b)) {
        return;
    }
    for (size_t z = 0; z < b->depth; z++) {
        for (size_t y = 0; y < b->height; y++) {
            memcpy(b->dst + z * b->dst_slice + y * b->dst_row, b->src + z * b->src_slice + y * b->src_row,
                   b->width);
        }
    }
}

/* The device of an address, or -1 for host memory; *pageable tells ordinary host memory. */
static int place_of(const void *base, bool *pageable)
{
    pthread_mutex_lock(&the_double.lock);
    const block *found = double_find(base, 1);
    pthread_mutex_unlock(&the_double.lock);
    *pageable = found == NULL;
    return found == NULL || found->kind == BLOCK_HOSTALLOC || found->kind == BLOCK_REGISTERED ? -1
                                                                                              : found->device;
}

/* Direction, pageable ends and lost writes; then into the stream. An end in an array is not looked up. */
static cudaError_t submit(box *b, bool dst_array, bool src_array, int dst_device, int src_device,
                          enum cudaMemcpyKind kind, cudaStream_t stream)
{
    bool dst_pageable = false;
    bool src_pageable = false;
    if (!dst_array) {
        dst_device = place_of(b->dst, &dst_pageable);
    }
    if (!src_array) {
        src_device = place_of(b->src, &src_pageable);
    }
    bool to_device = dst_device >= 0;
    bool from_device = src_device >= 0;
    if (kind != cudaMemcpyDefault) {
        bool says_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
        bool says_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
        if (says_to != to_device || says_from != from_device) {
            return double_answer(cudaErrorInvalidValue);
        }
    }
    b->dst_is_device = to_device && !dst_array;
    b->src_is_device = from_device && !src_array;
    b->device = to_device ? dst_device : from_device ? src_device : 0;
    pthread_mutex_lock(&the_double.lock);
    b->dropped =
        to_device && from_device && dst_device != src_device && the_double.peer == HR_DOUBLE_PEER_DROPS;
    bool unreachable =
        to_device && from_device && dst_device != src_device && the_double.peer == HR_DOUBLE_PEER_NONE;
    bool blocks = dst_pageable || src_pageable || (!to_device && !from_device);
    the_double.pageable_calls += blocks;
    pthread_mutex_unlock(&the_double.lock);
    if (unreachable) {
        return double_answer(cudaErrorInvalidValue);
    }
    cudaError_t code = double_submit(stream, run_box, b, sizeof *b);
    return code == cudaSuccess && blocks ? cudaStreamSynchronize(stream) : code;
}

HR_DOUBLE_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                                          cudaStream_t stream)
{
    ENTER();
    box b = {.dst = dst, .src = src, .width = bytes, .height = 1, .depth = 1};
    return submit(&b, false, false, 0, 0, kind, stream);
}

HR_DOUBLE_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                                            size_t width, size_t height, enum cudaMemcpyKind kind,
                                            cudaStream_t stream)
{
    ENTER();
    if (width > dst_pitch || width > src_pitch) {
        return double_answer(cudaErrorInvalidPitchValue);
    }
    if (dst_pitch > (size_t)1 << 20 || src_pitch > (size_t)1 << 20) {
        return double_answer(cudaErrorInvalidValue);
    }
    box b = {.dst = dst,
             .src = src,
             .dst_row = dst_pitch,
             .src_row = src_pitch,
             .width = width,
             .height = height,
             .depth = 1};
    return submit(&b, false, false, 0, 0, kind, stream);
}

/* An array's address and pitches at a position; false past its end. */
static bool in_array(cudaArray_t array, struct cudaPos at, struct cudaExtent extent, char **base, size_t *row,
                     size_t *slice)
{
    size_t rows = array->extent.height > 0 ? array->extent.height : 1;
    size_t slices = array->extent.depth > 0 ? array->extent.depth : 1;
    *row = array->element * array->extent.width;
    *slice = *row * rows;
    *base = array->memory.base + at.z * *slice + at.y * *row + at.x * array->element;
    return at.x + extent.width <= array->extent.width && at.y + extent.height <= rows &&
           at.z + extent.depth <= slices;
}

static bool in_pitched(const struct cudaPitchedPtr *memory, struct cudaPos at, size_t width, char **base,
                       size_t *row, size_t *slice)
{
    *row = memory->pitch;
    *slice = memory->pitch * memory->ysize;
    *base = (char *)memory->ptr + at.z * *slice + at.y * *row + at.x;
    return width <= memory->pitch;
}

static cudaError_t copy_3d(const struct cudaMemcpy3DParms *parms, cudaStream_t stream)
{
    box b = {.width = parms->extent.width, .height = parms->extent.height, .depth = parms->extent.depth};
    bool good = parms->dstArray == NULL || parms->srcArray == NULL ||
                parms->dstArray->element == parms->srcArray->element;
    cudaArray_t any = parms->dstArray != NULL ? parms->dstArray : parms->srcArray;
    if (any != NULL) {
        b.width *= any->element;
    }
    char *src = NULL;
    if (parms->dstArray != NULL) {
        good =
            good && in_array(parms->dstArray, parms->dstPos, parms->extent, &b.dst, &b.dst_row, &b.dst_slice);
    } else {
        good = good && in_pitched(&parms->dstPtr, parms->dstPos, b.width, &b.dst, &b.dst_row, &b.dst_slice);
    }
    if (parms->srcArray != NULL) {
        good =
            good && in_array(parms->srcArray, parms->srcPos, parms->extent, &src, &b.src_row, &b.src_slice);
    } else {
        good = good && in_pitched(&parms->srcPtr, parms->srcPos, b.width, &src, &b.src_row, &b.src_slice);
    }
    if (!good) {
        return double_answer(cudaErrorInvalidValue);
    }
    b.src = src;
    return submit(&b, parms->dstArray != NULL, parms->srcArray != NULL,
                  parms->dstArray != NULL ? parms->dstArray->memory.device : 0,
                  parms->srcArray != NULL ? parms->srcArray->memory.device : 0, parms->kind, stream);
}

HR_DOUBLE_API cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parms, cudaStream_t stream)
{
    ENTER();
    return copy_3d(parms, stream);
}

HR_DOUBLE_API cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *parms,
                                                cudaStream_t stream)
{
    ENTER();
    struct cudaMemcpy3DParms plain = {.srcArray = parms->srcArray,
                                      .srcPos = parms->srcPos,
                                      .srcPtr = parms->srcPtr,
                                      .dstArray = parms->dstArray,
                                      .dstPos = parms->dstPos,
                                      .dstPtr = parms->dstPtr,
                                      .extent = parms->extent,
                                      .kind = cudaMemcpyDefault};
    return copy_3d(&plain, stream);
}

HR_DOUBLE_API cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
                                               const size_t *sizes, size_t count,
                                               struct cudaMemcpyAttributes *attributes, size_t *indexes,
                                               size_t attribute_count, cudaStream_t stream)
{
    ENTER();
    (void)attributes;
    (void)indexes;
    if ((uintptr_t)stream <= 2 || attribute_count == 0) {
        return double_answer(cudaErrorInvalidValue);
    }
    if (stream->graph != NULL) {
        return double_answer(cudaErrorStreamCaptureUnsupported);
    }
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == 0) {
            return double_answer(cudaErrorInvalidValue);
        }
        box b = {.dst = dsts[i], .src = srcs[i], .width = sizes[i], .height = 1, .depth = 1};
        cudaError_t code = submit(&b, false, false, 0, 0, cudaMemcpyDefault, stream);
        if (code != cudaSuccess) {
            return code;
        }
    }
    return cudaSuccess;
}

typedef struct set_bytes {
    char *base;
    size_t pitch, width, height;
    int value;
} set_bytes;

static void run_set_bytes(void *argument)
{
    const set_bytes *set = argument;
    for (size_t y = 0; y < set->height; y++) {
        memset(set->base + y * set->pitch, set->value, set->width);
    }
}

HR_DOUBLE_API cudaError_t cudaMemsetAsync(void *base, int value, size_t bytes, cudaStream_t stream)
{
    ENTER();
    set_bytes set = {base, bytes, bytes, 1, value};
    return double_submit(stream, run_set_bytes, &set, sizeof set);
}

HR_DOUBLE_API cudaError_t cudaMemset2DAsync(void *base, size_t pitch, int value, size_t width, size_t height,
                                            cudaStream_t stream)
{
    ENTER();
    set_bytes set = {base, pitch, width, height, value};
    return double_submit(stream, run_set_bytes, &set, sizeof set);
}
