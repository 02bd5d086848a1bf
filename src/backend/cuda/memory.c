/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that pools hand out. Pinned memory is mapped, touched by many threads and then registered, which
 * takes a tenth of the time of cudaHostAlloc(); that call is the way out where registration is refused
 * (confidential computing, some containers). Never write-combined: pools hold data that comes back.
 */
#include "backend/cuda/cuda_backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One registration of 512 GiB or more fails on drivers seen; pieces keep far away from that. */
#define PIECE_BYTES ((uint64_t)64 << 30)
#define PAGE_BYTES  ((uint64_t)4096)

typedef enum taken_how { TAKEN_DEVICE, TAKEN_PAGES, TAKEN_REGISTERED, TAKEN_HOSTALLOC } taken_how;

typedef struct taken {
    taken_how how;
    void *base;
    hr_host_memory pages; /* of ordinary and registered memory */
    uint64_t registered_bytes;
    int range; /* in the device's table, or -1 */
} taken;

static int remember_range(hr_bdevice *device, const void *base, uint64_t bytes)
{
    pthread_mutex_lock(&device->lock);
    int found = -1;
    for (int i = 0; i < HR_CUDA_RANGES && found < 0; i++) {
        if (atomic_load(&device->range[i].end) == 0) {
            atomic_store(&device->range[i].base, (uintptr_t)base);
            atomic_store_explicit(&device->range[i].end, (uintptr_t)base + bytes, memory_order_release);
            found = i;
            if (i >= atomic_load(&device->ranges)) {
                atomic_store_explicit(&device->ranges, i + 1, memory_order_release);
            }
        }
    }
    pthread_mutex_unlock(&device->lock);
    return found;
}

static void forget_range(hr_bdevice *device, int index)
{
    if (index >= 0) {
        pthread_mutex_lock(&device->lock);
        atomic_store(&device->range[index].end, 0);
        atomic_store(&device->range[index].base, 0);
        pthread_mutex_unlock(&device->lock);
    }
}

static bool in_own_range(hr_bdevice *device, uintptr_t base, uint64_t bytes)
{
    int ranges = atomic_load_explicit(&device->ranges, memory_order_acquire);
    for (int i = 0; i < ranges; i++) {
        uintptr_t end = atomic_load_explicit(&device->range[i].end, memory_order_acquire);
        if (base < end && base >= atomic_load_explicit(&device->range[i].base, memory_order_relaxed)) {
            return bytes <= end - base;
        }
    }
    return false;
}

static void unregister_pieces(hr_bdevice *device, char *base, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
        hr_cuda_ignore(device, cudaHostUnregister(base + at));
    }
}

static hr_status register_pieces(hr_bdevice *device, char *base, uint64_t bytes, hr_error *error)
{
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
        uint64_t piece = hr_min_u64(PIECE_BYTES, bytes - at);
        cudaError_t code =
            cudaHostRegister(base + at, (size_t)piece, cudaHostRegisterPortable | cudaHostRegisterMapped);
        if (code != cudaSuccess) {
            unregister_pieces(device, base, at);
            return hr_cuda_check_about(device, code, HR_CUDA_ABOUT_PINNED, error,
                                       "host pinned memory: registering %" PRIu64 " bytes", bytes);
        }
    }
    return HR_OK;
}

/* Ordinary memory near the device, touched by many threads. */
static hr_status take_pages(hr_bdevice *device, const hr_bmemory *memory, uint64_t bytes, uint64_t least,
                            taken *it, hr_error *error)
{
    hr_host_request request = {.what =
                                   memory->kind == HR_MEMORY_PINNED ? "host pinned memory" : "host memory",
                               .bytes = bytes,
                               .minimum_bytes = least,
                               .touch_threads = memory->touch_threads,
                               .no_huge_pages = memory->no_huge_pages,
                               .topology = device->topology,
                               .numa_node = device->numa_node};
    hr_status status = hr_host_memory_take(&request, &it->pages, error);
    if (status == HR_OK) {
        it->base = it->pages.base;
    }
    return status;
}

static hr_status take_registered(hr_bdevice *device, const hr_bmemory *memory, uint64_t bytes, taken *it,
                                 hr_error *error)
{
    hr_status status = take_pages(device, memory, bytes, bytes, it, error);
    if (status != HR_OK) {
        return status;
    }
    /* Whole pages: registration works on nothing smaller, and rounding is then not left to the driver. */
    it->registered_bytes = hr_round_up(bytes, PAGE_BYTES);
    status = register_pieces(device, it->base, it->registered_bytes, error);
    if (status != HR_OK) {
        hr_host_memory_release(&it->pages);
        return status;
    }
    it->how = TAKEN_REGISTERED;
    return HR_OK;
}

static hr_status take_hostalloc(hr_bdevice *device, uint64_t bytes, taken *it, hr_error *error)
{
    void *base = NULL;
    cudaError_t code = cudaHostAlloc(&base, (size_t)bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    if (code != cudaSuccess) {
        return hr_cuda_check_about(device, code, HR_CUDA_ABOUT_PINNED, error,
                                   "host pinned memory: allocating %" PRIu64 " bytes", bytes);
    }
    it->how = TAKEN_HOSTALLOC;
    it->base = base;
    return HR_OK;
}

/* Registration, then allocation. *why says what the first was refused with. Memory that is not there is no
 * reason to ask again in another way. */
static hr_status take_pinned_exactly(hr_bdevice *device, const hr_bmemory *memory, uint64_t bytes, taken *it,
                                     hr_error *why, hr_error *error)
{
    hr_status status = take_registered(device, memory, bytes, it, why);
    if (status == HR_E_HOST_MEMORY) {
        status = HR_E_PINNED_MEMORY;
        why->status = status;
    } else if (status != HR_E_DEVICE_LOST) {
        return status == HR_OK ? HR_OK : take_hostalloc(device, bytes, it, error);
    }
    *error = *why;
    return status;
}

static void tell_pinned_fallback(hr_bdevice *device, hr_bmemory *memory, const taken *it, const hr_error *why,
                                 const hr_error *refused)
{
    if (memory->got_bytes < memory->bytes) {
        snprintf(memory->fallback, sizeof memory->fallback, "%" PRIu64 " of %" PRIu64 " bytes: %.120s",
                 memory->got_bytes, memory->bytes, refused->text[0] != '\0' ? refused->text : why->text);
        hr_cuda_count(device, HR_CUDA_POOL_SMALLER, memory->fallback);
    }
    if (it->how == TAKEN_HOSTALLOC) {
        hr_cuda_count(device, HR_CUDA_POOL_HOSTALLOC, why->text);
        if (memory->fallback[0] == '\0') {
            snprintf(memory->fallback, sizeof memory->fallback, "taken with cudaHostAlloc: %.150s",
                     why->text);
        }
    }
}

/* Goes down by halves from what was asked for to what is needed at least. */
static hr_status take_pinned(hr_bdevice *device, hr_bmemory *memory, taken *it, hr_error *error)
{
    uint64_t least = memory->minimum_bytes == 0 ? memory->bytes : memory->minimum_bytes;
    uint64_t bytes = memory->bytes;
    hr_error why = HR_ERROR_INIT;
    hr_error refused = HR_ERROR_INIT;
    hr_status status;
    while ((status = take_pinned_exactly(device, memory, bytes, it, &why, &refused)) != HR_OK) {
        if (status == HR_E_DEVICE_LOST || bytes <= least) {
            if (error != NULL) {
                *error = refused;
            }
            return status;
        }
        bytes = hr_max_u64(least, hr_round_up(bytes / 2, PAGE_BYTES));
    }
    memory->got_bytes = bytes;
    tell_pinned_fallback(device, memory, it, &why, &refused);
    return HR_OK;
}

static hr_status take_device(hr_bdevice *device, hr_bmemory *memory, taken *it, hr_error *error)
{
    uint64_t least = memory->minimum_bytes == 0 ? memory->bytes : memory->minimum_bytes;
    uint64_t bytes = memory->bytes;
    hr_error refused = HR_ERROR_INIT;
    for (;;) {
        void *base = NULL;
        hr_status status = hr_cuda_check(device, cudaMalloc(&base, (size_t)bytes), &refused,
                                         "device memory: allocating %" PRIu64 " bytes", bytes);
        if (status == HR_OK) {
            it->how = TAKEN_DEVICE;
            it->base = base;
            memory->got_bytes = bytes;
            break;
        }
        if (status != HR_E_DEVICE_MEMORY || bytes <= least) {
            if (error != NULL) {
                *error = refused;
            }
            return status;
        }
        bytes = hr_max_u64(least, hr_round_up(bytes / 2, PAGE_BYTES));
    }
    if (bytes < memory->bytes) {
        snprintf(memory->fallback, sizeof memory->fallback, "%" PRIu64 " of %" PRIu64 " bytes: %.120s", bytes,
                 memory->bytes, refused.text);
        hr_cuda_count(device, HR_CUDA_POOL_SMALLER, memory->fallback);
    }
    return HR_OK;
}

static hr_status take_pageable(hr_bdevice *device, hr_bmemory *memory, taken *it, hr_error *error)
{
    uint64_t least = memory->minimum_bytes == 0 ? memory->bytes : memory->minimum_bytes;
    hr_status status = take_pages(device, memory, memory->bytes, least, it, error);
    if (status == HR_OK) {
        it->how = TAKEN_PAGES;
        memory->got_bytes = it->pages.bytes;
        snprintf(memory->fallback, sizeof memory->fallback, "%s", it->pages.fallback);
    }
    return status;
}

hr_status hr_cuda_memory_take(hr_bdevice *device, hr_bmemory *memory, hr_error *error)
{
    taken *it = calloc(1, sizeof *it);
    if (it == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pool: its description: %zu bytes could not be had",
                       sizeof *it);
    }
    it->range = -1;
    memory->fallback[0] = '\0';
    memory->huge_bytes = 0;
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status == HR_OK) {
        switch (memory->kind) {
        case HR_MEMORY_PINNED:
            status = take_pinned(device, memory, it, error);
            break;
        case HR_MEMORY_DEVICE:
            status = take_device(device, memory, it, error);
            break;
        case HR_MEMORY_PAGEABLE:
            status = take_pageable(device, memory, it, error);
            break;
        default:
            status = hr_fail(error, HR_E_INVALID,
                             "pool: memory kind %d: needs pageable, pinned or device memory", memory->kind);
        }
        hr_cuda_leave(&scope);
    }
    if (status != HR_OK) {
        free(it);
        return status;
    }
    if (it->how == TAKEN_REGISTERED || it->how == TAKEN_HOSTALLOC) {
        it->range = remember_range(device, it->base, memory->got_bytes);
    }
    memory->huge_bytes = it->pages.huge_bytes;
    memory->base = it->base;
    memory->backend_data = it;
    return HR_OK;
}

void hr_cuda_memory_release(hr_bdevice *device, hr_bmemory *memory)
{
    taken *it = memory->backend_data;
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(device, &scope);
    forget_range(device, it->range);
    switch (it->how) {
    case TAKEN_DEVICE:
        hr_cuda_ignore(device, cudaFree(it->base));
        break;
    case TAKEN_HOSTALLOC:
        hr_cuda_ignore(device, cudaFreeHost(it->base));
        break;
    case TAKEN_REGISTERED:
        unregister_pieces(device, it->base, it->registered_bytes);
        break;
    case TAKEN_PAGES:
        break;
    }
    hr_cuda_leave(&scope);
    hr_host_memory_release(&it->pages);
    free(it);
    memory->backend_data = NULL;
    memory->base = NULL;
}

/* What the driver knows of the address: its kind, and up to where it is the same allocation. */
typedef struct seen {
    hr_memory_kind kind;
    uintptr_t end; /* one past the allocation, or 0 if it did not say */
} seen;

static seen look(hr_bdevice *device, uintptr_t at)
{
    unsigned int type = 0;
    unsigned int managed = 0;
    CUdeviceptr start = 0;
    size_t size = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *data[] = {&type, &managed, &start, &size};
    seen found = {HR_MEMORY_PAGEABLE, 0};
    if (device->driver->pointer_attributes(4, which, data, (CUdeviceptr)at) != CUDA_SUCCESS) {
        return found;
    }
    if (managed != 0) {
        found.kind = HR_MEMORY_MANAGED;
    } else if (type == CU_MEMORYTYPE_HOST) {
        found.kind = HR_MEMORY_PINNED;
    } else if (type == CU_MEMORYTYPE_DEVICE) {
        found.kind = HR_MEMORY_DEVICE;
    }
    if (size != 0 && at >= (uintptr_t)start && at - (uintptr_t)start < size) {
        found.end = (uintptr_t)start + size;
    }
    return found;
}

/* Where the next look should be: past the allocation if its end is known, else on the next page. */
static uintptr_t next_look(seen found, uintptr_t at)
{
    return found.end > at ? found.end : (at & ~(uintptr_t)(PAGE_BYTES - 1)) + PAGE_BYTES;
}

/* Does memory of the kind that was seen at the first byte reach to the end? */
static bool same_throughout(hr_bdevice *device, uintptr_t base, uint64_t bytes, seen first)
{
    uintptr_t end = base + bytes;
    seen found = first;
    for (uintptr_t at = next_look(found, base); at < end; at = next_look(found, at)) {
        found = look(device, at);
        if (found.kind != first.kind) {
            return false;
        }
    }
    return true;
}

hr_memory_kind hr_cuda_host_kind(hr_bdevice *device, const void *base, uint64_t bytes)
{
    if (in_own_range(device, (uintptr_t)base, bytes)) {
        return HR_MEMORY_PINNED;
    }
    seen first = look(device, (uintptr_t)base);
    if (first.kind == HR_MEMORY_PAGEABLE || bytes == 0) {
        return first.kind;
    }
    return same_throughout(device, (uintptr_t)base, bytes, first) ? first.kind : HR_MEMORY_MIXED;
}

/* Pageable memory has no ends that the driver would tell: its pages are looked at, more of them than a quick
 * answer allows only in strides. */
#define MOST_LOOKS 16384

hr_status hr_cuda_memory_kind(hr_bdevice *device, const void *base, uint64_t bytes, hr_memory_kind *kind)
{
    hr_memory_kind found = hr_cuda_host_kind(device, base, bytes);
    if (found == HR_MEMORY_PAGEABLE && bytes > 0) {
        uintptr_t end = (uintptr_t)base + bytes;
        uint64_t stride = hr_max_u64(PAGE_BYTES, hr_round_up(bytes / MOST_LOOKS, PAGE_BYTES));
        if (look(device, end - 1).kind != HR_MEMORY_PAGEABLE) {
            found = HR_MEMORY_MIXED;
        }
        for (uintptr_t at = ((uintptr_t)base & ~(uintptr_t)(PAGE_BYTES - 1)) + stride;
             found == HR_MEMORY_PAGEABLE && at < end; at += stride) {
            if (look(device, at).kind != HR_MEMORY_PAGEABLE) {
                found = HR_MEMORY_MIXED;
            }
        }
    }
    *kind = found;
    return HR_OK;
}
