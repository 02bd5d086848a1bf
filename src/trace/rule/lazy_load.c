/* SPDX-License-Identifier: Apache-2.0 */
/* lazy-load: the first launch of a kernel loads its module, and everything waits. Design note:
 * docs/audit/lazy-load.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* Is work of another call running while the call blocks? Then loading held up a live run. The kernel itself may begin, and
 * end, before its call returns. */
static bool runs_meanwhile(const hr_trace *trace, uint32_t launch)
{
    const hr_event *call = &trace->events[launch];
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *work = &trace->events[trace->work[i]];
        if (work->begin_ns >= call->end_ns)
            return false;
        if (work->peer != launch && work->end_ns > call->begin_ns)
            return true;
    }
    return false;
}

static hr_status launch_median(const hr_trace *trace, int64_t *median)
{
    hr_durations launches = {0};
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        if (call->call == HR_CALL_LAUNCH && hr_durations_add(&launches, hr_event_ns(call)) != HR_OK) {
            hr_durations_free(&launches);
            return HR_E_HOST_MEMORY;
        }
    }
    *median = hr_durations_percentile(&launches, 50.0);
    hr_durations_free(&launches);
    return HR_OK;
}

/* A launch is suspicious when it is the kernel's first, took milliseconds, and far longer than launches do
 * here. */
static bool loads(const hr_trace *trace, uint32_t launch, int64_t median)
{
    const hr_event *call = &trace->events[launch];
    return call->call == HR_CALL_LAUNCH && call->peer != HR_NONE && trace->events[call->peer].first &&
           hr_event_ns(call) > 2 * HR_RULE_MS && hr_event_ns(call) > 50 * median &&
           runs_meanwhile(trace, launch);
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    int64_t median;
    if (launch_median(trace, &median) != HR_OK)
        return hr_rule_no_memory(trace, error);
    hr_finding *finding = NULL;
    uint32_t longest = HR_NONE;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        uint32_t index = trace->calls[i];
        const hr_event *call = &trace->events[index];
        if (!loads(trace, index, median))
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "lazy-load")) == NULL)
            return hr_rule_no_memory(trace, error);
        if (hr_rule_take(finding, trace, index, hr_event_ns(call)) != HR_OK)
            return hr_rule_no_memory(trace, error);
        if (longest == HR_NONE || hr_event_ns(call) > hr_event_ns(&trace->events[longest]))
            longest = index;
    }
    if (finding == NULL)
        return HR_OK;
    char sum[24], most[24];
    finding->kind = HR_FINDING_INFORMATION;
    finding->repair.kind = HR_REPAIR_NONE;
    const hr_event *call = &trace->events[longest];
    snprintf(finding->text, sizeof finding->text,
             "%llu first launches took %s in all while other work was running, the longest %s for %.200s: "
             "the driver "
             "loads a kernel's code at its first launch, and may wait for running work to do so.",
             (unsigned long long)finding->count, hr_rule_time(finding->blocked_ns, sum),
             hr_rule_time(hr_event_ns(call), most), hr_trace_text(trace, trace->events[call->peer].name));
    snprintf(finding->fix, sizeof finding->fix,
             "launch each kernel once before the work starts, or set CUDA_MODULE_LOADING=EAGER");
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.calls && trace->has.correlation ? NULL : "launch calls joined with their kernels";
}

const hr_rule hr_rule_lazy_load = {
    .name = "lazy-load",
    .meaning = "a kernel's code is loaded at its first launch, in the middle of the run",
    .needs = "launch calls joined with their kernels",
    .lacks = lacks,
    .check = check,
};
