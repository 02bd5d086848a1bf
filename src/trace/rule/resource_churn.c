/* SPDX-License-Identifier: Apache-2.0 */
/* resource-churn: streams or events are made in the loop. Design note: docs/audit/resource-churn.md. */
#include "trace/rule/churn.h"
#include "trace/rule/rules.h"

#include <stdio.h>

static bool counts(hr_call call)
{
    return call == HR_CALL_STREAM_CREATE || call == HR_CALL_STREAM_DESTROY || call == HR_CALL_EVENT_CREATE ||
           call == HR_CALL_EVENT_DESTROY;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 8 };
    hr_finding *finding;
    hr_churn churn;
    if (hr_churn_find(trace, "resource-churn", counts, LEAST, findings, &finding, &churn) != HR_OK)
        return hr_rule_no_memory(trace, error);
    if (finding == NULL)
        return HR_OK;
    char median[24], sum[24];
    snprintf(finding->text, sizeof finding->text,
             "streams or events are created or destroyed %llu times in the steady state, %s each in the "
             "middle, %s in all.",
             (unsigned long long)finding->count,
             hr_rule_time(hr_durations_percentile(&churn.times, 50.0), median),
             hr_rule_time(hr_durations_sum(&churn.times), sum));
    snprintf(finding->fix, sizeof finding->fix, "%s",
             trace->pytorch ? "make torch.cuda.Stream and torch.cuda.Event objects once and use them again"
                            : "make streams and events once before the loop and use them again");
    finding->little = 0.002;
    hr_finding_finish(finding);
    hr_durations_free(&churn.times);
    return HR_OK;
}

const hr_rule hr_rule_resource_churn = {
    .name = "resource-churn",
    .meaning = "streams or events are created and destroyed in the loop",
    .needs = "host calls",
    .lacks = hr_rule_lacks_calls,
    .check = check,
};
