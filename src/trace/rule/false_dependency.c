/* SPDX-License-Identifier: Apache-2.0 */
/* false-dependency: more streams than hardware queues, so that streams wait for each other. Design note:
 * docs/audit/false-dependency.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>
#include <stdlib.h>

/* CUDA_DEVICE_MAX_CONNECTIONS where nobody set it. */
enum { QUEUES = 8 };

static uint32_t working_streams(const hr_trace *trace, uint32_t device)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < trace->stream_count; s++)
        count +=
            trace->streams[s].device == device && trace->stream_work_at[s + 1] > trace->stream_work_at[s];
    return count;
}

typedef struct edge {
    int64_t at;
    int change;
} edge;

static int in_time(const void *left, const void *right)
{
    const edge *a = left, *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->change - b->change; /* an end before a begin at the same moment */
}

/* The most kernels that ran at the same time. HR_E_HOST_MEMORY. */
static hr_status most_at_once(const hr_trace *trace, uint32_t device, uint32_t *most)
{
    edge *edges = malloc(((size_t)trace->work_count * 2 + 1) * sizeof *edges);
    if (edges == NULL)
        return HR_E_HOST_MEMORY;
    size_t count = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->kind != HR_EVENT_KERNEL || event->device != device)
            continue;
        edges[count++] = (edge){event->begin_ns, 1};
        edges[count++] = (edge){event->end_ns, -1};
    }
    qsort(edges, count, sizeof *edges, in_time);
    int running = 0, highest = 0;
    for (size_t i = 0; i < count; i++) {
        running += edges[i].change;
        highest = running > highest ? running : highest;
    }
    free(edges);
    *most = (uint32_t)highest;
    return HR_OK;
}

/* Kernels that were ready and waited although fewer ran than there are streams. */
static hr_status judge(const hr_trace *trace, uint32_t device, uint32_t streams, uint32_t most,
                       hr_findings *findings)
{
    int64_t waited = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->kind != HR_EVENT_KERNEL || event->device != device)
            continue;
        int64_t wait = event->begin_ns - hr_rule_ready_ns(trace, trace->work[i]);
        if (wait > 50 * HR_RULE_US && wait > hr_event_ns(event) / 2) {
            waited += wait;
            count++;
        }
    }
    if (waited * 20 < trace->work_end_ns - trace->work_begin_ns)
        return HR_OK;
    hr_finding *finding = hr_findings_add(findings, "false-dependency");
    if (finding == NULL)
        return HR_E_HOST_MEMORY;
    char time[24];
    finding->device = device;
    finding->kind = HR_FINDING_INFORMATION;
    finding->count = count;
    snprintf(finding->text, sizeof finding->text,
             "%u streams have work, at most %u kernels ran at once, and %u kernels that were ready waited %s "
             "in all. A GPU has %d hardware queues "
             "unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise; streams that share one wait for each other.",
             streams, most, count, hr_rule_time(waited, time), QUEUES);
    snprintf(
        finding->fix, sizeof finding->fix,
        "use no more streams than queues, or set CUDA_DEVICE_MAX_CONNECTIONS=32 before the program starts");
    snprintf(
        finding->proof, sizeof finding->proof,
        "kernels that fill the GPU wait in the same way; if the setting changes nothing, that is the cause");
    hr_finding_finish(finding);
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    for (uint32_t device = 0; device < trace->device_count; device++) {
        uint32_t streams = working_streams(trace, device), most;
        if (streams <= QUEUES)
            continue;
        if (most_at_once(trace, device, &most) != HR_OK)
            return hr_rule_no_memory(trace, error);
        if (most <= QUEUES && judge(trace, device, streams, most, findings) != HR_OK)
            return hr_rule_no_memory(trace, error);
    }
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.streams && trace->has.correlation ? NULL : "streams, and calls joined with their work";
}

const hr_rule hr_rule_false_dependency = {
    .name = "false-dependency",
    .meaning = "more streams than hardware queues, so that independent work waits",
    .needs = "streams, and calls joined with their work",
    .lacks = lacks,
    .check = check,
};
