/* SPDX-License-Identifier: Apache-2.0 */
/* pin-churn: host memory is pinned or unpinned in the loop. Design note: docs/audit/pin-churn.md. */
#include "trace/rule/churn.h"
#include "trace/rule/rules.h"

#include <stdio.h>

static bool counts(hr_call call)
{
    return call == HR_CALL_PINNED_ALLOC || call == HR_CALL_PINNED_FREE || call == HR_CALL_REGISTER ||
           call == HR_CALL_UNREGISTER;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 3 };
    hr_finding *finding;
    hr_churn churn;
    if (hr_churn_find(trace, "pin-churn", counts, LEAST, findings, &finding, &churn) != HR_OK)
        return hr_rule_no_memory(trace, error);
    if (finding == NULL)
        return HR_OK;
    char median[24], slow[24], sum[24], size[24];
    snprintf(
        finding->text, sizeof finding->text,
        "host memory is pinned or released %llu times in the steady state: %s a call in the middle, %s for "
        "the 99th of 100, %s in all. Releasing pinned memory waits for the whole device.",
        (unsigned long long)finding->count, hr_rule_time(hr_durations_percentile(&churn.times, 50.0), median),
        hr_rule_time(hr_durations_percentile(&churn.times, 99.0), slow),
        hr_rule_time(hr_durations_sum(&churn.times), sum));
    if (churn.bytes_peak > 0)
        snprintf(finding->fix, sizeof finding->fix,
                 "pin once before the loop and use the memory again: a pool of blocks of %s each is enough",
                 hr_rule_bytes(churn.bytes_peak, size));
    else
        snprintf(
            finding->fix, sizeof finding->fix, "%s",
            trace->pytorch
                ? "make the loader's pinned buffers once (DataLoader with pin_memory=True and persistent "
                  "workers, or tensors from torch.empty(…, pin_memory=True) used again)"
                : "pin once before the loop (cudaHostAlloc or cudaHostRegister) and use the memory again");
    snprintf(
        finding->proof, sizeof finding->proof,
        "a buffer that is used again must not be refilled before its copy is done: wait for its event first");
    finding->little = 0.002;
    hr_finding_finish(finding);
    hr_durations_free(&churn.times);
    return HR_OK;
}

const hr_rule hr_rule_pin_churn = {
    .name = "pin-churn",
    .meaning = "pinned host memory is taken, registered or released in the loop",
    .needs = "host calls",
    .lacks = hr_rule_lacks_calls,
    .check = check,
};
