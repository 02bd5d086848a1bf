/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Happens-before by vector clocks. There is a clock a stream, counting its operations, and one for the host.
 * A clock says, for every stream, how many of its operations are known to be done before now:
 *
 *   submitting to stream s:   s knows what the host knows; then s counts one more
 *   recording an event:       the event keeps what its stream knows, and the operations submitted to it so
 * far a stream's wait:          the stream learns what the event kept a host's wait:            the host
 * learns what the event kept, or all of a stream, or of all streams the default stream:       work on it
 * learns from all blocking streams, and they learn from it
 *
 * Operation a of stream s is before operation b if b's stream, when b was submitted, knew of s's count at a.
 */
#include "trace/rule/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy whose end no later operation is known to wait for. */
typedef struct access {
    uint32_t event;
    uint32_t count; /* its number in its stream, from 1 */
} access;

/* Old accesses are forgotten beyond this; a program that has so many copies in flight is rare. */
enum { OPEN_LIMIT = 4096 };

typedef struct hr_order {
    const hr_trace *trace;
    uint32_t streams;
    uint32_t *known;    /* [streams + 1][streams]: a row a stream, the last one the host's */
    uint32_t *recorded; /* [event slots][streams] */
    uint64_t *objects;  /* the event handle of each slot */
    uint32_t slots, slot_capacity;
    uint32_t *submitted; /* operations of each stream so far */
    access open[OPEN_LIMIT];
    uint32_t open_count;
} hr_order;

static uint32_t *row(hr_order *order, uint32_t stream)
{
    return order->known + (size_t)stream * order->streams;
}

static uint32_t *host_row(hr_order *order)
{
    return row(order, order->streams);
}

static void learn(uint32_t *into, const uint32_t *from, uint32_t streams)
{
    for (uint32_t s = 0; s < streams; s++)
        into[s] = from[s] > into[s] ? from[s] : into[s];
}

/* The row that an event handle keeps; made when there is none and `make` is set. Null: none, or out of
 * memory. */
static uint32_t *event_row(hr_order *order, uint64_t object, bool make)
{
    for (uint32_t i = order->slots; i-- > 0;) {
        if (order->objects[i] == object)
            return order->recorded + (size_t)i * order->streams;
    }
    if (!make)
        return NULL;
    if (order->slots == order->slot_capacity) {
        uint32_t capacity = order->slot_capacity == 0 ? 32 : order->slot_capacity * 2;
        uint64_t *objects = realloc(order->objects, capacity * sizeof *objects);
        if (objects == NULL)
            return NULL;
        order->objects = objects;
        uint32_t *recorded = realloc(order->recorded, (size_t)capacity * order->streams * sizeof *recorded);
        if (recorded == NULL)
            return NULL;
        order->recorded = recorded;
        order->slot_capacity = capacity;
    }
    order->objects[order->slots] = object;
    return order->recorded + (size_t)order->slots++ * order->streams;
}

/* The host has waited for all of a stream. */
static void host_learns_stream(hr_order *order, uint32_t stream)
{
    learn(host_row(order), row(order, stream), order->streams);
    host_row(order)[stream] = order->submitted[stream];
}

static hr_status record(hr_order *order, const hr_event *call)
{
    if (call->object == 0 || call->stream >= order->streams)
        return HR_OK;
    uint32_t *kept = event_row(order, call->object, true);
    if (kept == NULL)
        return HR_E_HOST_MEMORY;
    memcpy(kept, row(order, call->stream), order->streams * sizeof *kept);
    kept[call->stream] = order->submitted[call->stream];
    learn(kept, host_row(order), order->streams);
    return HR_OK;
}

/* A wait whose event or stream the trace does not name is taken to wait for everything: no race is invented.
 */
static void wait_call(hr_order *order, const hr_event *call)
{
    uint32_t *kept = call->object != 0 ? event_row(order, call->object, false) : NULL;
    if (call->call == HR_CALL_STREAM_WAIT) {
        for (uint32_t s = 0; s < order->streams; s++) {
            if (call->stream < order->streams && s != call->stream)
                continue;
            if (kept != NULL)
                learn(row(order, s), kept, order->streams);
            else if (call->object == 0)
                learn(row(order, s), order->submitted, order->streams);
        }
        return;
    }
    if (call->call == HR_CALL_STREAM_SYNC && call->stream < order->streams)
        host_learns_stream(order, call->stream);
    else if (call->call == HR_CALL_EVENT_SYNC && call->object != 0) {
        if (kept != NULL)
            learn(host_row(order), kept, order->streams);
    } else
        learn(host_row(order), order->submitted, order->streams);
}

/* A query that came after the work was done told the host so; one that came earlier told it nothing. */
static void query_call(hr_order *order, const hr_event *call)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < order->open_count; i++) {
        const hr_event *event = &order->trace->events[order->open[i].event];
        if (event->end_ns <= call->end_ns) {
            uint32_t *known = &host_row(order)[event->stream];
            *known = order->open[i].count > *known ? order->open[i].count : *known;
        } else {
            order->open[kept++] = order->open[i];
        }
    }
    order->open_count = kept;
}

static bool is_host(hr_memory memory)
{
    return memory == HR_MEMORY_PAGEABLE || memory == HR_MEMORY_PINNED;
}

/* Memory that is released may be handed out again, at the same address, and the allocator sees to the order: what lies there then
 * is another allocation. Which one was released is not always told, so all accesses of its kind are forgotten. */
static void release(hr_order *order, hr_call call)
{
    bool device = call == HR_CALL_DEVICE_FREE || call == HR_CALL_POOL_FREE;
    bool host = call == HR_CALL_PINNED_FREE || call == HR_CALL_UNREGISTER;
    uint32_t kept = 0;
    if (!device && !host)
        return;
    for (uint32_t i = 0; i < order->open_count; i++) {
        const hr_event *copy = &order->trace->events[order->open[i].event];
        bool on_host = is_host((hr_memory)copy->source) || is_host((hr_memory)copy->sink);
        bool on_device = !is_host((hr_memory)copy->source) || !is_host((hr_memory)copy->sink);
        if (!(device && on_device) && !(host && on_host))
            order->open[kept++] = order->open[i];
    }
    order->open_count = kept;
}

static bool overlaps(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a != 0 && b != 0 && a < b + b_bytes && b < a + a_bytes;
}

/* What the pair is, were it not in order: −1 when the two do not disturb each other. */
static int hazard_of(const hr_event *first, const hr_event *second)
{
    bool write_write = overlaps(first->sink_address, first->bytes, second->sink_address, second->bytes);
    /* An upload from pageable memory has taken its data when its call returns: it goes on from the driver's own buffer. */
    bool read_write = first->source != HR_MEMORY_PAGEABLE &&
                      overlaps(first->source_address, first->bytes, second->sink_address, second->bytes);
    bool write_read = overlaps(first->sink_address, first->bytes, second->source_address, second->bytes);
    if (write_read)
        return is_host((hr_memory)first->sink) ? (int)HR_HAZARD_EARLY : (int)HR_HAZARD_DEVICE;
    if (write_write || read_write)
        return is_host((hr_memory)second->sink) ? (int)HR_HAZARD_REFILL : (int)HR_HAZARD_DEVICE;
    return -1;
}

typedef struct hazard_search {
    hr_hazard hazard;
    hr_status (*each)(void *user, uint32_t first, uint32_t second);
    void *user;
} hazard_search;

static hr_status compare(hr_order *order, uint32_t event, const uint32_t *knows, const hazard_search *search)
{
    const hr_event *second = &order->trace->events[event];
    uint32_t kept = 0;
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < order->open_count; i++) {
        access open = order->open[i];
        const hr_event *first = &order->trace->events[open.event];
        /* What the host has waited for is before everything that is submitted from now on. */
        if (host_row(order)[first->stream] >= open.count)
            continue;
        order->open[kept++] = open;
        bool ordered = first->stream == second->stream || knows[first->stream] >= open.count;
        if (status == HR_OK && !ordered && hazard_of(first, second) == (int)search->hazard)
            status = search->each(search->user, open.event, event);
    }
    order->open_count = kept;
    return status;
}

static void keep_open(hr_order *order, uint32_t event, uint32_t count)
{
    if (order->open_count == OPEN_LIMIT) {
        memmove(order->open, order->open + 1, (OPEN_LIMIT - 1) * sizeof *order->open);
        order->open_count--;
    }
    order->open[order->open_count++] = (access){event, count};
}

static void default_stream_rules(hr_order *order, uint32_t stream)
{
    const hr_trace *trace = order->trace;
    hr_stream_flag flag = trace->streams[stream].flag;
    for (uint32_t s = 0; s < order->streams; s++) {
        bool tied = (flag == HR_STREAM_FLAG_NULL && trace->streams[s].flag == HR_STREAM_FLAG_BLOCKING) ||
                    (flag == HR_STREAM_FLAG_BLOCKING && trace->streams[s].flag == HR_STREAM_FLAG_NULL);
        if (!tied || s == stream)
            continue;
        learn(row(order, stream), row(order, s), order->streams);
        row(order, stream)[s] = order->submitted[s];
    }
}

static hr_status submit(hr_order *order, const hr_event *call, const hazard_search *search)
{
    const hr_trace *trace = order->trace;
    for (uint32_t w = call->peer; w != HR_NONE; w = trace->events[w].next) {
        const hr_event *work = &trace->events[w];
        if (!hr_event_is_work(work) || work->stream >= order->streams)
            continue;
        uint32_t *knows = row(order, work->stream);
        learn(knows, host_row(order), order->streams);
        default_stream_rules(order, work->stream);
        uint32_t count = ++order->submitted[work->stream];
        if (work->kind != HR_EVENT_COPY || work->bytes == 0)
            continue;
        hr_status status = compare(order, w, knows, search);
        if (status != HR_OK)
            return status;
        keep_open(order, w, count);
        knows[work->stream] = count;
        /* The call held the host until the copy was done. */
        if (call->end_ns >= work->end_ns)
            host_row(order)[work->stream] = count;
    }
    return HR_OK;
}

static hr_status walk(hr_order *order, const hazard_search *search)
{
    const hr_trace *trace = order->trace;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *call = &trace->events[i];
        if (call->kind != HR_EVENT_CALL || call->nested)
            continue;
        hr_status status = HR_OK;
        if (call->peer != HR_NONE)
            status = submit(order, call, search);
        else if (call->call == HR_CALL_EVENT_RECORD)
            status = record(order, call);
        else if (call->call == HR_CALL_STREAM_WAIT || hr_call_is_sync((hr_call)call->call))
            wait_call(order, call);
        else if (call->call == HR_CALL_QUERY)
            query_call(order, call);
        else
            release(order, (hr_call)call->call);
        if (status != HR_OK)
            return status;
    }
    return HR_OK;
}

hr_status hr_order_hazards(const hr_trace *trace, hr_hazard hazard,
                           hr_status (*each)(void *user, uint32_t first, uint32_t second), void *user)
{
    hr_order *order = calloc(1, sizeof *order);
    if (order == NULL)
        return HR_E_HOST_MEMORY;
    order->trace = trace;
    order->streams = trace->stream_count;
    order->known = calloc(((size_t)order->streams + 1) * order->streams + 1, sizeof *order->known);
    order->submitted = calloc((size_t)order->streams + 1, sizeof *order->submitted);
    hr_status status = HR_E_HOST_MEMORY;
    if (order->known != NULL && order->submitted != NULL)
        status = walk(order, &(hazard_search){hazard, each, user});
    free(order->known);
    free(order->submitted);
    free(order->recorded);
    free(order->objects);
    free(order);
    return status;
}

/* The finding that the pairs go into. */
typedef struct pairs {
    const hr_trace *trace;
    hr_findings *findings;
    const char *rule;
    hr_finding *finding;
    uint32_t first, second; /* the first pair */
} pairs;

static hr_status take_pair(void *user, uint32_t first, uint32_t second)
{
    pairs *judge = user;
    if (judge->finding == NULL) {
        judge->finding = hr_findings_add(judge->findings, judge->rule);
        if (judge->finding == NULL)
            return HR_E_HOST_MEMORY;
        judge->first = first;
        judge->second = second;
    }
    hr_status status = hr_finding_count(judge->finding, judge->trace, second, 0);
    if (status == HR_OK)
        status = hr_rule_show(judge->finding, first);
    return status == HR_OK ? hr_rule_show(judge->finding, second) : status;
}

hr_status hr_order_judge(const hr_trace *trace, hr_hazard hazard, const char *rule, const char *what,
                         const char *fix, hr_findings *findings, hr_error *error)
{
    pairs judge = {.trace = trace, .findings = findings, .rule = rule};
    if (hr_order_hazards(trace, hazard, take_pair, &judge) != HR_OK)
        return hr_rule_no_memory(trace, error);
    if (judge.finding == NULL)
        return HR_OK;
    const hr_event *first = &trace->events[judge.first], *second = &trace->events[judge.second];
    char bytes[24], at[24];
    snprintf(judge.finding->text, sizeof judge.finding->text,
             "%llu times %s. The first: %s on stream %llu at %s, then stream %llu, and nothing makes the "
             "second wait for the first.",
             (unsigned long long)judge.finding->count, what, hr_rule_bytes(first->bytes, bytes),
             (unsigned long long)trace->streams[first->stream].id, hr_rule_time(first->begin_ns, at),
             (unsigned long long)trace->streams[second->stream].id);
    snprintf(judge.finding->fix, sizeof judge.finding->fix, "%s", fix);
    snprintf(judge.finding->proof, sizeof judge.finding->proof,
             "the results may have been right so far: this is about what nothing guarantees");
    hr_finding_finish(judge.finding);
    return HR_OK;
}

const char *hr_order_lacks(const hr_trace *trace)
{
    if (!trace->has.addresses)
        return "the addresses that copies touch";
    return trace->has.correlation && trace->has.streams ? NULL : "copies joined with their calls and streams";
}
