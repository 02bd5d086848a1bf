/* SPDX-License-Identifier: Apache-2.0 */
/* What the handles hold. Seen by src/core only. */
#ifndef HR_CORE_INTERNAL_H
#define HR_CORE_INTERNAL_H

#include "base/fork.h"
#include "core/backend.h"
#include "core/registry.h"

#include <pthread.h>
#include <stdatomic.h>

/* Things that keep a device open, by kind. */
typedef enum hr_held {
    HR_HELD_POOL,
    HR_HELD_STREAM,
    HR_HELD_EVENT,
    HR_HELD_TIMER,
    HR_HELD_ARRAY,
    HR_HELD_COUNT
} hr_held;

struct hr_device {
    hr_runtime *runtime;
    const hr_backend *backend;
    const hr_device_ops *ops;
    hr_bdevice *impl;
    hr_fork_guard guard;
    char spec[64];
    _Atomic uint32_t held[HR_HELD_COUNT];
    pthread_mutex_t lock; /* the lists below */
    hr_pool *pools;
    hr_symbol *symbols;
};

struct hr_stream {
    hr_device *device;
    hr_bstream *impl;
};

struct hr_event {
    hr_device *device;
    hr_bevent *impl;
};

struct hr_timer {
    hr_device *device;
    hr_btimer *impl;
};

struct hr_array {
    hr_device *device;
    hr_barray *impl;
    uint64_t element_bytes;
    uint64_t width, height, depth; /* at least 1 each */
};

struct hr_symbol {
    hr_device *device;
    hr_bsymbol *impl;
    hr_symbol *next;
    uint64_t bytes;
    char name[];
};

static inline bool hr_device_forked(const hr_device *device)
{
    return device->backend->dies_on_fork && hr_forked(&device->guard);
}

/* The one text for it. */
hr_status hr_fail_forked(const hr_device *device, hr_error *error, const char *what);

static inline void hr_device_hold(hr_device *device, hr_held kind)
{
    atomic_fetch_add_explicit(&device->held[kind], 1, memory_order_relaxed);
}

static inline void hr_device_release(hr_device *device, hr_held kind)
{
    atomic_fetch_sub_explicit(&device->held[kind], 1, memory_order_release);
}

/* The runtime counts its open devices. */
hr_status hr_runtime_find_backend(hr_runtime *runtime, const char *spec, const hr_backend **backend,
                                  const char **rest, hr_error *error);
void hr_runtime_count_device(hr_runtime *runtime, int change);
/* The first device of a backend that is not the CPU, else "cpu". */
void hr_runtime_auto_spec(hr_runtime *runtime, char *spec, size_t room);

/* Pools on the device's list, for the text of a refused close. */
const char *hr_pool_name(const hr_pool *pool);
hr_pool *hr_pool_next(const hr_pool *pool);
void hr_symbols_free(hr_device *device);

#endif
