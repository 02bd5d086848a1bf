/* SPDX-License-Identifier: Apache-2.0 */
/* head-of-line: a small copy that is ready waits behind a large one of the same direction. Design note:
 * docs/audit/head-of-line.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* Smaller than this, a copy is over in microseconds when its engine is free. */
#define SMALL_BYTES (UINT64_C(256) << 10)

/* The copy of the same direction and another stream that was running when `work` became ready and ended as it
 * began. */
static uint32_t blocker_of(const hr_trace *trace, uint32_t work, int64_t ready)
{
    const hr_event *event = &trace->events[work];
    for (uint32_t i = work; i-- > 0;) {
        const hr_event *other = &trace->events[i];
        if (other->kind != HR_EVENT_COPY || other->direction != event->direction ||
            other->device != event->device)
            continue;
        bool adjoins = other->end_ns <= event->begin_ns && event->begin_ns - other->end_ns < 20 * HR_RULE_US;
        if (adjoins && other->stream != event->stream && other->begin_ns <= ready &&
            other->bytes >= 16 * event->bytes)
            return i;
        return HR_NONE; /* the copy before it in the engine is another one: nothing to say */
    }
    return HR_NONE;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_finding *finding = NULL;
    uint32_t worst = HR_NONE, worst_blocker = HR_NONE;
    int64_t waited = 0, worst_wait = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        uint32_t work = trace->work[i];
        const hr_event *event = &trace->events[work];
        if (!(hr_event_is_upload(event) || hr_event_is_download(event)) || event->bytes > SMALL_BYTES)
            continue;
        int64_t ready = hr_rule_ready_ns(trace, work);
        int64_t wait = event->begin_ns - ready;
        if (wait < 100 * HR_RULE_US || wait < 10 * hr_event_ns(event))
            continue;
        uint32_t blocker = blocker_of(trace, work, ready);
        if (blocker == HR_NONE)
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "head-of-line")) == NULL)
            return hr_rule_no_memory(trace, error);
        if (hr_finding_count(finding, trace, work, 0) != HR_OK || hr_rule_show(finding, work) != HR_OK ||
            hr_rule_show(finding, blocker) != HR_OK)
            return hr_rule_no_memory(trace, error);
        waited += wait;
        if (wait > worst_wait) {
            worst_wait = wait;
            worst = work;
            worst_blocker = blocker;
        }
    }
    if (finding == NULL)
        return HR_OK;
    char sum[24], most[24], small[24], large[24];
    finding->kind = HR_FINDING_INFORMATION;
    snprintf(finding->text, sizeof finding->text,
             "%llu small copies that were ready waited %s in all behind a large one of the same direction; "
             "the worst, %s, waited %s "
             "behind %s. A direction has one engine, first come first served, and stream priority does not "
             "change that.",
             (unsigned long long)finding->count, hr_rule_time(waited, sum),
             hr_rule_bytes(trace->events[worst].bytes, small), hr_rule_time(worst_wait, most),
             hr_rule_bytes(trace->events[worst_blocker].bytes, large));
    snprintf(finding->fix, sizeof finding->fix,
             "cut large copies into pieces of a few MiB, so that small ones slip between; send tiny data as "
             "a kernel argument or read it "
             "from pinned memory in the kernel");
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.bytes && trace->has.correlation && trace->has.streams
               ? NULL
               : "copies joined with their calls, sizes and streams";
}

const hr_rule hr_rule_head_of_line = {
    .name = "head-of-line",
    .meaning = "a small copy waits behind a large one of the same direction",
    .needs = "copies joined with their calls, sizes and streams",
    .lacks = lacks,
    .check = check,
};
