/* SPDX-License-Identifier: Apache-2.0 */
/* The backend's table: which devices there are, opening and closing one, what it says of itself. */
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/op_launchers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hr_status probe(uint32_t *count, hr_error *error)
{
    int found = 0;
    cudaError_t code = cudaGetDeviceCount(&found);
    if (code == cudaErrorInsufficientDriver) {
        (void)cudaGetLastError();
        int driver = 0;
        if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0) {
            return hr_fail(error, HR_E_NOT_FOUND, "the NVIDIA driver is for CUDA %d.%d: needs %d.%d or later",
                           driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                           CUDART_VERSION % 1000 / 10);
        }
        return hr_fail(error, HR_E_NOT_FOUND, "no NVIDIA driver is installed (libcuda.so.1)");
    }
    hr_status status = hr_cuda_check(NULL, code, error, "counting the devices");
    if (status == HR_OK && found == 0) {
        status = hr_fail(error, HR_E_NOT_FOUND, "the NVIDIA driver sees no device");
    }
    if (status == HR_OK) {
        *count = (uint32_t)found;
    }
    return status;
}

static hr_status spec_at(uint32_t index, char *spec, size_t room)
{
    int found = 0;
    if (cudaGetDeviceCount(&found) != cudaSuccess) {
        (void)cudaGetLastError();
        return HR_E_NOT_FOUND;
    }
    if (index >= (uint32_t)found) {
        return HR_E_NOT_FOUND;
    }
    snprintf(spec, room, "cuda:%" PRIu32, index);
    return HR_OK;
}

/* "" is the first; else ":" and a number. */
static hr_status parse_ordinal(const char *rest, int *ordinal, hr_error *error)
{
    *ordinal = 0;
    if (rest[0] == '\0') {
        return HR_OK;
    }
    char *end = NULL;
    long value = rest[0] == ':' && rest[1] >= '0' && rest[1] <= '9' ? strtol(rest + 1, &end, 10) : -1;
    if (value < 0 || value > 9999 || *end != '\0') {
        return hr_fail(error, HR_E_INVALID, "device cuda%s: needs a number after \"cuda:\"", rest);
    }
    *ordinal = (int)value;
    return HR_OK;
}

static int attribute(hr_bdevice *device, enum cudaDeviceAttr which)
{
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, device->ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return value;
}

static void read_attributes(hr_bdevice *device)
{
    device->topology = hr_topology_open();
    device->numa_node = hr_cuda_numa_node(device->ordinal);
    device->multiprocessors = attribute(device, cudaDevAttrMultiProcessorCount);
    int pitch = attribute(device, cudaDevAttrMaxPitch);
    device->max_pitch_bytes = pitch > 0 ? (uint64_t)pitch : INT32_MAX;
    device->host_pointers_work = attribute(device, cudaDevAttrCanUseHostPointerForRegisteredMem) != 0;
    device->reads_pageable = attribute(device, cudaDevAttrPageableMemoryAccess) != 0;
}

/* Blocks for long lists of segments; without them lists travel as arguments, in more launches. */
static void take_list_blocks(hr_bdevice *device)
{
    uint64_t block_bytes = HR_CUDA_LIST_SEGMENTS * sizeof(hr_segment);
    device->list_memory = (hr_bmemory){
        .kind = HR_MEMORY_PINNED, .bytes = HR_CUDA_LIST_BLOCKS * block_bytes, .touch_threads = 1};
    device->list_on_device = (hr_bmemory){.kind = HR_MEMORY_DEVICE, .bytes = device->list_memory.bytes};
    if (hr_cuda_memory_take(device, &device->list_memory, NULL) != HR_OK ||
        hr_cuda_memory_take(device, &device->list_on_device, NULL) != HR_OK) {
        return;
    }
    for (int i = 0; i < HR_CUDA_LIST_BLOCKS; i++) {
        cudaEvent_t event = NULL;
        cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        if (code != cudaSuccess) {
            hr_cuda_ignore(device, code);
            return;
        }
        device->list_block[i].event = event;
        device->list_block[i].segments =
            (hr_segment *)(void *)((char *)device->list_memory.base + (uint64_t)i * block_bytes);
        device->list_block[i].on_device =
            (hr_segment *)(void *)((char *)device->list_on_device.base + (uint64_t)i * block_bytes);
    }
}

static void release_list_blocks(hr_bdevice *device)
{
    for (int i = 0; i < HR_CUDA_LIST_BLOCKS; i++) {
        if (device->list_block[i].segments != NULL) {
            hr_cuda_ignore(device, cudaEventDestroy(device->list_block[i].event));
        }
    }
    hr_bmemory *both[2] = {&device->list_memory, &device->list_on_device};
    for (int i = 0; i < 2; i++) {
        if (both[i]->backend_data != NULL) {
            hr_cuda_memory_release(device, both[i]);
        }
    }
}

static void close_device(hr_bdevice *device)
{
    hr_cuda_stager_close(device);
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(device, &scope);
    if (device->own_stream != NULL) {
        hr_cuda_ignore(device, cudaStreamSynchronize(device->own_stream));
    }
    release_list_blocks(device);
    hr_cuda_events_free(device);
    hr_cuda_epochs_free(device);
    if (device->own_stream != NULL) {
        hr_cuda_ignore(device, cudaStreamDestroy(device->own_stream));
    }
    hr_cuda_leave(&scope);
    (void)device->driver->primary_release(device->handle);
    hr_topology_close(device->topology);
    pthread_mutex_destroy(&device->making);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* With the context retained: what else the device needs. */
static hr_status furnish(hr_bdevice *device, hr_error *error)
{
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    read_attributes(device);
    status = hr_cuda_check(device, cudaStreamCreateWithFlags(&device->own_stream, cudaStreamNonBlocking),
                           error, "device cuda:%d: its own stream", device->ordinal);
    if (status == HR_OK) {
        take_list_blocks(device);
        status = hr_cuda_alive(device, error);
    }
    hr_cuda_leave(&scope);
    return status;
}

/* Older devices have no code here, and every launch would fail. */
static hr_status check_generation(int ordinal, hr_error *error)
{
    int major = 0;
    int minor = 0;
    hr_status status =
        hr_cuda_check(NULL, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), error,
                      "device cuda:%d: its compute capability", ordinal);
    if (status != HR_OK || major >= 8) {
        return status;
    }
    if (cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return hr_fail(error, HR_E_UNSUPPORTED,
                   "device cuda:%d: compute capability %d.%d, Headrace needs 8.0 or newer", ordinal, major,
                   minor);
}

static void product_block(hr_bdevice *device, hr_dtype dtype, uint32_t *rows, uint32_t *columns)
{
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(device, &scope);
    hr_cuda_op_product_block(dtype, rows, columns);
    hr_cuda_leave(&scope);
}

static const hr_device_ops the_ops;

hr_status hr_cuda_device_open(const char *rest, hr_bdevice **device, const hr_device_ops **ops,
                              hr_error *error)
{
    int ordinal;
    uint32_t count;
    hr_status status = parse_ordinal(rest, &ordinal, error);
    if (status == HR_OK) {
        status = probe(&count, error);
    }
    if (status != HR_OK) {
        return status;
    }
    if ((uint32_t)ordinal >= count) {
        return hr_fail(error, HR_E_NOT_FOUND, "device cuda:%d: there are %" PRIu32 ", from cuda:0", ordinal,
                       count);
    }
    status = check_generation(ordinal, error);
    if (status != HR_OK) {
        return status;
    }
    const hr_cuda_driver *driver = hr_cuda_driver_get(error);
    if (driver == NULL) {
        return error != NULL ? error->status : HR_E_UNSUPPORTED;
    }
    hr_bdevice *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "device cuda:%d: its description could not be had", ordinal);
    }
    made->ordinal = ordinal;
    made->driver = driver;
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->making, NULL);
    status = hr_cuda_check_driver(NULL, driver->device_get(&made->handle, ordinal), error, "cuDeviceGet");
    if (status == HR_OK) {
        status = hr_cuda_check_driver(NULL, driver->primary_retain(&made->context, made->handle), error,
                                      "making the device's context");
    }
    if (status != HR_OK) {
        pthread_mutex_destroy(&made->making);
        pthread_mutex_destroy(&made->lock);
        free(made);
        return status;
    }
    if (driver->device_name(made->name, (int)sizeof made->name, made->handle) != CUDA_SUCCESS) {
        snprintf(made->name, sizeof made->name, "CUDA device %d", ordinal);
    }
    status = furnish(made, error);
    if (status != HR_OK) {
        close_device(made);
        return status;
    }
    *device = made;
    *ops = &the_ops;
    return HR_OK;
}

static hr_status info(hr_bdevice *device, hr_device_info *out, hr_error *error)
{
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    status = hr_cuda_check(device, cudaMemGetInfo(&free_bytes, &total_bytes), error, "cuda:%d: its memory",
                           device->ordinal);
    int driver = 0;
    int runtime = 0;
    hr_cuda_ignore(device, cudaDriverGetVersion(&driver));
    hr_cuda_ignore(device, cudaRuntimeGetVersion(&runtime));
    hr_cuda_leave(&scope);
    if (status != HR_OK) {
        return status;
    }
    size_t size = out->size;
    *out =
        (hr_device_info){.size = size,
                         .kind = HR_DEVICE_CUDA,
                         .memory_bytes = total_bytes,
                         .memory_free_bytes = free_bytes,
                         .compute_units = (uint32_t)device->multiprocessors,
                         .copy_engines = (uint32_t)attribute(device, cudaDevAttrAsyncEngineCount),
                         .capability_major = (uint32_t)attribute(device, cudaDevAttrComputeCapabilityMajor),
                         .capability_minor = (uint32_t)attribute(device, cudaDevAttrComputeCapabilityMinor),
                         .numa_node = device->numa_node,
                         .pitch_align_bytes = (uint64_t)attribute(device, cudaDevAttrTexturePitchAlignment),
                         .l2_bytes = (uint64_t)attribute(device, cudaDevAttrL2CacheSize)};
    snprintf(out->spec, sizeof out->spec, "cuda:%d", device->ordinal);
    snprintf(out->name, sizeof out->name, "%s", device->name);
    snprintf(out->driver, sizeof out->driver, "%d.%d", driver / 1000, driver % 1000 / 10);
    snprintf(out->runtime_version, sizeof out->runtime_version, "%d.%d", runtime / 1000, runtime % 1000 / 10);
    hr_cuda_pcie_link(device->ordinal, &out->pcie_generation, &out->pcie_width);
    return HR_OK;
}

static hr_launch_fn find_launcher(hr_bdevice *device, const char *op_name)
{
    (void)device;
    return hr_cuda_op_launcher(op_name);
}

static const hr_device_ops the_ops = {
    .close = close_device,
    .info = info,
    .counters = hr_cuda_counters,
    .memory_take = hr_cuda_memory_take,
    .memory_release = hr_cuda_memory_release,
    .memory_kind = hr_cuda_memory_kind,
    .array_open = hr_cuda_array_open,
    .array_close = hr_cuda_array_close,
    .symbol_define = hr_cuda_symbol_define,
    .symbol_close = hr_cuda_symbol_close,
    .stream_open = hr_cuda_stream_open,
    .stream_close = hr_cuda_stream_close,
    .stream_query = hr_cuda_stream_query,
    .stream_wait = hr_cuda_stream_wait,
    .stream_cancel = hr_cuda_stream_cancel,
    .stream_native = hr_cuda_stream_native,
    .event_open = hr_cuda_event_open,
    .event_close = hr_cuda_event_close,
    .event_record = hr_cuda_event_record,
    .stream_wait_event = hr_cuda_stream_wait_event,
    .event_query = hr_cuda_event_query,
    .event_wait = hr_cuda_event_wait,
    .timer_open = hr_cuda_timer_open,
    .timer_close = hr_cuda_timer_close,
    .timer_record = hr_cuda_timer_record,
    .timer_read = hr_cuda_timer_read,
    .copy = hr_cuda_copy,
    .fill = hr_cuda_fill,
    .launch = hr_cuda_launch,
    .find_launcher = find_launcher,
    .product_block = product_block,
};

static const hr_backend the_backend = {
    .abi = HR_BACKEND_ABI,
    .name = "cuda",
    .dies_on_fork = true,
    .probe = probe,
    .spec_at = spec_at,
    .open = hr_cuda_device_open,
    .bench = hr_cuda_bench,
};

HR_API const hr_backend *hr_backend_module(void);
const hr_backend *hr_backend_module(void)
{
    return &the_backend;
}
