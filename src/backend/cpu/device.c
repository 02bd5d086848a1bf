/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU as a device. `cpu` shares the host's memory: its pools are plain memory and copies within it are
 * done by the stream that they are queued in. `cpu:discrete` behaves like a card in a slot: memory of its
 * own, one copy engine a direction, and no mixing up of the two memories.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/internal.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#define CACHE_LINE 64

static void device_close(hr_bdevice *device)
{
    for (int i = 0; i < HR_CPU_ENGINES; i++) {
        hr_cpu_engine_close(&device->engines[i]);
    }
    hr_crew_close(&device->crew);
    hr_topology_close(device->topology);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

static hr_status device_info(hr_bdevice *device, hr_device_info *info, hr_error *error)
{
    (void)error;
    struct utsname system;
    uint64_t total, available;
    hr_host_memory_room(&total, &available);
    info->kind = HR_DEVICE_CPU;
    info->shares_host_memory = !device->options.discrete;
    snprintf(info->spec, sizeof info->spec, "%s", device->spec);
    hr_host_cpu_name(info->name, sizeof info->name);
    if (uname(&system) == 0) {
        snprintf(info->driver, sizeof info->driver, "%.10s %.50s", system.sysname, system.release);
    }
    info->memory_bytes = total;
    info->memory_free_bytes = available;
    if (device->options.memory_bytes != 0) {
        pthread_mutex_lock(&device->lock);
        info->memory_bytes = device->options.memory_bytes;
        info->memory_free_bytes = device->options.memory_bytes - device->used_bytes;
        pthread_mutex_unlock(&device->lock);
    }
    info->compute_units = hr_crew_workers(device->crew)->threads;
    info->copy_engines = device->options.discrete ? HR_CPU_ENGINES : 0;
    info->numa_node = hr_topology_node(device->topology);
    info->pitch_align_bytes = CACHE_LINE;
    info->l2_bytes = hr_topology_l2_bytes(device->topology);
    return HR_OK;
}

static size_t device_counters(hr_bdevice *device, hr_counter *counters, size_t room)
{
    if (!device->options.discrete) {
        return 0;
    }
    if (room > 0) {
        counters[0] =
            (hr_counter){.name = "pageable ends staged",
                         .count = atomic_load_explicit(&device->pageable_ends, memory_order_relaxed),
                         .reason = ""};
    }
    return 1;
}

static void *stream_native(hr_bstream *stream)
{
    (void)stream;
    return NULL;
}

static hr_launch_fn find_launcher(hr_bdevice *device, const char *op_name)
{
    (void)device;
    (void)op_name;
    return NULL;
}

static const hr_device_ops device_ops = {
    .close = device_close,
    .info = device_info,
    .counters = device_counters,
    .memory_take = hr_cpu_memory_take,
    .memory_release = hr_cpu_memory_release,
    .memory_kind = hr_cpu_memory_kind,
    .array_open = hr_cpu_array_open,
    .array_close = hr_cpu_array_close,
    .symbol_define = hr_cpu_symbol_define,
    .symbol_close = hr_cpu_symbol_close,
    .stream_open = hr_cpu_stream_open,
    .stream_close = hr_cpu_stream_close,
    .stream_query = hr_cpu_stream_query,
    .stream_wait = hr_cpu_stream_wait,
    .stream_cancel = hr_cpu_stream_cancel,
    .stream_native = stream_native,
    .event_open = hr_cpu_event_open,
    .event_close = hr_cpu_event_close,
    .event_record = hr_cpu_event_record,
    .stream_wait_event = hr_cpu_stream_wait_event,
    .event_query = hr_cpu_event_query,
    .event_wait = hr_cpu_event_wait,
    .timer_open = hr_cpu_timer_open,
    .timer_close = hr_cpu_timer_close,
    .timer_record = hr_cpu_timer_record,
    .timer_read = hr_cpu_timer_read,
    .copy = hr_cpu_copy,
    .fill = hr_cpu_queue_fill,
    .launch = hr_cpu_launch,
    .find_launcher = find_launcher,
};

static hr_status start_threads(hr_bdevice *device, hr_error *error)
{
    const hr_cpu_options *options = &device->options;
    hr_status status =
        hr_crew_open(options->threads != 0 ? options->threads : hr_host_cores(), &device->crew, error);
    if (status == HR_OK && options->discrete) {
        status = hr_cpu_engine_open(&device->engines[HR_CPU_H2D], "hr-h2d", options->h2d_bytes_per_s,
                                    options->latency_ns, error);
    }
    if (status == HR_OK && options->discrete) {
        status = hr_cpu_engine_open(&device->engines[HR_CPU_D2H], "hr-d2h", options->d2h_bytes_per_s,
                                    options->latency_ns, error);
    }
    return status;
}

static hr_status backend_open(const char *rest, hr_bdevice **device, const hr_device_ops **ops,
                              hr_error *error)
{
    hr_cpu_options options;
    hr_status status = hr_cpu_parse(rest, &options, error);
    if (status != HR_OK) {
        return status;
    }
    hr_bdevice *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "device cpu%s: no memory", rest);
    }
    made->options = options;
    snprintf(made->spec, sizeof made->spec, "cpu%s", rest);
    pthread_mutex_init(&made->lock, NULL);
    made->topology = hr_topology_open();
    status = start_threads(made, error);
    if (status != HR_OK) {
        device_close(made);
        return status;
    }
    *device = made;
    *ops = &device_ops;
    return HR_OK;
}

static hr_status backend_probe(uint32_t *count, hr_error *error)
{
    (void)error;
    *count = 2;
    return HR_OK;
}

static hr_status backend_spec_at(uint32_t index, char *spec, size_t room)
{
    static const char *const specs[] = {"cpu", "cpu:discrete"};
    if (index >= sizeof specs / sizeof specs[0]) {
        return HR_E_NOT_FOUND;
    }
    snprintf(spec, room, "%s", specs[index]);
    return HR_OK;
}

static const hr_backend backend = {
    .abi = HR_BACKEND_ABI,
    .name = "cpu",
    .dies_on_fork = true, /* its threads stay behind in the parent */
    .probe = backend_probe,
    .spec_at = backend_spec_at,
    .open = backend_open,
};

const hr_backend *hr_cpu_backend(void)
{
    return &backend;
}
