/* SPDX-License-Identifier: Apache-2.0 */
/* tiny-copies: many small copies, whose calls cost more than the copying. Design note:
 * docs/audit/tiny-copies.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

enum { TINY_BYTES = 64 * 1024, LEAST_COPIES = 32, LEAST_RUN = 4 };

static bool is_tiny(const hr_trace *trace, const hr_event *copy)
{
    if (copy->kind != HR_EVENT_COPY || copy->peer == HR_NONE || copy->bytes == 0 || copy->bytes > TINY_BYTES)
        return false;
    /* A download that holds the host is wanted there and then: it cannot wait for its neighbours. */
    return hr_event_is_upload(copy) || (hr_event_is_download(copy) && !hr_trace_blocks(trace, copy));
}

typedef struct hr_tiny {
    hr_durations sizes, calls;
    int64_t copying_ns;
} hr_tiny;

static hr_status take_run(const hr_trace *trace, uint32_t from, uint32_t to, hr_finding *finding,
                          hr_tiny *tiny)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t work = trace->stream_work[i];
        const hr_event *copy = &trace->events[work];
        int64_t call_ns = hr_event_ns(&trace->events[copy->peer]);
        hr_status status = hr_rule_take(finding, trace, work, call_ns);
        if (status == HR_OK)
            status = hr_durations_add(&tiny->sizes, (int64_t)copy->bytes);
        if (status == HR_OK)
            status = hr_durations_add(&tiny->calls, call_ns);
        if (status != HR_OK)
            return status;
        tiny->copying_ns += hr_event_ns(copy);
    }
    return HR_OK;
}

/* Runs of tiny copies in one direction with nothing between them in their stream: those that could be one. */
static hr_status take_stream(const hr_trace *trace, uint32_t stream, hr_finding *finding, hr_tiny *tiny)
{
    uint32_t end = trace->stream_work_at[stream + 1];
    for (uint32_t i = trace->stream_work_at[stream]; i < end;) {
        const hr_event *first = &trace->events[trace->stream_work[i]];
        uint32_t run = i;
        while (run < end && is_tiny(trace, &trace->events[trace->stream_work[run]]) &&
               trace->events[trace->stream_work[run]].direction == first->direction)
            run++;
        hr_status status = HR_OK;
        if (run - i >= LEAST_RUN)
            status = take_run(trace, i, run, finding, tiny);
        if (status != HR_OK)
            return status;
        i = run > i ? run : i + 1;
    }
    return HR_OK;
}

static void describe(const hr_trace *trace, hr_finding *finding, hr_tiny *tiny)
{
    char size[24], call[24], calls[24], copying[24];
    hr_rule_bytes((uint64_t)hr_durations_percentile(&tiny->sizes, 50.0), size);
    hr_rule_time(hr_durations_percentile(&tiny->calls, 50.0), call);
    snprintf(finding->text, sizeof finding->text,
             "%llu copies of %s in the middle follow each other: their calls take %s (%s each), the copying "
             "itself %s.",
             (unsigned long long)finding->count, size, hr_rule_time(finding->blocked_ns, calls), call,
             hr_rule_time(tiny->copying_ns, copying));
    snprintf(
        finding->fix, sizeof finding->fix, "%s",
        trace->pytorch
            ? "put the small tensors into one (torch.cat or torch.stack on the host, pinned), copy once, and "
              "take views on the device"
        : trace->hip
            ? "pack them into one pinned buffer and copy once, or let one kernel read the pinned blocks"
            : "pack them into one pinned buffer and copy once, use cudaMemcpyBatchAsync, or let one kernel "
              "read "
              "the pinned blocks");
    snprintf(finding->proof, sizeof finding->proof,
             "the prediction drops the copy calls and keeps what the host does between them; packing costs "
             "host time too");
    finding->little = 0.01;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_tiny tiny = {0};
    hr_finding *finding = hr_findings_add(findings, "tiny-copies");
    hr_status status = finding != NULL ? HR_OK : HR_E_HOST_MEMORY;
    if (status == HR_OK)
        finding->repair.kind = HR_REPAIR_BATCH;
    for (uint32_t s = 0; s < trace->stream_count && status == HR_OK; s++)
        status = take_stream(trace, s, finding, &tiny);
    if (status == HR_OK) {
        if (finding->count >= LEAST_COPIES && finding->blocked_ns > tiny.copying_ns) {
            describe(trace, finding, &tiny);
            hr_finding_finish(finding);
        } else {
            hr_findings_drop_last(findings);
        }
    }
    hr_durations_free(&tiny.sizes);
    hr_durations_free(&tiny.calls);
    return status == HR_OK ? HR_OK : hr_rule_no_memory(trace, error);
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.bytes || !trace->has.correlation
               ? (trace->has.correlation ? NULL : "which call submitted which copy")
               : "the sizes of copies";
}

const hr_rule hr_rule_tiny_copies = {
    .name = "tiny-copies",
    .meaning = "many small copies in a row, whose calls cost more than the copying",
    .needs = "host calls, correlation, sizes",
    .lacks = lacks,
    .check = check,
};
