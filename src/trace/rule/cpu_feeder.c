/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-feeder: the GPU is idle and no CUDA call is pending: the host itself is the slow part. Design note:
 * docs/audit/cpu-feeder.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* Every moment in which a host thread is inside a call. */
static hr_status in_calls(const hr_trace *trace, hr_intervals *calls)
{
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        if (hr_intervals_add(calls, call->begin_ns, call->end_ns) != HR_OK)
            return HR_E_HOST_MEMORY;
    }
    hr_intervals_normalise(calls);
    return HR_OK;
}

/* The first call at or after `time`, by whichever thread: who broke the silence. */
static uint32_t first_call_at(const hr_trace *trace, int64_t time)
{
    uint32_t low = 0, high = trace->event_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->events[middle].begin_ns < time)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t i = low; i < trace->event_count; i++) {
        if (trace->events[i].kind == HR_EVENT_CALL && !trace->events[i].nested)
            return i;
    }
    return HR_NONE;
}

static hr_status judge(const hr_trace *trace, const hr_intervals *silence, hr_findings *findings)
{
    /* Pauses between two calls of a busy thread are not what is meant. */
    const int64_t least = 50 * HR_RULE_US;
    int64_t idle = 0;
    for (size_t i = 0; i < silence->count; i++) {
        int64_t length = silence->at[i].end_ns - silence->at[i].begin_ns;
        idle += length >= least ? length : 0;
    }
    int64_t span = trace->work_end_ns - trace->work_begin_ns;
    if (idle * 20 < span)
        return HR_OK;
    hr_finding *finding = hr_findings_add(findings, "cpu-feeder");
    if (finding == NULL)
        return HR_E_HOST_MEMORY;
    for (size_t i = 0; i < silence->count; i++) {
        if (silence->at[i].end_ns - silence->at[i].begin_ns < least)
            continue;
        uint32_t call = first_call_at(trace, silence->at[i].end_ns);
        if (call != HR_NONE &&
            (hr_finding_count(finding, trace, call, 0) != HR_OK || hr_rule_show(finding, call) != HR_OK))
            return HR_E_HOST_MEMORY;
    }
    char time[24];
    finding->kind = HR_FINDING_INFORMATION;
    hr_finding_finish(finding);
    uint32_t thread = finding->where_count > 0 ? finding->where[0].thread : HR_NONE;
    snprintf(finding->text, sizeof finding->text,
             "for %s (%.0f %% of the run) the GPU and the link are idle and no thread is inside a CUDA call: "
             "the host is busy with "
             "something else. Thread %llu is the one that mostly ends the silence.",
             hr_rule_time(idle, time), 100.0 * (double)idle / (double)span,
             thread < trace->thread_count ? (unsigned long long)trace->threads[thread].id : 0ULL);
    snprintf(finding->fix, sizeof finding->fix, "%s",
             trace->pytorch ? "prepare batches ahead (DataLoader with num_workers > 0 and prefetch_factor), "
                              "or shorten the Python between "
                              "launches (torch.compile, CUDA graphs); more streams will not help"
                            : "prepare the next step's data in another thread while the GPU works; more "
                              "streams will not help");
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_intervals busy = {0}, calls = {0}, either = {0}, silence = {0};
    hr_status status = hr_rule_busy(trace, &busy);
    if (status == HR_OK)
        status = in_calls(trace, &calls);
    if (status == HR_OK)
        status = hr_intervals_union(&busy, &calls, &either);
    if (status == HR_OK)
        status = hr_intervals_gaps(&either, trace->work_begin_ns, trace->work_end_ns, &silence);
    if (status == HR_OK)
        status = judge(trace, &silence, findings);
    hr_intervals_free(&busy);
    hr_intervals_free(&calls);
    hr_intervals_free(&either);
    hr_intervals_free(&silence);
    return status == HR_OK ? HR_OK : hr_rule_no_memory(trace, error);
}

const hr_rule hr_rule_cpu_feeder = {
    .name = "cpu-feeder",
    .meaning = "the GPU and the link are idle while no CUDA call is pending: the host is the slow part",
    .needs = "host calls of every thread",
    .lacks = hr_rule_lacks_calls,
    .check = check,
};
