/* SPDX-License-Identifier: Apache-2.0 */
/* Fills, with values of one, two and four bytes. */
#include "backend/cuda/cuda_backend.h"

#include <inttypes.h>

/* One flat run of bytes. */
static hr_status fill_1d(hr_bdevice *device, cudaStream_t native, void *base, uint64_t bytes,
                         const hr_bfill *fill, hr_error *error)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)base;
    switch (fill->value_bytes) {
    case 1:
        return hr_cuda_check(device, cudaMemsetAsync(base, (int)(fill->value & 0xFF), (size_t)bytes, native),
                             error, "fill of %" PRIu64 " bytes", bytes);
    case 2:
        return hr_cuda_check_driver(
            device, device->driver->set_d16(at, (unsigned short)fill->value, (size_t)(bytes / 2), native),
            error, "fill of 2-byte values");
    default:
        return hr_cuda_check_driver(device,
                                    device->driver->set_d32(at, fill->value, (size_t)(bytes / 4), native),
                                    error, "fill of 4-byte values");
    }
}

static hr_status fill_2d(hr_bdevice *device, cudaStream_t native, void *base, uint64_t height,
                         const hr_bfill *fill, hr_error *error)
{
    uint64_t pitch = fill->dst.row_pitch_bytes;
    if (height == 1 || pitch == fill->width_bytes) {
        return fill_1d(device, native, base, fill->width_bytes * height, fill, error);
    }
    bool in_pitch = pitch <= device->max_pitch_bytes && pitch % fill->value_bytes == 0;
    if (!in_pitch) {
        hr_cuda_count(device, HR_CUDA_ROW_CALLS,
                      "a pitch is over the device's limit or no multiple of the value");
        hr_status status = HR_OK;
        for (uint64_t y = 0; y < height && status == HR_OK; y++) {
            status = fill_1d(device, native, (char *)base + y * pitch, fill->width_bytes, fill, error);
        }
        return status;
    }
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)base;
    switch (fill->value_bytes) {
    case 1:
        return hr_cuda_check(device,
                             cudaMemset2DAsync(base, (size_t)pitch, (int)(fill->value & 0xFF),
                                               (size_t)fill->width_bytes, (size_t)height, native),
                             error, "fill of %" PRIu64 " rows of %" PRIu64 " bytes", height,
                             fill->width_bytes);
    case 2:
        return hr_cuda_check_driver(device,
                                    device->driver->set_2d_d16(at, (size_t)pitch, (unsigned short)fill->value,
                                                               (size_t)(fill->width_bytes / 2),
                                                               (size_t)height, native),
                                    error, "fill of rows of 2-byte values");
    default:
        return hr_cuda_check_driver(device,
                                    device->driver->set_2d_d32(at, (size_t)pitch, fill->value,
                                                               (size_t)(fill->width_bytes / 4),
                                                               (size_t)height, native),
                                    error, "fill of rows of 4-byte values");
    }
}

hr_status hr_cuda_fill_submit(hr_bdevice *device, cudaStream_t native, const hr_bfill *fill, hr_error *error)
{
    char *base = fill->dst.place == HR_PLACE_SYMBOL
                     ? (char *)fill->dst.symbol->address + fill->dst.offset_bytes
                     : fill->dst.base;
    if (fill->depth == 1 || fill->dst.slice_pitch_bytes == fill->dst.row_pitch_bytes * fill->height) {
        return fill_2d(device, native, base, fill->height * fill->depth, fill, error);
    }
    hr_status status = HR_OK;
    for (uint64_t z = 0; z < fill->depth && status == HR_OK; z++) {
        status = fill_2d(device, native, base + z * fill->dst.slice_pitch_bytes, fill->height, fill, error);
    }
    return status;
}

static hr_status check_fill(hr_bdevice *device, const hr_bfill *fill, hr_error *error)
{
    if (fill->dst.place == HR_PLACE_ARRAY) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "fill: the destination is an array: needs memory or a symbol");
    }
    if (fill->value_bytes != 1 && fill->value_bytes != 2 && fill->value_bytes != 4) {
        return hr_fail(error, HR_E_INVALID, "fill: values of %" PRIu32 " bytes: needs 1, 2 or 4",
                       fill->value_bytes);
    }
    uintptr_t base = fill->dst.place == HR_PLACE_SYMBOL
                         ? (uintptr_t)fill->dst.symbol->address + fill->dst.offset_bytes
                         : (uintptr_t)fill->dst.base;
    if (base % fill->value_bytes != 0) {
        return hr_fail(error, HR_E_INVALID,
                       "fill: the address %p is no multiple of the value's %" PRIu32 " bytes", (void *)base,
                       fill->value_bytes);
    }
    if (fill->dst.place == HR_PLACE_HOST) {
        uint64_t span = (fill->depth - 1) * fill->dst.slice_pitch_bytes +
                        (fill->height - 1) * fill->dst.row_pitch_bytes + fill->width_bytes;
        hr_memory_kind kind = hr_cuda_host_kind(device, fill->dst.base, span);
        if (kind != HR_MEMORY_PINNED && kind != HR_MEMORY_MANAGED) {
            return hr_fail(error, HR_E_UNSUPPORTED,
                           "fill: the destination is pageable host memory: needs device or pinned memory");
        }
    }
    return HR_OK;
}

hr_status hr_cuda_fill(hr_bstream *stream, const hr_bfill *fill, hr_error *error)
{
    hr_status status = hr_cuda_stream_ready(stream, error);
    if (status != HR_OK) {
        return status;
    }
    hr_cuda_scope scope;
    status = hr_cuda_enter(stream->device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    status = check_fill(stream->device, fill, error);
    if (status == HR_OK) {
        status = hr_cuda_stream_deferred(stream)
                     ? hr_cuda_defer_fill(stream, fill, error)
                     : hr_cuda_fill_submit(stream->device, stream->native, fill, error);
    }
    hr_cuda_leave(&scope);
    return status;
}
