/* SPDX-License-Identifier: Apache-2.0 */
/* driver-lock: asynchronous calls are long only while another thread is inside the driver. Design note:
 * docs/audit/driver-lock.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_async(const hr_event *call)
{
    return call->call == HR_CALL_LAUNCH || call->call == HR_CALL_COPY_ASYNC ||
           call->call == HR_CALL_FILL_ASYNC || call->call == HR_CALL_EVENT_RECORD;
}

/*
 * For every asynchronous call the longest call of another thread of its process that was running when it
 * began and covers half of it, or HR_NONE. A thread is in one call at a time, so one pass over the events
 * with every thread's latest call is enough.
 */
static uint32_t *find_holders(const hr_trace *trace)
{
    uint32_t *holders = malloc(((size_t)trace->event_count + 1) * sizeof *holders);
    uint32_t *latest = malloc(((size_t)trace->thread_count + 1) * sizeof *latest);
    if (holders == NULL || latest == NULL) {
        free(holders);
        free(latest);
        return NULL;
    }
    memset(latest, 0xFF, ((size_t)trace->thread_count + 1) * sizeof *latest);
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *call = &trace->events[i];
        holders[i] = HR_NONE;
        if (call->kind != HR_EVENT_CALL || call->nested || call->thread >= trace->thread_count)
            continue;
        for (uint32_t t = 0; is_async(call) && t < trace->thread_count; t++) {
            if (t == call->thread || latest[t] == HR_NONE || trace->threads[t].process != call->process)
                continue;
            const hr_event *other = &trace->events[latest[t]];
            int64_t end = other->end_ns < call->end_ns ? other->end_ns : call->end_ns;
            bool covers = 2 * (end - call->begin_ns) >= hr_event_ns(call) && end > call->begin_ns;
            if (covers &&
                (holders[i] == HR_NONE || hr_event_ns(other) > hr_event_ns(&trace->events[holders[i]])))
                holders[i] = latest[t];
        }
        latest[call->thread] = i;
    }
    free(latest);
    return holders;
}

typedef struct lock_times {
    hr_durations alone, beside;
} lock_times;

static hr_status sort_out(const hr_trace *trace, const uint32_t *holders, lock_times *times)
{
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        if (!is_async(call))
            continue;
        hr_durations *list = holders[trace->calls[i]] == HR_NONE ? &times->alone : &times->beside;
        if (hr_durations_add(list, hr_event_ns(call)) != HR_OK)
            return HR_E_HOST_MEMORY;
    }
    return HR_OK;
}

static hr_status report(const hr_trace *trace, const uint32_t *holders, lock_times *times,
                        hr_findings *findings)
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
        uint32_t held_by = holders[index];
        if (!is_async(call) || hr_event_ns(call) <= 2 * alone || held_by == HR_NONE)
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
    uint32_t *holders = find_holders(trace);
    hr_status status = holders != NULL ? sort_out(trace, holders, &times) : HR_E_HOST_MEMORY;
    if (status == HR_OK && times.alone.count >= LEAST && times.beside.count >= LEAST) {
        int64_t alone = hr_durations_percentile(&times.alone, 99.0);
        int64_t beside = hr_durations_percentile(&times.beside, 50.0);
        /* Half of the calls beside another thread slower than nearly all calls without: the company is the
         * cause. */
        if (beside > 2 * alone && beside > 50 * HR_RULE_US)
            status = report(trace, holders, &times, findings);
    }
    hr_durations_free(&times.alone);
    hr_durations_free(&times.beside);
    free(holders);
    return status == HR_OK ? HR_OK : hr_rule_no_memory(trace, error);
}

const hr_rule hr_rule_driver_lock = {
    .name = "driver-lock",
    .meaning = "asynchronous calls are long only while another thread is inside the driver",
    .needs = "host calls of every thread",
    .lacks = hr_rule_lacks_calls,
    .check = check,
};
