/* SPDX-License-Identifier: Apache-2.0 */
#include "core/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hr_status hr_fail_forked(const hr_device *device, hr_error *error, const char *what)
{
    return hr_fail(error, HR_E_FORKED,
                   "%s: device %s was opened before fork() and is of no use in the child; open it there",
                   what, device->spec);
}

hr_status hr_device_open(hr_runtime *runtime, const char *spec, hr_device **device, hr_error *error)
{
    if (runtime == NULL || spec == NULL || device == NULL) {
        return hr_fail(error, HR_E_INVALID, "device: a null argument");
    }
    char chosen[sizeof((hr_device *)0)->spec];
    if (strcmp(spec, "auto") == 0) {
        hr_runtime_auto_spec(runtime, chosen, sizeof chosen);
    } else if (snprintf(chosen, sizeof chosen, "%s", spec) >= (int)sizeof chosen) {
        return hr_fail(error, HR_E_INVALID, "device %.100s…: a spec has at most %zu characters", spec,
                       sizeof chosen - 1);
    }
    const hr_backend *backend;
    const char *rest;
    hr_status status = hr_runtime_find_backend(runtime, chosen, &backend, &rest, error);
    if (status != HR_OK) {
        return status;
    }
    hr_device *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "device %s: no memory", chosen);
    }
    status = backend->open(rest, &made->impl, &made->ops, error);
    if (status != HR_OK) {
        free(made);
        return status;
    }
    made->runtime = runtime;
    made->backend = backend;
    memcpy(made->spec, chosen, sizeof chosen);
    pthread_mutex_init(&made->lock, NULL);
    hr_fork_guard_open(&made->guard);
    hr_runtime_count_device(runtime, 1);
    *device = made;
    return HR_OK;
}

/* Appends "2 pools (slots, staging)" and the like. False when nothing is left. */
static bool list_held(hr_device *device, char *text, size_t room)
{
    static const char *const names[HR_HELD_COUNT] = {"pool", "stream", "event", "timer", "array"};
    size_t used = 0;
    for (int kind = 0; kind < HR_HELD_COUNT; kind++) {
        uint32_t count = atomic_load_explicit(&device->held[kind], memory_order_acquire);
        if (count == 0 || used >= room) {
            continue;
        }
        used += (size_t)snprintf(text + used, room - used, "%s%" PRIu32 " %s%s", used > 0 ? ", " : "", count,
                                 names[kind], count == 1 ? "" : "s");
        if (kind != HR_HELD_POOL) {
            continue;
        }
        pthread_mutex_lock(&device->lock);
        for (hr_pool *pool = device->pools; pool != NULL && used < room; pool = hr_pool_next(pool)) {
            used += (size_t)snprintf(text + used, room - used, "%s%s%s", pool == device->pools ? " (" : ", ",
                                     hr_pool_name(pool), hr_pool_next(pool) == NULL ? ")" : "");
        }
        pthread_mutex_unlock(&device->lock);
    }
    return used > 0;
}

hr_status hr_device_close(hr_device **device, hr_error *error)
{
    hr_device *closed = device != NULL ? *device : NULL;
    if (closed == NULL) {
        return HR_OK;
    }
    if (hr_device_forked(closed)) {
        return hr_fail_forked(closed, error, "close");
    }
    char left[256];
    if (list_held(closed, left, sizeof left)) {
        return hr_fail(error, HR_E_BUSY, "device %s: still open: %s", closed->spec, left);
    }
    hr_symbols_free(closed);
    closed->ops->close(closed->impl);
    hr_runtime_count_device(closed->runtime, -1);
    hr_fork_guard_close(&closed->guard);
    pthread_mutex_destroy(&closed->lock);
    free(closed);
    *device = NULL;
    return HR_OK;
}

hr_status hr_device_get_info(hr_device *device, hr_device_info *info, hr_error *error)
{
    if (device == NULL || info == NULL || info->size != sizeof *info) {
        return hr_fail(error, HR_E_INVALID,
                       "device info: a null argument, or size is not sizeof(hr_device_info)");
    }
    if (hr_device_forked(device)) {
        return hr_fail_forked(device, error, "device info");
    }
    hr_device_info filled = HR_DEVICE_INFO_INIT;
    filled.numa_node = -1;
    hr_status status = device->ops->info(device->impl, &filled, error);
    if (status == HR_OK) {
        filled.size = sizeof filled;
        *info = filled;
    }
    return status;
}

size_t hr_device_counters(hr_device *device, hr_counter *counters, size_t room)
{
    return device->ops->counters != NULL ? device->ops->counters(device->impl, counters, room) : 0;
}

/* The device's launcher of the built-in op. An op that brings its own for CUDA is none, whatever it is called. */
static hr_launch_fn built_in_launcher(hr_device *device, const hr_op *op)
{
    bool asks = op->cuda == NULL && device->ops->find_launcher != NULL;
    return asks ? device->ops->find_launcher(device->impl, op->name) : NULL;
}

hr_status hr_device_launcher(hr_device *device, const hr_op *op, hr_launch_fn *fn, hr_error *error)
{
    hr_launch_fn found = built_in_launcher(device, op);
    if (found == NULL) {
        hr_device_info info = HR_DEVICE_INFO_INIT;
        hr_status status = hr_device_get_info(device, &info, error);
        if (status != HR_OK) {
            return status;
        }
        found = info.kind == HR_DEVICE_CUDA ? op->cuda : op->cpu;
    }
    if (found == NULL) {
        return hr_fail(error, HR_E_UNSUPPORTED, "op %s: has no launcher for device %s", op->name,
                       device->spec);
    }
    *fn = found;
    return HR_OK;
}

void hr_device_product_block(hr_device *device, const hr_op *op, hr_dtype dtype, uint32_t *rows,
                             uint32_t *columns)
{
    const hr_device_ops *ops = device->ops;
    *rows = *columns = 0;
    /* A launcher of the op's own cuts as it likes. */
    if (ops->product_block != NULL && built_in_launcher(device, op) != NULL) {
        ops->product_block(device->impl, dtype, rows, columns);
    }
}

hr_status hr_device_bench(hr_device *device, const hr_bench_options *options, hr_error *error)
{
    if (hr_device_forked(device)) {
        return hr_fail_forked(device, error, "bench");
    }
    if (device->backend->bench == NULL) {
        return hr_fail(error, HR_E_UNSUPPORTED, "bench %s: device %s has no such bench", options->what,
                       device->spec);
    }
    return device->backend->bench(device->impl, options, error);
}
