/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs: what each changes in the graph. */
#include "trace/replay/plan.h"

#include <stdlib.h>
#include <string.h>

enum { COPY_START_NS = 1500 };

static hr_engine engine_of(const hr_event *event)
{
    if (event->kind == HR_EVENT_KERNEL)
        return HR_ENGINE_COMPUTE;
    if (event->kind != HR_EVENT_COPY)
        return HR_ENGINE_NONE;
    switch (event->direction) {
    case HR_DIRECTION_H2D:
    case HR_DIRECTION_MIGRATE_H2D:
        return HR_ENGINE_IN;
    case HR_DIRECTION_D2H:
    case HR_DIRECTION_MIGRATE_D2H:
        return HR_ENGINE_OUT;
    default:
        return HR_ENGINE_NONE;
    }
}

void hr_plan_free(hr_plan *plan)
{
    free(plan->edges);
    free(plan->length_ns);
    free(plan->engine);
    free(plan->gone);
    *plan = (hr_plan){0};
}

hr_status hr_plan_new(const hr_graph *graph, const hr_link *link, bool one_copy_engine, hr_plan *plan)
{
    const hr_trace *trace = graph->trace;
    size_t works = (size_t)trace->work_count + 1;
    *plan = (hr_plan){.graph = graph, .link = link, .edge_count = graph->edge_count};
    plan->edge_capacity = graph->edge_count + 1024;
    plan->edges = malloc(plan->edge_capacity * sizeof *plan->edges);
    plan->length_ns = malloc(works * sizeof *plan->length_ns);
    plan->engine = malloc(works);
    plan->gone = calloc((size_t)graph->node_count + 1, sizeof *plan->gone);
    if (plan->edges == NULL || plan->length_ns == NULL || plan->engine == NULL || plan->gone == NULL) {
        hr_plan_free(plan);
        return HR_E_HOST_MEMORY;
    }
    if (graph->edge_count != 0)
        memcpy(plan->edges, graph->edges, graph->edge_count * sizeof *plan->edges);
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        plan->length_ns[i] = hr_event_ns(event);
        plan->engine[i] = (uint8_t)engine_of(event);
        if (one_copy_engine && plan->engine[i] == HR_ENGINE_OUT)
            plan->engine[i] = HR_ENGINE_IN;
    }
    return HR_OK;
}

hr_status hr_plan_edge(hr_plan *plan, uint32_t from, uint32_t to, int64_t lag_ns)
{
    if (plan->edge_count == plan->edge_capacity) {
        uint32_t capacity = plan->edge_capacity * 2;
        hr_edge *edges = realloc(plan->edges, capacity * sizeof *edges);
        if (edges == NULL)
            return HR_E_HOST_MEMORY;
        plan->edges = edges;
        plan->edge_capacity = capacity;
    }
    plan->edges[plan->edge_count++] = (hr_edge){from, to, lag_ns, HR_EDGE_REPAIR, false};
    return HR_OK;
}

/* Which nodes a repair names: begin nodes of calls, and work. */
static bool *named_nodes(const hr_plan *plan, const hr_repair *repair)
{
    bool *named = calloc((size_t)plan->graph->node_count + 1, sizeof *named);
    for (uint32_t i = 0; named != NULL && i < repair->count; i++) {
        uint32_t node = plan->graph->node_of[repair->events[i]];
        if (node != HR_NONE)
            named[node] = true;
    }
    return named;
}

static const hr_event *event_of(const hr_plan *plan, uint32_t node)
{
    return &plan->graph->trace->events[hr_graph_event(plan->graph, node)];
}

static uint32_t call_node_of(const hr_plan *plan, uint32_t work)
{
    uint32_t call = event_of(plan, work)->peer;
    return call != HR_NONE ? plan->graph->node_of[call] : HR_NONE;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t pinned_ns(const hr_plan *plan, const hr_event *copy)
{
    double speed = copy->direction == HR_DIRECTION_D2H ? plan->link->d2h : plan->link->h2d;
    int64_t ns = (int64_t)((double)copy->bytes / speed) + COPY_START_NS;
    return least(ns, hr_event_ns(copy));
}

/* Calls vanish: no cost of their own, and no wait. */
static void drop_calls(hr_plan *plan, const bool *named)
{
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        hr_edge *edge = &plan->edges[i];
        if (hr_graph_is_work(plan->graph, edge->to) || !named[edge->to & ~1U] || (edge->to & 1U) == 0)
            continue;
        if (edge->kind == HR_EDGE_WAIT)
            edge->off = true;
        else if (edge->kind == HR_EDGE_CALL)
            edge->lag_ns = 0;
    }
    for (uint32_t node = 0; node < plan->graph->first_work; node += 2) {
        if (named[node])
            plan->gone[node] = plan->gone[node + 1] = true;
    }
}

/*
 * Pinned memory: an upload's call returns at once and the copy starts when its turn comes; a download's host
 * still wants the data, so the wait stays and only the copy gets faster.
 */
static void pin(hr_plan *plan, const bool *named)
{
    const hr_graph *graph = plan->graph;
    for (uint32_t i = 0; i < graph->trace->work_count; i++) {
        const hr_event *copy = event_of(plan, graph->first_work + i);
        if (named[graph->first_work + i] && copy->kind == HR_EVENT_COPY)
            plan->length_ns[i] = pinned_ns(plan, copy);
    }
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        hr_edge *edge = &plan->edges[i];
        bool to_work = hr_graph_is_work(graph, edge->to);
        if (to_work && named[edge->to]) {
            if (edge->kind == HR_EDGE_SUBMIT)
                edge->lag_ns = least(edge->lag_ns, graph->submit_lag_ns);
            else if (edge->kind == HR_EDGE_STREAM)
                edge->lag_ns = least(edge->lag_ns, graph->stream_lag_ns);
        }
        bool wait = edge->kind == HR_EDGE_WAIT && hr_graph_is_work(graph, edge->from) && named[edge->from] &&
                    edge->to == hr_graph_end_of(call_node_of(plan, edge->from));
        if (wait && event_of(plan, edge->from)->direction == HR_DIRECTION_H2D)
            edge->off = true;
        else if (wait)
            edge->lag_ns = least(edge->lag_ns, graph->async_call_ns);
    }
    drop_calls(plan, named);
}

/* Calls still submit their work, and no longer wait for it. */
static void unblock(hr_plan *plan, const bool *named)
{
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        hr_edge *edge = &plan->edges[i];
        if (hr_graph_is_work(plan->graph, edge->to) || (edge->to & 1U) == 0 || !named[edge->to - 1])
            continue;
        if (edge->kind == HR_EDGE_WAIT)
            edge->off = true;
        else if (edge->kind == HR_EDGE_CALL)
            edge->lag_ns = least(edge->lag_ns, plan->graph->async_call_ns);
    }
}

enum { MOST_STEPS = 4 };

/* For each download, the last one of the step that lies `steps` before: between two steps the thread launches something. */
static void find_earlier(const hr_plan *plan, const bool *named, uint32_t steps, uint32_t *earlier)
{
    const hr_trace *trace = plan->graph->trace;
    for (uint32_t t = 0; t < trace->thread_count; t++) {
        uint32_t last[MOST_STEPS + 1]; /* of this step, of the one before, … */
        bool launched = false;
        memset(last, 0xFF, sizeof last);
        for (uint32_t i = trace->thread_calls[t]; i < trace->thread_calls[t + 1]; i++) {
            const hr_event *call = &trace->events[trace->calls[i]];
            launched |= call->call == HR_CALL_LAUNCH || call->call == HR_CALL_GRAPH_LAUNCH;
            for (uint32_t work = call->peer; work != HR_NONE; work = trace->events[work].next) {
                uint32_t node = plan->graph->node_of[work];
                if (node == HR_NONE || !named[node])
                    continue;
                if (launched)
                    memmove(last + 1, last, MOST_STEPS * sizeof *last);
                launched = false;
                earlier[node] = last[steps];
                last[0] = node;
            }
        }
    }
}

/* The host looks at each result some steps later: it waits for what was read back that many steps before. */
static hr_status read_later(hr_plan *plan, const bool *named, uint32_t steps)
{
    steps = steps == 0 ? 1 : steps > MOST_STEPS ? (uint32_t)MOST_STEPS : steps;
    uint32_t *earlier = malloc(((size_t)plan->graph->node_count + 1) * sizeof *earlier);
    if (earlier == NULL)
        return HR_E_HOST_MEMORY;
    memset(earlier, 0xFF, ((size_t)plan->graph->node_count + 1) * sizeof *earlier);
    find_earlier(plan, named, steps, earlier);
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        hr_edge *edge = &plan->edges[i];
        if (edge->kind != HR_EDGE_WAIT || !named[edge->from])
            continue;
        if (earlier[edge->from] == HR_NONE)
            edge->off = true;
        else
            edge->from = earlier[edge->from];
    }
    free(earlier);
    return HR_OK;
}

/* Of what is named, only downloads of results stay so: small values may be wanted there and then. */
static void keep_results(const hr_plan *plan, bool *named)
{
    for (uint32_t node = 0; node < plan->graph->node_count; node++)
        named[node] &= hr_graph_is_work(plan->graph, node) && hr_event_is_result(event_of(plan, node));
}

static void free_stream(hr_plan *plan, const bool *named)
{
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        hr_edge *edge = &plan->edges[i];
        bool order = edge->kind == HR_EDGE_NULL_STREAM || edge->kind == HR_EDGE_GUESS;
        if (order && (named[edge->from] || named[edge->to]))
            edge->off = true;
    }
}

static void stream_edges_off(hr_plan *plan, const bool *either)
{
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        hr_edge *edge = &plan->edges[i];
        if (edge->kind == HR_EDGE_STREAM && (either[edge->from] || either[edge->to]))
            edge->off = true;
    }
}

/* One step of a stream: what came in, what was computed, what went out. */
typedef struct hr_step {
    uint32_t first_in, last_in, first_other, last_other, first_out, last_out;
} hr_step;

static const hr_step no_step = {HR_NONE, HR_NONE, HR_NONE, HR_NONE, HR_NONE, HR_NONE};

typedef struct hr_steps {
    hr_step *at;
    uint32_t count, capacity;
    uint32_t last_in, last_other, last_out; /* of any step so far */
} hr_steps;

static hr_step *step_now(hr_steps *steps, bool fresh)
{
    if (steps->count != 0 && !fresh)
        return &steps->at[steps->count - 1];
    if (steps->count == steps->capacity) {
        uint32_t capacity = steps->capacity * 2 + 64;
        hr_step *at = realloc(steps->at, capacity * sizeof *at);
        if (at == NULL)
            return NULL;
        steps->at = at;
        steps->capacity = capacity;
    }
    steps->at[steps->count] = no_step;
    return &steps->at[steps->count++];
}

static hr_status chain(hr_plan *plan, uint32_t *last, uint32_t node)
{
    hr_status status = HR_OK;
    if (*last != HR_NONE)
        status = hr_plan_edge(plan, *last, node, plan->graph->stream_lag_ns);
    *last = node;
    return status;
}

static hr_status after(hr_plan *plan, uint32_t from, uint32_t to)
{
    return from != HR_NONE ? hr_plan_edge(plan, from, to, plan->graph->stream_lag_ns) : HR_OK;
}

static hr_status step_in(hr_plan *plan, hr_steps *steps, uint32_t node)
{
    bool computed = steps->count != 0 && steps->at[steps->count - 1].first_other != HR_NONE;
    hr_step *step = step_now(steps, computed);
    if (step == NULL)
        return HR_E_HOST_MEMORY;
    step->first_in = step->first_in == HR_NONE ? node : step->first_in;
    step->last_in = node;
    return chain(plan, &steps->last_in, node);
}

static hr_status step_other(hr_plan *plan, hr_steps *steps, uint32_t node)
{
    bool sent = steps->count != 0 && steps->at[steps->count - 1].first_out != HR_NONE;
    hr_step *step = step_now(steps, sent);
    if (step == NULL)
        return HR_E_HOST_MEMORY;
    step->first_other = step->first_other == HR_NONE ? node : step->first_other;
    step->last_other = node;
    hr_status status = chain(plan, &steps->last_other, node);
    if (status == HR_OK && steps->last_in != HR_NONE)
        status = after(plan, steps->last_in, node);
    return status;
}

static hr_status step_out(hr_plan *plan, hr_steps *steps, uint32_t node)
{
    hr_step *step = step_now(steps, false);
    if (step == NULL)
        return HR_E_HOST_MEMORY;
    step->first_out = step->first_out == HR_NONE ? node : step->first_out;
    step->last_out = node;
    hr_status status = chain(plan, &steps->last_out, node);
    if (status == HR_OK)
        status = after(plan, steps->last_other, node);
    return status;
}

/* A buffer is filled again only when the step that used it is through: k steps behind. */
static hr_status reuse_buffers(hr_plan *plan, const hr_steps *steps, uint32_t buffers)
{
    hr_status status = HR_OK;
    for (uint32_t s = buffers; s < steps->count && status == HR_OK; s++) {
        const hr_step *step = &steps->at[s];
        const hr_step *old = &steps->at[s - buffers];
        if (step->first_in != HR_NONE)
            status = after(plan, old->last_other, step->first_in);
        if (status == HR_OK && step->first_other != HR_NONE)
            status = after(plan, old->last_out, step->first_other);
    }
    return status;
}

static hr_status split_stream(hr_plan *plan, uint32_t stream, const bool *named, uint32_t buffers)
{
    const hr_trace *trace = plan->graph->trace;
    hr_steps steps = {.last_in = HR_NONE, .last_other = HR_NONE, .last_out = HR_NONE};
    hr_status status = HR_OK;
    for (uint32_t i = trace->stream_work_at[stream]; i < trace->stream_work_at[stream + 1] && status == HR_OK;
         i++) {
        uint32_t node = plan->graph->node_of[trace->stream_work[i]];
        const hr_event *event = &trace->events[trace->stream_work[i]];
        if (!named[node])
            status = step_other(plan, &steps, node);
        else if (event->direction == HR_DIRECTION_D2H)
            status = step_out(plan, &steps, node);
        else
            status = step_in(plan, &steps, node);
    }
    if (status == HR_OK)
        status = reuse_buffers(plan, &steps, buffers != 0 ? buffers : 3);
    free(steps.at);
    return status;
}

static hr_status own_stream(hr_plan *plan, const bool *named, uint32_t buffers)
{
    const hr_trace *trace = plan->graph->trace;
    bool *touched = calloc((size_t)plan->graph->node_count + 1, sizeof *touched);
    hr_status status = touched != NULL ? HR_OK : HR_E_HOST_MEMORY;
    for (uint32_t s = 0; s < trace->stream_count && status == HR_OK; s++) {
        bool any = false;
        for (uint32_t i = trace->stream_work_at[s]; i < trace->stream_work_at[s + 1]; i++)
            any |= named[plan->graph->node_of[trace->stream_work[i]]];
        for (uint32_t i = trace->stream_work_at[s]; any && i < trace->stream_work_at[s + 1]; i++)
            touched[plan->graph->node_of[trace->stream_work[i]]] = true;
        if (any)
            status = split_stream(plan, s, named, buffers);
    }
    if (status == HR_OK)
        stream_edges_off(plan, touched);
    free(touched);
    return status;
}

/* Neighbours in the list and in their stream become one copy, made when the last of them was asked for. */
static hr_status batch(hr_plan *plan, const hr_repair *repair, const bool *named)
{
    const hr_graph *graph = plan->graph;
    const hr_trace *trace = graph->trace;
    bool *dropped = calloc((size_t)graph->node_count + 1, sizeof *dropped);
    if (dropped == NULL)
        return HR_E_HOST_MEMORY;
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        uint64_t bytes = 0;
        for (uint32_t i = trace->stream_work_at[s]; i < trace->stream_work_at[s + 1]; i++) {
            uint32_t node = graph->node_of[trace->stream_work[i]];
            if (!named[node]) {
                bytes = 0;
                continue;
            }
            const hr_event *copy = event_of(plan, node);
            bool last =
                i + 1 == trace->stream_work_at[s + 1] || !named[graph->node_of[trace->stream_work[i + 1]]];
            bytes += copy->bytes;
            uint32_t call = call_node_of(plan, node);
            if (last) {
                double speed = copy->direction == HR_DIRECTION_D2H ? plan->link->d2h : plan->link->h2d;
                plan->length_ns[node - graph->first_work] = (int64_t)((double)bytes / speed) + COPY_START_NS;
                bytes = 0;
            } else {
                plan->length_ns[node - graph->first_work] = 0;
                plan->engine[node - graph->first_work] = HR_ENGINE_NONE;
                plan->gone[node] = true;
                if (call != HR_NONE)
                    dropped[call] = true;
            }
        }
    }
    (void)repair;
    drop_calls(plan, dropped);
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        hr_edge *edge = &plan->edges[i];
        if (hr_graph_is_work(graph, edge->to) && plan->gone[edge->to] &&
            (edge->kind == HR_EDGE_SUBMIT || edge->kind == HR_EDGE_STREAM))
            edge->lag_ns = 0;
    }
    free(dropped);
    return HR_OK;
}

hr_status hr_plan_repair(hr_plan *plan, const hr_repair *repair)
{
    if (repair->kind == HR_REPAIR_NONE || repair->count == 0)
        return HR_OK;
    bool *named = named_nodes(plan, repair);
    if (named == NULL)
        return HR_E_HOST_MEMORY;
    hr_status status = HR_OK;
    switch (repair->kind) {
    case HR_REPAIR_NONE:
        break;
    case HR_REPAIR_PIN:
        pin(plan, named);
        keep_results(plan, named);
        status = read_later(plan, named, repair->buffers);
        break;
    case HR_REPAIR_DROP_CALL:
        drop_calls(plan, named);
        break;
    case HR_REPAIR_UNBLOCK:
        unblock(plan, named);
        status = read_later(plan, named, repair->buffers);
        break;
    case HR_REPAIR_OWN_STREAM:
        status = own_stream(plan, named, repair->buffers);
        break;
    case HR_REPAIR_BATCH:
        status = batch(plan, repair, named);
        break;
    case HR_REPAIR_READ_LATER:
        status = read_later(plan, named, repair->buffers);
        break;
    case HR_REPAIR_FREE_STREAM:
        free_stream(plan, named);
        break;
    }
    free(named);
    return status;
}
