/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays, and device variables by name. */
#include "backend/cuda/cuda_backend.h"

#include <headrace/dtype.h>
#include <inttypes.h>
#include <stdlib.h>

/* The channel format that the texture unit has for a dtype; false if it has none. */
static bool channel_format(hr_dtype dtype, uint32_t channels, struct cudaChannelFormatDesc *format)
{
    int bits;
    enum cudaChannelFormatKind kind;
    switch (dtype) {
    case HR_F16:
        bits = 16;
        kind = cudaChannelFormatKindFloat;
        break;
    case HR_F32:
        bits = 32;
        kind = cudaChannelFormatKindFloat;
        break;
    case HR_I8:
    case HR_I16:
    case HR_I32:
        bits = dtype == HR_I8 ? 8 : dtype == HR_I16 ? 16 : 32;
        kind = cudaChannelFormatKindSigned;
        break;
    case HR_U8:
    case HR_U16:
    case HR_U32:
        bits = dtype == HR_U8 ? 8 : dtype == HR_U16 ? 16 : 32;
        kind = cudaChannelFormatKindUnsigned;
        break;
    default:
        return false;
    }
    if (channels != 1 && channels != 2 && channels != 4) {
        return false;
    }
    *format = (struct cudaChannelFormatDesc){bits, channels >= 2 ? bits : 0, channels == 4 ? bits : 0,
                                             channels == 4 ? bits : 0, kind};
    return true;
}

hr_status hr_cuda_array_open(hr_bdevice *device, const hr_array_options *options, hr_barray **array,
                             hr_error *error)
{
    struct cudaChannelFormatDesc format;
    if (!channel_format(options->dtype, options->channels, &format)) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "array: %" PRIu32
                       " channels of dtype %d: CUDA has arrays of 1, 2 or 4 channels of f16, "
                       "f32 and integers of up to 32 bits",
                       options->channels, (int)options->dtype);
    }
    hr_barray *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "array: its description could not be had");
    }
    *made = (hr_barray){.device = device,
                        .element_bytes = (uint64_t)format.x / 8 * options->channels,
                        .width = options->width,
                        .height = options->height,
                        .depth = options->depth,
                        .layered = options->layered};
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status == HR_OK) {
        struct cudaExtent extent = {(size_t)options->width, (size_t)options->height, (size_t)options->depth};
        status = hr_cuda_check(device,
                               cudaMalloc3DArray(&made->native, &format, extent,
                                                 options->layered ? cudaArrayLayered : cudaArrayDefault),
                               error, "array of %" PRIu64 " × %" PRIu64 " × %" PRIu64 " elements",
                               options->width, options->height, options->depth);
        hr_cuda_leave(&scope);
    }
    if (status != HR_OK) {
        free(made);
        return status;
    }
    *array = made;
    return HR_OK;
}

void hr_cuda_array_close(hr_bdevice *device, hr_barray *array)
{
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(device, &scope);
    hr_cuda_ignore(device, cudaFreeArray(array->native));
    hr_cuda_leave(&scope);
    free(array);
}

/*
 * The address may be what C sees of a __device__ variable, if the CUDA runtime that the variable was
 * registered with is this module's; a program that has its own copy of the runtime asks that one
 * (cudaGetSymbolAddress) and hands over the address on the device. Both are tried.
 */
static hr_status find_address(hr_bdevice *device, const char *name, const void *address, uint64_t bytes,
                              void **found, hr_error *error)
{
    if (hr_cuda_host_kind(device, address, bytes) == HR_MEMORY_DEVICE) {
        *found = (void *)(uintptr_t)address;
        return HR_OK;
    }
    void *shadowed = NULL;
    size_t size = 0;
    hr_status status =
        hr_cuda_check(device, cudaGetSymbolAddress(&shadowed, address), error, "symbol %s", name);
    if (status == HR_OK) {
        status = hr_cuda_check(device, cudaGetSymbolSize(&size, address), error, "symbol %s", name);
    }
    if (status != HR_OK) {
        return status;
    }
    if (size < bytes) {
        return hr_fail(error, HR_E_RANGE, "symbol %s: %" PRIu64 " bytes asked for, the variable has %zu",
                       name, bytes, size);
    }
    *found = shadowed;
    return HR_OK;
}

hr_status hr_cuda_symbol_define(hr_bdevice *device, const char *name, const void *address, uint64_t bytes,
                                hr_bsymbol **symbol, hr_error *error)
{
    hr_bsymbol *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "symbol %s: its description could not be had", name);
    }
    *made = (hr_bsymbol){.device = device, .bytes = bytes};
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status == HR_OK) {
        if (address != NULL) {
            status = find_address(device, name, address, bytes, &made->address, error);
        } else {
            made->owned = true;
            status =
                hr_cuda_check(device, cudaMalloc(&made->address, (size_t)bytes), error, "symbol %s", name);
        }
        hr_cuda_leave(&scope);
    }
    if (status != HR_OK) {
        free(made);
        return status;
    }
    *symbol = made;
    return HR_OK;
}

void hr_cuda_symbol_close(hr_bdevice *device, hr_bsymbol *symbol)
{
    if (symbol->owned) {
        hr_cuda_scope scope;
        hr_cuda_enter_anyway(device, &scope);
        hr_cuda_ignore(device, cudaFree(symbol->address));
        hr_cuda_leave(&scope);
    }
    free(symbol);
}
