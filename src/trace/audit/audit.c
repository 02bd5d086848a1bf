/* SPDX-License-Identifier: Apache-2.0 */
/* The public face of the trace library. */
#include "trace/audit/audit.h"

#include "trace/read/read.h"
#include "trace/render/html.h"
#include "trace/render/json.h"
#include "trace/render/perfetto.h"
#include "trace/render/text.h"
#include "trace/rule/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hr_audit_close(hr_audit **audit)
{
    hr_audit *old = *audit;
    if (old == NULL)
        return;
    hr_findings_free(&old->findings);
    hr_trace_free(&old->trace);
    free(old->devices);
    free(old->fixed_begin_ns);
    free(old->fixed_end_ns);
    free(old->lacks);
    free(old);
    *audit = NULL;
}

static hr_status take_link(hr_audit *audit, const hr_audit_options *options, hr_error *error)
{
    if (hr_link_of_trace(audit->trace, &audit->link) != HR_OK)
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to judge it", audit->trace->path);
    if (options->link_path != NULL) {
        hr_status status = hr_audit_read_link(options->link_path, &audit->link, error);
        if (status != HR_OK)
            return status;
    }
    if (options->h2d_gbps > 0.0) {
        audit->link.h2d = options->h2d_gbps;
        audit->link.h2d_source = "given";
    }
    if (options->d2h_gbps > 0.0) {
        audit->link.d2h = options->d2h_gbps;
        audit->link.d2h_source = "given";
    }
    return HR_OK;
}

hr_status hr_audit_open(const char *path, const hr_audit_options *options, hr_audit **audit, hr_error *error)
{
    const hr_audit_options defaults = HR_AUDIT_OPTIONS_INIT;
    if (path == NULL || audit == NULL)
        return hr_fail(error, HR_E_INVALID, "audit: a path and a place for the answer are needed");
    options = options != NULL ? options : &defaults;
    if (!(options->min_cost_pct >= 0.0 && options->min_cost_pct <= 100.0))
        return hr_fail(error, HR_E_INVALID, "audit: a least cost of %g %% is not from 0 to 100",
                       options->min_cost_pct);
    hr_audit *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to judge it", path);
    hr_status status = hr_read_trace(path, &made->trace, error);
    if (status == HR_OK)
        status = take_link(made, options, error);
    if (status == HR_OK)
        status = hr_audit_judge(made, options->min_cost_pct, error);
    if (status != HR_OK) {
        hr_audit_close(&made);
        return status;
    }
    *audit = made;
    return HR_OK;
}

/* The share of the shorter of copies and kernels that overlaps, over all devices. */
static double overlap_of(const hr_report *report)
{
    int64_t shorter = 0;
    int64_t overlap = 0;
    for (uint32_t d = 0; d < report->device_count; d++) {
        const hr_trace_usage *usage = &report->devices[d].usage;
        shorter += usage->copy_ns < usage->kernel_ns ? usage->copy_ns : usage->kernel_ns;
        overlap += usage->overlap_ns;
    }
    return shorter > 0 ? 100.0 * (double)overlap / (double)shorter : 100.0;
}

void hr_audit_get_summary(const hr_audit *audit, hr_audit_summary *summary)
{
    const hr_report *report = &audit->report;
    hr_audit_summary made = {.size = sizeof made};
    made.verdict = (hr_audit_verdict)report->verdict;
    made.reason = report->reason;
    made.gpus = report->device_count;
    for (uint32_t d = 0; d < report->device_count; d++) {
        made.kernels += report->devices[d].usage.kernels;
        made.copies += report->devices[d].usage.copies;
    }
    made.calls = audit->trace->call_count;
    made.span_ns = report->span_ns;
    made.replayed_ns = report->replayed_ns;
    made.all_fixed_ns = report->all_fixed_ns;
    made.bound = report->bound;
    made.bound_ns = report->bound_ns;
    made.overlap_pct = overlap_of(report);
    size_t size = summary->size < sizeof made ? summary->size : sizeof made;
    made.size = size;
    memcpy(summary, &made, size);
}

uint32_t hr_audit_finding_count(const hr_audit *audit)
{
    return audit->findings.count;
}

hr_status hr_audit_get_finding(const hr_audit *audit, uint32_t index, hr_audit_finding *finding)
{
    if (index >= audit->findings.count)
        return HR_E_RANGE;
    const hr_finding *from = &audit->findings.at[index];
    hr_audit_finding made = {.size = sizeof made,
                             .rule = from->rule,
                             .kind = (hr_audit_kind)from->kind,
                             .count = from->count,
                             .bytes = from->bytes,
                             .blocked_ns = from->blocked_ns,
                             .cost_ns = from->cost_ns,
                             .after_ns = from->after_ns,
                             .masked = from->masked,
                             .text = from->text,
                             .fix = from->fix,
                             .proof = from->proof};
    size_t size = finding->size < sizeof made ? finding->size : sizeof made;
    made.size = size;
    memcpy(finding, &made, size);
    return HR_OK;
}

hr_status hr_audit_render(const hr_audit *audit, hr_audit_format format, FILE *out, hr_error *error)
{
    hr_status status = HR_E_INVALID;
    switch (format) {
    case HR_AUDIT_TEXT:
        status = hr_render_text(&audit->report, out, error);
        break;
    case HR_AUDIT_JSON:
        status = hr_render_json(&audit->report, out, error);
        break;
    case HR_AUDIT_HTML:
        status = hr_render_html(&audit->report, out, error);
        break;
    case HR_AUDIT_PERFETTO:
        status = hr_render_perfetto(&audit->report, out, error);
        break;
    default:
        return hr_fail(error, HR_E_INVALID, "audit: %d is no format", (int)format);
    }
    if (status == HR_OK && (fflush(out) != 0 || ferror(out))) {
        int code = errno;
        status = hr_fail(error, code == ENOSPC ? HR_E_NO_SPACE : HR_E_IO, "report: cannot be written: %s",
                         strerror(code));
    }
    return status;
}

static hr_status check_overlap(const hr_audit *audit, const char *condition, hr_error *error)
{
    char *end;
    double least = strtod(condition + strlen("overlap<"), &end);
    if (end == condition + strlen("overlap<") || *end != '\0' || !(least >= 0.0 && least <= 100.0))
        return hr_fail(error, HR_E_INVALID, "%s: a per cent from 0 to 100 is needed behind overlap<",
                       condition);
    if (audit == NULL)
        return HR_OK;
    double overlap = overlap_of(&audit->report);
    if (overlap < least)
        return hr_fail(error, HR_END, "overlap is %.1f %%, at least %g %% is wanted", overlap, least);
    return HR_OK;
}

/* One rule of a condition. */
static hr_status check_rule(const hr_audit *audit, const char *name, hr_error *error)
{
    if (hr_rule_find(name) == NULL)
        return hr_fail(error, HR_E_INVALID, "%s: is no rule; `headrace audit --rules` lists them", name);
    if (audit == NULL)
        return HR_OK;
    for (uint32_t i = 0; i < audit->findings.count; i++) {
        const hr_finding *finding = &audit->findings.at[i];
        if (finding->kind == HR_FINDING_SUSPENDED)
            return hr_fail(error, HR_E_UNSUPPORTED, "%s: cannot tell: %.300s", name, finding->text);
        if (strcmp(finding->rule, name) == 0 && finding->kind == HR_FINDING_DEFECT)
            return hr_fail(error, HR_END, "%s: found %llu times, costs %.1f of %.1f ms", name,
                           (unsigned long long)finding->count, (double)finding->cost_ns / 1e6,
                           (double)audit->report.span_ns / 1e6);
    }
    for (uint32_t i = 0; i < audit->report.lack_count; i++) {
        if (strcmp(audit->report.lacks[i].rule, name) == 0)
            return hr_fail(error, HR_E_UNSUPPORTED, "%s: cannot tell: the trace lacks %s", name,
                           audit->report.lacks[i].needs);
    }
    return HR_OK;
}

hr_status hr_audit_check(const hr_audit *audit, const char *condition, hr_error *error)
{
    hr_status worst = HR_OK;
    const char *at = condition;
    do {
        char part[64];
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof part)
            return hr_fail(error, HR_E_INVALID,
                           "%s: rules separated by commas, or overlap<PER CENT, are needed", condition);
        memcpy(part, at, length);
        part[length] = '\0';
        hr_error why = HR_ERROR_INIT;
        hr_status status = strncmp(part, "overlap<", 8) == 0 ? check_overlap(audit, part, &why)
                                                             : check_rule(audit, part, &why);
        /* A mistake in the condition outranks what was found, and that outranks what cannot be told. */
        bool outranks = status == HR_E_INVALID || (status == HR_END && worst != HR_E_INVALID) ||
                        (status == HR_E_UNSUPPORTED && worst == HR_OK);
        if (status != HR_OK && outranks && worst != status) {
            worst = status;
            if (error != NULL)
                *error = why;
        }
        at += length;
    } while (*at++ == ',');
    return worst;
}

hr_status hr_audit_rule_at(uint32_t index, hr_audit_rule *rule)
{
    uint32_t count;
    const hr_rule *const *rules = hr_rules(&count);
    if (index >= count)
        return HR_E_RANGE;
    *rule = (hr_audit_rule){rules[index]->name, rules[index]->meaning, rules[index]->needs};
    return HR_OK;
}
