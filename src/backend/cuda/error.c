/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where CUDA's codes become Headrace's, and where it is decided that a device is lost. */
#include "backend/cuda/cuda_backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Codes after which every later call in the context answers the same: the context is dead. */
static bool stays(cudaError_t code)
{
    switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
    case cudaErrorCudartUnloading:
        return true;
    default:
        return false;
    }
}

static hr_status translate(cudaError_t code, hr_cuda_about about)
{
    switch (code) {
    case cudaErrorMemoryAllocation:
        return about == HR_CUDA_ABOUT_PINNED ? HR_E_PINNED_MEMORY : HR_E_DEVICE_MEMORY;
    case cudaErrorHostMemoryAlreadyRegistered:
    case cudaErrorHostMemoryNotRegistered:
        return HR_E_PINNED_MEMORY;
    case cudaErrorLaunchOutOfResources:
    case cudaErrorInvalidValue:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidSymbol:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidChannelDescriptor:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDeviceFunction:
        return HR_E_INVALID;
    case cudaErrorNotSupported:
    case cudaErrorNotPermitted:
    case cudaErrorOperatingSystem:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureWrongThread:
        return HR_E_UNSUPPORTED;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorDevicesUnavailable:
        return HR_E_NOT_FOUND;
    default:
        return stays(code) ? HR_E_DEVICE_LOST : HR_E_DEVICE;
    }
}

void hr_cuda_lose(hr_bdevice *device, cudaError_t code, const char *text)
{
    pthread_mutex_lock(&device->lock);
    if (atomic_load(&device->lost_code) == 0) {
        snprintf(device->lost_text, sizeof device->lost_text, "%s", text);
        atomic_store(&device->lost_code, (int)code);
    }
    pthread_mutex_unlock(&device->lock);
    hr_cuda_stager_wake(device);
}

hr_status hr_cuda_alive(hr_bdevice *device, hr_error *error)
{
    int code = atomic_load_explicit(&device->lost_code, memory_order_acquire);
    if (__builtin_expect(code == 0, 1)) {
        return HR_OK;
    }
    hr_status status = hr_fail(error, HR_E_DEVICE_LOST, "cuda:%d: the device was lost: %s", device->ordinal,
                               device->lost_text);
    if (error != NULL) {
        error->code = code;
    }
    return status;
}

/* A context that died answers this with what killed it; a living one answers success or not-ready. */
static bool context_is_dead(hr_bdevice *device, cudaError_t code)
{
    if (code != cudaErrorUnknown || device->own_stream == NULL) {
        return false;
    }
    cudaError_t again = cudaStreamQuery(device->own_stream);
    (void)cudaGetLastError();
    return again == code;
}

hr_status hr_cuda_check_about(hr_bdevice *device, cudaError_t code, hr_cuda_about about, hr_error *error,
                              const char *format, ...)
{
    if (code == cudaSuccess) {
        return HR_OK;
    }
    /* What does not stick must not be found by a later call of the user's. */
    (void)cudaGetLastError();
    if (code == cudaErrorNotReady) {
        return HR_PENDING;
    }
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);

    hr_status status = translate(code, about);
    if (device != NULL && (stays(code) || context_is_dead(device, code))) {
        char text[256];
        snprintf(text, sizeof text, "%.120s: %s (%d)", what, cudaGetErrorName(code), (int)code);
        hr_cuda_lose(device, code, text);
        status = HR_E_DEVICE_LOST;
    }
    hr_fail(error, status, "%s: %s (%d): %s", what, cudaGetErrorName(code), (int)code,
            cudaGetErrorString(code));
    if (error != NULL) {
        error->code = (int32_t)code;
    }
    return status;
}

hr_status hr_cuda_check_driver(hr_bdevice *device, CUresult code, hr_error *error, const char *what)
{
    /* The runtime's codes are the driver's numbers, save for the few below 100 that the driver also numbers
     * the same. */
    return code == CUDA_SUCCESS
               ? HR_OK
               : hr_cuda_check_about(device, (cudaError_t)code, HR_CUDA_ABOUT_DEVICE, error, "%s", what);
}

void hr_cuda_ignore(hr_bdevice *device, cudaError_t code)
{
    if (code != cudaSuccess) {
        (void)hr_cuda_check_about(device, code, HR_CUDA_ABOUT_DEVICE, NULL, "clean-up");
    }
}

void hr_cuda_count(hr_bdevice *device, hr_cuda_counter counter, const char *reason)
{
    atomic_fetch_add_explicit(&device->count[counter], 1, memory_order_relaxed);
    if (reason != NULL && device->reason[counter][0] == '\0') {
        pthread_mutex_lock(&device->lock);
        if (device->reason[counter][0] == '\0') {
            /* The first byte last, so that a reader sees an empty text or a whole one. */
            snprintf(device->reason[counter] + 1, HR_CUDA_REASON_BYTES - 1, "%s", reason + 1);
            atomic_thread_fence(memory_order_release);
            device->reason[counter][0] = reason[0];
        }
        pthread_mutex_unlock(&device->lock);
    }
}

size_t hr_cuda_counters(hr_bdevice *device, hr_counter *counters, size_t room)
{
    static const char *const names[HR_CUDA_COUNTERS] = {
        [HR_CUDA_STAGED_IN] = "copies from pageable memory, staged",
        [HR_CUDA_STAGED_OUT] = "copies to pageable memory, staged",
        [HR_CUDA_STAGED_HOST] = "copies from host to host, by threads",
        [HR_CUDA_STAGED_PEER] = "copies between devices, staged through host memory",
        [HR_CUDA_POOL_HOSTALLOC] = "host pools taken with cudaHostAlloc",
        [HR_CUDA_POOL_SMALLER] = "pools smaller than asked for",
        [HR_CUDA_ROW_CALLS] = "copies cut into a call for each row or slice",
        [HR_CUDA_SEGMENT_KERNEL] = "segment lists copied by a kernel",
        [HR_CUDA_SEGMENT_BATCH] = "segment lists copied by batched calls",
        [HR_CUDA_SEGMENT_CALLS] = "segment lists copied by a call for each segment",
        [HR_CUDA_DEFERRED] = "operations submitted later, behind a staged copy",
    };
    for (size_t i = 0; i < HR_CUDA_COUNTERS && i < room; i++) {
        counters[i].name = names[i];
        counters[i].count = atomic_load_explicit(&device->count[i], memory_order_relaxed);
        counters[i].reason = device->reason[i];
    }
    if (room > HR_CUDA_COUNTERS) {
        counters[HR_CUDA_COUNTERS] = (hr_counter){NULL, 0, NULL};
    }
    return HR_CUDA_COUNTERS;
}
