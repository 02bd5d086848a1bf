/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace in memory: what happened when, whoever recorded it. Readers fill it, hr_trace_finish() puts it in
 * order and joins calls with the work that they started; after that it does not change, and rules, replay and
 * renderers read its fields.
 */
#ifndef HR_TRACE_MODEL_TRACE_H
#define HR_TRACE_MODEL_TRACE_H

#include "trace/model/call.h"
#include "trace/model/interval.h"

#include <headrace/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "No such thing" for every index below. */
#define HR_NONE UINT32_MAX

typedef enum hr_event_kind {
    HR_EVENT_CALL = 0, /* a runtime or driver call on a host thread */
    HR_EVENT_COPY,     /* on the device, from here … */
    HR_EVENT_FILL,
    HR_EVENT_KERNEL, /* … to here */
    HR_EVENT_SYNC,   /* the recorder's own record of a wait; its facts are moved into the call */
    HR_EVENT_MARKER  /* a range that the program named: NVTX, a profiler's step */
} hr_event_kind;

typedef enum hr_memory {
    HR_MEMORY_UNKNOWN = 0,
    HR_MEMORY_PAGEABLE,
    HR_MEMORY_PINNED,
    HR_MEMORY_DEVICE,
    HR_MEMORY_ARRAY,
    HR_MEMORY_MANAGED
} hr_memory;

typedef enum hr_direction {
    HR_DIRECTION_UNKNOWN = 0,
    HR_DIRECTION_H2D,
    HR_DIRECTION_D2H,
    HR_DIRECTION_D2D,
    HR_DIRECTION_PEER,
    HR_DIRECTION_H2H,
    HR_DIRECTION_MIGRATE_H2D, /* managed memory moved on demand or by prefetch */
    HR_DIRECTION_MIGRATE_D2H
} hr_direction;

/* One event. Times are nanoseconds since the trace's first event. What does not apply is HR_NONE or 0. */
typedef struct hr_event {
    int64_t begin_ns, end_ns;
    uint64_t bytes;       /* of a copy or fill; of an allocation where the recorder says it */
    uint64_t correlation; /* the recorder's number that calls and their work share, within a process */
    uint64_t object;      /* calls on events: the event's id. Frees and allocations: the address */
    uint64_t source_address, sink_address; /* of copies, where the recorder says them; 0: not known */
    uint64_t waits_for; /* a stream's wait: correlation of the event record that it waits for */
    uint32_t name;      /* index of a string */
    uint32_t process, thread;
    uint32_t device, stream; /* of a synchronising call too, where the recorder says it */
    uint32_t peer;     /* device work: the call that submitted it. Calls: the first work submitted by them */
    uint32_t next;     /* device work: the next work of the same call (graphs, batches), or HR_NONE */
    uint8_t kind;      /* hr_event_kind */
    uint8_t call;      /* hr_call */
    uint8_t direction; /* hr_direction */
    uint8_t source, sink; /* hr_memory, of copies */
    uint8_t first;        /* device work: the first of its name and size class on this device: warm-up */
    uint8_t nested;       /* calls: inside another call of the same thread */
} hr_event;

typedef struct hr_trace_process {
    uint64_t id;
    uint32_t name;
} hr_trace_process;

typedef struct hr_trace_thread {
    uint32_t process;
    uint64_t id;
    uint32_t name;
} hr_trace_thread;

typedef struct hr_trace_device {
    uint64_t id;
    uint32_t name;
    uint32_t multiprocessors;              /* 0: not known */
    uint32_t compute_major, compute_minor; /* 0: not known */
    bool works;                            /* has work in this trace */
} hr_trace_device;

typedef enum hr_stream_flag {
    HR_STREAM_FLAG_UNKNOWN = 0,
    HR_STREAM_FLAG_BLOCKING, /* plain cudaStreamCreate: ordered against the legacy default stream */
    HR_STREAM_FLAG_NON_BLOCKING,
    HR_STREAM_FLAG_NULL,      /* the legacy default stream */
    HR_STREAM_FLAG_PER_THREAD /* the per-thread default stream */
} hr_stream_flag;

typedef struct hr_trace_stream {
    uint32_t process, device;
    uint64_t context, id;
    hr_stream_flag flag;
} hr_trace_stream;

typedef enum hr_trace_format {
    HR_FORMAT_UNKNOWN = 0,
    HR_FORMAT_CHROME,   /* Chrome JSON of nobody in particular */
    HR_FORMAT_KINETO,   /* PyTorch's profiler */
    HR_FORMAT_NSIGHT,   /* Nsight Systems, exported to SQLite */
    HR_FORMAT_HEADRACE, /* headrace run --trace */
    HR_FORMAT_RECORDED  /* the recorder of headrace audit -- COMMAND */
} hr_trace_format;

/* "chrome", "kineto", "nsight", "headrace" or "cupti". Static storage. */
const char *hr_trace_format_name(hr_trace_format format);

/* What a recorder tells; a rule that needs what is missing answers "cannot tell" and names it. */
typedef struct hr_trace_has {
    bool calls;        /* host calls, with thread and time */
    bool memory_kinds; /* pageable or pinned, of at least one copy between host and device */
    bool bytes;        /* sizes of copies */
    bool streams;      /* work names its stream */
    bool stream_flags; /* blocking or not */
    bool events;       /* records and waits name their event or stream */
    bool correlation;  /* calls can be joined with their work */
    bool addresses;    /* copies name the memory that they touch */
    bool migrations;   /* managed memory's moves are recorded */
} hr_trace_has;

typedef struct hr_trace {
    char *path;
    hr_trace_format format;
    hr_trace_has has;
    bool pytorch; /* the program's own words: fixes are told in its API */
    bool hip;
    bool serialised;       /* something made every launch wait (CUDA_LAUNCH_BLOCKING, a serialising tool) */
    uint32_t lost_records; /* the recorder says that it dropped some */
    uint32_t duplicates;   /* records that were there twice, and are kept once */
    char missing[256];     /* tables or fields that this file lacks, in words; "" if none */

    hr_event *events; /* by begin, then by longer first */
    uint32_t event_count;
    uint32_t event_capacity;

    hr_trace_process *processes;
    hr_trace_thread *threads;
    hr_trace_device *devices;
    hr_trace_stream *streams;
    uint32_t process_count, thread_count, device_count, stream_count;

    char *strings; /* one after another, each ended by a zero byte */
    size_t strings_bytes, strings_capacity;
    uint64_t *string_at; /* offset of string i */
    uint32_t string_count, string_capacity;
    struct hr_trace_index *index; /* look-up while reading; gone after hr_trace_finish() */

    int64_t origin_ns; /* the recorder's clock at time 0 */
    /* Made by hr_trace_finish(): device work from first begin to last end, of all devices. */
    int64_t work_begin_ns, work_end_ns;
    uint32_t *work; /* indices of device work, by begin */
    uint32_t work_count;
    uint32_t *calls; /* indices of calls that are not nested, by thread, then by begin */
    uint32_t call_count;
    uint32_t
        *thread_calls; /* thread t's calls are calls[thread_calls[t]] … before calls[thread_calls[t+1]] */
    uint32_t *stream_work_at; /* stream s's work is stream_work[stream_work_at[s]] …, in order */
    uint32_t *stream_work;
} hr_trace;

/* An empty trace. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_trace_new(const char *path, hr_trace **trace, hr_error *error);
/* Frees and clears *trace; null is fine. */
void hr_trace_free(hr_trace **trace);

/* While reading. Each finds or adds, and returns HR_NONE only when memory runs out. */
uint32_t hr_trace_string(hr_trace *trace, const char *text, size_t length);
uint32_t hr_trace_process_of(hr_trace *trace, uint64_t id);
uint32_t hr_trace_thread_of(hr_trace *trace, uint32_t process, uint64_t id);
uint32_t hr_trace_device_of(hr_trace *trace, uint64_t id);
uint32_t hr_trace_stream_of(hr_trace *trace, uint32_t process, uint32_t device, uint64_t context,
                            uint64_t id);
/*
 * A new event, everything "not known"; times are the recorder's own clock. The pointer lives until the next
 * one is added. Null when memory, or the 2^32 − 2 events that an index can name, run out.
 */
hr_event *hr_trace_add(hr_trace *trace);
/*
 * Sorts, shifts times to the first event, joins calls with their work by (process, correlation), moves
 * synchronisation records into their calls, marks nested calls and first occurrences, fills the lists.
 * HR_E_HOST_MEMORY; HR_E_FORMAT when there is no device work and no call in it.
 */
HR_CHECKED hr_status hr_trace_finish(hr_trace *trace, hr_error *error);

/* After hr_trace_finish(). */
static inline const char *hr_trace_text(const hr_trace *trace, uint32_t string)
{
    return string < trace->string_count ? trace->strings + trace->string_at[string] : "";
}
static inline bool hr_event_is_work(const hr_event *event)
{
    return event->kind >= HR_EVENT_COPY && event->kind <= HR_EVENT_KERNEL;
}
static inline int64_t hr_event_ns(const hr_event *event)
{
    return event->end_ns - event->begin_ns;
}
static inline bool hr_event_is_upload(const hr_event *event)
{
    return event->kind == HR_EVENT_COPY && event->direction == HR_DIRECTION_H2D;
}
static inline bool hr_event_is_download(const hr_event *event)
{
    return event->kind == HR_EVENT_COPY && event->direction == HR_DIRECTION_D2H;
}
/*
 * A download of this many bytes is a result that the program hands on, rather than a value by which it decides what to submit
 * next. Programs that do need it for their next step exist; advice that rests on this says so.
 */
#define HR_RESULT_BYTES (UINT64_C(1) << 20)
static inline bool hr_event_is_result(const hr_event *event)
{
    return hr_event_is_download(event) && event->bytes >= HR_RESULT_BYTES;
}
/* The host memory of a copy between host and device. */
static inline hr_memory hr_event_host_memory(const hr_event *event)
{
    return (hr_memory)(event->direction == HR_DIRECTION_D2H ? event->sink : event->source);
}

/*
 * How long the call of a piece of device work covers it: 1 when the host waited for all of it, 0 when the
 * call returned before it began. −1 when its call is not known.
 */
double hr_trace_cover(const hr_trace *trace, const hr_event *work);
/* Is the call part of the steady state: is most of the work submitted next, work that was seen before? */
bool hr_trace_is_steady(const hr_trace *trace, const hr_event *call);

/*
 * Do both directions take turns in one engine? Then they never overlap, and time and again a copy begins right when one
 * of the other direction in another stream has ended, for which it had been waiting: one that the host submits only then, since it
 * waited itself, says nothing of engines.
 */
bool hr_trace_has_one_copy_engine(const hr_trace *trace);

/* Busy times of one device (HR_NONE: of all). Sums of unions, so they never exceed the span. */
typedef struct hr_trace_usage {
    int64_t span_ns; /* first begin to last end of its work */
    int64_t kernel_ns, copy_ns, fill_ns;
    int64_t h2d_ns, d2h_ns;
    int64_t overlap_ns; /* copies while kernels run */
    int64_t idle_ns;    /* neither copies nor fills nor kernels */
    uint64_t h2d_bytes, d2h_bytes, copies, kernels, fills;
} hr_trace_usage;
HR_CHECKED hr_status hr_trace_measure(const hr_trace *trace, uint32_t device, hr_trace_usage *usage);

#endif
