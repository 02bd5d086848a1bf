/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a backend gives to the core: the one interface between Headrace and a kind of device. A backend is
 * a table of functions over its own opaque structs; the core checks arguments that are the same for all
 * devices (null pointers, struct sizes, pitches, overflow, ends of arrays and symbols), counts handles,
 * detects fork, and dispatches here. No function of a table prints, exits or blocks unless its comment says
 * so. All may be called from any thread unless it says otherwise.
 */
#ifndef HR_CORE_BACKEND_H
#define HR_CORE_BACKEND_H

#include <headrace/bench.h>
#include <headrace/copy.h>
#include <headrace/device.h>
#include <headrace/memory.h>
#include <headrace/op.h>
#include <headrace/stream.h>

#define HR_BACKEND_ABI 2u

/* Opaque here, each backend defines its own and casts once, at its own door. */
typedef struct hr_bdevice hr_bdevice;
typedef struct hr_bstream hr_bstream;
typedef struct hr_bevent hr_bevent;
typedef struct hr_btimer hr_btimer;
typedef struct hr_barray hr_barray;
typedef struct hr_bsymbol hr_bsymbol;

/* A request for memory that lives as long as a pool, and what came of it. */
typedef struct hr_bmemory {
    hr_memory_kind kind;
    uint64_t bytes;
    uint64_t minimum_bytes; /* 0: no less than bytes */
    uint32_t touch_threads; /* 0: all cores */
    bool no_huge_pages;
    bool no_touch; /* host memory: leave the pages to their first use, reserve nothing */
    /* Set by the backend. */
    void *base;
    uint64_t got_bytes;
    uint64_t huge_bytes;
    char fallback[192]; /* empty, or why less or other memory was taken */
    void *backend_data; /* what memory_release needs */
} hr_bmemory;

/* One end of a copy as a backend sees it: handles resolved. */
typedef struct hr_bend {
    hr_place place;
    hr_bdevice
        *device; /* of HR_PLACE_DEVICE; never null there; may be another device of the same backend (peer) */
    void *base;  /* offset_bytes already added for host and device memory */
    hr_barray *array;
    hr_bsymbol *symbol;
    uint64_t offset_bytes;                       /* symbols only */
    uint64_t row_pitch_bytes, slice_pitch_bytes; /* never 0 where height or depth needs them */
    uint64_t x, y, z;
} hr_bend;

/* A checked copy: extents are at least 1, or segment_count is at least 1 and each segment has at least one
 * byte. */
typedef struct hr_bcopy {
    hr_bend dst, src;
    uint64_t width_bytes, height, depth;
    const hr_segment *segments; /* the caller's; to be copied if needed after the return */
    uint64_t segment_count;
} hr_bcopy;

typedef struct hr_bfill {
    hr_bend dst;
    uint64_t width_bytes, height, depth;
    uint32_t value, value_bytes;
} hr_bfill;

typedef struct hr_device_ops {
    /* Frees the device. Everything that was opened on it is closed before, so nothing runs any more. */
    void (*close)(hr_bdevice *device);
    hr_status (*info)(hr_bdevice *device, hr_device_info *info, hr_error *error);
    size_t (*counters)(hr_bdevice *device, hr_counter *counters, size_t room);

    /* Takes memory in one piece, touched and, if pinned, registered. Blocks. On failure nothing is held. */
    hr_status (*memory_take)(hr_bdevice *device, hr_bmemory *memory, hr_error *error);
    void (*memory_release)(hr_bdevice *device, hr_bmemory *memory);
    hr_status (*memory_kind)(hr_bdevice *device, const void *base, uint64_t bytes, hr_memory_kind *kind);

    hr_status (*array_open)(hr_bdevice *device, const hr_array_options *options, hr_barray **array,
                            hr_error *error);
    void (*array_close)(hr_bdevice *device, hr_barray *array);
    /* Names are unique a device; `address` may be null on devices that can allocate the variable themselves.
     */
    hr_status (*symbol_define)(hr_bdevice *device, const char *name, const void *address, uint64_t bytes,
                               hr_bsymbol **symbol, hr_error *error);
    void (*symbol_close)(hr_bdevice *device, hr_bsymbol *symbol);

    hr_status (*stream_open)(hr_bdevice *device, hr_stream_use use, hr_bstream **stream, hr_error *error);
    /* Waits until the stream is idle, frees it, returns its first failure. */
    hr_status (*stream_close)(hr_bstream *stream, hr_error *error);
    hr_status (*stream_query)(hr_bstream *stream, hr_error *error); /* HR_OK, HR_PENDING, failure */
    hr_status (*stream_wait)(hr_bstream *stream, hr_error *error);  /* blocks */
    hr_status (*stream_cancel)(hr_bstream *stream);
    void *(*stream_native)(hr_bstream *stream);

    hr_status (*event_open)(hr_bdevice *device, hr_bevent **event, hr_error *error);
    void (*event_close)(hr_bevent *event);
    hr_status (*event_record)(hr_bevent *event, hr_bstream *stream, hr_error *error);
    hr_status (*stream_wait_event)(hr_bstream *stream, hr_bevent *event, hr_error *error);
    hr_status (*event_query)(hr_bevent *event, hr_error *error);
    hr_status (*event_wait)(hr_bevent *event, hr_error *error); /* blocks */

    /* A point in a stream whose time can be read, for reports: never waited for, read only once the work
     * after it is known to be done. */
    hr_status (*timer_open)(hr_bdevice *device, hr_btimer **timer, hr_error *error);
    void (*timer_close)(hr_btimer *timer);
    hr_status (*timer_record)(hr_btimer *timer, hr_bstream *stream, hr_error *error);
    /* Nanoseconds of CLOCK_MONOTONIC; HR_PENDING if not reached. */
    hr_status (*timer_read)(hr_btimer *timer, uint64_t *time_ns, hr_error *error);

    hr_status (*copy)(hr_bstream *stream, const hr_bcopy *copy, hr_error *error);
    hr_status (*fill)(hr_bstream *stream, const hr_bfill *fill, hr_error *error);
    /*
     * Queues fn(launch). On a CPU device it runs in stream order on the stream's thread, with launch->workers
     * set; *launch is copied. On CUDA it is called before the return, with launch->native_stream set, and
     * enqueues its kernels.
     */
    hr_status (*launch)(hr_bstream *stream, hr_launch_fn fn, const hr_launch *launch, hr_error *error);
    /* The device's own launcher of a built-in op, or null: then the op's own for this kind of device is used.
     */
    hr_launch_fn (*find_launcher)(hr_bdevice *device, const char *op_name);
    /*
     * Optional: how many rows and columns of the result one compute unit makes at a time in the device's own matmul of operands of
     * the dtype. Tiles of a larger product are cut at multiples of these, to fill whole rounds of the units.
     */
    void (*product_block)(hr_bdevice *device, hr_dtype dtype, uint32_t *rows, uint32_t *columns);
} hr_device_ops;

typedef struct hr_backend {
    uint32_t abi; /* HR_BACKEND_ABI */
    const char *name;
    /* Fork safety: true if its devices are unusable in a child process. */
    bool dies_on_fork;
    /* How many devices there are; on failure the backend counts as absent and the text says why. May take
     * long the first time. */
    hr_status (*probe)(uint32_t *count, hr_error *error);
    /* The spec of the i-th device ("cuda:0"). HR_E_NOT_FOUND past the last. */
    hr_status (*spec_at)(uint32_t index, char *spec, size_t room);
    /* Opens by what follows the name in the spec: "" or ":1" or ":discrete,h2d=50G". Sets device and its
     * functions. */
    hr_status (*open)(const char *rest, hr_bdevice **device, const hr_device_ops **ops, hr_error *error);
    /* Optional: benches that need the device's own calls ("calls", "sync", "scatter", "kernels").
     * HR_E_UNSUPPORTED: does not have this one. */
    hr_status (*bench)(hr_bdevice *device, const hr_bench_options *options, hr_error *error);
} hr_backend;

/* What a device module exports, as the symbol named here. */
typedef const hr_backend *(*hr_backend_module_fn)(void);
#define HR_BACKEND_MODULE_SYMBOL "hr_backend_module"

#endif
