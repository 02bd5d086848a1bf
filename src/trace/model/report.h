/* SPDX-License-Identifier: Apache-2.0 */
/* An audit's outcome: what every renderer is given, and all that it is given. */
#ifndef HR_TRACE_MODEL_REPORT_H
#define HR_TRACE_MODEL_REPORT_H

#include "trace/model/finding.h"
#include "trace/model/trace.h"

typedef enum hr_verdict { HR_VERDICT_FOUND = 0, HR_VERDICT_CLEAN, HR_VERDICT_CANNOT_TELL } hr_verdict;

/* What one device did. */
typedef struct hr_report_device {
    uint32_t device; /* index into trace->devices */
    hr_trace_usage usage;
} hr_report_device;

/* A rule that could not judge this trace, and what it lacks; static storage. */
typedef struct hr_report_lack {
    const char *rule, *needs;
} hr_report_lack;

typedef struct hr_report {
    const hr_trace *trace;
    const hr_findings *findings;     /* those to be shown, dearest first */
    const hr_report_device *devices; /* those with work */
    uint32_t device_count;
    hr_verdict verdict;
    char reason[256];    /* of HR_VERDICT_CANNOT_TELL; otherwise empty */
    int64_t span_ns;     /* as measured: first to last device work, of all devices */
    int64_t replayed_ns; /* replayed unchanged: how far the prediction can be trusted */
    uint32_t guessed; /* waits of streams whose event the trace does not name: predictions may be too long */
    uint32_t contradictions; /* orders that the replay left out, as they contradict others */
    int64_t all_fixed_ns;    /* with every repair; span_ns where there is none */
    const char *bound;       /* "copies in", "copies out", "compute", "the host": what binds then */
    int64_t bound_ns;
    /* Where each event would lie with every repair, by index of trace->events; −1: it is gone. Null: not
     * known. */
    const int64_t *fixed_begin_ns, *fixed_end_ns;
    const hr_report_lack *lacks; /* rules that cannot tell */
    uint32_t lack_count;
    uint32_t hidden_count; /* findings that cost less than min_cost_pct of the span */
    double min_cost_pct;
    int64_t
        unexplained_ns; /* waits of device work whose cause the trace does not show; predictions keep them */
    double link_h2d_gbps, link_d2h_gbps; /* what predictions took the link to do */
    const char *link_source;             /* where that came from */
} hr_report;

#endif
