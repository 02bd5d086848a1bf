/* SPDX-License-Identifier: Apache-2.0 */
/* sync-memset: a fill that makes the host, or other streams, wait. Design note: docs/audit/sync-memset.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* A fill that took the host as long as the work before it: a fill of device memory returns at once, one of
 * host memory or on a busy default stream does not. */
static bool blocks(const hr_trace *trace, const hr_event *call)
{
    if (call->call != HR_CALL_FILL || !hr_trace_is_steady(trace, call))
        return false;
    return hr_event_ns(call) > 100 * HR_RULE_US;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_finding *finding = NULL;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        if (!blocks(trace, call))
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "sync-memset")) == NULL)
            return hr_rule_no_memory(trace, error);
        finding->repair.kind = HR_REPAIR_UNBLOCK;
        if (hr_rule_take(finding, trace, trace->calls[i], hr_event_ns(call)) != HR_OK)
            return hr_rule_no_memory(trace, error);
    }
    if (finding == NULL)
        return HR_OK;
    char time[24];
    snprintf(
        finding->text, sizeof finding->text,
        "%llu blocking fills hold the host for %s in the steady state: they wait for the work before them.",
        (unsigned long long)finding->count, hr_rule_time(finding->blocked_ns, time));
    snprintf(finding->fix, sizeof finding->fix, "%s",
             trace->hip ? "use hipMemsetAsync on the stream that uses the memory next"
                        : "use cudaMemsetAsync on the stream that uses the memory next");
    finding->little = 0.005;
    hr_finding_finish(finding);
    return HR_OK;
}

const hr_rule hr_rule_sync_memset = {
    .name = "sync-memset",
    .meaning = "a fill makes the host wait for work before it",
    .needs = "host calls",
    .lacks = hr_rule_lacks_calls,
    .check = check,
};
