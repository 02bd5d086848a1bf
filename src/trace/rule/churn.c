/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/rule/churn.h"

static uint32_t count_calls(const hr_trace *trace, bool (*counts)(hr_call call))
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        found += counts((hr_call)call->call) && hr_trace_is_steady(trace, call);
    }
    return found;
}

hr_status hr_churn_find(const hr_trace *trace, const char *rule, bool (*counts)(hr_call call), uint32_t least,
                        hr_findings *findings, hr_finding **finding, hr_churn *churn)
{
    *churn = (hr_churn){0};
    *finding = NULL;
    if (count_calls(trace, counts) < least)
        return HR_OK;
    hr_finding *made = hr_findings_add(findings, rule);
    if (made == NULL)
        return HR_E_HOST_MEMORY;
    made->repair.kind = HR_REPAIR_DROP_CALL;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        if (!counts((hr_call)call->call) || !hr_trace_is_steady(trace, call))
            continue;
        hr_status status = hr_rule_take(made, trace, trace->calls[i], hr_event_ns(call));
        if (status == HR_OK)
            status = hr_durations_add(&churn->times, hr_event_ns(call));
        if (status != HR_OK) {
            hr_durations_free(&churn->times);
            return status;
        }
        if (call->bytes > churn->bytes_peak)
            churn->bytes_peak = call->bytes;
    }
    *finding = made;
    return HR_OK;
}
