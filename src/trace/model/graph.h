/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waited for what. A node is the begin or the end of a host call, or a piece of device work; an edge
 * says that the later node could not happen before the earlier one plus a lag. Lags are what was measured, so
 * that walking the graph as it is gives the measured times again; a repair takes edges out, changes lags and
 * durations, or adds edges, and walks it again.
 */
#ifndef HR_TRACE_MODEL_GRAPH_H
#define HR_TRACE_MODEL_GRAPH_H

#include "trace/model/trace.h"

typedef enum hr_edge_kind {
    HR_EDGE_PROGRAM = 0, /* end of a call → begin of the thread's next call; lag: the host's own work */
    HR_EDGE_HANDOFF,     /* end of a call → begin of a call of another thread that took over */
    HR_EDGE_CALL,        /* begin → end of a call; lag: the call's own cost without waiting */
    HR_EDGE_SUBMIT,      /* begin of a call → its work */
    HR_EDGE_STREAM,      /* work → the next work of its stream */
    HR_EDGE_EVENT,       /* work → work of another stream that waits for an event behind it */
    HR_EDGE_GUESS,       /* the same, not recorded: concluded from when it began */
    HR_EDGE_NULL_STREAM, /* work → work, by the rules of the legacy default stream */
    HR_EDGE_WAIT,        /* work → end of the call that waits for it */
    HR_EDGE_REPAIR       /* added by a repair */
} hr_edge_kind;

typedef struct hr_edge {
    uint32_t from, to;
    int64_t lag_ns; /* may be a little negative where clocks disagree */
    uint8_t kind;
    bool off;
} hr_edge;

typedef struct hr_graph {
    const hr_trace *trace;
    uint32_t node_count; /* 2 a call of trace->calls, then 1 a work of trace->work */
    uint32_t first_work; /* node of trace->work[0] */
    uint32_t *node_of;   /* event → its begin or work node; HR_NONE for nested calls and markers */
    int64_t *root_ns; /* node → the earliest time that it may happen by itself; INT64_MIN: edges say it all */
    hr_edge *edges;
    uint32_t edge_count, edge_capacity;
    uint32_t guessed; /* waits of streams whose event the trace does not name; the strictest was taken */
    uint32_t contradictions; /* edges that are off because they closed a circle */
    int64_t unexplained_ns;  /* waits of device work that no edge explains; kept as they are */
    /* Medians of this trace, used where a repair puts work in a place for which nothing was measured. */
    int64_t stream_lag_ns; /* from the end of work to the begin of the next one in its stream */
    int64_t submit_lag_ns; /* from the begin of a call to its work on an idle stream */
    int64_t async_call_ns; /* an asynchronous copy's call that does not wait */
} hr_graph;

HR_CHECKED hr_status hr_graph_build(const hr_trace *trace, hr_graph **graph, hr_error *error);
void hr_graph_free(hr_graph **graph);
HR_CHECKED hr_status hr_graph_edge(hr_graph *graph, uint32_t from, uint32_t to, int64_t lag_ns,
                                   hr_edge_kind kind);

static inline uint32_t hr_graph_end_of(uint32_t begin_node)
{
    return begin_node + 1;
}
static inline bool hr_graph_is_work(const hr_graph *graph, uint32_t node)
{
    return node >= graph->first_work;
}
/* Turns off edges that run against time, where edges lead round in a circle: a trace whose clocks or numbers are wrong says
 * such things. What they led to then happens when it was measured. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_graph_unwind(hr_graph *graph);

/* The event that a node belongs to. */
static inline uint32_t hr_graph_event(const hr_graph *graph, uint32_t node)
{
    return hr_graph_is_work(graph, node) ? graph->trace->work[node - graph->first_work]
                                         : graph->trace->calls[node / 2];
}
/* Does the call of this copy wait for it: is it behaviour that blocks, whatever its name says? */
bool hr_trace_blocks(const hr_trace *trace, const hr_event *copy);

#endif
