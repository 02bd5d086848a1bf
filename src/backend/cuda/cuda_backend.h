/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the CUDA module share. The module is a table of functions (module.c) over the structs
 * below; each file is one concern. Three habits hold everywhere:
 *
 *  - Every entry pushes the device's own context and pops it again (hr_cuda_enter, hr_cuda_leave), so that it
 *    does not matter which device is current in the caller's thread, nor whether one is.
 *  - Every result of CUDA's goes through hr_cuda_check() (error.c), which translates it, clears it where it
 *    arose, and declares the device lost when it is of the kind that stays.
 *  - No call here blocks on the device or uses the default stream, save those that backend.h says may block.
 */
#ifndef HR_BACKEND_CUDA_H
#define HR_BACKEND_CUDA_H

#include "base/checked.h"
#include "core/backend.h"
#include "host/memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

/* The functions of the driver that the runtime has no equal for. Found through the runtime, so that nothing
 * links libcuda. */
typedef struct hr_cuda_driver {
    CUresult (*ctx_get_current)(CUcontext *context);
    CUresult (*ctx_push)(CUcontext context);
    CUresult (*ctx_pop)(CUcontext *context);
    CUresult (*device_get)(CUdevice *device, int ordinal);
    CUresult (*device_name)(char *name, int room, CUdevice device);
    CUresult (*primary_retain)(CUcontext *context, CUdevice device);
    CUresult (*primary_release)(CUdevice device);
    CUresult (*pointer_attributes)(unsigned int count, CUpointer_attribute *which, void **data,
                                   CUdeviceptr pointer);
    CUresult (*set_d16)(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream);
    CUresult (*set_d32)(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream);
    CUresult (*set_2d_d16)(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
                           CUstream stream);
    CUresult (*set_2d_d32)(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
                           CUstream stream);
} hr_cuda_driver;

/* The table, the same for every device and constant once found; null with the reason in *error. */
const hr_cuda_driver *hr_cuda_driver_get(hr_error *error);

/* What the device did in a way that its user should know about. */
typedef enum hr_cuda_counter {
    HR_CUDA_STAGED_IN,
    HR_CUDA_STAGED_OUT,
    HR_CUDA_STAGED_HOST,
    HR_CUDA_STAGED_PEER,
    HR_CUDA_POOL_HOSTALLOC,
    HR_CUDA_POOL_SMALLER,
    HR_CUDA_ROW_CALLS,
    HR_CUDA_SEGMENT_KERNEL,
    HR_CUDA_SEGMENT_BATCH,
    HR_CUDA_SEGMENT_CALLS,
    HR_CUDA_DEFERRED,
    HR_CUDA_COUNTERS
} hr_cuda_counter;

#define HR_CUDA_REASON_BYTES 192
#define HR_CUDA_RANGES       64
#define HR_CUDA_MAX_PEERS    64

typedef struct hr_cuda_stager hr_cuda_stager;
typedef struct hr_cuda_pending hr_cuda_pending;

/* How memory of another device is reached. */
typedef enum hr_cuda_peer_path {
    HR_CUDA_PEER_UNKNOWN = 0,
    HR_CUDA_PEER_DIRECT,
    HR_CUDA_PEER_STAGED
} hr_cuda_peer_path;

/* A mark in time whose place on the host's clock is known. */
typedef struct hr_cuda_epoch {
    cudaEvent_t event;
    uint64_t host_ns;
    atomic_uint references;
} hr_cuda_epoch;

/* Pinned memory that carries a long list of segments to a kernel. */
#define HR_CUDA_LIST_BLOCKS   8
#define HR_CUDA_LIST_SEGMENTS 16384
typedef struct hr_cuda_list_block {
    hr_segment *segments;  /* pinned; null: there is none */
    hr_segment *on_device; /* where the kernel reads it */
    cudaEvent_t event;     /* done: the last kernel that read it is */
    bool taken;            /* being filled */
} hr_cuda_list_block;

struct hr_bdevice {
    int ordinal;
    CUdevice handle;
    CUcontext context;
    const hr_cuda_driver *driver;

    /* Read once at open. */
    char name[128];
    int numa_node;         /* -1: unknown */
    hr_topology *topology; /* null: unknown */
    int multiprocessors;
    uint64_t max_pitch_bytes;
    bool host_pointers_work; /* registered memory has the same address on the device */
    bool reads_pageable;     /* kernels can reach ordinary host memory */

    /* Lost: set once, with the text of what was lost it; never cleared. */
    atomic_int lost_code;
    char lost_text[256];

    pthread_mutex_t lock;   /* pools of events, epochs, peers, reasons */
    pthread_mutex_t making; /* held while the stager or its ring is made */
    struct hr_bevent *free_events;
    hr_cuda_epoch *epoch;
    cudaStream_t own_stream; /* for calibration and probing: idle otherwise */
    hr_cuda_peer_path peer[HR_CUDA_MAX_PEERS];

    /* Pinned memory of our own pools, for a look-up that costs nothing. An entry is free while its end is 0.
     */
    struct {
        atomic_uintptr_t base, end;
    } range[HR_CUDA_RANGES];
    atomic_int ranges; /* entries that were ever used */

    atomic_uint_fast64_t count[HR_CUDA_COUNTERS];
    char reason[HR_CUDA_COUNTERS][HR_CUDA_REASON_BYTES];

    hr_bmemory list_memory, list_on_device; /* of the list blocks */
    hr_cuda_list_block list_block[HR_CUDA_LIST_BLOCKS];

    _Atomic(hr_cuda_stager *) stager; /* made when first needed */
};

struct hr_bstream {
    hr_bdevice *device;
    cudaStream_t native;
    hr_stream_use use;
    atomic_bool cancelled;
    /* Operations that were accepted and have not reached the driver yet: 0 in ordinary life. See stage.c. */
    atomic_uint deferred;
    hr_cuda_pending *head, *tail; /* under the stager's lock */
    struct hr_bstream *next;      /* in the stager's list of streams with deferred work */
    bool listed;
    /* The first failure that was found after a call had returned. */
    atomic_int failed; /* an hr_status */
    int failed_code;
    char failed_text[HR_ERROR_TEXT_BYTES];
};

struct hr_bevent {
    hr_bdevice *device;
    struct hr_bevent *next; /* in the device's pool */
    cudaEvent_t native;
    atomic_uint references; /* the handle's, and one for each deferred operation */
    pthread_mutex_t lock;
    uint64_t asked;     /* records that were accepted */
    uint64_t submitted; /* of them, those that reached the driver or were dropped */
    hr_status failed;   /* of the last record that was dropped with its stream */
    char failed_text[HR_ERROR_TEXT_BYTES];
};

struct hr_btimer {
    hr_bdevice *device;
    cudaEvent_t native;
    hr_cuda_epoch *epoch; /* of the last record */
    atomic_bool deferred; /* the record has not reached the driver yet */
};

struct hr_barray {
    hr_bdevice *device;
    cudaArray_t native;
    uint64_t element_bytes;
    uint64_t width, height, depth; /* as asked for: 0 where the dimension is absent */
    bool layered;
};

struct hr_bsymbol {
    hr_bdevice *device;
    void *address; /* on the device */
    uint64_t bytes;
    bool owned;
};

/* error.c: the funnel. */

/* What a call was about, where CUDA's own code does not say it. */
typedef enum hr_cuda_about { HR_CUDA_ABOUT_DEVICE, HR_CUDA_ABOUT_PINNED } hr_cuda_about;

/*
 * HR_OK, or the translated failure with "WHAT: cudaErrorName (n): text". `device` may be null. Clears the
 * error; a code that does not go away makes the device lost. cudaErrorNotReady comes out as HR_PENDING.
 */
hr_status hr_cuda_check_about(hr_bdevice *device, cudaError_t code, hr_cuda_about about, hr_error *error,
                              const char *format, ...) HR_PRINTF(5, 6);
/* The call stands in `call`, and is made once. Success costs a comparison. */
#define hr_cuda_check(device, call, error, ...)                                                         \
    __extension__({                                                                                     \
        cudaError_t checked_code_ = (call);                                                             \
        __builtin_expect(checked_code_ == cudaSuccess, 1)                                               \
            ? HR_OK                                                                                     \
            : hr_cuda_check_about((device), checked_code_, HR_CUDA_ABOUT_DEVICE, (error), __VA_ARGS__); \
    })
/* The same for a result of the driver's. */
hr_status hr_cuda_check_driver(hr_bdevice *device, CUresult code, hr_error *error, const char *what);
/* Forgets a result on purpose: the last error is cleared, a lost device noticed. */
void hr_cuda_ignore(hr_bdevice *device, cudaError_t code);
/* HR_OK or HR_E_DEVICE_LOST with what was lost it. */
hr_status hr_cuda_alive(hr_bdevice *device, hr_error *error);
void hr_cuda_lose(hr_bdevice *device, cudaError_t code, const char *text);

/* scope.c: whose context is current. */
typedef struct hr_cuda_scope {
    const hr_cuda_driver *driver;
    bool pushed;
} hr_cuda_scope;
hr_status hr_cuda_enter(hr_bdevice *device, hr_cuda_scope *scope, hr_error *error);
/* Also for a lost device: to release what can be released. */
void hr_cuda_enter_anyway(hr_bdevice *device, hr_cuda_scope *scope);
void hr_cuda_leave(const hr_cuda_scope *scope);

void hr_cuda_count(hr_bdevice *device, hr_cuda_counter counter, const char *reason);
size_t hr_cuda_counters(hr_bdevice *device, hr_counter *counters, size_t room);

/* topology.c */
int hr_cuda_numa_node(int ordinal);
void hr_cuda_pcie_link(int ordinal, uint32_t *generation, uint32_t *width);

/* memory.c */
hr_status hr_cuda_memory_take(hr_bdevice *device, hr_bmemory *memory, hr_error *error);
void hr_cuda_memory_release(hr_bdevice *device, hr_bmemory *memory);
hr_status hr_cuda_memory_kind(hr_bdevice *device, const void *base, uint64_t bytes, hr_memory_kind *kind);
/* The quick form for copies: only "pinned or managed throughout" is told apart from the rest. */
hr_memory_kind hr_cuda_host_kind(hr_bdevice *device, const void *base, uint64_t bytes);

/* array.c */
hr_status hr_cuda_array_open(hr_bdevice *device, const hr_array_options *options, hr_barray **array,
                             hr_error *error);
void hr_cuda_array_close(hr_bdevice *device, hr_barray *array);
hr_status hr_cuda_symbol_define(hr_bdevice *device, const char *name, const void *address, uint64_t bytes,
                                hr_bsymbol **symbol, hr_error *error);
void hr_cuda_symbol_close(hr_bdevice *device, hr_bsymbol *symbol);

/* stream.c, event.c, timer.c */
hr_status hr_cuda_stream_open(hr_bdevice *device, hr_stream_use use, hr_bstream **stream, hr_error *error);
hr_status hr_cuda_stream_close(hr_bstream *stream, hr_error *error);
hr_status hr_cuda_stream_query(hr_bstream *stream, hr_error *error);
hr_status hr_cuda_stream_wait(hr_bstream *stream, hr_error *error);
hr_status hr_cuda_stream_cancel(hr_bstream *stream);
void *hr_cuda_stream_native(hr_bstream *stream);
/* HR_OK, or why nothing more may be queued. */
hr_status hr_cuda_stream_ready(hr_bstream *stream, hr_error *error);
/* Keeps the first failure of work that was accepted. */
void hr_cuda_stream_fail(hr_bstream *stream, hr_status status, const hr_error *error);
/* Is the stream being captured into a graph? */
bool hr_cuda_stream_captures(hr_bstream *stream);

hr_status hr_cuda_event_open(hr_bdevice *device, hr_bevent **event, hr_error *error);
void hr_cuda_event_close(hr_bevent *event);
hr_status hr_cuda_event_record(hr_bevent *event, hr_bstream *stream, hr_error *error);
hr_status hr_cuda_stream_wait_event(hr_bstream *stream, hr_bevent *event, hr_error *error);
hr_status hr_cuda_event_query(hr_bevent *event, hr_error *error);
hr_status hr_cuda_event_wait(hr_bevent *event, hr_error *error);
void hr_cuda_events_free(hr_bdevice *device);
void hr_cuda_event_release(hr_bevent *event);

hr_status hr_cuda_timer_open(hr_bdevice *device, hr_btimer **timer, hr_error *error);
void hr_cuda_timer_close(hr_btimer *timer);
hr_status hr_cuda_timer_record(hr_btimer *timer, hr_bstream *stream, hr_error *error);
hr_status hr_cuda_timer_submit(hr_btimer *timer, hr_bstream *stream, hr_error *error);
hr_status hr_cuda_timer_read(hr_btimer *timer, uint64_t *time_ns, hr_error *error);
void hr_cuda_epochs_free(hr_bdevice *device);

/* copy.c, copy_segments.c, fill.c, launch.c. The submit functions hand to the driver now; the context is
 * current. */
hr_status hr_cuda_copy(hr_bstream *stream, const hr_bcopy *copy, hr_error *error);
hr_status hr_cuda_copy_submit(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy, hr_error *error);
hr_status hr_cuda_segments_submit(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy,
                                  hr_error *error);
/* The ways to copy a list, for the choice and for the bench that measures them. */
typedef enum hr_cuda_segment_method {
    HR_CUDA_SEGMENTS_CALLS,
    HR_CUDA_SEGMENTS_BATCH,
    HR_CUDA_SEGMENTS_KERNEL
} hr_cuda_segment_method;
hr_cuda_segment_method hr_cuda_segments_choose(hr_bdevice *device, const hr_bcopy *copy);
hr_status hr_cuda_segments_by(hr_bdevice *device, cudaStream_t native, const hr_bcopy *copy,
                              hr_cuda_segment_method method, hr_error *error);
hr_status hr_cuda_fill(hr_bstream *stream, const hr_bfill *fill, hr_error *error);
hr_status hr_cuda_fill_submit(hr_bdevice *device, cudaStream_t native, const hr_bfill *fill, hr_error *error);
hr_status hr_cuda_launch(hr_bstream *stream, hr_launch_fn fn, const hr_launch *launch, hr_error *error);

/* peer.c: HR_CUDA_PEER_DIRECT once a pattern has come back right. */
hr_status hr_cuda_peer_path_to(hr_bdevice *device, hr_bdevice *other, hr_cuda_peer_path *path,
                               hr_error *error);

/* stage.c: work that is handed to the driver later, in order, by a thread of the device's. */
typedef enum hr_cuda_pending_kind {
    HR_CUDA_PENDING_COPY,
    HR_CUDA_PENDING_STAGED,
    HR_CUDA_PENDING_FILL,
    HR_CUDA_PENDING_LAUNCH,
    HR_CUDA_PENDING_RECORD,
    HR_CUDA_PENDING_WAIT,
    HR_CUDA_PENDING_TIMER
} hr_cuda_pending_kind;

typedef enum hr_cuda_stage_way {
    HR_CUDA_WAY_NONE, /* not staged */
    HR_CUDA_WAY_IN,
    HR_CUDA_WAY_OUT,
    HR_CUDA_WAY_HOST,
    HR_CUDA_WAY_PEER
} hr_cuda_stage_way;

/* Is there deferred work, so that what follows must be deferred too? */
static inline bool hr_cuda_stream_deferred(hr_bstream *stream)
{
    return atomic_load_explicit(&stream->deferred, memory_order_acquire) != 0;
}
hr_status hr_cuda_defer_copy(hr_bstream *stream, const hr_bcopy *copy, hr_cuda_stage_way way,
                             hr_error *error);
hr_status hr_cuda_defer_fill(hr_bstream *stream, const hr_bfill *fill, hr_error *error);
hr_status hr_cuda_defer_launch(hr_bstream *stream, hr_launch_fn fn, const hr_launch *launch, hr_error *error);
hr_status hr_cuda_defer_record(hr_bstream *stream, hr_bevent *event, uint64_t generation, hr_error *error);
hr_status hr_cuda_defer_wait(hr_bstream *stream, hr_bevent *event, uint64_t generation, hr_error *error);
hr_status hr_cuda_defer_timer(hr_bstream *stream, hr_btimer *timer, hr_error *error);
/* Blocks until the stream has no deferred work. */
void hr_cuda_drain(hr_bstream *stream);
/* Drops what is deferred and has not begun. */
void hr_cuda_drop(hr_bstream *stream);
/* Wakes whoever waits for a change of deferred work, after one that the stager did not make itself. */
void hr_cuda_stager_wake(hr_bdevice *device);
/* Waits for such a change, a millisecond at most. */
void hr_cuda_stager_pause(hr_bdevice *device);
void hr_cuda_stager_close(hr_bdevice *device);

/* module.c: what the backend's table opens devices with; ops->close() closes one. */
hr_status hr_cuda_device_open(const char *rest, hr_bdevice **device, const hr_device_ops **ops,
                              hr_error *error);

/* bench.c */
hr_status hr_cuda_bench(hr_bdevice *device, const hr_bench_options *options, hr_error *error);

#endif
