/* SPDX-License-Identifier: Apache-2.0 */
/* The double's state: calls that are counted and made to fail, devices, contexts, memory. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double_state the_double = {.lock = PTHREAD_MUTEX_INITIALIZER,
                           .changed = PTHREAD_COND_INITIALIZER,
                           .devices = -1,
                           .host_pointers = true,
                           .capability = 90};

#define MAX_NAMES 160
#define MAX_PLANS 16
#define MAX_DEPTH 16

typedef struct call_count {
    const char *name;
    uint64_t since_mark;
} call_count;
static call_count counts[MAX_NAMES];

typedef struct plan {
    char name[64];
    unsigned left;
    int code;
} plan;
static plan plans[MAX_PLANS];

static _Thread_local cudaError_t last_error;
static _Thread_local int current_device;
static _Thread_local CUcontext pushed[MAX_DEPTH];
static _Thread_local int depth;
static struct CUctx_st contexts[DOUBLE_MAX_DEVICES] = {{0}, {1}, {2}, {3}};

static void add_plan(const char *name, unsigned n, int code)
{
    for (int i = 0; i < MAX_PLANS; i++) {
        if (plans[i].left == 0) {
            snprintf(plans[i].name, sizeof plans[i].name, "%s", name);
            plans[i].left = n;
            plans[i].code = code;
            return;
        }
    }
}

static void read_environment(void)
{
    if (the_double.devices >= 0) {
        return;
    }
    const char *devices = getenv("HR_CUDA_DOUBLE_DEVICES");
    the_double.devices = devices != NULL ? atoi(devices) : 2; // NOLINT(cert-err34-c)
    if (the_double.devices > DOUBLE_MAX_DEVICES) {
        the_double.devices = DOUBLE_MAX_DEVICES;
    }
    const char *peer = getenv("HR_CUDA_DOUBLE_PEER");
    if (peer != NULL) {
        the_double.peer = strcmp(peer, "none") == 0    ? HR_DOUBLE_PEER_NONE
                          : strcmp(peer, "drops") == 0 ? HR_DOUBLE_PEER_DROPS
                                                       : HR_DOUBLE_PEER_WORKS;
    }
    const char *delay = getenv("HR_CUDA_DOUBLE_DELAY_US");
    the_double.delay_us = delay != NULL ? (unsigned)atoi(delay) : 0; // NOLINT(cert-err34-c)
    const char *fail = getenv("HR_CUDA_DOUBLE_FAIL");
    while (fail != NULL && *fail != '\0') {
        char name[64];
        unsigned n;
        int code;
        if (sscanf(fail, "%63[^:]:%u:%d", name, &n, &code) == 3) { // NOLINT(cert-err34-c)
            add_plan(name, n, code);
        }
        fail = strchr(fail, ',');
        fail = fail != NULL ? fail + 1 : NULL;
    }
}

int double_current_device(void)
{
    return depth > 0 && pushed[depth - 1] != NULL ? pushed[depth - 1]->device : current_device;
}

static bool stays(int code)
{
    return code == 4 || code == 214 || code == 220 || code == 226 || code == 700 || code == 702 ||
           (code >= 709 && code <= 710) || (code >= 714 && code <= 719) || code == 721 || code == 911;
}

void double_kill_device(int device, int code)
{
    if (the_double.dead[device] == 0) {
        the_double.dead[device] = code;
        pthread_cond_broadcast(&the_double.changed);
    }
}

cudaError_t double_answer(cudaError_t code)
{
    if (code != cudaSuccess) {
        last_error = code;
    }
    return code;
}

cudaError_t double_enter(const char *name)
{
    pthread_mutex_lock(&the_double.lock);
    read_environment();
    for (int i = 0; i < MAX_NAMES; i++) {
        if (counts[i].name == NULL || strcmp(counts[i].name, name) == 0) {
            counts[i].name = name;
            counts[i].since_mark++;
            break;
        }
    }
    int device = double_current_device();
    int code = the_double.dead[device];
    for (int i = 0; i < MAX_PLANS && code == 0; i++) {
        /* How often events are asked depends on the clock. */
        bool any = strcmp(plans[i].name, "*") == 0 && strcmp(name, "cudaEventQuery") != 0;
        bool meant = any || strcmp(plans[i].name, name) == 0;
        if (plans[i].left > 0 && meant && --plans[i].left == 0) {
            code = plans[i].code;
            if (stays(code)) {
                double_kill_device(device, code);
            }
        }
    }
    pthread_mutex_unlock(&the_double.lock);
    return double_answer((cudaError_t)code);
}

void hr_double_fail(const char *name, unsigned n, int code)
{
    pthread_mutex_lock(&the_double.lock);
    read_environment();
    add_plan(name, n, code);
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_fail_work(unsigned n, int code)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.fail_work_in = n;
    the_double.fail_work_code = code;
    pthread_mutex_unlock(&the_double.lock);
}

uint64_t hr_double_calls(const char *name)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&the_double.lock);
    for (int i = 0; i < MAX_NAMES && counts[i].name != NULL; i++) {
        if (name == NULL || strcmp(counts[i].name, name) == 0) {
            sum += counts[i].since_mark;
        }
    }
    pthread_mutex_unlock(&the_double.lock);
    return sum;
}

void hr_double_mark(void)
{
    pthread_mutex_lock(&the_double.lock);
    for (int i = 0; i < MAX_NAMES; i++) {
        counts[i].since_mark = 0;
    }
    the_double.default_stream_calls = 0;
    the_double.pageable_calls = 0;
    the_double.blocking_streams = 0;
    the_double.device_waits = 0;
    pthread_mutex_unlock(&the_double.lock);
}

static uint64_t read_counter(const uint64_t *counter)
{
    pthread_mutex_lock(&the_double.lock);
    uint64_t value = *counter;
    pthread_mutex_unlock(&the_double.lock);
    return value;
}

uint64_t hr_double_default_stream_calls(void)
{
    return read_counter(&the_double.default_stream_calls);
}

uint64_t hr_double_pageable_calls(void)
{
    return read_counter(&the_double.pageable_calls);
}

uint64_t hr_double_blocking_streams(void)
{
    return read_counter(&the_double.blocking_streams);
}

uint64_t hr_double_device_waits(void)
{
    return read_counter(&the_double.device_waits);
}

void hr_double_set_peer(hr_double_peer peer)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.peer = peer;
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_set_pinned_limit(uint64_t bytes)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.pinned_limit = bytes;
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_set_device_limit(uint64_t bytes)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.device_limit = bytes;
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_set_delay_us(unsigned us)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.delay_us = us;
    pthread_mutex_unlock(&the_double.lock);
}

static void set_held(bool held)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.held = held;
    pthread_cond_broadcast(&the_double.changed);
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_hold(void)
{
    set_held(true);
}

void hr_double_let_go(void)
{
    set_held(false);
}

void double_note_product(uint64_t rows, uint64_t columns)
{
    pthread_mutex_lock(&the_double.lock);
    if (rows * columns > the_double.product_rows * the_double.product_columns) {
        the_double.product_rows = rows;
        the_double.product_columns = columns;
    }
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_largest_product(uint64_t *rows, uint64_t *columns)
{
    pthread_mutex_lock(&the_double.lock);
    *rows = the_double.product_rows;
    *columns = the_double.product_columns;
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_set_reads_pageable(bool reads)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.reads_pageable = reads;
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_set_host_pointers(bool same)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.host_pointers = same;
    pthread_mutex_unlock(&the_double.lock);
}

void hr_double_set_capability(int capability)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.capability = capability;
    pthread_mutex_unlock(&the_double.lock);
}

unsigned hr_double_reset(void)
{
    unsigned left = 0;
    pthread_mutex_lock(&the_double.lock);
    for (block **link = &the_double.blocks; *link != NULL;) {
        block *one = *link;
        if (one->kind == BLOCK_SYMBOL) {
            *link = one->next;
            free(one->base);
            free(one);
        } else {
            left++;
            link = &one->next;
        }
    }
    for (struct CUstream_st *s = the_double.streams; s != NULL; s = s->next) {
        left++;
    }
    left += the_double.events + the_double.arrays;
    memset(plans, 0, sizeof plans);
    memset(counts, 0, sizeof counts);
    memset(the_double.dead, 0, sizeof the_double.dead);
    memset(the_double.peer_enabled, 0, sizeof the_double.peer_enabled);
    the_double.peer = HR_DOUBLE_PEER_WORKS;
    the_double.pinned_limit = 0;
    the_double.device_limit = 0;
    the_double.delay_us = 0;
    the_double.held = false;
    the_double.fail_work_in = 0;
    the_double.product_rows = the_double.product_columns = 0;
    the_double.reads_pageable = false;
    the_double.host_pointers = true;
    the_double.capability = 90;
    the_double.default_stream_calls = 0;
    the_double.pageable_calls = 0;
    the_double.blocking_streams = 0;
    the_double.device_waits = 0;
    pthread_mutex_unlock(&the_double.lock);
    last_error = cudaSuccess;
    return left;
}

/* Errors and versions. */

HR_DOUBLE_API cudaError_t cudaGetLastError(void)
{
    pthread_mutex_lock(&the_double.lock);
    int dead = the_double.dead[double_current_device()];
    pthread_mutex_unlock(&the_double.lock);
    cudaError_t code = dead != 0 ? (cudaError_t)dead : last_error;
    last_error = cudaSuccess;
    return code;
}

HR_DOUBLE_API const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidValue:
        return "cudaErrorInvalidValue";
    case cudaErrorIllegalAddress:
        return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
        return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported:
        return "cudaErrorNotSupported";
    case cudaErrorUnknown:
        return "cudaErrorUnknown";
    default:
        return "cudaError";
    }
}

HR_DOUBLE_API const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "the double was told to fail, or found a mistake";
}

HR_DOUBLE_API cudaError_t cudaDriverGetVersion(int *version)
{
    ENTER();
    *version = 13000;
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaRuntimeGetVersion(int *version)
{
    ENTER();
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* Devices. */

HR_DOUBLE_API cudaError_t cudaGetDeviceCount(int *count)
{
    ENTER();
    *count = the_double.devices;
    return the_double.devices > 0 ? cudaSuccess : double_answer(cudaErrorNoDevice);
}

HR_DOUBLE_API cudaError_t cudaGetDevice(int *device)
{
    ENTER();
    *device = double_current_device();
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaSetDevice(int device)
{
    ENTER();
    if (device < 0 || device >= the_double.devices) {
        return double_answer(cudaErrorInvalidDevice);
    }
    current_device = device;
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    ENTER();
    if (device < 0 || device >= the_double.devices) {
        return double_answer(cudaErrorInvalidDevice);
    }
    switch (attribute) {
    case cudaDevAttrMaxPitch:
        *value = 1 << 20;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = 4;
        break;
    case cudaDevAttrL2CacheSize:
        *value = 1 << 20;
        break;
    case cudaDevAttrAsyncEngineCount:
        *value = 2;
        break;
    case cudaDevAttrTexturePitchAlignment:
        *value = 32;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = the_double.capability / 10;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = the_double.capability % 10;
        break;
    case cudaDevAttrPageableMemoryAccess:
        *value = the_double.reads_pageable;
        break;
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
        *value = the_double.host_pointers;
        break;
    default:
        return double_answer(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaDeviceGetPCIBusId(char *bus, int room, int device)
{
    ENTER();
    snprintf(bus, (size_t)room, "ffff:%02x:1f.7", device);
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    ENTER();
    *can = device != peer && the_double.peer != HR_DOUBLE_PEER_NONE;
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    ENTER();
    (void)flags;
    int device = double_current_device();
    pthread_mutex_lock(&the_double.lock);
    bool already = the_double.peer_enabled[device][peer];
    the_double.peer_enabled[device][peer] = true;
    pthread_mutex_unlock(&the_double.lock);
    return double_answer(already ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess);
}

/* The driver's functions, found by name. */

static CUresult ctx_get_current(CUcontext *context)
{
    *context = depth > 0 ? pushed[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext context)
{
    if (depth == MAX_DEPTH) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pushed[depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult ctx_pop(CUcontext *context)
{
    if (depth == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *context = pushed[--depth];
    return CUDA_SUCCESS;
}

static CUresult device_get(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

static CUresult device_name(char *name, int room, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)room, "Headrace test double");
    return CUDA_SUCCESS;
}

static CUresult primary_retain(CUcontext *context, CUdevice device)
{
    cudaError_t code = double_enter("cuDevicePrimaryCtxRetain");
    if (code != cudaSuccess) {
        return (CUresult)code;
    }
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

static CUresult pointer_attributes(unsigned int count, CUpointer_attribute *which, void **data,
                                   CUdeviceptr pointer)
{
    cudaError_t code = double_enter("cuPointerGetAttributes");
    if (code != cudaSuccess) {
        return (CUresult)code;
    }
    pthread_mutex_lock(&the_double.lock);
    const block *found = double_find((const void *)(uintptr_t)pointer, 1);
    for (unsigned int i = 0; i < count; i++) {
        switch (which[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(unsigned int *)data[i] = found == NULL ? 0
                                       : found->kind == BLOCK_HOSTALLOC || found->kind == BLOCK_REGISTERED
                                           ? (unsigned int)CU_MEMORYTYPE_HOST
                                           : (unsigned int)CU_MEMORYTYPE_DEVICE;
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *(unsigned int *)data[i] = 0;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(CUdeviceptr *)data[i] = found == NULL ? 0 : (CUdeviceptr)(uintptr_t)found->base;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)data[i] = found == NULL ? 0 : found->bytes;
            break;
        }
    }
    pthread_mutex_unlock(&the_double.lock);
    return CUDA_SUCCESS;
}

/* Rows of values of two or four bytes. */
typedef struct set_work {
    char *base;
    size_t pitch, width, height;
    unsigned value;
    size_t value_bytes;
} set_work;

static void run_set(void *argument)
{
    const set_work *set = argument;
    for (size_t y = 0; y < set->height; y++) {
        for (size_t x = 0; x < set->width; x++) {
            memcpy(set->base + y * set->pitch + x * set->value_bytes, &set->value, set->value_bytes);
        }
    }
}

static CUresult submit_set(const char *name, CUdeviceptr dst, size_t pitch, unsigned value,
                           size_t value_bytes, size_t width, size_t height, CUstream stream)
{
    cudaError_t code = double_enter(name);
    if (code != cudaSuccess) {
        return (CUresult)code;
    }
    set_work set = {(char *)(uintptr_t)dst, pitch, width, height, value, value_bytes};
    return (CUresult)double_submit(stream, run_set, &set, sizeof set);
}

static CUresult set_d16(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
    return submit_set("cuMemsetD16Async", dst, 0, value, 2, count, 1, stream);
}

static CUresult set_d32(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)
{
    return submit_set("cuMemsetD32Async", dst, 0, value, 4, count, 1, stream);
}

static CUresult set_2d_d16(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
                           CUstream stream)
{
    return submit_set("cuMemsetD2D16Async", dst, pitch, value, 2, width, height, stream);
}

static CUresult set_2d_d32(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
                           CUstream stream)
{
    return submit_set("cuMemsetD2D32Async", dst, pitch, value, 4, width, height, stream);
}

HR_DOUBLE_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                           unsigned int version, unsigned long long flags,
                                                           enum cudaDriverEntryPointQueryResult *result)
{
    ENTER();
    (void)version;
    (void)flags;
    const struct {
        const char *name;
        void (*function)(void);
    } known[] = {
        {"cuCtxGetCurrent", (void (*)(void))ctx_get_current},
        {"cuCtxPushCurrent", (void (*)(void))ctx_push},
        {"cuCtxPopCurrent", (void (*)(void))ctx_pop},
        {"cuDeviceGet", (void (*)(void))device_get},
        {"cuDeviceGetName", (void (*)(void))device_name},
        {"cuDevicePrimaryCtxRetain", (void (*)(void))primary_retain},
        {"cuDevicePrimaryCtxRelease", (void (*)(void))primary_release},
        {"cuPointerGetAttributes", (void (*)(void))pointer_attributes},
        {"cuMemsetD16Async", (void (*)(void))set_d16},
        {"cuMemsetD32Async", (void (*)(void))set_d32},
        {"cuMemsetD2D16Async", (void (*)(void))set_2d_d16},
        {"cuMemsetD2D32Async", (void (*)(void))set_2d_d32},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, symbol) == 0) {
            memcpy(function, &known[i].function, sizeof *function);
            *result = cudaDriverEntryPointSuccess;
            return cudaSuccess;
        }
    }
    *result = cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
