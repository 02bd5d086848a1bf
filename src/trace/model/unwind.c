/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circles in the graph. Every edge is made from a rule that holds of programs, and a real run cannot go round in a circle; but
 * a trace can, when clocks run apart, numbers are used twice, or records are made up. Nodes that lie on no circle, nor between
 * two, are peeled off from both ends; among the rest, edges against the measured time are turned off. With one order in time
 * that all remaining edges follow, no circle is left.
 */
#include "trace/model/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct hr_peel {
    const hr_graph *graph;
    bool *gone;
    uint32_t *open; /* edges of the direction that comes from nodes which are not gone */
    uint32_t *stack, *first, *edge_of;
} hr_peel;

static uint32_t end_of(const hr_edge *edge, bool forwards)
{
    return forwards ? edge->to : edge->from;
}

/* Edges by the node that they leave (or, backwards, reach). */
static void sort_edges(hr_peel *peel, bool forwards)
{
    const hr_graph *graph = peel->graph;
    memset(peel->first, 0, ((size_t)graph->node_count + 2) * sizeof *peel->first);
    for (uint32_t i = 0; i < graph->edge_count; i++)
        peel->first[end_of(&graph->edges[i], !forwards) + 2]++;
    for (uint32_t node = 0; node < graph->node_count; node++)
        peel->first[node + 2] += peel->first[node + 1];
    for (uint32_t i = 0; i < graph->edge_count; i++)
        peel->edge_of[peel->first[end_of(&graph->edges[i], !forwards) + 1]++] = i;
}

/* Takes away, again and again, nodes that no edge from a remaining node reaches. Returns how many remain. */
static uint32_t peel_off(hr_peel *peel, bool forwards)
{
    const hr_graph *graph = peel->graph;
    uint32_t left = 0;
    uint32_t waiting = 0;
    sort_edges(peel, forwards);
    memset(peel->open, 0, (size_t)graph->node_count * sizeof *peel->open);
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        const hr_edge *edge = &graph->edges[i];
        peel->open[end_of(edge, forwards)] += !peel->gone[edge->from] && !peel->gone[edge->to];
    }
    for (uint32_t node = 0; node < graph->node_count; node++) {
        left += !peel->gone[node];
        if (!peel->gone[node] && peel->open[node] == 0)
            peel->stack[waiting++] = node;
    }
    while (waiting != 0) {
        uint32_t node = peel->stack[--waiting];
        peel->gone[node] = true;
        left--;
        for (uint32_t i = peel->first[node]; i < peel->first[node + 1]; i++) {
            uint32_t next = end_of(&graph->edges[peel->edge_of[i]], forwards);
            if (!peel->gone[next] && --peel->open[next] == 0)
                peel->stack[waiting++] = next;
        }
    }
    return left;
}

/* When a node happened. */
static int64_t time_of(const hr_graph *graph, uint32_t node)
{
    const hr_event *event = &graph->trace->events[hr_graph_event(graph, node)];
    bool end_of_call = !hr_graph_is_work(graph, node) && (node & 1U) != 0;
    return end_of_call ? event->end_ns : event->begin_ns;
}

static void turn_off(hr_graph *graph, const bool *gone)
{
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        hr_edge *edge = &graph->edges[i];
        if (gone[edge->from] || gone[edge->to])
            continue;
        int64_t from = time_of(graph, edge->from);
        int64_t to = time_of(graph, edge->to);
        if (from < to || (from == to && edge->from < edge->to))
            continue;
        edge->off = true;
        graph->contradictions++;
        graph->root_ns[edge->to] = to > graph->root_ns[edge->to] ? to : graph->root_ns[edge->to];
    }
}

hr_status hr_graph_unwind(hr_graph *graph)
{
    size_t nodes = (size_t)graph->node_count + 1;
    hr_peel peel = {.graph = graph};
    peel.gone = calloc(nodes, sizeof *peel.gone);
    peel.open = malloc(nodes * sizeof *peel.open);
    peel.stack = malloc(nodes * sizeof *peel.stack);
    peel.first = malloc((nodes + 1) * sizeof *peel.first);
    peel.edge_of = malloc(((size_t)graph->edge_count + 1) * sizeof *peel.edge_of);
    bool room = peel.gone != NULL && peel.open != NULL && peel.stack != NULL && peel.first != NULL &&
                peel.edge_of != NULL;
    if (room && peel_off(&peel, true) != 0) {
        peel_off(&peel, false);
        turn_off(graph, peel.gone);
    }
    free(peel.gone);
    free(peel.open);
    free(peel.stack);
    free(peel.first);
    free(peel.edge_of);
    return room ? HR_OK : HR_E_HOST_MEMORY;
}
