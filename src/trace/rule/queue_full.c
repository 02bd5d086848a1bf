/* SPDX-License-Identifier: Apache-2.0 */
/* queue-full: an asynchronous call blocks because about a thousand operations are pending. Design note:
 * docs/audit/queue-full.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* The driver's ring holds 1,024 operations a channel; calls begin to wait somewhat below that. */
enum { FULL = 900 };

static bool is_async(const hr_event *call)
{
    return call->call == HR_CALL_LAUNCH || call->call == HR_CALL_COPY_ASYNC ||
           call->call == HR_CALL_FILL_ASYNC;
}

/* Work of the call's stream that was submitted before it and not done when it began. */
static uint32_t pending(const hr_trace *trace, const hr_event *call)
{
    if (call->stream >= trace->stream_count || call->peer == HR_NONE)
        return 0;
    uint32_t low = trace->stream_work_at[call->stream], high = trace->stream_work_at[call->stream + 1];
    uint32_t count = 0;
    /* Backwards from the call's own work, as long as work was not done yet. */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->stream_work[middle] < call->peer)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t at = low;
    while (at > trace->stream_work_at[call->stream] &&
           trace->events[trace->stream_work[at - 1]].end_ns > call->begin_ns) {
        at--;
        count++;
    }
    return count;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_finding *finding = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        uint32_t index = trace->calls[i];
        const hr_event *call = &trace->events[index];
        if (!is_async(call) || hr_event_ns(call) < 100 * HR_RULE_US)
            continue;
        uint32_t queued = pending(trace, call);
        if (queued < FULL)
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "queue-full")) == NULL)
            return hr_rule_no_memory(trace, error);
        if (hr_finding_count(finding, trace, index, hr_event_ns(call)) != HR_OK ||
            hr_rule_show(finding, index) != HR_OK)
            return hr_rule_no_memory(trace, error);
        most = queued > most ? queued : most;
    }
    if (finding == NULL)
        return HR_OK;
    char time[24];
    finding->kind = HR_FINDING_INFORMATION;
    snprintf(finding->text, sizeof finding->text,
             "%llu asynchronous calls held the host for %s in all while up to %u operations of their stream "
             "were pending: the driver's queue was "
             "full. The GPU itself lacks nothing; the host cannot do anything else meanwhile.",
             (unsigned long long)finding->count, hr_rule_time(finding->blocked_ns, time), most);
    snprintf(finding->fix, sizeof finding->fix,
             "let the host run fewer steps ahead (wait for the event of the step before the last), or put "
             "many small operations into one graph");
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.calls && trace->has.correlation && trace->has.streams
               ? NULL
               : "calls joined with their work and streams";
}

const hr_rule hr_rule_queue_full = {
    .name = "queue-full",
    .meaning = "asynchronous calls block because about a thousand operations are pending",
    .needs = "calls joined with their work and streams",
    .lacks = lacks,
    .check = check,
};
