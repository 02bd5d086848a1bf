/* SPDX-License-Identifier: Apache-2.0 */
/* driver-lock: asynchronous calls are long only while another thread is inside the driver. Design note:
 * docs/audit/driver-lock.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_async(const hr_event *call)
{
    return call->call == HR_CALL_LAUNCH || call->call == HR_CALL_COPY_ASYNC ||
           call->call == HR_CALL_FILL_ASYNC || call->call == HR_CALL_EVENT_RECORD;
}

/* The longest call of another thread of the same process that was already running when this one began and
 * covers half of it, or HR_NONE. */
static uint32_t holder_of(const hr_trace *trace, uint32_t index)
{
    enum { LOOK_BACK = 4096 };
    const hr_event *call = &trace->events[index];
    uint32_t holder = HR_NONE;
    for (uint32_t i = index, seen = 0; i-- > 0 && seen < LOOK_BACK; seen++) {
        const hr_event *other = &trace->events[i];
        if (other->kind != HR_EVENT_CALL || other->nested || other->thread == call->thread ||
            other->process != call->process || other->end_ns <= call->begin_ns)
            continue;
        int64_t end = other->end_ns < call->end_ns ? other->end_ns : call->end_ns;
        if (2 * (end - call->begin_ns) >= hr_event_ns(call) &&
            (holder == HR_NONE || hr_event_ns(other) > hr_event_ns(&trace->events[holder])))
            holder = i;
    }
    return holder;
}

typedef struct lock_times {
    hr_durations alone, beside;
} lock_times;

static hr_status sort_out(const hr_trace *trace, lock_times *times)
{
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        if (!is_async(call))
            continue;
        hr_durations *list = holder_of(trace, trace->calls[i]) == HR_NONE ? &times->alone : &times->beside;
        if (hr_durations_add(list, hr_event_ns(call)) != HR_OK)
            return HR_E_HOST_MEMORY;
    }
    return HR_OK;
}

static hr_status report(const hr_trace *trace, lock_times *times, hr_findings *findings)
{
    int64_t alone = hr_durations_percentile(&times->alone, 99.0);
    int64_t beside = hr_durations_percentile(&times->beside, 99.0);
    hr_finding *finding = hr_findings_add(findings, "driver-lock");
    if (finding == NULL)
        return HR_E_HOST_MEMORY;
    uint32_t holder = HR_NONE;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        uint32_t index = trace->calls[i];
        const hr_event *call = &trace->events[index];
        uint32_t held_by;
        if (!is_async(call) || hr_event_ns(call) <= 2 * alone ||
            (held_by = holder_of(trace, index)) == HR_NONE)
            continue;
        if (hr_finding_count(finding, trace, index, hr_event_ns(call)) != HR_OK ||
            hr_rule_show(finding, index) != HR_OK)
            return HR_E_HOST_MEMORY;
        if (holder == HR_NONE || hr_event_ns(&trace->events[held_by]) > hr_event_ns(&trace->events[holder]))
            holder = held_by;
    }
    char quick[24], slow[24], sum[24];
    finding->kind = HR_FINDING_INFORMATION;
    snprintf(finding->text, sizeof finding->text,
             "99 of 100 asynchronous calls take up to %s, and up to %s while another thread is inside the "
             "driver; %llu long ones hold "
             "their threads for %s. The longest call they waited beside is %.80s.",
             hr_rule_time(alone, quick), hr_rule_time(beside, slow), (unsigned long long)finding->count,
             hr_rule_time(finding->blocked_ns, sum),
             holder == HR_NONE ? "not known" : hr_trace_text(trace, trace->events[holder].name));
    snprintf(finding->fix, sizeof finding->fix,
             "let one thread submit for all, or keep the call that holds the lock (allocation, module "
             "loading, a blocking copy) out of the loop");
    hr_finding_finish(finding);
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 20 };
    lock_times times = {0};
    hr_status status = sort_out(trace, &times);
    if (status == HR_OK && times.alone.count >= LEAST && times.beside.count >= LEAST) {
        int64_t alone = hr_durations_percentile(&times.alone, 99.0);
        int64_t beside = hr_durations_percentile(&times.beside, 50.0);
        /* Half of the calls beside another thread slower than nearly all calls without: the company is the
         * cause. */
        if (beside > 2 * alone && beside > 50 * HR_RULE_US)
            status = report(trace, &times, findings);
    }
    hr_durations_free(&times.alone);
    hr_durations_free(&times.beside);
    return status == HR_OK ? HR_OK : hr_rule_no_memory(trace, error);
}

static const char *lacks(const hr_trace *trace)
{
    return hr_rule_lacks_calls(trace);
}

const hr_rule hr_rule_driver_lock = {
    .name = "driver-lock",
    .meaning = "asynchronous calls are long only while another thread is inside the driver",
    .needs = "host calls of every thread",
    .lacks = lacks,
    .check = check,
};
