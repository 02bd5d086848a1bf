/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Found, clean, or cannot tell. Clean is a claim: it is made only of a trace in which the commonest faults would have shown.
 */
#include "trace/audit/audit.h"

#include <stdio.h>
#include <string.h>

/* Rules without which a clean answer would be a guess. */
static const char *const essential[] = {"pageable-copy", "same-stream", "sync-call"};

/* Headrace's own traces hold no calls, as its host threads make none that waits for the device. */
static size_t essential_count(const hr_trace *trace)
{
    size_t count = sizeof essential / sizeof essential[0];
    return trace->format == HR_FORMAT_HEADRACE ? count - 1 : count;
}

static bool is_essential(const hr_trace *trace, const char *rule)
{
    bool found = false;
    for (size_t i = 0; i < essential_count(trace); i++)
        found |= strcmp(rule, essential[i]) == 0;
    return found;
}

/* One kind of work: how many calls ask for it, how much there is, and how much of it has its call. */
typedef struct hr_kept {
    const char *calls, *work;
    uint64_t asked, there, joined;
} hr_kept;

static void count_kept(const hr_trace *trace, hr_kept *kernels, hr_kept *copies)
{
    for (uint32_t i = 0; i < trace->call_count; i++) {
        hr_call call = (hr_call)trace->events[trace->calls[i]].call;
        kernels->asked += call == HR_CALL_LAUNCH;
        copies->asked += call == HR_CALL_COPY || call == HR_CALL_COPY_ASYNC;
    }
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        hr_kept *of = event->kind == HR_EVENT_KERNEL ? kernels : event->kind == HR_EVENT_COPY ? copies : NULL;
        if (of == NULL)
            continue;
        of->there++;
        of->joined += event->peer != HR_NONE;
    }
}

/* Calls that ask for work of which the trace has none, or none that can be joined with them. A few may have failed, or have
 * moved nothing. */
static bool has_hole(const hr_kept *kept, char *reason, size_t room)
{
    enum { FEW = 4 };
    if (kept->asked < FEW || kept->joined != 0)
        return false;
    if (kept->there == 0)
        snprintf(reason, room, "the trace has %llu calls that %s, and none of the %s that they ask for",
                 (unsigned long long)kept->asked, kept->calls, kept->work);
    else
        snprintf(reason, room,
                 "the trace does not say which of its %llu calls that %s belongs to which of its %llu %s",
                 (unsigned long long)kept->asked, kept->calls, (unsigned long long)kept->there, kept->work);
    return true;
}

/* Why nothing found does not mean that there is nothing. */
static bool cannot_tell(const hr_report *report, char *reason, size_t room)
{
    hr_kept kernels = {.calls = "launch kernels", .work = "kernels"},
            copies = {.calls = "copy", .work = "copies"};
    for (uint32_t i = 0; i < report->lack_count; i++) {
        if (!is_essential(report->trace, report->lacks[i].rule))
            continue;
        snprintf(reason, room, "the trace lacks %s, which %s needs", report->lacks[i].needs,
                 report->lacks[i].rule);
        return true;
    }
    count_kept(report->trace, &kernels, &copies);
    return has_hole(&kernels, reason, room) || has_hole(&copies, reason, room);
}

void hr_audit_give_verdict(hr_audit *audit)
{
    hr_report *report = &audit->report;
    report->verdict = HR_VERDICT_CLEAN;
    for (uint32_t i = 0; i < audit->findings.count; i++) {
        const hr_finding *finding = &audit->findings.at[i];
        if (finding->kind == HR_FINDING_DEFECT)
            report->verdict = HR_VERDICT_FOUND;
        if (finding->kind == HR_FINDING_SUSPENDED) {
            report->verdict = HR_VERDICT_CANNOT_TELL;
            snprintf(report->reason, sizeof report->reason, "%.*s", (int)sizeof report->reason - 1,
                     finding->text);
            return;
        }
    }
    if (report->verdict == HR_VERDICT_CLEAN && cannot_tell(report, report->reason, sizeof report->reason))
        report->verdict = HR_VERDICT_CANNOT_TELL;
}
