/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU devices' insides. */
#ifndef HR_BACKEND_CPU_INTERNAL_H
#define HR_BACKEND_CPU_INTERNAL_H

#include "base/clock.h"
#include "base/thread.h"
#include "base/workers.h"
#include "core/backend.h"
#include "host/memory.h"

#include <stdatomic.h>

/* --- options and device ------------------------------------------------------------------------------- */

typedef struct hr_cpu_options {
    bool discrete;
    double h2d_bytes_per_s, d2h_bytes_per_s; /* 0: as fast as memory allows */
    uint64_t latency_ns;                     /* of each copy between host and device */
    uint64_t memory_bytes;                   /* of a discrete device; 0: all that the host has */
    uint32_t threads;                        /* of launchers; 0: all cores */
} hr_cpu_options;

/* What follows the name in "cpu:discrete,h2d=50G". HR_E_INVALID, HR_E_NOT_FOUND. */
HR_CHECKED hr_status hr_cpu_parse(const char *rest, hr_cpu_options *options, hr_error *error);

typedef enum hr_cpu_direction { HR_CPU_H2D, HR_CPU_D2H, HR_CPU_ENGINES } hr_cpu_direction;

/* One copy thread. It serves streams in the order in which they came; each has one copy at most in here. */
typedef struct hr_cpu_engine {
    pthread_mutex_t lock;
    pthread_cond_t work;
    hr_bstream *first, *last; /* waiting */
    bool closing, started;
    double bytes_per_s;
    uint64_t latency_ns;
    uint64_t free_ns; /* when the link is free again, by the arithmetic; the engine thread's own */
    pthread_t thread;
} hr_cpu_engine;

/* Memory of a pool, so that addresses can be told apart. */
typedef struct hr_cpu_range {
    struct hr_cpu_range *next;
    hr_memory_kind kind;
    hr_host_memory memory;
} hr_cpu_range;

struct hr_bdevice {
    hr_cpu_options options;
    char spec[64];
    hr_crew *crew;
    hr_topology *topology;
    hr_cpu_engine engines[HR_CPU_ENGINES]; /* of a discrete device */
    pthread_mutex_t lock;                  /* what follows */
    hr_cpu_range *ranges;
    uint64_t used_bytes; /* of the device memory */
    _Atomic uint64_t pageable_ends;
};

/* --- memory ------------------------------------------------------------------------------------------- */

struct hr_barray {
    char *tiles;
    uint64_t bytes;
    uint64_t element_bytes;
    uint64_t tiles_x, tiles_y; /* per slice */
};

struct hr_bsymbol {
    uint64_t bytes;
    max_align_t memory[];
};

hr_status hr_cpu_memory_take(hr_bdevice *device, hr_bmemory *memory, hr_error *error);
void hr_cpu_memory_release(hr_bdevice *device, hr_bmemory *memory);
hr_status hr_cpu_memory_kind(hr_bdevice *device, const void *base, uint64_t bytes, hr_memory_kind *kind);
hr_status hr_cpu_array_open(hr_bdevice *device, const hr_array_options *options, hr_barray **array,
                            hr_error *error);
/* Memory for an array whose geometry and size are set. */
hr_status hr_cpu_array_allocate(hr_bdevice *device, const hr_barray *geometry, hr_barray **array,
                                hr_error *error);
void hr_cpu_array_close(hr_bdevice *device, hr_barray *array);
hr_status hr_cpu_symbol_define(hr_bdevice *device, const char *name, const void *address, uint64_t bytes,
                               hr_bsymbol **symbol, hr_error *error);
void hr_cpu_symbol_close(hr_bdevice *device, hr_bsymbol *symbol);

/* Moves and fills, on the calling thread; with a crew, large ones on all of its threads. */
void hr_cpu_move(const hr_bcopy *copy, hr_crew *crew);
void hr_cpu_fill(const hr_bfill *fill);
uint64_t hr_cpu_copy_bytes(const hr_bcopy *copy);

/* --- points: what events mark ------------------------------------------------------------------------- */

typedef struct hr_cpu_point {
    _Atomic uint32_t refs;
    _Atomic int status; /* HR_PENDING until fired, then for ever HR_OK or a failure */
    pthread_mutex_t lock;
    pthread_cond_t fired;
    hr_bstream *parked; /* streams that wait here, by park_next */
    hr_error error;
} hr_cpu_point;

/* HR_PENDING, one reference. Null if there is no memory. */
hr_cpu_point *hr_cpu_point_make(void);
void hr_cpu_point_drop(hr_cpu_point *point);
/* Sets the status for good, wakes sleeping threads, and puts the parked streams on *ready. */
void hr_cpu_point_fire(hr_cpu_point *point, hr_status status, const hr_error *error, hr_bstream **ready);
/* Parks the stream unless the point has fired already. True if it was parked. */
bool hr_cpu_point_park(hr_cpu_point *point, hr_bstream *stream);
/* Takes a stream back. False if the point has fired and the stream is on its way. */
bool hr_cpu_point_unpark(hr_cpu_point *point, hr_bstream *stream);

/* --- streams ------------------------------------------------------------------------------------------ */

struct hr_btimer {
    _Atomic int status; /* HR_PENDING until reached */
    _Atomic uint64_t time_ns;
};

typedef enum hr_cpu_kind {
    HR_CPU_COPY,
    HR_CPU_FILL,
    HR_CPU_LAUNCH,
    HR_CPU_RECORD,
    HR_CPU_WAIT,
    HR_CPU_TIMER
} hr_cpu_kind;

typedef struct hr_cpu_operation {
    struct hr_cpu_operation *next;
    hr_cpu_kind kind;
    hr_cpu_engine *engine; /* that runs it; null: the stream's thread */
    uint64_t accepted_ns;  /* of copies for an engine */
    hr_segment *segments;  /* kept from use to use */
    uint64_t segment_room;
    union {
        hr_bcopy copy;
        hr_bfill fill;
        struct {
            hr_launch_fn fn;
            hr_launch launch;
        } launch;
        hr_cpu_point *point;
        hr_btimer *timer;
    } as;
} hr_cpu_operation;

typedef struct hr_cpu_slab hr_cpu_slab;

typedef enum hr_cpu_state {
    HR_CPU_IDLE,      /* nobody is at the head of the queue */
    HR_CPU_ON_THREAD, /* the head is for the stream's thread, or runs there */
    HR_CPU_ON_ENGINE, /* the head waits or runs in an engine */
    HR_CPU_PARKED     /* the head waits for a point */
} hr_cpu_state;

struct hr_bstream {
    hr_bdevice *device;
    pthread_mutex_t lock;
    pthread_cond_t work;    /* for the stream's thread */
    pthread_cond_t drained; /* state is idle and the queue is empty */
    hr_cpu_state state;
    bool running; /* on the stream's thread */
    bool closing;
    hr_cpu_operation *head, *tail;
    hr_cpu_operation *unused;
    hr_cpu_slab *slabs;
    hr_status failure; /* the first, for ever; HR_OK before */
    hr_error error;
    uint64_t
        chain_ns; /* when the operation before the head ended; after a copy, by its engine's arithmetic */
    hr_bstream *park_next, *ready_next, *engine_next;
    pthread_t thread;
};

hr_status hr_cpu_stream_open(hr_bdevice *device, hr_stream_use use, hr_bstream **stream, hr_error *error);
hr_status hr_cpu_stream_close(hr_bstream *stream, hr_error *error);
hr_status hr_cpu_stream_query(hr_bstream *stream, hr_error *error);
hr_status hr_cpu_stream_wait(hr_bstream *stream, hr_error *error);
hr_status hr_cpu_stream_cancel(hr_bstream *stream);

hr_status hr_cpu_copy(hr_bstream *stream, const hr_bcopy *copy, hr_error *error);
hr_status hr_cpu_queue_fill(hr_bstream *stream, const hr_bfill *fill, hr_error *error);
hr_status hr_cpu_launch(hr_bstream *stream, hr_launch_fn fn, const hr_launch *launch, hr_error *error);

hr_status hr_cpu_event_open(hr_bdevice *device, hr_bevent **event, hr_error *error);
void hr_cpu_event_close(hr_bevent *event);
hr_status hr_cpu_event_record(hr_bevent *event, hr_bstream *stream, hr_error *error);
hr_status hr_cpu_stream_wait_event(hr_bstream *stream, hr_bevent *event, hr_error *error);
hr_status hr_cpu_event_query(hr_bevent *event, hr_error *error);
hr_status hr_cpu_event_wait(hr_bevent *event, hr_error *error);
hr_status hr_cpu_timer_open(hr_bdevice *device, hr_btimer **timer, hr_error *error);
void hr_cpu_timer_close(hr_btimer *timer);
hr_status hr_cpu_timer_record(hr_btimer *timer, hr_bstream *stream, hr_error *error);
hr_status hr_cpu_timer_read(hr_btimer *timer, uint64_t *time_ns, hr_error *error);

/* Begin and submit: a caller that got an operation fills it and hands it in; both under the stream's lock. */
/* HR_OK with *operation, the lock held; or the stream's failure, or HR_E_HOST_MEMORY, the lock not held. */
HR_CHECKED hr_status hr_cpu_stream_begin(hr_bstream *stream, hr_cpu_kind kind, hr_cpu_operation **operation,
                                         hr_error *error);
void hr_cpu_stream_submit(hr_bstream *stream, hr_cpu_operation *operation);
/* Instead of submit: nothing is queued. */
void hr_cpu_stream_abandon(hr_bstream *stream, hr_cpu_operation *operation);
/* The head of the stream, which an engine ran, is done; by the arithmetic it was at `end_ns`. */
void hr_cpu_stream_engine_done(hr_bstream *stream, uint64_t end_ns);
/* Goes on with streams that points have released. Holds no lock. */
void hr_cpu_drive(hr_bstream *ready);

/* --- engines ------------------------------------------------------------------------------------------ */

HR_CHECKED hr_status hr_cpu_engine_open(hr_cpu_engine *engine, const char *name, double bytes_per_s,
                                        uint64_t latency_ns, hr_error *error);
void hr_cpu_engine_close(hr_cpu_engine *engine);
void hr_cpu_engine_push(hr_cpu_engine *engine, hr_bstream *stream);
/* Takes a stream back whose copy has not begun. False if it runs. */
bool hr_cpu_engine_pull(hr_cpu_engine *engine, hr_bstream *stream);

#endif
