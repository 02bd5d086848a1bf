/* SPDX-License-Identifier: Apache-2.0 */
/* The audit from the inside. */
#ifndef HR_TRACE_AUDIT_AUDIT_H
#define HR_TRACE_AUDIT_AUDIT_H

#include "trace/model/model.h"
#include "trace/replay/replay.h"

#include <headrace/trace.h>

struct hr_audit {
    hr_trace *trace;
    hr_findings findings; /* those to be shown */
    hr_report_device *devices;
    int64_t *fixed_begin_ns, *fixed_end_ns;
    hr_report report;
    hr_link link;
    hr_report_lack *lacks;
};

/* Judges audit->trace, which is finished: rules, replay, costs, report. */
HR_CHECKED hr_status hr_audit_judge(hr_audit *audit, double min_cost_pct, hr_error *error);
/* What each finding costs, and what the run would take with all of them repaired; findings that gain too little are no defects
 * any more. */
HR_CHECKED hr_status hr_audit_foresee(hr_audit *audit, hr_error *error);
bool hr_audit_has_repair(const hr_finding *finding);
/* Verdict and reason, once findings and what rules lack are known. */
void hr_audit_give_verdict(hr_audit *audit);
/* Link speeds out of a file of `headrace bench link --json`; what the file does not say stays. */
HR_CHECKED hr_status hr_audit_read_link(const char *path, hr_link *link, hr_error *error);

#endif
