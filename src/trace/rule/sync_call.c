/* SPDX-License-Identifier: Apache-2.0 */
/* sync-call: the host waits in the loop although events would do. Design note: docs/audit/sync-call.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>
#include <stdlib.h>

/* What a thread did before a wait, as far as it decides whether the wait is needed. */
typedef struct hr_before {
    bool wants_data;  /* a download was submitted since the last wait */
    bool held_upload; /* the call before was a copy that holds the host itself: pageable-copy's business */
} hr_before;

static void look_at(const hr_trace *trace, const hr_event *call, hr_before *before)
{
    if (!hr_call_submits((hr_call)call->call))
        return;
    before->held_upload = false;
    for (uint32_t work = call->peer; work != HR_NONE; work = trace->events[work].next) {
        const hr_event *event = &trace->events[work];
        before->wants_data |= hr_event_is_download(event);
        before->held_upload |= hr_event_is_upload(event) && hr_trace_blocks(trace, event);
    }
}

/* Is there work that was submitted after this wait, so that it is not the last? */
static bool work_follows(const hr_trace *trace, const hr_event *call)
{
    const hr_event *last = &trace->events[trace->work[trace->work_count - 1]];
    return last->begin_ns >= call->end_ns;
}

static uint64_t count_launches(const hr_trace *trace)
{
    uint64_t launches = 0;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        hr_call call = (hr_call)trace->events[trace->calls[i]].call;
        launches += call == HR_CALL_LAUNCH || call == HR_CALL_GRAPH_LAUNCH;
    }
    return launches;
}

/*
 * Waits for what a step computed: the host reads it back, and submits the next step only then. `results`: those of whole results
 * that an asynchronous copy brings; a copy that holds the host by itself is the business of pageable-copy and sync-copy. Otherwise
 * those of small values, whatever holds the host.
 */
static hr_status take_read_backs(const hr_trace *trace, uint32_t thread, bool results, hr_finding *finding)
{
    uint32_t download = HR_NONE;
    for (uint32_t i = trace->thread_calls[thread]; i < trace->thread_calls[thread + 1]; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        bool holds = false;
        for (uint32_t work = call->peer; work != HR_NONE; work = trace->events[work].next) {
            if (!hr_event_is_download(&trace->events[work]))
                continue;
            bool blocks = hr_trace_blocks(trace, &trace->events[work]);
            bool wanted = hr_event_is_result(&trace->events[work]) ? results && !blocks : !results;
            download = wanted ? work : HR_NONE;
            holds |= blocks;
        }
        holds |= hr_call_is_sync((hr_call)call->call);
        if (!holds || download == HR_NONE)
            continue;
        uint32_t read = download;
        download = HR_NONE;
        if (!work_follows(trace, call) || !hr_trace_is_steady(trace, call))
            continue;
        hr_status status = hr_finding_count(finding, trace, trace->calls[i], hr_event_ns(call));
        if (status == HR_OK)
            status = hr_repair_add(&finding->repair, read);
        if (status == HR_OK)
            status = hr_rule_show(finding, trace->calls[i]);
        if (status != HR_OK)
            return status;
    }
    return HR_OK;
}

/* Small values are told as a bound only: whether the next step needs them, the trace does not say. */
static hr_status check_read_backs(const hr_trace *trace, bool results, hr_findings *findings)
{
    enum { LEAST_READ_BACKS = 3 };
    hr_finding *finding = hr_findings_add(findings, "sync-call");
    hr_status status = finding != NULL ? HR_OK : HR_E_HOST_MEMORY;
    for (uint32_t t = 0; t < trace->thread_count && status == HR_OK; t++)
        status = take_read_backs(trace, t, results, finding);
    if (status != HR_OK)
        return status;
    if (finding->count < LEAST_READ_BACKS) {
        hr_findings_drop_last(findings);
        return HR_OK;
    }
    char blocked[24];
    finding->kind = results ? HR_FINDING_DEFECT : HR_FINDING_INFORMATION;
    finding->repair.kind = HR_REPAIR_READ_LATER;
    finding->repair.buffers = results ? 2 : 1;
    finding->little = results ? 0.01 : 0.05;
    snprintf(finding->proof, sizeof finding->proof,
             "holds when the next step does not need the result; each result then needs a host buffer of its "
             "own until it was looked at");
    snprintf(finding->text, sizeof finding->text,
             "%llu times the host reads a result back and waits for it, %s of its time, and submits the next "
             "step only then: the GPU "
             "runs dry meanwhile.",
             (unsigned long long)finding->count, hr_rule_time(finding->blocked_ns, blocked));
    snprintf(finding->fix, sizeof finding->fix, "%s",
             trace->pytorch ? "keep results on the GPU (no .item(), .cpu() or print of a tensor in each "
                              "step), or copy them into pinned "
                              "memory with non_blocking=True and look at them a step later, behind an event"
                            : "keep results on the device, or copy them into pinned memory asynchronously "
                              "and look at them a step "
                              "later, behind an event");
    hr_finding_finish(finding);
    return HR_OK;
}

/* The waits of one thread that nothing seems to need. */
static hr_status take_thread(const hr_trace *trace, uint32_t thread, hr_finding *finding, uint64_t *needed)
{
    hr_before before = {0};
    for (uint32_t i = trace->thread_calls[thread]; i < trace->thread_calls[thread + 1]; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        look_at(trace, call, &before);
        if (!hr_call_is_sync((hr_call)call->call))
            continue;
        bool judged = !before.wants_data && !before.held_upload;
        bool steady = work_follows(trace, call) && hr_trace_is_steady(trace, call);
        *needed += before.wants_data;
        before = (hr_before){0};
        if (!judged || !steady)
            continue;
        hr_status status = hr_rule_take(finding, trace, trace->calls[i], hr_event_ns(call));
        if (status != HR_OK)
            return status;
    }
    return HR_OK;
}

static void describe(const hr_trace *trace, hr_finding *finding, uint64_t needed)
{
    char blocked[24];
    uint64_t launches = count_launches(trace);
    bool each = launches != 0 && finding->count * 10 >= launches * 8;
    int at = snprintf(finding->text, sizeof finding->text,
                      "%llu calls in the loop wait for the GPU, %s of the host's time, "
                      "and the next work is submitted only then.",
                      (unsigned long long)finding->count, hr_rule_time(finding->blocked_ns, blocked));
    if (each)
        at += snprintf(finding->text + at, sizeof finding->text - (size_t)at,
                       " There is about one a launch: it looks like a macro that checks for errors.");
    if (needed != 0)
        snprintf(finding->text + at, sizeof finding->text - (size_t)at,
                 " %llu more stand behind downloads, whose data the host wants: they are left out.",
                 (unsigned long long)needed);
    if (trace->pytorch)
        snprintf(
            finding->fix, sizeof finding->fix,
            "take torch.cuda.synchronize() out of the loop; where one stream needs another's result, use "
            "stream.wait_event(event)");
    else
        snprintf(finding->fix, sizeof finding->fix,
                 "take the wait out of the loop; where one stream needs another's result, record an event "
                 "there and "
                 "call %s",
                 trace->hip ? "hipStreamWaitEvent" : "cudaStreamWaitEvent");
    snprintf(finding->proof, sizeof finding->proof,
             "the host may have written a buffer behind this wait: give each buffer an event and wait for "
             "that one");
    finding->little = 0.01;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 3 };
    uint64_t needed = 0;
    hr_finding *finding = hr_findings_add(findings, "sync-call");
    hr_status status = finding != NULL ? HR_OK : HR_E_HOST_MEMORY;
    if (status == HR_OK)
        finding->repair.kind = HR_REPAIR_DROP_CALL;
    for (uint32_t t = 0; t < trace->thread_count && status == HR_OK; t++)
        status = take_thread(trace, t, finding, &needed);
    if (status != HR_OK)
        return hr_rule_no_memory(trace, error);
    if (finding->count < LEAST) {
        hr_findings_drop_last(findings);
    } else {
        describe(trace, finding, needed);
        hr_finding_finish(finding);
    }
    status = check_read_backs(trace, true, findings);
    if (status == HR_OK)
        status = check_read_backs(trace, false, findings);
    return status == HR_OK ? HR_OK : hr_rule_no_memory(trace, error);
}

static const char *lacks(const hr_trace *trace)
{
    if (!trace->has.calls)
        return hr_rule_lacks_calls(trace);
    return trace->has.correlation ? NULL : "which call submitted which work";
}

const hr_rule hr_rule_sync_call = {
    .name = "sync-call",
    .meaning = "the host waits for the GPU in the loop and only then submits what comes next",
    .needs = "host calls, correlation",
    .lacks = lacks,
    .check = check,
};
