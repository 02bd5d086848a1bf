/* SPDX-License-Identifier: Apache-2.0 */
/* sm-full: a kernel that is ready waits for one that fills the GPU, and copies wait behind it. Design note:
 * docs/audit/sm-full.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* The kernel of another stream that ran from before `ready` until `work` began. */
static uint32_t occupant(const hr_trace *trace, uint32_t work, int64_t ready)
{
    const hr_event *event = &trace->events[work];
    for (uint32_t i = work, seen = 0; i-- > 0 && seen < 64;) {
        const hr_event *other = &trace->events[i];
        if (other->kind != HR_EVENT_KERNEL || other->device != event->device)
            continue;
        seen++;
        /* A kernel's last blocks end while the next one's first begin: some microseconds either way. */
        if (other->stream != event->stream && other->begin_ns <= ready && other->end_ns > ready &&
            other->end_ns < event->begin_ns + hr_event_ns(other) / 4 &&
            event->begin_ns - other->end_ns < 20 * HR_RULE_US)
            return i;
    }
    return HR_NONE;
}

/* The copy that comes next in the stream and began as this kernel ended, or HR_NONE. */
static uint32_t copy_behind(const hr_trace *trace, uint32_t work)
{
    const hr_event *event = &trace->events[work];
    for (uint32_t i = work + 1, seen = 0; i < trace->event_count && seen < 64; i++) {
        const hr_event *other = &trace->events[i];
        if (!hr_event_is_work(other))
            continue;
        seen++;
        if (other->stream == event->stream)
            return other->kind == HR_EVENT_COPY && other->begin_ns - event->end_ns < 50 * HR_RULE_US
                       ? i
                       : HR_NONE;
    }
    return HR_NONE;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    hr_finding *finding = NULL;
    int64_t waited = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        uint32_t work = trace->work[i];
        const hr_event *event = &trace->events[work];
        if (event->kind != HR_EVENT_KERNEL)
            continue;
        int64_t ready = hr_rule_ready_ns(trace, work);
        if (event->begin_ns - ready < 100 * HR_RULE_US)
            continue;
        uint32_t holder = occupant(trace, work, ready);
        uint32_t copy = holder == HR_NONE ? HR_NONE : copy_behind(trace, work);
        if (copy == HR_NONE)
            continue;
        if (finding == NULL && (finding = hr_findings_add(findings, "sm-full")) == NULL)
            return hr_rule_no_memory(trace, error);
        if (hr_finding_count(finding, trace, work, 0) != HR_OK || hr_rule_show(finding, holder) != HR_OK ||
            hr_rule_show(finding, work) != HR_OK || hr_rule_show(finding, copy) != HR_OK)
            return hr_rule_no_memory(trace, error);
        waited += event->begin_ns - ready;
    }
    if (finding == NULL || waited * 50 < trace->work_end_ns - trace->work_begin_ns) {
        if (finding != NULL)
            hr_findings_drop_last(findings);
        return HR_OK;
    }
    char time[24];
    finding->kind = HR_FINDING_INFORMATION;
    snprintf(finding->text, sizeof finding->text,
             "%llu kernels that were ready waited %s in all for a kernel of another stream that left them no "
             "room, and a copy waited behind each. The "
             "copy itself needs no multiprocessor; it waits for its own stream's kernel.",
             (unsigned long long)finding->count, hr_rule_time(waited, time));
    snprintf(finding->fix, sizeof finding->fix,
             "give the stream whose copies matter a higher priority, cut the large kernel, or copy from a "
             "stream of its own that waits only for what it copies");
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.streams && trace->has.correlation ? NULL : "streams, and calls joined with their work";
}

const hr_rule hr_rule_sm_full = {
    .name = "sm-full",
    .meaning = "a ready kernel waits for one that fills the GPU, and copies wait behind it",
    .needs = "streams, and calls joined with their work",
    .lacks = lacks,
    .check = check,
};
