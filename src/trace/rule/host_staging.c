/* SPDX-License-Identifier: Apache-2.0 */
/* host-staging: fill a buffer, copy it, wait, fill it again: host and link take turns. Design note:
 * docs/audit/host-staging.md. */
#include "trace/rule/rules.h"
#include "trace/rule/support.h"

#include <stdio.h>

/* One turn: a wait, then host time without a call, then the next copy. Indices into trace->events. */
typedef struct turn {
    uint32_t wait, copy, next;
    int64_t gap_ns;
} turn;

static bool is_upload_call(const hr_trace *trace, const hr_event *call)
{
    return call->kind == HR_EVENT_CALL && call->peer != HR_NONE &&
           hr_event_is_upload(&trace->events[call->peer]) &&
           hr_event_host_memory(&trace->events[call->peer]) == HR_MEMORY_PINNED;
}

static bool is_wait(const hr_event *call)
{
    return hr_call_is_sync((hr_call)call->call);
}

static bool brings_back(const hr_trace *trace, const hr_event *call)
{
    bool found = false;
    for (uint32_t work = call->peer; work != HR_NONE; work = trace->events[work].next)
        found |= hr_event_is_download(&trace->events[work]);
    return found;
}

/* The turn that begins with the i-th call of its thread, if there is one: upload, …, wait, silence, upload of
 * the same size. */
static bool find_turn(const hr_trace *trace, uint32_t i, uint32_t end, turn *found)
{
    enum { LOOK_AHEAD = 6 };
    const hr_event *first = &trace->events[trace->calls[i]];
    if (!is_upload_call(trace, first))
        return false;
    uint32_t wait = HR_NONE;
    for (uint32_t j = i + 1; j < end && j <= i + LOOK_AHEAD; j++) {
        const hr_event *call = &trace->events[trace->calls[j]];
        /* Then the wait is for what was read back, which sync-call judges. */
        if (brings_back(trace, call))
            return false;
        if (is_wait(call)) {
            wait = trace->calls[j];
        } else if (is_upload_call(trace, call)) {
            if (wait == HR_NONE || trace->events[call->peer].bytes != trace->events[first->peer].bytes)
                return false;
            *found = (turn){wait, trace->calls[i], trace->calls[j],
                            call->begin_ns - trace->events[trace->calls[j - 1]].end_ns};
            return true;
        }
    }
    return false;
}

/* In a turn the buffer is filled while nothing runs: the link and the GPU are idle for most of the gap. */
static bool takes_turns(const hr_trace *trace, const hr_intervals *busy, const turn *found)
{
    const hr_event *next = &trace->events[found->next];
    int64_t copy_ns = hr_event_ns(&trace->events[trace->events[found->copy].peer]);
    if (found->gap_ns * 5 < copy_ns || found->gap_ns < 20 * HR_RULE_US)
        return false;
    int64_t covered = hr_intervals_covered(busy, next->begin_ns - found->gap_ns, next->begin_ns);
    return covered * 5 < found->gap_ns;
}

typedef struct staging {
    int64_t cpu_ns, copy_ns;
} staging;

static hr_status collect(const hr_trace *trace, const hr_intervals *busy, hr_findings *findings,
                         hr_finding **finding, staging *sum)
{
    for (uint32_t t = 0; t < trace->thread_count; t++) {
        uint32_t end = trace->thread_calls[t + 1];
        for (uint32_t i = trace->thread_calls[t]; i < end; i++) {
            turn found;
            if (!find_turn(trace, i, end, &found) || !takes_turns(trace, busy, &found))
                continue;
            if (*finding == NULL && (*finding = hr_findings_add(findings, "host-staging")) == NULL)
                return HR_E_HOST_MEMORY;
            (*finding)->repair.kind = HR_REPAIR_DROP_CALL;
            if (hr_rule_take(*finding, trace, found.wait, hr_event_ns(&trace->events[found.wait])) != HR_OK)
                return HR_E_HOST_MEMORY;
            sum->cpu_ns += found.gap_ns;
            sum->copy_ns += hr_event_ns(&trace->events[trace->events[found.copy].peer]);
        }
    }
    return HR_OK;
}

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    enum { LEAST = 4 };
    hr_intervals busy = {0};
    hr_finding *finding = NULL;
    staging sum = {0};
    hr_status status = hr_rule_busy(trace, &busy);
    if (status == HR_OK)
        status = collect(trace, &busy, findings, &finding, &sum);
    hr_intervals_free(&busy);
    if (status != HR_OK)
        return hr_rule_no_memory(trace, error);
    if (finding == NULL)
        return HR_OK;
    if (finding->count < LEAST) {
        hr_findings_drop_last(findings);
        return HR_OK;
    }
    char cpu[24], copy[24], two[24];
    int64_t slower = sum.cpu_ns > sum.copy_ns ? sum.cpu_ns : sum.copy_ns;
    snprintf(finding->text, sizeof finding->text,
             "one staging buffer is filled, copied and waited for in turn, %llu times: the host works %s "
             "while the link rests, the link %s while "
             "the host waits. With two buffers the two would take about %s together.",
             (unsigned long long)finding->count, hr_rule_time(sum.cpu_ns, cpu),
             hr_rule_time(sum.copy_ns, copy), hr_rule_time(slower, two));
    snprintf(finding->fix, sizeof finding->fix,
             "take two or more pinned buffers; before a buffer is filled again, wait for the event recorded "
             "after its own last copy instead of for "
             "the stream");
    snprintf(finding->proof, sizeof finding->proof,
             "only true if the gap is spent filling the buffer; wait for the event of the copy two turns "
             "ago, or data is overwritten in flight");
    finding->little = 0.01;
    hr_finding_finish(finding);
    return HR_OK;
}

static const char *lacks(const hr_trace *trace)
{
    return trace->has.correlation && trace->has.memory_kinds
               ? NULL
               : "copies joined with their calls, and kinds of memory";
}

const hr_rule hr_rule_host_staging = {
    .name = "host-staging",
    .meaning = "one staging buffer is filled, copied and waited for in turn",
    .needs = "copies joined with their calls, and kinds of memory",
    .lacks = lacks,
    .check = check,
};
