/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the CPU devices: all of it is the host's, and the device keeps books of what is which. */
#include "backend/cpu/internal.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes `bytes` off the device's budget, or as much as is left if that is at least `minimum`. */
static hr_status reserve(hr_bdevice *device, uint64_t bytes, uint64_t minimum, uint64_t *got, hr_error *error)
{
    if (device->options.memory_bytes == 0) {
        *got = bytes;
        return HR_OK;
    }
    pthread_mutex_lock(&device->lock);
    uint64_t left = device->options.memory_bytes - device->used_bytes;
    uint64_t take = hr_min_u64(bytes, left);
    bool enough = take >= minimum && take > 0;
    if (enough) {
        device->used_bytes += take;
    }
    pthread_mutex_unlock(&device->lock);
    if (!enough) {
        return hr_fail(error, HR_E_DEVICE_MEMORY,
                       "needs %" PRIu64 " bytes of device memory, %s has %" PRIu64 " free", minimum,
                       device->spec, left);
    }
    *got = take;
    return HR_OK;
}

static void unreserve(hr_bdevice *device, uint64_t bytes)
{
    if (device->options.memory_bytes != 0) {
        pthread_mutex_lock(&device->lock);
        device->used_bytes -= bytes;
        pthread_mutex_unlock(&device->lock);
    }
}

static hr_status fill_range(hr_bdevice *device, hr_bmemory *memory, uint64_t bytes, hr_cpu_range *range,
                            hr_error *error)
{
    hr_host_request request = {.what = "memory",
                               .bytes = bytes,
                               .minimum_bytes = memory->minimum_bytes,
                               .touch_threads = memory->touch_threads,
                               .no_huge_pages = memory->no_huge_pages,
                               .no_touch = memory->no_touch,
                               .topology = device->topology,
                               .numa_node = hr_topology_node(device->topology)};
    hr_status status = hr_host_memory_take(&request, &range->memory, error);
    if (status == HR_E_HOST_MEMORY && memory->kind == HR_MEMORY_DEVICE && device->options.discrete) {
        status = HR_E_DEVICE_MEMORY;
    } else if (status == HR_E_HOST_MEMORY && memory->kind == HR_MEMORY_PINNED) {
        status = HR_E_PINNED_MEMORY;
    }
    if (status != HR_OK && error != NULL) {
        error->status = status;
    }
    return status;
}

hr_status hr_cpu_memory_take(hr_bdevice *device, hr_bmemory *memory, hr_error *error)
{
    bool counted = memory->kind == HR_MEMORY_DEVICE;
    uint64_t bytes = memory->bytes;
    uint64_t minimum = memory->minimum_bytes != 0 ? memory->minimum_bytes : bytes;
    hr_cpu_range *range = calloc(1, sizeof *range);
    if (range == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "no memory for its books");
    }
    hr_status status = counted ? reserve(device, memory->bytes, minimum, &bytes, error) : HR_OK;
    if (status != HR_OK) {
        goto free_range;
    }
    uint64_t reserved = bytes;
    status = fill_range(device, memory, bytes, range, error);
    if (status != HR_OK) {
        goto undo_reserve;
    }
    if (counted) {
        unreserve(device, reserved - range->memory.bytes);
    }
    range->kind = memory->kind;
    memory->base = range->memory.base;
    memory->got_bytes = range->memory.bytes;
    memory->huge_bytes = range->memory.huge_bytes;
    memory->backend_data = range;
    memcpy(memory->fallback, range->memory.fallback, sizeof memory->fallback);
    if (reserved < memory->bytes) {
        snprintf(memory->fallback, sizeof memory->fallback,
                 "took %" PRIu64 " bytes of device memory instead of %" PRIu64 ": no more were free",
                 memory->got_bytes, memory->bytes);
    }
    pthread_mutex_lock(&device->lock);
    range->next = device->ranges;
    device->ranges = range;
    pthread_mutex_unlock(&device->lock);
    return HR_OK;

undo_reserve:
    if (counted) {
        unreserve(device, reserved);
    }
free_range:
    free(range);
    return status;
}

void hr_cpu_memory_release(hr_bdevice *device, hr_bmemory *memory)
{
    hr_cpu_range *range = memory->backend_data;
    pthread_mutex_lock(&device->lock);
    hr_cpu_range **link = &device->ranges;
    while (*link != range) {
        link = &(*link)->next;
    }
    *link = range->next;
    pthread_mutex_unlock(&device->lock);
    if (range->kind == HR_MEMORY_DEVICE) {
        unreserve(device, range->memory.bytes);
    }
    hr_host_memory_release(&range->memory);
    free(range);
}

hr_status hr_cpu_memory_kind(hr_bdevice *device, const void *base, uint64_t bytes, hr_memory_kind *kind)
{
    uintptr_t begin = (uintptr_t)base, end;
    if (hr_add_overflows(begin, hr_max_u64(bytes, 1), &end)) {
        return HR_E_RANGE;
    }
    hr_memory_kind found = HR_MEMORY_PAGEABLE;
    pthread_mutex_lock(&device->lock);
    for (const hr_cpu_range *range = device->ranges; range != NULL; range = range->next) {
        uintptr_t from = (uintptr_t)range->memory.base, to = from + range->memory.bytes;
        if (begin >= from && end <= to) {
            found = range->kind;
            break;
        }
        if (begin < to && end > from && range->kind != HR_MEMORY_PAGEABLE) {
            found = HR_MEMORY_MIXED;
        }
    }
    pthread_mutex_unlock(&device->lock);
    *kind = found;
    return HR_OK;
}

hr_status hr_cpu_array_allocate(hr_bdevice *device, const hr_barray *geometry, hr_barray **array,
                                hr_error *error)
{
    uint64_t got;
    hr_error reason = HR_ERROR_INIT;
    hr_status status = reserve(device, geometry->bytes, geometry->bytes, &got, &reason);
    if (status != HR_OK) {
        return hr_fail(error, status, "array: %.400s", reason.text);
    }
    hr_barray *made = malloc(sizeof *made);
    char *tiles = made != NULL ? calloc(1, geometry->bytes) : NULL;
    if (tiles == NULL) {
        free(made);
        unreserve(device, geometry->bytes);
        return hr_fail(error, HR_E_DEVICE_MEMORY, "array: no %" PRIu64 " bytes of memory", geometry->bytes);
    }
    *made = *geometry;
    made->tiles = tiles;
    *array = made;
    return HR_OK;
}

void hr_cpu_array_close(hr_bdevice *device, hr_barray *array)
{
    unreserve(device, array->bytes);
    free(array->tiles);
    free(array);
}

hr_status hr_cpu_symbol_define(hr_bdevice *device, const char *name, const void *address, uint64_t bytes,
                               hr_bsymbol **symbol, hr_error *error)
{
    (void)address; /* the variable is the device's own */
    uint64_t got, whole;
    hr_error reason = HR_ERROR_INIT;
    hr_status status = reserve(device, bytes, bytes, &got, &reason);
    if (status != HR_OK) {
        return hr_fail(error, status, "symbol %.100s: %.300s", name, reason.text);
    }
    hr_bsymbol *made = hr_add_overflows(sizeof *made, bytes, &whole) ? NULL : calloc(1, whole);
    if (made == NULL) {
        unreserve(device, bytes);
        return hr_fail(error, HR_E_DEVICE_MEMORY, "symbol %.100s: no %" PRIu64 " bytes of memory", name,
                       bytes);
    }
    made->bytes = bytes;
    *symbol = made;
    return HR_OK;
}

void hr_cpu_symbol_close(hr_bdevice *device, hr_bsymbol *symbol)
{
    unreserve(device, symbol->bytes);
    free(symbol);
}
