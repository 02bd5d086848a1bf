/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From rules to a report. Rules say what they see; the replay says what each repair would gain, alone and
 * together; only then is it decided what is a defect. Costs are marginal: repairs are added one after the
 * other, the most useful first, and each is charged what it gains on top of those before it. So they add up
 * to what all of them gain.
 */
#include "trace/audit/audit.h"
#include "trace/rule/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hr_status no_memory(const hr_audit *audit, hr_error *error)
{
    return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to judge it", audit->trace->path);
}

static bool is_suspended(const hr_findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++) {
        if (findings->at[i].kind == HR_FINDING_SUSPENDED)
            return true;
    }
    return false;
}

static hr_status run_rules(hr_audit *audit, hr_findings *findings, hr_error *error)
{
    uint32_t count;
    const hr_rule *const *rules = hr_rules(&count);
    audit->lacks = calloc(count, sizeof *audit->lacks);
    if (audit->lacks == NULL)
        return no_memory(audit, error);
    audit->report.lacks = audit->lacks;
    /* The environment comes first: where something serialised the run, nothing else can be said. */
    for (uint32_t i = 0; i < count && !is_suspended(findings); i++) {
        const char *lack = rules[i]->lacks(audit->trace);
        if (lack != NULL) {
            audit->lacks[audit->report.lack_count++] = (hr_report_lack){rules[i]->name, lack};
            continue;
        }
        hr_status status = rules[i]->check(audit->trace, findings, error);
        if (status != HR_OK)
            return status;
    }
    return HR_OK;
}

/* What the repairs gain, found by replaying. */
typedef struct hr_gains {
    hr_replay *replay;
    bool *use;       /* by finding */
    uint32_t *order; /* findings with a repair, by what each gains alone */
    uint32_t count;
} hr_gains;

static bool has_repair(const hr_finding *finding)
{
    return finding->kind == HR_FINDING_DEFECT && finding->repair.kind != HR_REPAIR_NONE &&
           finding->repair.count != 0;
}

/* after_ns of each finding: with this repair and no other. */
static hr_status replay_each(hr_audit *audit, const hr_findings *findings, hr_gains *gains, hr_error *error)
{
    int64_t today = audit->report.replayed_ns;
    for (uint32_t i = 0; i < findings->count; i++) {
        hr_finding *finding = &findings->at[i];
        finding->after_ns = today;
        if (!has_repair(finding))
            continue;
        hr_replay_result result;
        gains->use[i] = true;
        hr_status status = hr_replay_run(gains->replay, findings, gains->use, &result, NULL, NULL, error);
        gains->use[i] = false;
        if (status != HR_OK)
            return status;
        finding->after_ns = result.span_ns < today ? result.span_ns : today;
        uint32_t at = gains->count++;
        for (; at > 0 && findings->at[gains->order[at - 1]].after_ns > finding->after_ns; at--)
            gains->order[at] = gains->order[at - 1];
        gains->order[at] = i;
    }
    return HR_OK;
}

/* A repair that gains little, alone and on top of the others, makes no defect. */
static void demote(hr_finding *finding)
{
    if (finding->bound_text[0] == '\0') {
        finding->repair.count = 0;
        finding->count = 0;
        return;
    }
    finding->kind = HR_FINDING_INFORMATION;
    memcpy(finding->proof, finding->bound_text, sizeof finding->proof);
}

/* Adds repairs one after the other; those that gain too little are left out again. */
static hr_status replay_together(hr_audit *audit, const hr_findings *findings, hr_gains *gains,
                                 hr_error *error)
{
    hr_report *report = &audit->report;
    int64_t today = report->replayed_ns;
    int64_t now = today;
    for (uint32_t i = 0; i < gains->count; i++) {
        hr_finding *finding = &findings->at[gains->order[i]];
        hr_replay_result result;
        gains->use[gains->order[i]] = true;
        hr_status status = hr_replay_run(gains->replay, findings, gains->use, &result, NULL, NULL, error);
        if (status != HR_OK)
            return status;
        int64_t gain = now - result.span_ns;
        int64_t alone = today - finding->after_ns;
        int64_t least = (int64_t)(finding->little * (double)today);
        if (gain <= 0 || (gain < least && alone < least)) {
            gains->use[gains->order[i]] = false;
            demote(finding);
            continue;
        }
        finding->cost_ns = gain;
        finding->masked = alone < least;
        now = result.span_ns;
    }
    hr_replay_result result;
    hr_status status = hr_replay_run(gains->replay, findings, gains->use, &result, audit->fixed_begin_ns,
                                     audit->fixed_end_ns, error);
    if (status != HR_OK)
        return status;
    report->all_fixed_ns = result.span_ns;
    report->bound = result.bound;
    report->bound_ns = result.bound_ns;
    return HR_OK;
}

static hr_status foresee(hr_audit *audit, const hr_findings *findings, hr_error *error)
{
    const hr_trace *trace = audit->trace;
    hr_graph *graph = NULL;
    hr_gains gains = {0};
    hr_replay_result today;
    gains.use = calloc((size_t)findings->count + 1, sizeof *gains.use);
    gains.order = calloc((size_t)findings->count + 1, sizeof *gains.order);
    audit->fixed_begin_ns = malloc(((size_t)trace->event_count + 1) * sizeof *audit->fixed_begin_ns);
    audit->fixed_end_ns = malloc(((size_t)trace->event_count + 1) * sizeof *audit->fixed_end_ns);
    hr_status status = HR_OK;
    if (gains.use == NULL || gains.order == NULL || audit->fixed_begin_ns == NULL ||
        audit->fixed_end_ns == NULL)
        status = no_memory(audit, error);
    if (status == HR_OK)
        status = hr_graph_build(trace, &graph, error);
    if (status == HR_OK)
        status = hr_replay_new(graph, &audit->link, &gains.replay, error);
    if (status == HR_OK)
        status = hr_replay_run(gains.replay, findings, NULL, &today, NULL, NULL, error);
    if (status == HR_OK) {
        audit->report.replayed_ns = today.span_ns;
        audit->report.unexplained_ns = graph->unexplained_ns;
        status = replay_each(audit, findings, &gains, error);
    }
    if (status == HR_OK)
        status = replay_together(audit, findings, &gains, error);
    hr_replay_free(&gains.replay);
    hr_graph_free(&graph);
    free(gains.use);
    free(gains.order);
    return status;
}

static bool is_shown(const hr_audit *audit, const hr_finding *finding, double min_cost_pct)
{
    double least = min_cost_pct / 100.0 * (double)audit->report.span_ns;
    if (finding->kind == HR_FINDING_SUSPENDED)
        return true;
    if (finding->count == 0)
        return false;
    if (finding->kind == HR_FINDING_DEFECT && has_repair(finding))
        return (double)finding->cost_ns >= least;
    /* What costs nothing that can be put in figures is told where the host lost time, or where it is a bound.
     */
    return finding->blocked_ns == 0 || (double)finding->blocked_ns >= least;
}

static int dearest_first(const void *left, const void *right)
{
    const hr_finding *a = left;
    const hr_finding *b = right;
    if (a->kind != b->kind)
        return a->kind == HR_FINDING_SUSPENDED   ? -1
               : b->kind == HR_FINDING_SUSPENDED ? 1
                                                 : (a->kind > b->kind) - (a->kind < b->kind);
    /* What helps only once something else is fixed comes behind that. */
    if (a->masked != b->masked)
        return a->masked ? 1 : -1;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns ? 1 : -1;
    if (a->blocked_ns != b->blocked_ns)
        return a->blocked_ns < b->blocked_ns ? 1 : -1;
    return strcmp(a->rule, b->rule);
}

/* Keeps what is to be shown; the rest is freed and counted. */
static void sift(hr_audit *audit, hr_findings *findings, double min_cost_pct)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < findings->count; i++) {
        hr_finding *finding = &findings->at[i];
        if (is_shown(audit, finding, min_cost_pct)) {
            hr_finding moved = *finding;
            findings->at[kept++] = moved;
            continue;
        }
        audit->report.hidden_count += finding->count != 0;
        free(finding->where);
        free(finding->evidence);
        free(finding->repair.events);
    }
    findings->count = kept;
    if (kept > 1)
        qsort(findings->at, kept, sizeof *findings->at, dearest_first);
}

static hr_status measure(hr_audit *audit, hr_error *error)
{
    const hr_trace *trace = audit->trace;
    hr_report *report = &audit->report;
    audit->devices = calloc((size_t)trace->device_count + 1, sizeof *audit->devices);
    if (audit->devices == NULL)
        return no_memory(audit, error);
    for (uint32_t d = 0; d < trace->device_count; d++) {
        if (!trace->devices[d].works)
            continue;
        hr_report_device *device = &audit->devices[report->device_count++];
        device->device = d;
        if (hr_trace_measure(trace, d, &device->usage) != HR_OK)
            return no_memory(audit, error);
    }
    report->devices = audit->devices;
    report->span_ns = trace->work_end_ns - trace->work_begin_ns;
    return HR_OK;
}

/* Rules without which a clean answer would be a guess. */
static const char *const essential[] = {"pageable-copy", "same-stream", "sync-call"};

/* Headrace's own traces hold no calls, as its host threads make none that waits for the device. */
static size_t essential_count(const hr_trace *trace)
{
    size_t count = sizeof essential / sizeof essential[0];
    return trace->format == HR_FORMAT_HEADRACE ? count - 1 : count;
}

static void take_busier(hr_report *report, const char *name, int64_t busy_ns)
{
    if (busy_ns > report->bound_ns) {
        report->bound = name;
        report->bound_ns = busy_ns;
    }
}

/* A trace of Headrace also says how long its host stages were busy: the busiest stage is what binds. */
static hr_status weigh_stages(hr_audit *audit)
{
    const hr_trace *trace = audit->trace;
    hr_report *report = &audit->report;
    hr_status status = HR_OK;
    report->bound_ns = -1;
    for (uint32_t d = 0; d < report->device_count; d++) {
        take_busier(report, "compute", report->devices[d].usage.kernel_ns);
        take_busier(report, "copies in", report->devices[d].usage.h2d_ns);
        take_busier(report, "copies out", report->devices[d].usage.d2h_ns);
    }
    for (uint32_t name = 0; name < trace->string_count && status == HR_OK; name++) {
        hr_intervals busy = {0};
        for (uint32_t i = 0; i < trace->event_count && status == HR_OK; i++) {
            const hr_event *event = &trace->events[i];
            if (event->kind == HR_EVENT_MARKER && event->name == name)
                status = hr_intervals_add(&busy, event->begin_ns, event->end_ns);
        }
        hr_intervals_normalise(&busy);
        int64_t within = hr_intervals_covered(&busy, trace->work_begin_ns, trace->work_end_ns);
        take_busier(report, hr_trace_text(trace, name), within);
        hr_intervals_free(&busy);
    }
    return status;
}

static void give_verdict(hr_audit *audit)
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
    for (uint32_t i = 0; report->verdict == HR_VERDICT_CLEAN && i < report->lack_count; i++) {
        for (size_t k = 0; k < essential_count(audit->trace); k++) {
            if (strcmp(report->lacks[i].rule, essential[k]) != 0)
                continue;
            report->verdict = HR_VERDICT_CANNOT_TELL;
            snprintf(report->reason, sizeof report->reason, "the trace lacks %s, which %s needs",
                     report->lacks[i].needs, report->lacks[i].rule);
            return;
        }
    }
}

hr_status hr_audit_judge(hr_audit *audit, double min_cost_pct, hr_error *error)
{
    hr_report *report = &audit->report;
    report->trace = audit->trace;
    hr_status status = measure(audit, error);
    if (status == HR_OK)
        status = run_rules(audit, &audit->findings, error);
    if (status == HR_OK)
        status = foresee(audit, &audit->findings, error);
    if (status != HR_OK)
        return status;
    if (audit->trace->format == HR_FORMAT_HEADRACE && weigh_stages(audit) != HR_OK)
        return no_memory(audit, error);
    sift(audit, &audit->findings, min_cost_pct);
    report->findings = &audit->findings;
    report->fixed_begin_ns = audit->fixed_begin_ns;
    report->fixed_end_ns = audit->fixed_end_ns;
    report->min_cost_pct = min_cost_pct;
    report->link_h2d_gbps = audit->link.h2d;
    report->link_d2h_gbps = audit->link.d2h;
    report->link_source = audit->link.h2d_source;
    give_verdict(audit);
    return HR_OK;
}
