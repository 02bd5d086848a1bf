/* SPDX-License-Identifier: Apache-2.0 */
/* pageable-copy: copies of pageable memory whose calls hold the host. Design note:
 * docs/audit/pageable-copy.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

static bool is_pageable(const hr_event *copy)
{
    return (hr_event_is_upload(copy) || hr_event_is_download(copy)) &&
           hr_event_host_memory(copy) == HR_MEMORY_PAGEABLE;
}

/*
 * The wait right behind an upload that the same thread made: frameworks add it to every copy that was not
 * asked to be asynchronous, and it goes away with the pageable memory.
 */
static uint32_t wait_behind(const hr_trace *trace, const hr_event *copy)
{
    enum { NEXT_CALLS = 3 };
    const hr_event *call = &trace->events[copy->peer];
    uint32_t low = trace->thread_calls[call->thread];
    uint32_t high = trace->thread_calls[call->thread + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->calls[middle] <= copy->peer)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t i = low; i < trace->thread_calls[call->thread + 1] && i < low + NEXT_CALLS; i++) {
        const hr_event *next = &trace->events[trace->calls[i]];
        if (next->call == HR_CALL_STREAM_SYNC)
            return trace->calls[i];
        if (next->call != HR_CALL_OTHER)
            break;
    }
    return HR_NONE;
}

typedef struct hr_pageable {
    uint64_t uploads, downloads, harmless;
    int64_t copying_ns, idle_ns;
} hr_pageable;

static hr_status take(const hr_trace *trace, hr_finding *finding, const hr_intervals *kernels,
                      hr_pageable *sum)
{
    for (uint32_t i = 0; i < trace->work_count; i++) {
        uint32_t work = trace->work[i];
        const hr_event *copy = &trace->events[work];
        if (copy->kind != HR_EVENT_COPY || !is_pageable(copy))
            continue;
        if (!hr_trace_blocks(trace, copy)) {
            sum->harmless++;
            continue;
        }
        const hr_event *call = &trace->events[copy->peer];
        hr_status status = hr_rule_take(finding, trace, work, hr_event_ns(call));
        uint32_t wait = hr_event_is_upload(copy) ? wait_behind(trace, copy) : HR_NONE;
        if (status == HR_OK && wait != HR_NONE)
            status = hr_repair_add(&finding->repair, wait);
        if (status == HR_OK)
            status = hr_rule_show(finding, work);
        if (status != HR_OK)
            return status;
        sum->uploads += hr_event_is_upload(copy);
        sum->downloads += hr_event_is_download(copy);
        sum->copying_ns += hr_event_ns(copy);
        sum->idle_ns += hr_event_ns(call) - hr_intervals_covered(kernels, call->begin_ns, call->end_ns);
    }
    return HR_OK;
}

static hr_status kernels_of(const hr_trace *trace, hr_intervals *kernels)
{
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->kind != HR_EVENT_KERNEL)
            continue;
        hr_status status = hr_intervals_add(kernels, event->begin_ns, event->end_ns);
        if (status != HR_OK)
            return status;
    }
    hr_intervals_normalise(kernels);
    return HR_OK;
}

static const char *upload_fix(const hr_trace *trace)
{
    if (trace->pytorch)
        return "pin the source (DataLoader(pin_memory=True), or tensor.pin_memory() once) and copy with "
               ".to(device, non_blocking=True)";
    if (trace->hip)
        return "take the host buffer from hipHostMalloc and copy with hipMemcpyAsync on a stream";
    return "take the host buffer from cudaHostAlloc (or cudaHostRegister it once) and copy with "
           "cudaMemcpyAsync";
}

static const char *download_fix(const hr_trace *trace)
{
    if (trace->pytorch)
        return "read results back into a pinned tensor with copy_(result, non_blocking=True), and look at it "
               "one "
               "step later, behind an event";
    return "read results back into pinned memory with an asynchronous copy, and look at them one step later, "
           "behind an event";
}

static void describe(const hr_trace *trace, hr_finding *finding, const hr_pageable *sum)
{
    char bytes[24], blocked[24], copying[24], idle[24];
    hr_rule_bytes(finding->bytes, bytes);
    hr_rule_time(finding->blocked_ns, blocked);
    hr_rule_time(sum->copying_ns, copying);
    hr_rule_time(sum->idle_ns, idle);
    int at = snprintf(
        finding->text, sizeof finding->text,
        "%llu copies of pageable memory (%llu up, %llu down, %s) hold the host for %s; they copy for %s of "
        "it, and no kernel runs for %s of it.",
        (unsigned long long)finding->count, (unsigned long long)sum->uploads,
        (unsigned long long)sum->downloads, bytes, blocked, copying, idle);
    if (sum->harmless != 0)
        snprintf(finding->text + at, sizeof finding->text - (size_t)at,
                 " %llu more do not hold it and are no defect.", (unsigned long long)sum->harmless);
    snprintf(finding->fix, sizeof finding->fix, "%s%s%s", sum->uploads != 0 ? upload_fix(trace) : "",
             sum->uploads != 0 && sum->downloads != 0 ? "; " : "",
             sum->downloads != 0 ? download_fix(trace) : "");
    snprintf(finding->proof, sizeof finding->proof,
             "blocking hid reuse: before a pinned buffer is refilled, wait for the event behind its copy");
    snprintf(finding->bound_text, sizeof finding->bound_text,
             "pinning alone gains little: the host waits for work ahead of the copies, not for the copies");
    finding->little = 0.01;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_intervals kernels = {0};
    hr_pageable sum = {0};
    hr_finding *finding = hr_findings_add(findings, "pageable-copy");
    hr_status status = finding != NULL ? kernels_of(trace, &kernels) : HR_E_HOST_MEMORY;
    if (status == HR_OK) {
        finding->repair.kind = HR_REPAIR_PIN;
        finding->repair.buffers = 2;
        status = take(trace, finding, &kernels, &sum);
    }
    hr_intervals_free(&kernels);
    if (status != HR_OK)
        return hr_rule_no_memory(trace, error);
    if (finding->count == 0) {
        hr_findings_drop_last(findings);
        return HR_OK;
    }
    describe(trace, finding, &sum);
    hr_finding_finish(finding);
    return HR_OK;
}

/* Where all copies are known to be pinned there is nothing to find, whatever else is missing. */
static const char *lacks(const hr_trace *trace)
{
    uint32_t count[2] = {0}, unknown[2] = {0}; /* uploads, downloads */
    uint32_t copies = 0, aimless = 0;
    bool pageable = false;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->kind != HR_EVENT_COPY)
            continue;
        copies++;
        aimless += event->direction == HR_DIRECTION_UNKNOWN;
        if (!hr_event_is_upload(event) && !hr_event_is_download(event))
            continue;
        count[hr_event_is_download(event)]++;
        unknown[hr_event_is_download(event)] += hr_event_host_memory(event) == HR_MEMORY_UNKNOWN;
        pageable |= is_pageable(event);
    }
    if (copies != 0 && aimless == copies)
        return "the directions of copies";
    if ((trace->hip && !trace->has.memory_kinds) || (count[0] != 0 && unknown[0] == count[0]) ||
        (count[1] != 0 && unknown[1] == count[1]))
        return "the memory kinds of copies (pageable or pinned)";
    return pageable && !trace->has.correlation ? "which call submitted which copy" : NULL;
}

const hr_rule hr_rule_pageable_copy = {
    .name = "pageable-copy",
    .meaning = "copies of pageable memory whose calls wait for them",
    .needs = "host calls, correlation, memory kinds",
    .lacks = lacks,
    .check = check,
};
