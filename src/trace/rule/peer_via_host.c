/* SPDX-License-Identifier: Apache-2.0 */
/* peer-via-host: data goes from one GPU to another in two legs, through the host. Design note:
 * docs/audit/peer-via-host.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

#define LEAST_BYTES (UINT64_C(64) << 10)

/* The upload to another device, of the same size, that begins soonest after the download ended, before the
 * same source sends again. */
static uint32_t second_leg(const hr_trace *trace, uint32_t download)
{
    enum { NEIGHBOURS = 32 };
    const hr_event *leg = &trace->events[download];
    uint32_t seen = 0;
    for (uint32_t i = download + 1; i < trace->event_count && seen < NEIGHBOURS; i++) {
        const hr_event *event = &trace->events[i];
        if (!hr_event_is_work(event))
            continue;
        seen++;
        if (hr_event_is_upload(event) && event->bytes == leg->bytes && event->device != leg->device &&
            event->begin_ns >= leg->end_ns && event->begin_ns - leg->end_ns < hr_event_ns(leg) + HR_RULE_MS)
            return i;
    }
    return HR_NONE;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 3 };
    hr_finding *finding = NULL;
    int64_t taken = 0;
    uint64_t from = 0, to = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        count += hr_event_is_download(event) && event->bytes >= LEAST_BYTES &&
                 second_leg(trace, trace->work[i]) != HR_NONE;
    }
    if (count < LEAST)
        return HR_OK;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        uint32_t work = trace->work[i];
        const hr_event *event = &trace->events[work];
        if (!hr_event_is_download(event) || event->bytes < LEAST_BYTES)
            continue;
        uint32_t second = second_leg(trace, work);
        if (second == HR_NONE)
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "peer-via-host")) == NULL)
            return hr_rule_no_memory(trace, error);
        if (hr_finding_count(finding, trace, work, 0) != HR_OK || hr_rule_show(finding, work) != HR_OK ||
            hr_rule_show(finding, second) != HR_OK)
            return hr_rule_no_memory(trace, error);
        taken += trace->events[second].end_ns - event->begin_ns;
        from = trace->devices[event->device].id;
        to = trace->devices[trace->events[second].device].id;
    }
    if (finding == NULL)
        return HR_OK;
    char bytes[24];
    finding->kind = HR_FINDING_INFORMATION;
    snprintf(finding->text, sizeof finding->text,
             "%s go from one GPU to another through the host, %llu times out and in again (the last from GPU "
             "%llu to GPU %llu), at %.1f GB/s for the two legs.",
             hr_rule_bytes(finding->bytes, bytes), (unsigned long long)finding->count,
             (unsigned long long)from, (unsigned long long)to,
             taken > 0 ? (double)finding->bytes / (double)taken : 0.0);
    snprintf(finding->fix, sizeof finding->fix, "%s",
             trace->pytorch ? "copy with tensor.to('cuda:1', non_blocking=True) from the GPU tensor itself, "
                              "or use NCCL; check peer access "
                              "with torch.cuda.can_device_access_peer"
                            : "copy with cudaMemcpyPeerAsync after cudaDeviceEnablePeerAccess; where that is "
                              "refused or writes are lost, cut the "
                              "copy in pieces so that the two legs overlap");
    snprintf(finding->proof, sizeof finding->proof,
             "two copies of the same size that have nothing to do with each other look the same; check that "
             "they carry the same data");
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.bytes ? NULL : "the sizes of copies";
}

const hr_rule hr_rule_peer_via_host = {
    .name = "peer-via-host",
    .meaning = "data goes from GPU to GPU in two legs, through the host",
    .needs = "sizes of copies, two GPUs in one trace",
    .lacks = lacks,
    .check = check,
};
