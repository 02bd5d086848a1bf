/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking the graph. Nodes become ready in the order of time; a node that needs an engine takes the one that
 * is free first. As nodes leave the queue by the time they became ready, each engine serves first come, first
 * served, which is what copy engines do.
 */
#include "trace/replay/plan.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ENGINES = 16 };

struct hr_replay {
    const hr_graph *graph;
    hr_link link;
    uint32_t capacity[HR_ENGINE_KINDS]; /* most that ran at once in the trace, by kind, for any one device */
    bool one_copy_engine;
};

typedef struct hr_ready {
    int64_t at_ns;
    uint32_t node;
} hr_ready;

typedef struct hr_run {
    const hr_plan *plan;
    uint32_t *first_edge, *edge_of; /* outgoing edges by node */
    uint32_t *open;                 /* incoming edges not walked yet */
    int64_t *ready_ns, *end_ns;     /* by node; begin of work is end − length */
    uint32_t *because;              /* by node: what it waited for longest; HR_NONE: itself */
    hr_ready *heap;
    uint32_t heap_count;
    /* When each engine of each device is free again, and which work it did last. */
    int64_t *free_ns;
    uint32_t *last_work;
    uint32_t capacity[HR_ENGINE_KINDS];
    bool one_copy_engine;
} hr_run;

static bool earlier(const hr_ready *a, const hr_ready *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->node < b->node;
}

/* Sums of times that a trace made up by somebody hostile could drive over the end of the numbers. */
static int64_t later(int64_t at_ns, int64_t by_ns)
{
    int64_t sum;
    return __builtin_add_overflow(at_ns, by_ns, &sum) ? INT64_MAX / 2 : sum;
}

static void push(hr_run *run, int64_t at_ns, uint32_t node)
{
    hr_ready item = {at_ns, node};
    uint32_t i = run->heap_count++;
    while (i > 0 && earlier(&item, &run->heap[(i - 1) / 2])) {
        run->heap[i] = run->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    run->heap[i] = item;
}

static hr_ready pop(hr_run *run)
{
    hr_ready top = run->heap[0];
    hr_ready item = run->heap[--run->heap_count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= run->heap_count)
            break;
        if (child + 1 < run->heap_count && earlier(&run->heap[child + 1], &run->heap[child]))
            child++;
        if (!earlier(&run->heap[child], &item))
            break;
        run->heap[i] = run->heap[child];
        i = child;
    }
    run->heap[i] = item;
    return top;
}

static void run_free(hr_run *run)
{
    free(run->first_edge);
    free(run->edge_of);
    free(run->open);
    free(run->ready_ns);
    free(run->end_ns);
    free(run->because);
    free(run->heap);
    free(run->free_ns);
    free(run->last_work);
}

static hr_status run_new(hr_run *run, const hr_plan *plan, const uint32_t *capacity)
{
    size_t nodes = (size_t)plan->graph->node_count + 1;
    size_t engines = (size_t)plan->graph->trace->device_count * HR_ENGINE_KINDS * MOST_ENGINES + 1;
    *run = (hr_run){.plan = plan};
    memcpy(run->capacity, capacity, sizeof run->capacity);
    run->first_edge = calloc(nodes + 1, sizeof *run->first_edge);
    run->edge_of = malloc(((size_t)plan->edge_count + 1) * sizeof *run->edge_of);
    run->open = calloc(nodes, sizeof *run->open);
    run->ready_ns = malloc(nodes * sizeof *run->ready_ns);
    run->end_ns = malloc(nodes * sizeof *run->end_ns);
    run->because = malloc(nodes * sizeof *run->because);
    run->heap = malloc(nodes * sizeof *run->heap);
    run->free_ns = malloc(engines * sizeof *run->free_ns);
    run->last_work = malloc(engines * sizeof *run->last_work);
    if (run->first_edge == NULL || run->edge_of == NULL || run->open == NULL || run->ready_ns == NULL ||
        run->end_ns == NULL || run->because == NULL || run->heap == NULL || run->free_ns == NULL ||
        run->last_work == NULL) {
        run_free(run);
        return HR_E_HOST_MEMORY;
    }
    for (size_t i = 0; i < engines; i++) {
        run->free_ns[i] = INT64_MIN;
        run->last_work[i] = HR_NONE;
    }
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        if (plan->edges[i].off)
            continue;
        run->first_edge[plan->edges[i].from + 1]++;
        run->open[plan->edges[i].to]++;
    }
    for (size_t i = 0; i < nodes; i++)
        run->first_edge[i + 1] += run->first_edge[i];
    for (uint32_t i = plan->edge_count; i-- > 0;) {
        if (!plan->edges[i].off)
            run->edge_of[--run->first_edge[plan->edges[i].from + 1]] = i;
    }
    /* The loop above moved each start one node up; put them back. */
    memmove(run->first_edge, run->first_edge + 1, nodes * sizeof *run->first_edge);
    return HR_OK;
}

/* Takes the engine that is free first; work that needs none begins when it is ready. */
static int64_t begin_work(hr_run *run, uint32_t node, int64_t ready_ns)
{
    const hr_graph *graph = run->plan->graph;
    uint32_t position = node - graph->first_work;
    const hr_event *event = &graph->trace->events[graph->trace->work[position]];
    hr_engine kind = (hr_engine)run->plan->engine[position];
    if (kind == HR_ENGINE_NONE || event->device == HR_NONE)
        return ready_ns;
    size_t base = ((size_t)event->device * HR_ENGINE_KINDS + kind) * MOST_ENGINES;
    size_t chosen = base;
    for (size_t i = base; i < base + run->capacity[kind]; i++) {
        if (run->free_ns[i] < run->free_ns[chosen])
            chosen = i;
    }
    int64_t begin = ready_ns;
    if (run->free_ns[chosen] > begin) {
        begin = run->free_ns[chosen];
        run->because[node] = run->last_work[chosen];
    }
    run->free_ns[chosen] = later(begin, run->plan->length_ns[position]);
    run->last_work[chosen] = node;
    return begin;
}

static hr_status walk(hr_run *run)
{
    const hr_plan *plan = run->plan;
    const hr_graph *graph = plan->graph;
    uint32_t done = 0;
    for (uint32_t node = 0; node < graph->node_count; node++) {
        run->ready_ns[node] = graph->root_ns[node] != INT64_MIN ? graph->root_ns[node] : 0;
        run->end_ns[node] = -1;
        run->because[node] = HR_NONE;
        if (run->open[node] == 0)
            push(run, run->ready_ns[node], node);
    }
    while (run->heap_count != 0) {
        hr_ready item = pop(run);
        int64_t end = item.at_ns;
        if (hr_graph_is_work(graph, item.node))
            end =
                later(begin_work(run, item.node, item.at_ns), plan->length_ns[item.node - graph->first_work]);
        run->end_ns[item.node] = end;
        done++;
        for (uint32_t i = run->first_edge[item.node]; i < run->first_edge[item.node + 1]; i++) {
            const hr_edge *edge = &plan->edges[run->edge_of[i]];
            int64_t ready = later(end, edge->lag_ns);
            if (ready > run->ready_ns[edge->to]) {
                run->ready_ns[edge->to] = ready;
                run->because[edge->to] = item.node;
            }
            if (--run->open[edge->to] == 0)
                push(run, run->ready_ns[edge->to], edge->to);
        }
    }
    /* A cycle: repairs contradict each other, or a trace contradicts itself. */
    return done == graph->node_count ? HR_OK : HR_E_INTERNAL;
}

static int64_t begin_of(const hr_run *run, uint32_t node)
{
    const hr_graph *graph = run->plan->graph;
    return hr_graph_is_work(graph, node) ? run->end_ns[node] - run->plan->length_ns[node - graph->first_work]
                                         : run->end_ns[node];
}

/* The part of [begin, end) that lies in the span. */
static int64_t from_span(int64_t span_begin_ns, int64_t begin_ns, int64_t end_ns)
{
    begin_ns = begin_ns > span_begin_ns ? begin_ns : span_begin_ns;
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* Walks back from the last end: which kind of thing the longest chain is made of. */
static void find_bound(const hr_run *run, uint32_t last, int64_t span_begin_ns, const int64_t *busy_ns,
                       hr_replay_result *result)
{
    static const char *const names[] = {"the host", "compute", "copies in", "copies out"};
    const hr_graph *graph = run->plan->graph;
    int64_t share[HR_ENGINE_KINDS] = {0};
    uint32_t steps = graph->node_count;
    for (uint32_t node = last; node != HR_NONE && steps-- > 0; node = run->because[node]) {
        uint32_t before = run->because[node];
        bool work = hr_graph_is_work(graph, node);
        uint8_t engine = work ? run->plan->engine[node - graph->first_work] : HR_ENGINE_NONE;
        /* Fills and copies within a device count as compute: they keep its memory busy. */
        if (work && engine == HR_ENGINE_NONE)
            engine = HR_ENGINE_COMPUTE;
        int64_t begin = begin_of(run, node);
        if (work)
            share[engine] += from_span(span_begin_ns, begin, run->end_ns[node]);
        bool from_host = before != HR_NONE && !hr_graph_is_work(graph, before);
        if (before != HR_NONE)
            share[from_host || !work ? HR_ENGINE_NONE : engine] +=
                from_span(span_begin_ns, run->end_ns[before], begin);
    }
    int best = 0;
    for (int i = 1; i < HR_ENGINE_KINDS; i++) {
        if (share[i] > share[best])
            best = i;
    }
    result->bound = best == HR_ENGINE_IN && run->one_copy_engine ? "copies" : names[best];
    result->bound_ns = best == HR_ENGINE_NONE ? share[best] : busy_ns[best];
}

/* How long the engines of each kind are busy, on the device where that is longest. One walk over the work, whatever the number of
 * devices. */
static hr_status busy_of(const hr_run *run, int64_t *busy_ns)
{
    const hr_graph *graph = run->plan->graph;
    uint32_t devices = graph->trace->device_count;
    hr_intervals *sets = calloc((size_t)devices * HR_ENGINE_KINDS + 1, sizeof *sets);
    hr_status status = sets != NULL ? HR_OK : HR_E_HOST_MEMORY;
    for (uint32_t i = 0; i < graph->trace->work_count && status == HR_OK; i++) {
        uint32_t node = graph->first_work + i;
        uint32_t device = graph->trace->events[graph->trace->work[i]].device;
        if (device < devices)
            status = hr_intervals_add(&sets[(size_t)device * HR_ENGINE_KINDS + run->plan->engine[i]],
                                      begin_of(run, node), run->end_ns[node]);
    }
    memset(busy_ns, 0, HR_ENGINE_KINDS * sizeof *busy_ns);
    for (size_t i = 0; sets != NULL && i < (size_t)devices * HR_ENGINE_KINDS; i++) {
        hr_intervals_normalise(&sets[i]);
        int64_t length = hr_intervals_length(&sets[i]);
        int64_t *most = &busy_ns[i % HR_ENGINE_KINDS];
        *most = length > *most ? length : *most;
        hr_intervals_free(&sets[i]);
    }
    free(sets);
    return status;
}

static hr_status measure(const hr_run *run, hr_replay_result *result)
{
    const hr_graph *graph = run->plan->graph;
    int64_t begin = INT64_MAX;
    int64_t end = INT64_MIN;
    uint32_t last = HR_NONE;
    int64_t busy_ns[HR_ENGINE_KINDS];
    for (uint32_t node = graph->first_work; node < graph->node_count; node++) {
        /* Work that is gone had its place at the begin: what the host does instead takes time all the same.
         */
        int64_t begins = begin_of(run, node);
        begin = begins < begin ? begins : begin;
        if (!run->plan->gone[node] && run->end_ns[node] > end) {
            end = run->end_ns[node];
            last = node;
        }
    }
    hr_status status = busy_of(run, busy_ns);
    if (status != HR_OK)
        return status;
    result->span_ns = last != HR_NONE ? end - begin : 0;
    find_bound(run, last, begin, busy_ns, result);
    /* Clocks that disagree let one part of a chain begin before the part before it ends: no sum of parts is longer than the whole. */
    result->bound_ns = result->bound_ns < result->span_ns ? result->bound_ns : result->span_ns;
    return HR_OK;
}

static void times_out(const hr_run *run, int64_t *begin_ns, int64_t *end_ns)
{
    const hr_graph *graph = run->plan->graph;
    for (uint32_t i = 0; i < graph->trace->event_count; i++) {
        uint32_t node = graph->node_of[i];
        bool gone = node == HR_NONE || run->plan->gone[node];
        bool work = node != HR_NONE && hr_graph_is_work(graph, node);
        begin_ns[i] = gone ? -1 : begin_of(run, node);
        end_ns[i] = gone ? -1 : run->end_ns[work ? node : hr_graph_end_of(node)];
    }
}

/* How many pieces of work of a kind one device had running at once, at most. */
static uint32_t most_at_once(const hr_graph *graph, const hr_plan *plan, uint32_t device, int kind,
                             int64_t *ends)
{
    const hr_trace *trace = graph->trace;
    uint32_t running = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->device != device || plan->engine[i] != kind)
            continue;
        uint32_t kept = 0;
        for (uint32_t r = 0; r < running; r++) {
            if (ends[r] > event->begin_ns)
                ends[kept++] = ends[r];
        }
        running = kept;
        if (running < MOST_ENGINES)
            ends[running++] = event->end_ns;
        most = running > most ? running : most;
    }
    return most;
}

static hr_status find_capacity(hr_replay *replay)
{
    hr_plan plan;
    int64_t ends[MOST_ENGINES];
    hr_status status = hr_plan_new(replay->graph, &replay->link, replay->one_copy_engine, &plan);
    if (status != HR_OK)
        return status;
    for (int kind = 0; kind < HR_ENGINE_KINDS; kind++) {
        replay->capacity[kind] = 1;
        for (uint32_t d = 0; d < replay->graph->trace->device_count; d++) {
            uint32_t most = most_at_once(replay->graph, &plan, d, kind, ends);
            if (most > replay->capacity[kind])
                replay->capacity[kind] = most;
        }
    }
    hr_plan_free(&plan);
    return HR_OK;
}

hr_status hr_replay_new(const hr_graph *graph, const hr_link *link, hr_replay **replay, hr_error *error)
{
    hr_replay *made = calloc(1, sizeof *made);
    hr_status status = HR_E_HOST_MEMORY;
    if (made != NULL) {
        made->graph = graph;
        made->link = *link;
        made->one_copy_engine = hr_trace_has_one_copy_engine(graph->trace);
        status = find_capacity(made);
    }
    if (status != HR_OK) {
        free(made);
        return hr_fail(error, status, "%s: no memory to replay it", graph->trace->path);
    }
    *replay = made;
    return HR_OK;
}

void hr_replay_free(hr_replay **replay)
{
    free(*replay);
    *replay = NULL;
}

/* Copies get their own streams last: they must find the durations that pinning and batching leave. */
static const hr_repair_kind order_of_repairs[] = {
    HR_REPAIR_PIN,        HR_REPAIR_UNBLOCK,     HR_REPAIR_DROP_CALL, HR_REPAIR_BATCH,
    HR_REPAIR_READ_LATER, HR_REPAIR_FREE_STREAM, HR_REPAIR_OWN_STREAM};

static hr_status apply(hr_plan *plan, const hr_findings *findings, const bool *use)
{
    hr_status status = HR_OK;
    for (size_t k = 0; use != NULL && k < sizeof order_of_repairs / sizeof order_of_repairs[0]; k++) {
        for (uint32_t i = 0; i < findings->count && status == HR_OK; i++) {
            if (use[i] && findings->at[i].repair.kind == order_of_repairs[k])
                status = hr_plan_repair(plan, &findings->at[i].repair);
        }
    }
    return status;
}

hr_status hr_replay_run(hr_replay *replay, const hr_findings *findings, const bool *use,
                        hr_replay_result *result, int64_t *begin_ns, int64_t *end_ns, hr_error *error)
{
    hr_plan plan;
    hr_run run = {0};
    hr_status status = hr_plan_new(replay->graph, &replay->link, replay->one_copy_engine, &plan);
    if (status == HR_OK)
        status = apply(&plan, findings, use);
    if (status == HR_OK)
        status = run_new(&run, &plan, replay->capacity);
    if (status == HR_OK) {
        run.one_copy_engine = replay->one_copy_engine;
        status = walk(&run);
        if (status == HR_OK)
            status = measure(&run, result);
        if (status == HR_OK && begin_ns != NULL && end_ns != NULL)
            times_out(&run, begin_ns, end_ns);
        run_free(&run);
    }
    hr_plan_free(&plan);
    if (status == HR_E_HOST_MEMORY)
        return hr_fail(error, status, "%s: no memory to replay it", replay->graph->trace->path);
    if (status != HR_OK)
        return hr_fail(error, status, "%s: what waits for what goes round in a circle",
                       replay->graph->trace->path);
    return HR_OK;
}
