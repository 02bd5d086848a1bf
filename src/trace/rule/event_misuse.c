/* SPDX-License-Identifier: Apache-2.0 */
/* event-misuse: a stream waits for an event that nobody has recorded, which is no wait at all. Design note:
 * docs/audit/event-misuse.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>
#include <stdlib.h>

/* An event of the program, by process and handle, at the moment of a call. */
typedef struct use {
    uint64_t object;
    uint32_t process, event;
} use;

static int by_object(const void *left, const void *right)
{
    const use *a = left, *b = right;
    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

static size_t collect(const hr_trace *trace, use *uses)
{
    size_t count = 0;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        bool about_events = call->call == HR_CALL_EVENT_RECORD || call->call == HR_CALL_STREAM_WAIT ||
                            call->call == HR_CALL_EVENT_SYNC || call->call == HR_CALL_EVENT_CREATE;
        if (about_events && call->object != 0)
            uses[count++] = (use){call->object, call->process, trace->calls[i]};
    }
    qsort(uses, count, sizeof *uses, by_object);
    return count;
}

/* The uses of one event: from `first` up to, not including, the result. */
static size_t end_of(const use *uses, size_t count, size_t first)
{
    size_t end = first + 1;
    while (end < count && uses[end].object == uses[first].object && uses[end].process == uses[first].process)
        end++;
    return end;
}

/*
 * Waits of one event that come before its first record. One such wait is how a ring begins ("the buffer is free") and is meant; more, or an event
 * that is never recorded at all, are not. An event that was made before the trace began may have been recorded then: it is not judged.
 */
static hr_status judge_event(const hr_trace *trace, const use *uses, size_t count, hr_findings *findings,
                             hr_finding **finding)
{
    bool created = false, recorded = false;
    size_t early = 0;
    for (size_t i = 0; i < count && !recorded; i++) {
        hr_call call = (hr_call)trace->events[uses[i].event].call;
        created |= call == HR_CALL_EVENT_CREATE;
        recorded = call == HR_CALL_EVENT_RECORD;
        early += created && (call == HR_CALL_STREAM_WAIT || call == HR_CALL_EVENT_SYNC);
    }
    if (!created || early == 0 || (recorded && early == 1))
        return HR_OK;
    for (size_t i = 0; i < count && early > 0; i++) {
        hr_call call = (hr_call)trace->events[uses[i].event].call;
        if (call != HR_CALL_STREAM_WAIT && call != HR_CALL_EVENT_SYNC)
            continue;
        early--;
        if (*finding == NULL && (*finding = hr_findings_add(findings, "event-misuse")) == NULL)
            return HR_E_HOST_MEMORY;
        if (hr_finding_count(*finding, trace, uses[i].event, 0) != HR_OK ||
            hr_rule_show(*finding, uses[i].event) != HR_OK)
            return HR_E_HOST_MEMORY;
    }
    return HR_OK;
}

static hr_status judge(const hr_trace *trace, const use *uses, size_t count, hr_findings *findings,
                       hr_finding **finding)
{
    for (size_t first = 0, end; first < count; first = end) {
        end = end_of(uses, count, first);
        hr_status status = judge_event(trace, uses + first, end - first, findings, finding);
        if (status != HR_OK)
            return status;
    }
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    use *uses = malloc(((size_t)trace->call_count + 1) * sizeof *uses);
    if (uses == NULL)
        return hr_rule_no_memory(trace, error);
    hr_finding *finding = NULL;
    hr_status status = judge(trace, uses, collect(trace, uses), findings, &finding);
    free(uses);
    if (status != HR_OK)
        return hr_rule_no_memory(trace, error);
    if (finding == NULL)
        return HR_OK;
    snprintf(finding->text, sizeof finding->text,
             "%llu waits are for events that nobody had recorded yet: such a wait returns at once and orders "
             "nothing. Data may be read before it is there.",
             (unsigned long long)finding->count);
    snprintf(finding->fix, sizeof finding->fix,
             "record the event after the work that it stands for, before the wait is submitted");
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        bool waits = call->call == HR_CALL_STREAM_WAIT || call->call == HR_CALL_EVENT_SYNC;
        if (waits && call->object == 0)
            return "which event a wait is for";
    }
    return trace->has.calls ? NULL : "the calls of the host threads";
}

const hr_rule hr_rule_event_misuse = {
    .name = "event-misuse",
    .meaning = "a wait for an event that was not recorded yet orders nothing",
    .needs = "calls on events that name their event",
    .lacks = lacks,
    .check = check,
};
