/* SPDX-License-Identifier: Apache-2.0 */
/* Whose context is current, and the driver's functions that it takes to say so. */
#include "backend/cuda/cuda_backend.h"

#include <string.h>

/* The ABI of the entry points asked for: the oldest that has them all. */
#define DRIVER_VERSION 12000

static hr_cuda_driver the_driver;
static hr_error driver_error;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void find_driver(void)
{
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
        {"cuCtxGetCurrent", &the_driver.ctx_get_current},
        {"cuCtxPushCurrent", &the_driver.ctx_push},
        {"cuCtxPopCurrent", &the_driver.ctx_pop},
        {"cuDeviceGet", &the_driver.device_get},
        {"cuDeviceGetName", &the_driver.device_name},
        {"cuDevicePrimaryCtxRetain", &the_driver.primary_retain},
        {"cuDevicePrimaryCtxRelease", &the_driver.primary_release},
        {"cuPointerGetAttributes", &the_driver.pointer_attributes},
        {"cuMemsetD16Async", &the_driver.set_d16},
        {"cuMemsetD32Async", &the_driver.set_d32},
        {"cuMemsetD2D16Async", &the_driver.set_2d_d16},
        {"cuMemsetD2D32Async", &the_driver.set_2d_d32},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *function = NULL;
        enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        cudaError_t code = cudaGetDriverEntryPointByVersion(wanted[i].name, &function, DRIVER_VERSION,
                                                            cudaEnableDefault, &found);
        if (code != cudaSuccess) {
            (void)hr_cuda_check(NULL, code, &driver_error, "CUDA driver: %s", wanted[i].name);
            return;
        }
        if (found != cudaDriverEntryPointSuccess || function == NULL) {
            hr_fail(&driver_error, HR_E_UNSUPPORTED, "CUDA driver: it has no %s of version %d",
                    wanted[i].name, DRIVER_VERSION);
            return;
        }
        memcpy(wanted[i].slot, &function, sizeof function);
    }
}

const hr_cuda_driver *hr_cuda_driver_get(hr_error *error)
{
    pthread_once(&driver_once, find_driver);
    if (driver_error.status != HR_OK) {
        if (error != NULL) {
            *error = driver_error;
        }
        return NULL;
    }
    return &the_driver;
}

void hr_cuda_enter_anyway(hr_bdevice *device, hr_cuda_scope *scope)
{
    CUcontext current = NULL;
    scope->driver = device->driver;
    scope->pushed =
        (device->driver->ctx_get_current(&current) != CUDA_SUCCESS || current != device->context) &&
        device->driver->ctx_push(device->context) == CUDA_SUCCESS;
}

hr_status hr_cuda_enter(hr_bdevice *device, hr_cuda_scope *scope, hr_error *error)
{
    hr_status status = hr_cuda_alive(device, error);
    if (status != HR_OK) {
        scope->pushed = false;
        return status;
    }
    CUcontext current = NULL;
    scope->driver = device->driver;
    scope->pushed = false;
    if (device->driver->ctx_get_current(&current) == CUDA_SUCCESS && current == device->context) {
        return HR_OK;
    }
    status =
        hr_cuda_check_driver(device, device->driver->ctx_push(device->context), error, "cuCtxPushCurrent");
    scope->pushed = status == HR_OK;
    return status;
}

void hr_cuda_leave(const hr_cuda_scope *scope)
{
    if (scope->pushed) {
        CUcontext popped;
        (void)scope->driver->ctx_pop(&popped);
    }
}
