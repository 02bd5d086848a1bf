/* SPDX-License-Identifier: Apache-2.0 */
/* profiler: something made the program wait after every launch, so that nothing can be said. Design note:
 * docs/audit/profiler.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/*
 * Launches whose own call lasts until the kernel is done: with launches that return at once this does not happen, but for kernels
 * of a microsecond or two that begin while a slow call still runs. So the kernels must also make a good part of their calls.
 */
static void count_launches(const hr_trace *trace, uint32_t *launches, uint32_t *covered, bool *waits)
{
    int64_t kernels_ns = 0, calls_ns = 0;
    *launches = 0;
    *covered = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *work = &trace->events[trace->work[i]];
        if (work->kind != HR_EVENT_KERNEL || work->peer == HR_NONE ||
            trace->events[work->peer].call != HR_CALL_LAUNCH)
            continue;
        (*launches)++;
        if (trace->events[work->peer].end_ns < work->end_ns)
            continue;
        (*covered)++;
        kernels_ns += hr_event_ns(work);
        calls_ns += hr_event_ns(&trace->events[work->peer]);
    }
    *waits = kernels_ns * 10 >= calls_ns * 3;
}

/* A trace with holes is judged, and the reader is told. */
static hr_status tell_losses(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    if (trace->lost_records == 0)
        return HR_OK;
    hr_finding *finding = hr_findings_add(findings, "profiler");
    if (finding == NULL)
        return hr_rule_no_memory(trace, error);
    finding->kind = HR_FINDING_INFORMATION;
    finding->count = trace->lost_records;
    snprintf(finding->text, sizeof finding->text,
             "the recorder had no room for %u records: what they would have shown is missing here, and times "
             "may be wrong.",
             trace->lost_records);
    snprintf(finding->fix, sizeof finding->fix,
             "record a shorter run, or give the recorder more room (HEADRACE_RECORD_EVENTS)");
    hr_finding_finish(finding);
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 20 };
    hr_status status = tell_losses(trace, findings, error);
    if (status != HR_OK)
        return status;
    uint32_t launches, covered;
    bool waits;
    count_launches(trace, &launches, &covered, &waits);
    bool blocking = launches >= LEAST && covered * UINT64_C(10) >= launches * UINT64_C(9) && waits;
    if (!blocking && !trace->serialised)
        return HR_OK;
    hr_finding *finding = hr_findings_add(findings, "profiler");
    if (finding == NULL)
        return hr_rule_no_memory(trace, error);
    finding->kind = HR_FINDING_SUSPENDED;
    finding->count = covered;
    if (blocking)
        snprintf(finding->text, sizeof finding->text,
                 "%u of %u launches return only when their kernel is done: something makes every launch "
                 "wait, and the trace "
                 "does not show the program as it runs alone.",
                 covered, launches);
    else
        snprintf(
            finding->text, sizeof finding->text,
            "the trace says that launches were made to wait; it does not show the program as it runs alone.");
    snprintf(finding->fix, sizeof finding->fix,
             "unset CUDA_LAUNCH_BLOCKING (AMD_SERIALIZE_KERNEL, HIP_LAUNCH_BLOCKING), leave out tools that "
             "serialise kernels, and record again");
    hr_finding_finish(finding);
    return HR_OK;
}

const hr_rule hr_rule_profiler = {
    .name = "profiler",
    .meaning = "a tool or a setting serialises the run; verdicts rest until it is recorded without",
    .needs = "host calls",
    .lacks = hr_rule_lacks_calls,
    .check = check,
};
