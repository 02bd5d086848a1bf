/* SPDX-License-Identifier: Apache-2.0 */
/* Things made and thrown away again and again: what the rules on allocation, pinning and handles have in
 * common. */
#ifndef HR_TRACE_RULE_CHURN_H
#define HR_TRACE_RULE_CHURN_H

#include "trace/rule/support.h"

/* What the steady state's calls of some kinds cost. */
typedef struct hr_churn {
    hr_durations times;
    uint64_t bytes_peak; /* of live allocations, where the trace tells sizes */
} hr_churn;

/*
 * Adds a finding with every call in the steady state for which `counts` is true, if there are at least
 * `least` of them; null in *finding otherwise. The caller fills the texts, then calls hr_finding_finish() and
 * hr_durations_free(&churn->times).
 */
HR_CHECKED hr_status hr_churn_find(const hr_trace *trace, const char *rule, bool (*counts)(hr_call call),
                                   uint32_t least, hr_findings *findings, hr_finding **finding,
                                   hr_churn *churn);

#endif
