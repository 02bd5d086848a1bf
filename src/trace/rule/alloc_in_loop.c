/* SPDX-License-Identifier: Apache-2.0 */
/* alloc-in-loop: device memory is taken and released in the loop. Design note: docs/audit/alloc-in-loop.md.
 */
#include "trace/rule/churn.h"
#include "trace/rule/rules.h"

#include <stdio.h>

static bool counts(hr_call call)
{
    return call == HR_CALL_DEVICE_ALLOC || call == HR_CALL_DEVICE_FREE || call == HR_CALL_POOL_TRIM;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 4 };
    hr_finding *finding;
    hr_churn churn;
    if (hr_churn_find(trace, "alloc-in-loop", counts, LEAST, findings, &finding, &churn) != HR_OK)
        return hr_rule_no_memory(trace, error);
    if (finding == NULL)
        return HR_OK;
    uint64_t frees = 0;
    for (uint32_t i = 0; i < finding->repair.count; i++)
        frees += trace->events[finding->repair.events[i]].call == HR_CALL_DEVICE_FREE;
    char median[24], slow[24], sum[24];
    snprintf(finding->text, sizeof finding->text,
             "device memory is taken %llu and released %llu times in the steady state: %s a call in the "
             "middle, %s for "
             "the 99th of 100, %s in all. A release waits until the whole device is idle, and nothing is "
             "queued meanwhile.",
             (unsigned long long)(finding->count - frees), (unsigned long long)frees,
             hr_rule_time(hr_durations_percentile(&churn.times, 50.0), median),
             hr_rule_time(hr_durations_percentile(&churn.times, 99.0), slow),
             hr_rule_time(hr_durations_sum(&churn.times), sum));
    snprintf(finding->fix, sizeof finding->fix, "%s",
             trace->pytorch ? "leave the caching allocator on (no PYTORCH_NO_CUDA_MEMORY_CACHING, no "
                              "torch.cuda.empty_cache() in the "
                              "loop), or make the tensors once and use out=…"
             : trace->hip   ? "take the memory once before the loop, or use hipMallocAsync and hipFreeAsync"
                          : "take the memory once before the loop, or use cudaMallocAsync and cudaFreeAsync "
                            "with a pool whose "
                            "release threshold is raised");
    snprintf(
        finding->proof, sizeof finding->proof,
        "without the releases the peak of device memory grows: it must fit, and old contents stay in it");
    finding->little = 0.01;
    hr_finding_finish(finding);
    hr_durations_free(&churn.times);
    return HR_OK;
}

const hr_rule hr_rule_alloc_in_loop = {
    .name = "alloc-in-loop",
    .meaning = "device memory is taken and released in the steady state",
    .needs = "host calls",
    .lacks = hr_rule_lacks_calls,
    .check = check,
};
