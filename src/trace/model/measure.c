/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says in figures. */
#include "trace/model/trace.h"

double hr_trace_cover(const hr_trace *trace, const hr_event *work)
{
    if (work->peer == HR_NONE)
        return -1.0;
    const hr_event *call = &trace->events[work->peer];
    int64_t begin = call->begin_ns > work->begin_ns ? call->begin_ns : work->begin_ns;
    int64_t end = call->end_ns < work->end_ns ? call->end_ns : work->end_ns;
    int64_t length = hr_event_ns(work);
    if (length <= 0)
        return end >= begin ? 1.0 : 0.0;
    return end > begin ? (double)(end - begin) / (double)length : 0.0;
}

enum { LOOK_AHEAD = 8 };

bool hr_trace_is_steady(const hr_trace *trace, const hr_event *call)
{
    /* The first work that begins after the call did. */
    uint32_t low = 0;
    uint32_t high = trace->work_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->events[trace->work[middle]].begin_ns < call->begin_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    uint32_t seen = 0;
    uint32_t fresh = 0;
    for (uint32_t i = low; i < trace->work_count && seen + fresh < LOOK_AHEAD; i++) {
        if (trace->events[trace->work[i]].first)
            fresh++;
        else
            seen++;
    }
    return seen > fresh;
}

typedef struct hr_busy {
    hr_intervals kernels, copies, fills, uploads, downloads, any;
} hr_busy;

static void busy_free(hr_busy *busy)
{
    hr_intervals_free(&busy->kernels);
    hr_intervals_free(&busy->copies);
    hr_intervals_free(&busy->fills);
    hr_intervals_free(&busy->uploads);
    hr_intervals_free(&busy->downloads);
    hr_intervals_free(&busy->any);
}

static hr_status busy_add(hr_busy *busy, const hr_event *event, hr_trace_usage *usage)
{
    hr_intervals *set = &busy->kernels;
    hr_intervals *side = NULL;
    if (event->kind == HR_EVENT_KERNEL) {
        usage->kernels++;
    } else if (event->kind == HR_EVENT_FILL) {
        set = &busy->fills;
        usage->fills++;
    } else {
        set = &busy->copies;
        usage->copies++;
        if (event->direction == HR_DIRECTION_H2D || event->direction == HR_DIRECTION_MIGRATE_H2D) {
            side = &busy->uploads;
            usage->h2d_bytes += event->bytes;
        } else if (event->direction == HR_DIRECTION_D2H || event->direction == HR_DIRECTION_MIGRATE_D2H) {
            side = &busy->downloads;
            usage->d2h_bytes += event->bytes;
        }
    }
    hr_status status = hr_intervals_add(set, event->begin_ns, event->end_ns);
    if (status == HR_OK && side != NULL)
        status = hr_intervals_add(side, event->begin_ns, event->end_ns);
    if (status == HR_OK)
        status = hr_intervals_add(&busy->any, event->begin_ns, event->end_ns);
    return status;
}

hr_status hr_trace_measure(const hr_trace *trace, uint32_t device, hr_trace_usage *usage)
{
    hr_trace_usage made = {0};
    hr_busy busy = {0};
    hr_status status = HR_OK;
    int64_t begin = INT64_MAX;
    int64_t end = INT64_MIN;
    for (uint32_t i = 0; i < trace->work_count && status == HR_OK; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (device != HR_NONE && event->device != device)
            continue;
        begin = event->begin_ns < begin ? event->begin_ns : begin;
        end = event->end_ns > end ? event->end_ns : end;
        status = busy_add(&busy, event, &made);
    }
    if (status == HR_OK && end > begin) {
        hr_intervals *sets[] = {&busy.kernels, &busy.copies,    &busy.fills,
                                &busy.uploads, &busy.downloads, &busy.any};
        for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
            hr_intervals_normalise(sets[i]);
        made.span_ns = end - begin;
        made.kernel_ns = hr_intervals_length(&busy.kernels);
        made.copy_ns = hr_intervals_length(&busy.copies);
        made.fill_ns = hr_intervals_length(&busy.fills);
        made.h2d_ns = hr_intervals_length(&busy.uploads);
        made.d2h_ns = hr_intervals_length(&busy.downloads);
        made.overlap_ns = hr_intervals_common(&busy.kernels, &busy.copies);
        made.idle_ns = made.span_ns - hr_intervals_length(&busy.any);
    }
    busy_free(&busy);
    if (status == HR_OK)
        *usage = made;
    return status;
}

bool hr_trace_has_one_copy_engine(const hr_trace *trace)
{
    enum { PROMPT_NS = 15 * 1000, LEAST_TURNS = 2 };
    const hr_event *last[2] = {NULL, NULL}; /* the copy of each direction that ended last */
    uint32_t turns = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *copy = &trace->events[trace->work[i]];
        if (!hr_event_is_upload(copy) && !hr_event_is_download(copy))
            continue;
        bool down = hr_event_is_download(copy);
        const hr_event *other = last[!down];
        if (other != NULL && other->device == copy->device) {
            if (other->end_ns > copy->begin_ns)
                return false;
            bool waited = copy->peer != HR_NONE && trace->events[copy->peer].end_ns < other->end_ns;
            turns += waited && other->stream != copy->stream && copy->begin_ns - other->end_ns <= PROMPT_NS;
        }
        if (last[down] == NULL || copy->end_ns > last[down]->end_ns)
            last[down] = copy;
    }
    return turns >= LEAST_TURNS;
}
