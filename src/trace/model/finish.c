/* SPDX-License-Identifier: Apache-2.0 */
/* Putting a trace in order once all of it is read. */
#include "trace/model/build.h"

#include <stdlib.h>
#include <string.h>

static int in_time(const void *left, const void *right)
{
    const hr_event *a = left;
    const hr_event *b = right;
    /* Records of waits go last: they are dropped once the calls have what they know. */
    if ((a->kind == HR_EVENT_SYNC) != (b->kind == HR_EVENT_SYNC))
        return a->kind == HR_EVENT_SYNC ? 1 : -1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    return 0;
}

/* Thirteen days: far more than anybody records, and little enough that sums of times do not overflow. */
#define MOST_SPAN_NS (INT64_C(1) << 50)

static hr_status shift_to_origin(hr_trace *trace, hr_error *error)
{
    trace->origin_ns = trace->events[0].begin_ns;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        hr_event *event = &trace->events[i];
        int64_t begin;
        int64_t end;
        if (__builtin_sub_overflow(event->begin_ns, trace->origin_ns, &begin))
            begin = INT64_MAX;
        if (event->end_ns < event->begin_ns)
            end = begin;
        else if (__builtin_sub_overflow(event->end_ns, trace->origin_ns, &end))
            end = INT64_MAX;
        /* Records of waits are only asked for what they know; some have no time at all. */
        if (end > MOST_SPAN_NS && event->kind != HR_EVENT_SYNC)
            return hr_fail(
                error, HR_E_FORMAT,
                "%s: an event ends %.1f days after the first one began: the clock of one of them is wrong",
                trace->path, (double)end / 86400e9);
        event->begin_ns = begin;
        event->end_ns = end;
    }
    return HR_OK;
}

static bool same_record(const hr_event *a, const hr_event *b)
{
    return a->correlation == b->correlation && a->kind == b->kind && a->name == b->name &&
           a->process == b->process && a->thread == b->thread && a->device == b->device &&
           a->stream == b->stream && a->bytes == b->bytes && a->object == b->object;
}

/*
 * Two files of one run put together, or a recorder that was emptied twice: the same record again. Nothing runs twice at the same
 * nanoseconds under the same number; both kept, it would count twice and stand in its own way.
 */
static void drop_duplicates(hr_trace *trace)
{
    enum { LOOK_BACK = 16 };
    uint32_t kept = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *event = &trace->events[i];
        bool twice = false;
        for (uint32_t k = kept; k-- > 0 && kept - k <= LOOK_BACK && !twice;) {
            const hr_event *before = &trace->events[k];
            if (before->begin_ns != event->begin_ns || before->end_ns != event->end_ns)
                break;
            twice = event->correlation != 0 && event->end_ns > event->begin_ns &&
                    event->kind != HR_EVENT_SYNC && same_record(before, event);
        }
        if (twice)
            trace->duplicates++;
        else
            trace->events[kept++] = *event;
    }
    trace->event_count = kept;
}

/* A pebibyte: more than any machine moves in one piece, and little enough that sums of sizes do not overflow. */
#define MOST_BYTES (UINT64_C(1) << 50)

static hr_status check_sizes(const hr_trace *trace, hr_error *error)
{
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *event = &trace->events[i];
        if (hr_event_is_work(event) && event->bytes > MOST_BYTES)
            return hr_fail(
                error, HR_E_FORMAT,
                "%s: the %s %.3f ms behind the first event has %lld bytes, and at most 2^50 make sense",
                trace->path, event->kind == HR_EVENT_FILL ? "fill" : "copy", (double)event->begin_ns / 1e6,
                (long long)event->bytes);
    }
    return HR_OK;
}

/* A key that calls and their work share. */
typedef struct hr_joint {
    uint64_t correlation;
    uint32_t process, event;
} hr_joint;

static int by_correlation(const void *left, const void *right)
{
    const hr_joint *a = left;
    const hr_joint *b = right;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

/* Calls with a correlation, sorted. */
static hr_joint *call_joints(const hr_trace *trace, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < trace->event_count; i++)
        *count += trace->events[i].kind == HR_EVENT_CALL && trace->events[i].correlation != 0;
    hr_joint *joints = malloc((*count + 1) * sizeof *joints);
    if (joints == NULL)
        return NULL;
    uint32_t at = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *event = &trace->events[i];
        if (event->kind == HR_EVENT_CALL && event->correlation != 0)
            joints[at++] = (hr_joint){event->correlation, event->process, i};
    }
    qsort(joints, *count, sizeof *joints, by_correlation);
    return joints;
}

/*
 * The call with this correlation in this process. Work of a file that does not say the process takes the only
 * call with that number; where two processes use the number, nobody can say whose it is.
 */
static uint32_t find_call(const hr_joint *joints, uint32_t count, uint64_t correlation, uint32_t process)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (joints[middle].correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t found = HR_NONE;
    for (uint32_t i = low; i < count && joints[i].correlation == correlation; i++) {
        if (process != HR_NONE && joints[i].process == process)
            return joints[i].event;
        if (process == HR_NONE) {
            if (found != HR_NONE && joints[i].process != joints[i - 1].process)
                return HR_NONE;
            found = found == HR_NONE ? joints[i].event : found;
        }
    }
    return found;
}

/* Moves what a recorder says about a wait into the call that waited. */
static void take_sync(hr_event *call, const hr_event *sync)
{
    if (call->stream == HR_NONE)
        call->stream = sync->stream;
    if (call->device == HR_NONE)
        call->device = sync->device;
    if (call->object == 0)
        call->object = sync->object;
    if (call->waits_for == 0)
        call->waits_for = sync->waits_for;
}

static hr_status join_calls_with_work(hr_trace *trace)
{
    uint32_t count;
    hr_joint *joints = call_joints(trace, &count);
    if (joints == NULL)
        return HR_E_HOST_MEMORY;
    uint32_t *last = malloc(((size_t)trace->event_count + 1) * sizeof *last);
    if (last == NULL) {
        free(joints);
        return HR_E_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < trace->event_count; i++) {
        hr_event *event = &trace->events[i];
        if (event->correlation == 0 || (!hr_event_is_work(event) && event->kind != HR_EVENT_SYNC))
            continue;
        uint32_t found = find_call(joints, count, event->correlation, event->process);
        if (found == HR_NONE)
            continue;
        hr_event *call = &trace->events[found];
        if (event->process == HR_NONE)
            event->process = call->process;
        if (event->kind == HR_EVENT_SYNC) {
            take_sync(call, event);
            continue;
        }
        trace->has.correlation = true;
        event->peer = found;
        if (call->peer == HR_NONE)
            call->peer = i;
        else
            trace->events[last[found]].next = i;
        last[found] = i;
        if (call->stream == HR_NONE)
            call->stream = event->stream;
        if (call->device == HR_NONE)
            call->device = event->device;
    }
    free(last);
    free(joints);
    while (trace->event_count > 0 && trace->events[trace->event_count - 1].kind == HR_EVENT_SYNC)
        trace->event_count--;
    return HR_OK;
}

/* The work of a call inside another one belongs to the call that the program made. *last is the outer call's last work so far,
 * HR_NONE: not looked for yet. */
static void hand_up(hr_trace *trace, uint32_t outer, const hr_event *inner, uint32_t *last)
{
    if (inner->peer == HR_NONE)
        return;
    if (*last == HR_NONE)
        *last = trace->events[outer].peer;
    while (*last != HR_NONE && trace->events[*last].next != HR_NONE)
        *last = trace->events[*last].next;
    if (*last == HR_NONE)
        trace->events[outer].peer = inner->peer;
    else
        trace->events[*last].next = inner->peer;
    for (uint32_t work = inner->peer; work != HR_NONE; work = trace->events[work].next) {
        trace->events[work].peer = outer;
        *last = work;
    }
}

/* Calls of each thread that lie in no other call; a driver call inside a runtime call is the same wait. */
static hr_status list_calls(hr_trace *trace)
{
    uint32_t threads = trace->thread_count;
    int64_t *open_until = calloc((size_t)threads + 1, sizeof *open_until);
    uint32_t *outer = malloc(((size_t)threads + 1) * sizeof *outer);
    uint32_t *last = malloc(((size_t)threads + 1) * sizeof *last);
    trace->thread_calls = calloc((size_t)threads + 2, sizeof *trace->thread_calls);
    if (open_until == NULL || outer == NULL || last == NULL || trace->thread_calls == NULL) {
        free(open_until);
        free(outer);
        free(last);
        return HR_E_HOST_MEMORY;
    }
    memset(outer, 0xFF, ((size_t)threads + 1) * sizeof *outer);
    for (uint32_t i = 0; i < trace->event_count; i++) {
        hr_event *event = &trace->events[i];
        if (event->kind != HR_EVENT_CALL || event->thread >= threads)
            continue;
        uint32_t around = outer[event->thread];
        if (around != HR_NONE && event->end_ns <= open_until[event->thread] &&
            event->begin_ns < open_until[event->thread]) {
            event->nested = 1;
            hand_up(trace, around, event, &last[event->thread]);
            if (event->call == trace->events[around].call)
                take_sync(&trace->events[around], event);
            continue;
        }
        open_until[event->thread] = event->end_ns;
        outer[event->thread] = i;
        last[event->thread] = HR_NONE;
        trace->thread_calls[event->thread + 1]++;
        trace->call_count++;
    }
    for (uint32_t t = 0; t < threads; t++)
        trace->thread_calls[t + 1] += trace->thread_calls[t];
    trace->calls = malloc(((size_t)trace->call_count + 1) * sizeof *trace->calls);
    if (trace->calls != NULL) {
        memcpy(outer, trace->thread_calls, threads * sizeof *outer);
        for (uint32_t i = 0; i < trace->event_count; i++) {
            const hr_event *event = &trace->events[i];
            if (event->kind == HR_EVENT_CALL && event->thread < threads && !event->nested)
                trace->calls[outer[event->thread]++] = i;
        }
    }
    free(open_until);
    free(outer);
    free(last);
    return trace->calls != NULL ? HR_OK : HR_E_HOST_MEMORY;
}

static hr_status list_work(hr_trace *trace)
{
    uint32_t streams = trace->stream_count;
    trace->stream_work_at = calloc((size_t)streams + 2, sizeof *trace->stream_work_at);
    trace->work = calloc((size_t)trace->event_count + 1, sizeof *trace->work);
    uint32_t *fill = calloc((size_t)streams + 1, sizeof *fill);
    if (trace->stream_work_at == NULL || trace->work == NULL || fill == NULL) {
        free(fill);
        return HR_E_HOST_MEMORY;
    }
    uint32_t streamed = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *event = &trace->events[i];
        if (!hr_event_is_work(event))
            continue;
        if (trace->work_count == 0)
            trace->work_begin_ns = event->begin_ns;
        trace->work[trace->work_count++] = i;
        if (event->end_ns > trace->work_end_ns)
            trace->work_end_ns = event->end_ns;
        if (event->device < trace->device_count)
            trace->devices[event->device].works = true;
        if (event->stream < streams) {
            trace->stream_work_at[event->stream + 1]++;
            streamed++;
        }
    }
    for (uint32_t s = 0; s < streams; s++) {
        trace->stream_work_at[s + 1] += trace->stream_work_at[s];
        fill[s] = trace->stream_work_at[s];
    }
    trace->stream_work = malloc(((size_t)streamed + 1) * sizeof *trace->stream_work);
    if (trace->stream_work != NULL) {
        for (uint32_t i = 0; i < trace->work_count; i++) {
            uint32_t stream = trace->events[trace->work[i]].stream;
            if (stream < streams)
                trace->stream_work[fill[stream]++] = trace->work[i];
        }
    }
    free(fill);
    return trace->stream_work != NULL ? HR_OK : HR_E_HOST_MEMORY;
}

static int by_sameness(const void *left, const void *right)
{
    const hr_joint *a = left;
    const hr_joint *b = right;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

/* Marks work whose kind, name, device and size class appear for the first time. */
static hr_status mark_first(hr_trace *trace)
{
    hr_joint *same = malloc(((size_t)trace->work_count + 1) * sizeof *same);
    if (same == NULL)
        return HR_E_HOST_MEMORY;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        unsigned size_class = event->bytes != 0 ? 64U - (unsigned)__builtin_clzll(event->bytes) : 0;
        same[i] = (hr_joint){((uint64_t)event->name << 32) | ((uint64_t)event->kind << 24) |
                                 ((uint64_t)event->direction << 16) | size_class,
                             event->device, trace->work[i]};
    }
    qsort(same, trace->work_count, sizeof *same, by_sameness);
    for (uint32_t i = 0; i < trace->work_count; i++) {
        bool first = i == 0 || same[i].correlation != same[i - 1].correlation ||
                     same[i].process != same[i - 1].process;
        trace->events[same[i].event].first = first;
    }
    free(same);
    return HR_OK;
}

static void note_what_there_is(hr_trace *trace)
{
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *event = &trace->events[i];
        if (event->kind == HR_EVENT_CALL) {
            trace->has.calls = true;
            if (event->call == HR_CALL_STREAM_WAIT && (event->object != 0 || event->waits_for != 0))
                trace->has.events = true;
        }
        if (event->kind != HR_EVENT_COPY)
            continue;
        trace->has.bytes |= event->bytes != 0;
        trace->has.addresses |= event->source_address != 0 && event->sink_address != 0;
        if (event->direction == HR_DIRECTION_H2D || event->direction == HR_DIRECTION_D2H) {
            hr_memory host = hr_event_host_memory(event);
            trace->has.memory_kinds |= host == HR_MEMORY_PAGEABLE || host == HR_MEMORY_PINNED;
        }
        trace->has.migrations |= event->direction >= HR_DIRECTION_MIGRATE_H2D;
    }
    for (uint32_t i = 0; i < trace->work_count && !trace->has.streams; i++)
        trace->has.streams = trace->events[trace->work[i]].stream != HR_NONE;
    for (uint32_t i = 0; i < trace->stream_count && !trace->has.stream_flags; i++)
        trace->has.stream_flags = trace->streams[i].flag != HR_STREAM_FLAG_UNKNOWN;
}

hr_status hr_trace_finish(hr_trace *trace, hr_error *error)
{
    hr_trace_index_free(trace);
    if (trace->event_count == 0)
        return hr_fail(error, HR_E_FORMAT, "%s: holds no GPU work and no runtime call to judge", trace->path);
    qsort(trace->events, trace->event_count, sizeof *trace->events, in_time);
    hr_status status = shift_to_origin(trace, error);
    if (status != HR_OK)
        return status;
    drop_duplicates(trace);
    status = check_sizes(trace, error);
    if (status != HR_OK)
        return status;
    status = join_calls_with_work(trace);
    if (status == HR_OK)
        status = list_calls(trace);
    if (status == HR_OK)
        status = list_work(trace);
    if (status == HR_OK)
        status = mark_first(trace);
    if (status != HR_OK)
        return hr_fail(error, status, "%s: no memory for %u events", trace->path, trace->event_count);
    note_what_there_is(trace);
    if (trace->work_count == 0)
        return hr_fail(error, HR_E_FORMAT,
                       "%s: holds %u runtime calls and no GPU work; record GPU activity too", trace->path,
                       trace->call_count);
    return HR_OK;
}
