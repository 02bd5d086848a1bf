/* SPDX-License-Identifier: Apache-2.0 */
/* issue-order: a copy that was ready waited, with its engine idle, behind one submitted earlier that was not.
 * Design note: docs/audit/issue-order.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* Work of this stream between the two moments could wait for another stream's event, which the trace does not
 * always show. */
static bool stream_waits(const hr_trace *trace, uint32_t work)
{
    const hr_event *event = &trace->events[work];
    if (event->peer == HR_NONE)
        return true;
    const hr_event *call = &trace->events[event->peer];
    uint32_t before = hr_rule_before_in_stream(trace, work);
    uint32_t from =
        before != HR_NONE && trace->events[before].peer != HR_NONE ? trace->events[before].peer : 0;
    for (uint32_t i = event->peer; i-- > from;) {
        const hr_event *other = &trace->events[i];
        if (other->kind == HR_EVENT_CALL && other->call == HR_CALL_STREAM_WAIT &&
            other->thread == call->thread)
            return true;
    }
    return false;
}

/*
 * The copy just before `work` in its engine, if it was submitted earlier, belongs to another stream, and
 * itself became ready only after `ready`: the engine then stood idle for it. *idle is how long.
 */
static uint32_t cause_of(const hr_trace *trace, uint32_t work, int64_t ready, int64_t *idle)
{
    const hr_event *event = &trace->events[work];
    int64_t engine_free = 0;
    uint32_t before = HR_NONE;
    for (uint32_t i = work, seen = 0; i-- > 0 && seen < 64;) {
        const hr_event *other = &trace->events[i];
        if (other->kind != HR_EVENT_COPY || other->direction != event->direction ||
            other->device != event->device)
            continue;
        seen++;
        if (before == HR_NONE) {
            before = i;
            continue;
        }
        engine_free = other->end_ns > engine_free ? other->end_ns : engine_free;
        break;
    }
    if (before == HR_NONE)
        return HR_NONE;
    const hr_event *first = &trace->events[before];
    if (first->stream == event->stream || first->peer == HR_NONE ||
        trace->events[first->peer].begin_ns >= trace->events[event->peer].begin_ns)
        return HR_NONE;
    int64_t from = ready > engine_free ? ready : engine_free;
    if (hr_rule_ready_ns(trace, before) <= from || event->begin_ns < first->end_ns)
        return HR_NONE;
    *idle = first->begin_ns - from;
    return before;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_finding *finding = NULL;
    int64_t lost = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        uint32_t work = trace->work[i];
        const hr_event *event = &trace->events[work];
        if (!hr_event_is_upload(event) && !hr_event_is_download(event))
            continue;
        int64_t ready = hr_rule_ready_ns(trace, work), idle = 0;
        if (event->begin_ns - ready < 50 * HR_RULE_US || stream_waits(trace, work))
            continue;
        uint32_t cause = cause_of(trace, work, ready, &idle);
        if (cause == HR_NONE || idle < 50 * HR_RULE_US)
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "issue-order")) == NULL)
            return hr_rule_no_memory(trace, error);
        if (hr_finding_count(finding, trace, work, 0) != HR_OK || hr_rule_show(finding, cause) != HR_OK ||
            hr_rule_show(finding, work) != HR_OK)
            return hr_rule_no_memory(trace, error);
        lost += idle;
    }
    if (finding == NULL)
        return HR_OK;
    char time[24];
    finding->kind = HR_FINDING_INFORMATION;
    snprintf(finding->text, sizeof finding->text,
             "%llu copies that were ready waited while their engine stood idle, %s in all, for a copy that "
             "was submitted earlier on another stream and was "
             "not ready itself.",
             (unsigned long long)finding->count, hr_rule_time(lost, time));
    snprintf(finding->fix, sizeof finding->fix,
             "submit the copies of all streams first, then the kernels, then the copies back; or submit a "
             "copy only once its data is ready");
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.streams && trace->has.correlation ? NULL : "streams, and calls joined with their work";
}

const hr_rule hr_rule_issue_order = {
    .name = "issue-order",
    .meaning =
        "a ready copy waits, with its engine idle, behind one that was submitted earlier and is not ready",
    .needs = "streams, and calls joined with their work",
    .lacks = lacks,
    .check = check,
};
