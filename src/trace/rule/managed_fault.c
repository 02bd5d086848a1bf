/* SPDX-License-Identifier: Apache-2.0 */
/* managed-fault: managed memory moves on demand. Design note: docs/audit/managed-fault.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

static bool migrates(const hr_event *event)
{
    return event->kind == HR_EVENT_COPY &&
           (event->direction == HR_DIRECTION_MIGRATE_H2D || event->direction == HR_DIRECTION_MIGRATE_D2H);
}

/* A move that no prefetch call asked for. */
static bool on_demand(const hr_trace *trace, const hr_event *event)
{
    return migrates(event) && (event->peer == HR_NONE || trace->events[event->peer].call != HR_CALL_PREFETCH);
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_finding *finding = NULL;
    hr_intervals moving = {0};
    uint32_t first = HR_NONE;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        uint32_t work = trace->work[i];
        const hr_event *event = &trace->events[work];
        if (!on_demand(trace, event))
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "managed-fault")) == NULL)
            goto no_memory;
        if (hr_finding_count(finding, trace, work, 0) != HR_OK || hr_rule_show(finding, work) != HR_OK ||
            hr_intervals_add(&moving, event->begin_ns, event->end_ns) != HR_OK)
            goto no_memory;
        first = first == HR_NONE ? work : first;
    }
    if (finding != NULL) {
        char bytes[24], time[24], at[24];
        hr_intervals_normalise(&moving);
        finding->kind = HR_FINDING_INFORMATION;
        snprintf(finding->text, sizeof finding->text,
                 "%s of managed memory move on demand in %llu pieces, %s of moving, from %s on: each piece "
                 "begins with a fault that stalls "
                 "what touched it.",
                 hr_rule_bytes(finding->bytes, bytes), (unsigned long long)finding->count,
                 hr_rule_time(hr_intervals_length(&moving), time),
                 hr_rule_time(trace->events[first].begin_ns, at));
        snprintf(finding->fix, sizeof finding->fix,
                 "prefetch before first use (cudaMemPrefetchAsync on the stream that uses it), or take "
                 "pinned and device memory and copy");
        hr_finding_finish(finding);
    }
    hr_intervals_free(&moving);
    return HR_OK;
no_memory:
    hr_intervals_free(&moving);
    return hr_rule_no_memory(trace, error);
}

static const char *lacks(const hr_trace *trace)
{
    /* A recorder that says nothing of migrations and a program without managed memory look the same;
     * allocations tell them apart. */
    if (trace->has.migrations)
        return NULL;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        if (trace->events[trace->calls[i]].call == HR_CALL_MANAGED_ALLOC)
            return "the moves of managed memory";
    }
    return NULL;
}

const hr_rule hr_rule_managed_fault = {
    .name = "managed-fault",
    .meaning = "managed memory moves page by page when it is touched",
    .needs = "the moves of managed memory, where it is used",
    .lacks = lacks,
    .check = check,
};
