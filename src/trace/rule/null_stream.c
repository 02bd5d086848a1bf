/* SPDX-License-Identifier: Apache-2.0 */
/* null-stream: work on the legacy default stream cuts the overlap of blocking streams. Design note:
 * docs/audit/null-stream.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

static bool stream_works(const hr_trace *trace, uint32_t stream)
{
    return trace->stream_work_at[stream + 1] > trace->stream_work_at[stream];
}

/* Streams that wait for the default stream `null`, and that have work. */
static uint32_t blocking_beside(const hr_trace *trace, uint32_t null)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        const hr_trace_stream *stream = &trace->streams[s];
        count += stream->flag == HR_STREAM_FLAG_BLOCKING && stream->device == trace->streams[null].device &&
                 stream->process == trace->streams[null].process &&
                 stream->context == trace->streams[null].context && stream_works(trace, s);
    }
    return count;
}

/*
 * Did work of a blocking stream, submitted before this work of the default stream, end just before it began,
 * and other work follow? Then the default stream stood between the two.
 */
static bool cuts(const hr_trace *trace, uint32_t work)
{
    enum { NEIGHBOURS = 8 };
    const hr_event *event = &trace->events[work];
    uint32_t before = HR_NONE, after = HR_NONE;
    for (uint32_t i = work, seen = 0; i-- > 0 && seen < NEIGHBOURS;) {
        const hr_event *other = &trace->events[i];
        if (!hr_event_is_work(other) || other->device != event->device)
            continue;
        seen++;
        if (other->stream < trace->stream_count &&
            trace->streams[other->stream].flag == HR_STREAM_FLAG_BLOCKING) {
            before = i;
            break;
        }
    }
    for (uint32_t i = work + 1, seen = 0; i < trace->event_count && seen < NEIGHBOURS; i++) {
        const hr_event *other = &trace->events[i];
        if (!hr_event_is_work(other) || other->device != event->device)
            continue;
        seen++;
        if (other->stream < trace->stream_count &&
            trace->streams[other->stream].flag == HR_STREAM_FLAG_BLOCKING) {
            after = i;
            break;
        }
    }
    if (before == HR_NONE || after == HR_NONE)
        return false;
    return trace->events[before].end_ns <= event->begin_ns && trace->events[after].begin_ns >= event->end_ns;
}

static hr_status judge(const hr_trace *trace, uint32_t null, hr_findings *findings)
{
    uint32_t beside = blocking_beside(trace, null);
    if (beside == 0)
        return HR_OK;
    hr_finding *finding = NULL;
    for (uint32_t i = trace->stream_work_at[null]; i < trace->stream_work_at[null + 1]; i++) {
        uint32_t work = trace->stream_work[i];
        if (!cuts(trace, work))
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "null-stream")) == NULL)
            return HR_E_HOST_MEMORY;
        finding->device = trace->streams[null].device;
        finding->repair.kind = HR_REPAIR_FREE_STREAM;
        if (hr_rule_take(finding, trace, work, 0) != HR_OK)
            return HR_E_HOST_MEMORY;
    }
    if (finding == NULL)
        return HR_OK;
    snprintf(finding->text, sizeof finding->text,
             "%llu operations on the legacy default stream run between work of %u blocking streams, which "
             "wait for it "
             "and for which it waits: nothing overlaps across them.",
             (unsigned long long)finding->count, beside);
    snprintf(finding->fix, sizeof finding->fix,
             "make the streams with cudaStreamNonBlocking and move this work to one of them, or compile with "
             "--default-stream per-thread; add events where the order was meant");
    snprintf(finding->proof, sizeof finding->proof,
             "the default stream's waiting may hide a real dependency: check who uses what these operations "
             "write");
    finding->little = 0.005;
    hr_finding_finish(finding);
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        if (trace->streams[s].flag == HR_STREAM_FLAG_NULL && judge(trace, s, findings) != HR_OK)
            return hr_rule_no_memory(trace, error);
    }
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.stream_flags ? NULL : "which streams are blocking";
}

const hr_rule hr_rule_null_stream = {
    .name = "null-stream",
    .meaning = "work on the legacy default stream between work of blocking streams",
    .needs = "the flags of streams",
    .lacks = lacks,
    .check = check,
};
