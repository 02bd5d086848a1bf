/* SPDX-License-Identifier: Apache-2.0 */
/* same-stream: copies and kernels take turns in one stream. Design note: docs/audit/same-stream.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* A gain below this share of the span is told as a bound, not as a defect. */
#define LITTLE 0.05
/* Copies that take less of the span are of no interest here. */
#define WORTH 0.05
/* Overlap below this share of what could overlap counts as none. */
#define NONE 0.2

typedef struct hr_shared {
    hr_intervals copies, kernels; /* of the streams that hold both */
    hr_intervals all_copies, all_kernels;
    hr_intervals uploads, downloads, all; /* of all streams: two directions are two engines */
    uint64_t listed;
} hr_shared;

static bool is_host_copy(const hr_event *event)
{
    return hr_event_is_upload(event) || hr_event_is_download(event);
}

/* A stream in which at least one kernel stands behind a copy, and a copy behind a kernel. */
static bool takes_turns(const hr_trace *trace, uint32_t stream)
{
    uint32_t turns = 0;
    bool copied = false;
    for (uint32_t i = trace->stream_work_at[stream]; i < trace->stream_work_at[stream + 1]; i++) {
        const hr_event *event = &trace->events[trace->stream_work[i]];
        if (is_host_copy(event)) {
            copied = true;
        } else if (event->kind == HR_EVENT_KERNEL && copied) {
            turns++;
            copied = false;
        }
    }
    return turns >= 1;
}

static hr_status gather_stream(const hr_trace *trace, uint32_t stream, hr_shared *shared, hr_finding *finding)
{
    bool turns = takes_turns(trace, stream);
    hr_status status = HR_OK;
    for (uint32_t i = trace->stream_work_at[stream]; i < trace->stream_work_at[stream + 1] && status == HR_OK;
         i++) {
        uint32_t work = trace->stream_work[i];
        const hr_event *event = &trace->events[work];
        bool copy = is_host_copy(event);
        if (!copy && event->kind != HR_EVENT_KERNEL)
            continue;
        status = hr_intervals_add(copy ? &shared->all_copies : &shared->all_kernels, event->begin_ns,
                                  event->end_ns);
        if (status == HR_OK && copy)
            status = hr_intervals_add(hr_event_is_upload(event) ? &shared->uploads : &shared->downloads,
                                      event->begin_ns, event->end_ns);
        if (status == HR_OK)
            status = hr_intervals_add(&shared->all, event->begin_ns, event->end_ns);
        if (status == HR_OK && turns)
            status =
                hr_intervals_add(copy ? &shared->copies : &shared->kernels, event->begin_ns, event->end_ns);
        if (status == HR_OK && turns && copy) {
            shared->listed++;
            status = hr_rule_take(finding, trace, work, 0);
        }
    }
    return status;
}

static void shared_free(hr_shared *shared)
{
    hr_intervals_free(&shared->copies);
    hr_intervals_free(&shared->kernels);
    hr_intervals_free(&shared->all_copies);
    hr_intervals_free(&shared->all_kernels);
    hr_intervals_free(&shared->uploads);
    hr_intervals_free(&shared->downloads);
    hr_intervals_free(&shared->all);
}

static hr_status gather(const hr_trace *trace, uint32_t device, hr_shared *shared, hr_finding *finding)
{
    hr_status status = HR_OK;
    for (uint32_t s = 0; s < trace->stream_count && status == HR_OK; s++) {
        if (trace->streams[s].device == device)
            status = gather_stream(trace, s, shared, finding);
    }
    hr_intervals_normalise(&shared->copies);
    hr_intervals_normalise(&shared->kernels);
    hr_intervals_normalise(&shared->all_copies);
    hr_intervals_normalise(&shared->all_kernels);
    hr_intervals_normalise(&shared->uploads);
    hr_intervals_normalise(&shared->downloads);
    hr_intervals_normalise(&shared->all);
    return status;
}

static void describe_fix(const hr_trace *trace, hr_finding *finding)
{
    snprintf(finding->fix, sizeof finding->fix, "%s",
             trace->pytorch
                 ? "copy the next batch on a stream of its own (with torch.cuda.stream(copy_stream): x = "
                   "batch.to(device, non_blocking=True)), keep two or three batches in flight, and order the "
                   "two streams with "
                   "events"
                 : "put copies on streams of their own, keep two or three buffers in flight, and order the "
                   "streams with "
                   "events");
    snprintf(finding->proof, sizeof finding->proof,
             "holds when a copy does not need the kernels before it; a buffer is refilled only behind the "
             "event of the "
             "kernel that read it");
}

/* What perfect overlap could gain: the busiest of the engines stays, and hides all the rest. */
static int64_t most_gain(const hr_trace *trace, const hr_shared *shared)
{
    int64_t busiest = hr_intervals_length(&shared->all_kernels);
    int64_t up = hr_intervals_length(&shared->uploads), down = hr_intervals_length(&shared->downloads);
    int64_t both = hr_trace_has_one_copy_engine(trace) ? hr_intervals_length(&shared->all_copies) : 0;
    busiest = both > busiest ? both : busiest;
    busiest = up > busiest ? up : busiest;
    busiest = down > busiest ? down : busiest;
    return hr_intervals_length(&shared->all) - busiest;
}

/* Where the most that could be gained is little, that is said instead of a defect. */
static void judge(const hr_trace *trace, hr_finding *finding, const hr_shared *shared,
                  const hr_trace_usage *usage)
{
    int64_t copies = hr_intervals_length(&shared->all_copies);
    int64_t kernels = hr_intervals_length(&shared->all_kernels);
    int64_t overlap = hr_intervals_common(&shared->all_copies, &shared->all_kernels);
    int64_t shorter = copies < kernels ? copies : kernels;
    double span = (double)usage->span_ns;
    double most = 100.0 * (double)most_gain(trace, shared) / span;
    int percent = shorter > 0 ? (int)(100.0 * (double)overlap / (double)shorter + 0.5) : 0;
    char copy_time[24], kernel_time[24], span_time[24];
    hr_rule_time(copies, copy_time);
    hr_rule_time(kernels, kernel_time);
    hr_rule_time(usage->span_ns, span_time);
    finding->little = LITTLE;
    if (most < 100.0 * LITTLE) {
        finding->kind = HR_FINDING_INFORMATION;
        finding->repair.kind = HR_REPAIR_NONE;
        finding->most_ns = most_gain(trace, shared);
        snprintf(finding->text, sizeof finding->text,
                 "%d %% of the shorter of copies (%s) and kernels (%s) overlaps, yet overlapping all of it "
                 "gains at most "
                 "%.1f %% of %s: the %s bind.",
                 percent, copy_time, kernel_time, most, span_time, copies > kernels ? "copies" : "kernels");
        snprintf(finding->fix, sizeof finding->fix,
                 copies > kernels
                     ? "copy less, or at a better rate: fewer bytes, smaller types, data kept on the device"
                     : "make the kernels faster: copies hide under them or do not matter");
        return;
    }
    snprintf(finding->text, sizeof finding->text,
             "%llu copies share a stream with the kernels that they could run beside: copies %s, kernels %s, "
             "%d %% of the "
             "shorter overlaps.",
             (unsigned long long)shared->listed, copy_time, kernel_time, percent);
    snprintf(finding->bound_text, sizeof finding->bound_text,
             "copies on streams of their own gain little here: what waits for what leaves no room");
    describe_fix(trace, finding);
}

static hr_status check_device(const hr_trace *trace, uint32_t device, hr_findings *findings)
{
    hr_trace_usage usage;
    hr_shared shared = {0};
    hr_finding *finding = hr_findings_add(findings, "same-stream");
    hr_status status = finding != NULL ? hr_trace_measure(trace, device, &usage) : HR_E_HOST_MEMORY;
    if (status == HR_OK) {
        finding->device = device;
        finding->repair.kind = HR_REPAIR_OWN_STREAM;
        finding->repair.buffers = 3;
        status = gather(trace, device, &shared, finding);
    }
    if (status != HR_OK) {
        shared_free(&shared);
        return status;
    }
    int64_t copies = hr_intervals_length(&shared.copies);
    int64_t kernels = hr_intervals_length(&shared.kernels);
    int64_t shorter = copies < kernels ? copies : kernels;
    int64_t overlap = hr_intervals_common(&shared.copies, &shared.all_kernels);
    bool worth = (double)hr_intervals_length(&shared.all_copies) >= WORTH * (double)usage.span_ns;
    bool none = shorter > 0 && (double)overlap < NONE * (double)shorter;
    if (worth && none) {
        judge(trace, finding, &shared, &usage);
        hr_finding_finish(finding);
    } else {
        hr_findings_drop_last(findings);
    }
    shared_free(&shared);
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    for (uint32_t d = 0; d < trace->device_count; d++) {
        if (trace->devices[d].works && check_device(trace, d, findings) != HR_OK)
            return hr_rule_no_memory(trace, error);
    }
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.streams ? NULL : "the streams of copies and kernels";
}

const hr_rule hr_rule_same_stream = {
    .name = "same-stream",
    .meaning = "copies and kernels that do not need each other take turns in one stream",
    .needs = "streams",
    .lacks = lacks,
    .check = check,
};
