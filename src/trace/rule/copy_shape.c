/* SPDX-License-Identifier: Apache-2.0 */
/* copy-shape: 2-D or 3-D copies whose narrow rows cost the link its speed. Design note:
 * docs/audit/copy-shape.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>
#include <string.h>

static bool is_shaped(const hr_trace *trace, const hr_event *copy)
{
    if (copy->peer == HR_NONE)
        return false;
    const char *name = hr_trace_text(trace, trace->events[copy->peer].name);
    return strstr(name, "2D") != NULL || strstr(name, "3D") != NULL;
}

static bool is_linked(const hr_event *event, hr_direction direction, uint32_t device)
{
    return event->kind == HR_EVENT_COPY && event->direction == direction && event->device == device &&
           hr_event_host_memory(event) == HR_MEMORY_PINNED && hr_event_ns(event) > 0;
}

/* The best flat copy of at least half the size: what the same bytes would take in one piece. */
static double flat_gbps(const hr_trace *trace, hr_direction direction, uint32_t device)
{
    const uint64_t least = UINT64_C(1) << 20;
    double best = 0.0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (!is_linked(event, direction, device) || is_shaped(trace, event) || event->bytes < least)
            continue;
        double speed = (double)event->bytes / (double)hr_event_ns(event);
        best = speed > best ? speed : best;
    }
    return best;
}

static hr_status judge(const hr_trace *trace, hr_direction direction, uint32_t device, hr_findings *findings)
{
    double flat = flat_gbps(trace, direction, device);
    hr_finding *finding = NULL;
    int64_t taken_ns = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (!is_linked(event, direction, device) || !is_shaped(trace, event) ||
            event->bytes < (UINT64_C(64) << 10) ||
            (double)event->bytes / (double)hr_event_ns(event) > 0.5 * flat)
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "copy-shape")) == NULL)
            return HR_E_HOST_MEMORY;
        finding->device = device;
        finding->repair.kind = HR_REPAIR_PIN; /* the replay's word for: at the link's speed */
        if (hr_rule_take(finding, trace, trace->work[i], 0) != HR_OK)
            return HR_E_HOST_MEMORY;
        taken_ns += hr_event_ns(event);
    }
    if (finding == NULL)
        return HR_OK;
    char bytes[24];
    snprintf(finding->text, sizeof finding->text,
             "%llu copies with rows (2-D or 3-D), %s in all, run at %.1f GB/s; flat copies in this trace "
             "reach %.1f GB/s. Narrow rows "
             "do this: each is a transfer of its own.",
             (unsigned long long)finding->count, hr_rule_bytes(finding->bytes, bytes),
             (double)finding->bytes / (double)taken_ns, flat);
    snprintf(finding->fix, sizeof finding->fix,
             "copy whole rows in one flat piece, or pack the columns on the side where memory is fast (a "
             "kernel on the device)");
    finding->little = 0.01;
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
    return trace->has.calls && trace->has.bytes && trace->has.memory_kinds
               ? NULL
               : "copies joined with their calls, sizes and kinds of memory";
}

const hr_rule hr_rule_copy_shape = {
    .name = "copy-shape",
    .meaning = "2-D or 3-D copies with narrow rows run far below the link's speed",
    .needs = "copies joined with their calls, sizes and kinds of memory",
    .lacks = lacks,
    .check = check,
};
