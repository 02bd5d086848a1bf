/* SPDX-License-Identifier: Apache-2.0 */
/* sync-copy: copies that were asked to wait. Design note: docs/audit/sync-copy.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* A blocking copy between host and device in the steady state, with work behind it: neither set-up nor the
 * end. */
static bool counts(const hr_trace *trace, const hr_event *copy)
{
    if (copy->peer == HR_NONE || (!hr_event_is_upload(copy) && !hr_event_is_download(copy)))
        return false;
    const hr_event *call = &trace->events[copy->peer];
    if (call->call != HR_CALL_COPY || call->end_ns < copy->end_ns - 50 * HR_RULE_US)
        return false;
    const hr_event *last = &trace->events[trace->work[trace->work_count - 1]];
    return last->begin_ns > call->end_ns && hr_trace_is_steady(trace, call);
}

static void describe(const hr_trace *trace, hr_finding *finding, uint64_t pageable, uint64_t downloads,
                     uint64_t results)
{
    char blocked[24];
    int at = snprintf(finding->text, sizeof finding->text,
                      "%llu copies in the loop wait until they are done: %s of the "
                      "host's time.",
                      (unsigned long long)finding->count, hr_rule_time(finding->blocked_ns, blocked));
    if (pageable != 0)
        at += snprintf(
            finding->text + at, sizeof finding->text - (size_t)at,
            " %llu of them also copy pageable memory, which waits whatever it is called (pageable-copy).",
            (unsigned long long)pageable);
    if (results != 0)
        at += snprintf(finding->text + at, sizeof finding->text - (size_t)at,
                       " %llu download results: the prediction looks at them two steps later.",
                       (unsigned long long)results);
    if (downloads != 0)
        snprintf(
            finding->text + at, sizeof finding->text - (size_t)at,
            " %llu are small downloads, whose data the host may want at once: the prediction leaves those as "
            "they are.",
            (unsigned long long)downloads);
    snprintf(
        finding->fix, sizeof finding->fix, "%s",
        trace->hip
            ? "use hipMemcpyAsync on a non-blocking stream with memory from hipHostMalloc, and an event "
              "where "
              "the order matters"
            : "use cudaMemcpyAsync on a non-blocking stream with pinned memory, and an event where the order "
              "matters");
    snprintf(finding->proof, sizeof finding->proof,
             "the wait may protect a host buffer: check who writes it after an upload and who reads it after "
             "a download; what the next step needs of a result cannot wait");
    snprintf(
        finding->bound_text, sizeof finding->bound_text,
        "making them asynchronous gains little alone: other waits or the data itself hold the host as long");
    finding->little = 0.01;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 3 };
    uint64_t pageable = 0;
    uint64_t downloads = 0;
    uint64_t results = 0;
    hr_finding *finding = hr_findings_add(findings, "sync-copy");
    if (finding == NULL)
        return hr_rule_no_memory(trace, error);
    finding->repair.kind = HR_REPAIR_UNBLOCK;
    finding->repair.buffers = 2;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        uint32_t work = trace->work[i];
        const hr_event *copy = &trace->events[work];
        if (!counts(trace, copy))
            continue;
        bool page = hr_event_host_memory(copy) == HR_MEMORY_PAGEABLE;
        bool down = hr_event_is_download(copy);
        pageable += page;
        bool result = !page && hr_event_is_result(copy);
        downloads += down && !page && !result;
        results += result;
        hr_status status = hr_finding_count(finding, trace, work, hr_event_ns(&trace->events[copy->peer]));
        if (status == HR_OK && !page && (!down || result))
            status = hr_repair_add(&finding->repair, result ? work : copy->peer);
        if (status == HR_OK)
            status = hr_rule_show(finding, work);
        if (status != HR_OK)
            return hr_rule_no_memory(trace, error);
    }
    if (finding->count < LEAST) {
        hr_findings_drop_last(findings);
        return HR_OK;
    }
    describe(trace, finding, pageable, downloads, results);
    /* Nothing that a call without waiting would mend alone: worth knowing, and no defect of its own. */
    if (finding->repair.count == 0) {
        finding->kind = HR_FINDING_INFORMATION;
        finding->repair.kind = HR_REPAIR_NONE;
    }
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.correlation ? NULL : "which call submitted which copy";
}

const hr_rule hr_rule_sync_copy = {
    .name = "sync-copy",
    .meaning = "copies without Async in the loop, also those of a library",
    .needs = "host calls, correlation",
    .lacks = lacks,
    .check = check,
};
