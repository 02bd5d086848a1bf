/* SPDX-License-Identifier: Apache-2.0 */
/* link-slow: bulk copies far below what the same link does elsewhere in the trace. Design note:
 * docs/audit/link-slow.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* Below this a copy's start-up time shows; at 16 MiB it is under one per cent. */
#define BULK_BYTES (UINT64_C(16) << 20)

static bool is_bulk(const hr_event *event, hr_direction direction)
{
    return event->kind == HR_EVENT_COPY && event->direction == direction && event->bytes >= BULK_BYTES &&
           hr_event_host_memory(event) == HR_MEMORY_PINNED && hr_event_ns(event) > 0;
}

static double gbps(const hr_event *event)
{
    return (double)event->bytes / (double)hr_event_ns(event);
}

static double best_gbps(const hr_trace *trace, hr_direction direction, uint32_t device)
{
    double best = 0.0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->device == device && is_bulk(event, direction) && gbps(event) > best)
            best = gbps(event);
    }
    return best;
}

static hr_status judge(const hr_trace *trace, hr_direction direction, uint32_t device, hr_findings *findings)
{
    double best = best_gbps(trace, direction, device);
    hr_finding *finding = NULL;
    int64_t lost = 0, slow_ns = 0;
    uint64_t slow_bytes = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->device != device || !is_bulk(event, direction) || gbps(event) > 0.5 * best)
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "link-slow")) == NULL)
            return HR_E_HOST_MEMORY;
        if (hr_rule_take(finding, trace, trace->work[i], 0) != HR_OK)
            return HR_E_HOST_MEMORY;
        lost += hr_event_ns(event) - (int64_t)((double)event->bytes / best);
        slow_ns += hr_event_ns(event);
        slow_bytes += event->bytes;
    }
    if (finding == NULL)
        return HR_OK;
    char time[24];
    finding->device = device;
    finding->kind = HR_FINDING_INFORMATION;
    finding->repair.kind = HR_REPAIR_NONE;
    snprintf(finding->text, sizeof finding->text,
             "%llu bulk copies %s run at %.1f GB/s in the mean, the best one at %.1f GB/s: %s more than the "
             "link needs. Memory on "
             "the wrong NUMA node, opposing traffic or a shared link does this.",
             (unsigned long long)finding->count, direction == HR_DIRECTION_H2D ? "in" : "out",
             (double)slow_bytes / (double)slow_ns, best, hr_rule_time(lost, time));
    snprintf(finding->fix, sizeof finding->fix,
             "pin the memory on the GPU's NUMA node (numactl --cpunodebind and --membind, or a pool that "
             "does it); compare "
             "with headrace bench link on this machine");
    hr_finding_finish(finding);
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    for (uint32_t device = 0; device < trace->device_count; device++) {
        if (judge(trace, HR_DIRECTION_H2D, device, findings) != HR_OK ||
            judge(trace, HR_DIRECTION_D2H, device, findings) != HR_OK)
            return hr_rule_no_memory(trace, error);
    }
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    if (!trace->has.bytes)
        return "the sizes of copies";
    return trace->has.memory_kinds ? NULL : "whether host memory is pinned";
}

const hr_rule hr_rule_link_slow = {
    .name = "link-slow",
    .meaning = "bulk copies from pinned memory run far below the link's speed",
    .needs = "sizes of copies and kinds of memory",
    .lacks = lacks,
    .check = check,
};
