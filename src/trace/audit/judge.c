/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From rules to a report. Rules say what they see; the replay says what each repair would gain (foresee.c); only then is it
 * decided what is shown, and what the verdict is.
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

static bool is_shown(const hr_audit *audit, const hr_finding *finding, double min_cost_pct)
{
    double least = min_cost_pct / 100.0 * (double)audit->report.span_ns;
    if (finding->kind == HR_FINDING_SUSPENDED)
        return true;
    if (finding->count == 0)
        return false;
    if (finding->kind == HR_FINDING_DEFECT && hr_audit_has_repair(finding))
        return (double)finding->cost_ns >= least || (double)finding->together_ns >= least;
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
    /* The replay knows nothing of host stages: where it foresees less than the busiest one takes, that one binds. */
    if (report->bound_ns > report->all_fixed_ns)
        report->bound_ns = report->all_fixed_ns;
    return status;
}

hr_status hr_audit_judge(hr_audit *audit, double min_cost_pct, hr_error *error)
{
    hr_report *report = &audit->report;
    report->trace = audit->trace;
    hr_status status = measure(audit, error);
    if (status == HR_OK)
        status = run_rules(audit, &audit->findings, error);
    if (status == HR_OK)
        status = hr_audit_foresee(audit, error);
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
    hr_audit_give_verdict(audit);
    return HR_OK;
}
