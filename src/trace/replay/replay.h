/* SPDX-License-Identifier: Apache-2.0 */
/* The trace run again on its graph: unchanged, or with repairs. */
#ifndef HR_TRACE_REPLAY_REPLAY_H
#define HR_TRACE_REPLAY_REPLAY_H

#include "trace/model/finding.h"
#include "trace/model/graph.h"

/* How fast copies between host and device can be, in bytes per nanosecond (10⁹ bytes a second). */
typedef struct hr_link {
    double h2d, d2h;
    /* Where each came from, static storage: "this trace's pinned copies", "the link file", "PCIe 5 x16,
     * assumed". */
    const char *h2d_source, *d2h_source;
} hr_link;

/* From the trace's own best pinned copies; where it has none, from what is usual for its devices. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_link_of_trace(const hr_trace *trace, hr_link *link);

typedef struct hr_replay hr_replay;

/* Everything that replays of one trace share. `graph` must outlive it. */
HR_CHECKED hr_status hr_replay_new(const hr_graph *graph, const hr_link *link, hr_replay **replay,
                                   hr_error *error);
void hr_replay_free(hr_replay **replay);

typedef struct hr_replay_result {
    int64_t span_ns;
    const char *
        bound; /* "compute", "copies in", "copies out", "copies" (one engine for both) or "the host"; static storage */
    int64_t bound_ns; /* how long that was busy, or how much of the longest chain it made */
} hr_replay_result;

/*
 * Runs the graph with the repairs of the findings whose index i has use[i] set; `use` null: with none.
 * `begin_ns` and `end_ns`, if not null, get one time an event of the trace, −1 for events that are gone or
 * not in the graph.
 */
HR_CHECKED hr_status hr_replay_run(hr_replay *replay, const hr_findings *findings, const bool *use,
                                   hr_replay_result *result, int64_t *begin_ns, int64_t *end_ns,
                                   hr_error *error);

#endif
