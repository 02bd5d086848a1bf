/* SPDX-License-Identifier: Apache-2.0 */
/* A graph under repair: its edges and durations, changed. */
#ifndef HR_TRACE_REPLAY_PLAN_H
#define HR_TRACE_REPLAY_PLAN_H

#include "trace/replay/replay.h"

/* What a piece of work keeps busy; calls keep nothing. */
typedef enum hr_engine {
    HR_ENGINE_NONE = 0,
    HR_ENGINE_COMPUTE,
    HR_ENGINE_IN,
    HR_ENGINE_OUT,
    HR_ENGINE_KINDS
} hr_engine;

typedef struct hr_plan {
    const hr_graph *graph;
    const hr_link *link;
    hr_edge *edges; /* a copy of the graph's, and those of repairs */
    uint32_t edge_count, edge_capacity;
    int64_t *length_ns; /* of work nodes, by node − first_work */
    uint8_t *engine;    /* hr_engine, the same way */
    bool *gone;         /* by node: does not appear in the run any more */
} hr_plan;

/* `one_copy_engine`: both directions take turns in one engine, as on many consumer cards. */
HR_CHECKED hr_status hr_plan_new(const hr_graph *graph, const hr_link *link, bool one_copy_engine,
                                 hr_plan *plan);
void hr_plan_free(hr_plan *plan);
HR_CHECKED hr_status hr_plan_edge(hr_plan *plan, uint32_t from, uint32_t to, int64_t lag_ns);
/* Changes the plan as the repair says. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_plan_repair(hr_plan *plan, const hr_repair *repair);

#endif
