/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/model/graph.h"

#include <stdlib.h>
#include <string.h>

/* Ends of work are recorded by the device's clock, calls by the host's: they agree to some microseconds. */
enum { SKEW_NS = 50 * 1000, PROMPT_NS = 15 * 1000, SHORT_CALL_NS = 20 * 1000, LONG_GAP_NS = 50 * 1000 };
enum {
    DEFAULT_STREAM_LAG_NS = 1500,
    DEFAULT_SUBMIT_LAG_NS = 6000,
    DEFAULT_CALL_NS = 4000,
    WAIT_TAIL_NS = 3000
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

hr_status hr_graph_edge(hr_graph *graph, uint32_t from, uint32_t to, int64_t lag_ns, hr_edge_kind kind)
{
    if (graph->edge_count == graph->edge_capacity) {
        if (graph->edge_capacity >= UINT32_MAX / 2)
            return HR_E_HOST_MEMORY;
        uint32_t capacity = graph->edge_capacity * 2 + 1024;
        hr_edge *edges = realloc(graph->edges, capacity * sizeof *edges);
        if (edges == NULL)
            return HR_E_HOST_MEMORY;
        graph->edges = edges;
        graph->edge_capacity = capacity;
    }
    graph->edges[graph->edge_count++] = (hr_edge){from, to, lag_ns, (uint8_t)kind, false};
    return HR_OK;
}

void hr_graph_free(hr_graph **graph)
{
    if (*graph == NULL)
        return;
    free((*graph)->node_of);
    free((*graph)->root_ns);
    free((*graph)->edges);
    free(*graph);
    *graph = NULL;
}

bool hr_trace_blocks(const hr_trace *trace, const hr_event *copy)
{
    if (copy->peer == HR_NONE)
        return false;
    const hr_event *call = &trace->events[copy->peer];
    bool host = copy->direction == HR_DIRECTION_H2D || copy->direction == HR_DIRECTION_D2H;
    if (!host || hr_event_host_memory(copy) == HR_MEMORY_PINNED)
        return call->call == HR_CALL_COPY && host && call->end_ns + SKEW_NS >= copy->end_ns;
    return hr_event_ns(call) > SHORT_CALL_NS / 4 && hr_trace_cover(trace, copy) >= 0.5;
}

/* The state of building: what was submitted last, by stream and by thread. */
typedef struct hr_builder {
    hr_graph *graph;
    const hr_trace *trace;
    uint32_t *last_on_stream; /* work event, HR_NONE: none yet */
    uint32_t *last_by_thread;
    /* Events that were recorded, newest last: which work lay before the record. */
    struct hr_recorded {
        uint64_t object, correlation;
        uint32_t process, work;
    } * recorded;
    uint32_t recorded_count, recorded_capacity;
    /* Waits that the next work of a stream (or of a thread, where the stream is not known) has to heed: a list for each. */
    struct hr_pending {
        uint32_t work; /* HR_NONE: an event that is not known */
        uint32_t next; /* the wait after it in its list, HR_NONE: the last */
    } * pending;
    uint32_t pending_count, pending_capacity;
    struct hr_pending_list {
        uint32_t first, last;
    } * stream_waits, *thread_waits;
} hr_builder;

static hr_status add_edge(hr_builder *b, uint32_t from, uint32_t to, int64_t lag_ns, hr_edge_kind kind)
{
    return hr_graph_edge(b->graph, from, to, lag_ns, kind);
}

/* Room for one more in a list of the builder. */
static void *room(void *list, uint32_t count, uint32_t *capacity, size_t bytes)
{
    if (count < *capacity)
        return list;
    uint32_t wanted = *capacity * 2 + 64;
    void *grown = realloc(list, wanted * bytes);
    if (grown != NULL)
        *capacity = wanted;
    return grown;
}

/* What the host did between two calls of a thread, or whose turn it was. */
static uint32_t handed_over_by(const hr_trace *trace, uint32_t thread, int64_t begin_ns, int64_t end_ns)
{
    int64_t gap = end_ns - begin_ns;
    for (uint32_t other = 0; other < trace->thread_count; other++) {
        if (other == thread || trace->threads[other].process != trace->threads[thread].process)
            continue;
        uint32_t low = trace->thread_calls[other];
        uint32_t high = trace->thread_calls[other + 1];
        uint32_t first = low;
        uint32_t last = high;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (trace->events[trace->calls[middle]].begin_ns < end_ns)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == first)
            continue;
        /* The other thread's last call before; it must lie in the gap, and the threads must take turns. */
        const hr_event *call = &trace->events[trace->calls[low - 1]];
        bool in_gap = call->begin_ns >= begin_ns && call->end_ns <= end_ns;
        bool quiet_after = low == last || trace->events[trace->calls[low]].begin_ns > end_ns + gap / 2;
        if (!in_gap || !quiet_after)
            continue;
        uint32_t run = low - 1;
        while (run > first && trace->events[trace->calls[run - 1]].begin_ns >= begin_ns)
            run--;
        bool quiet_before = run == first || trace->events[trace->calls[run - 1]].end_ns < begin_ns - gap / 2;
        if (quiet_before)
            return low - 1;
    }
    return HR_NONE;
}

static hr_status add_program_order(hr_builder *b)
{
    const hr_trace *trace = b->trace;
    for (uint32_t thread = 0; thread < trace->thread_count; thread++) {
        for (uint32_t i = trace->thread_calls[thread]; i < trace->thread_calls[thread + 1]; i++) {
            const hr_event *call = &trace->events[trace->calls[i]];
            bool first = i == trace->thread_calls[thread];
            int64_t before = first ? INT64_MIN : trace->events[trace->calls[i - 1]].end_ns;
            int64_t gap = first ? 0 : call->begin_ns - before;
            uint32_t giver = HR_NONE;
            if (!first && gap > LONG_GAP_NS && trace->thread_count > 1)
                giver = handed_over_by(trace, thread, before, call->begin_ns);
            hr_status status = HR_OK;
            if (first)
                b->graph->root_ns[2 * i] = call->begin_ns;
            else
                status = add_edge(b, 2 * (i - 1) + 1, 2 * i, giver == HR_NONE ? gap : 0, HR_EDGE_PROGRAM);
            if (status == HR_OK && giver != HR_NONE)
                status =
                    add_edge(b, 2 * giver + 1, 2 * i,
                             call->begin_ns - trace->events[trace->calls[giver]].end_ns, HR_EDGE_HANDOFF);
            if (status != HR_OK)
                return status;
        }
    }
    return HR_OK;
}

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Takes `count` values apart; `otherwise` when there are none. */
static int64_t median(int64_t *values, uint32_t count, int64_t otherwise)
{
    if (count == 0)
        return otherwise;
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static hr_status measure_lags(hr_builder *b)
{
    const hr_trace *trace = b->trace;
    int64_t *queued = malloc(((size_t)trace->work_count + 1) * sizeof *queued);
    int64_t *fresh = malloc(((size_t)trace->work_count + 1) * sizeof *fresh);
    int64_t *calls = malloc(((size_t)trace->work_count + 1) * sizeof *calls);
    uint32_t queued_count = 0;
    uint32_t fresh_count = 0;
    uint32_t call_count = 0;
    if (queued != NULL && fresh != NULL && calls != NULL) {
        for (uint32_t s = 0; s < trace->stream_count; s++) {
            for (uint32_t i = trace->stream_work_at[s]; i < trace->stream_work_at[s + 1]; i++) {
                const hr_event *work = &trace->events[trace->stream_work[i]];
                if (work->peer == HR_NONE)
                    continue;
                const hr_event *call = &trace->events[work->peer];
                bool first = i == trace->stream_work_at[s];
                int64_t before = first ? INT64_MIN : trace->events[trace->stream_work[i - 1]].end_ns;
                /* Longer gaps have other causes: another stream, an engine, the host. */
                if (!first && before > call->end_ns && work->begin_ns >= before &&
                    work->begin_ns - before <= PROMPT_NS)
                    queued[queued_count++] = work->begin_ns - before;
                else if ((first || before < call->begin_ns) && work->begin_ns >= call->begin_ns &&
                         work->begin_ns <= call->end_ns + PROMPT_NS)
                    fresh[fresh_count++] = work->begin_ns - call->begin_ns;
                if (call->call == HR_CALL_COPY_ASYNC && !hr_trace_blocks(trace, work))
                    calls[call_count++] = hr_event_ns(call);
            }
        }
        b->graph->stream_lag_ns = median(queued, queued_count, DEFAULT_STREAM_LAG_NS);
        b->graph->submit_lag_ns = median(fresh, fresh_count, DEFAULT_SUBMIT_LAG_NS);
        b->graph->async_call_ns = median(calls, call_count, DEFAULT_CALL_NS);
    }
    bool failed = queued == NULL || fresh == NULL || calls == NULL;
    free(queued);
    free(fresh);
    free(calls);
    return failed ? HR_E_HOST_MEMORY : HR_OK;
}

/* Remembers that a record lies behind the work which its stream (or, unknown, its thread) was given last. */
static hr_status note_record(hr_builder *b, const hr_event *call)
{
    uint32_t work =
        call->stream != HR_NONE ? b->last_on_stream[call->stream] : b->last_by_thread[call->thread];
    if (work == HR_NONE)
        return HR_OK;
    void *list = room(b->recorded, b->recorded_count, &b->recorded_capacity, sizeof *b->recorded);
    if (list == NULL)
        return HR_E_HOST_MEMORY;
    b->recorded = list;
    b->recorded[b->recorded_count++] =
        (struct hr_recorded){call->object, call->correlation, call->process, work};
    return HR_OK;
}

static hr_status note_wait(hr_builder *b, const hr_event *call)
{
    uint32_t work = HR_NONE;
    bool known = call->waits_for != 0 || call->object != 0;
    for (uint32_t i = b->recorded_count; known && i-- > 0;) {
        const struct hr_recorded *record = &b->recorded[i];
        bool same =
            call->waits_for != 0 ? record->correlation == call->waits_for : record->object == call->object;
        if (same && record->process == call->process) {
            work = record->work;
            break;
        }
    }
    /* An event that was never recorded holds nothing back. */
    if (known && work == HR_NONE)
        return HR_OK;
    void *list = room(b->pending, b->pending_count, &b->pending_capacity, sizeof *b->pending);
    if (list == NULL)
        return HR_E_HOST_MEMORY;
    b->pending = list;
    b->pending[b->pending_count] = (struct hr_pending){work, HR_NONE};
    struct hr_pending_list *waits =
        call->stream != HR_NONE ? &b->stream_waits[call->stream] : &b->thread_waits[call->thread];
    if (waits->first == HR_NONE)
        waits->first = b->pending_count;
    else
        b->pending[waits->last].next = b->pending_count;
    waits->last = b->pending_count++;
    return HR_OK;
}

/*
 * The recorder did not say which event: the newest recorded work of another stream that had ended when this
 * work began, and that is not held for already.
 */
static uint32_t guess_awaited(const hr_builder *b, const hr_event *work, uint32_t before)
{
    enum { LOOK_BACK = 256 };
    for (uint32_t i = b->recorded_count; i-- > 0 && b->recorded_count - i < LOOK_BACK;) {
        uint32_t candidate = b->recorded[i].work;
        const hr_event *other = &b->trace->events[candidate];
        if (other->stream != work->stream && other->device == work->device &&
            other->end_ns <= work->begin_ns && candidate != before)
            return candidate;
    }
    return HR_NONE;
}

/* Takes the list's waits off it. *guessed is what was guessed last, for waits whose event is not known. */
static hr_status heed_list(hr_builder *b, struct hr_pending_list *list, uint32_t index, uint32_t *guessed)
{
    const hr_event *work = &b->trace->events[index];
    uint32_t at = list->first;
    list->first = HR_NONE;
    for (; at != HR_NONE; at = b->pending[at].next) {
        struct hr_pending wait = b->pending[at];
        uint32_t awaited = wait.work;
        if (awaited == HR_NONE)
            awaited = *guessed = guess_awaited(b, work, *guessed);
        if (awaited == HR_NONE)
            continue;
        int64_t lag = work->begin_ns - b->trace->events[awaited].end_ns;
        /* Begun before what it should have waited for had ended: then it was not this record of the event. */
        if (lag < -SKEW_NS)
            continue;
        hr_edge_kind kind = wait.work == HR_NONE ? HR_EDGE_GUESS : HR_EDGE_EVENT;
        b->graph->guessed += wait.work == HR_NONE;
        hr_status status = add_edge(b, b->graph->node_of[awaited], b->graph->node_of[index],
                                    least(lag, b->graph->stream_lag_ns), kind);
        if (status != HR_OK)
            return status;
    }
    return HR_OK;
}

static hr_status heed_waits(hr_builder *b, uint32_t index)
{
    const hr_event *work = &b->trace->events[index];
    uint32_t guessed = HR_NONE;
    hr_status status = heed_list(b, &b->stream_waits[work->stream], index, &guessed);
    if (status == HR_OK && work->peer != HR_NONE)
        status = heed_list(b, &b->thread_waits[b->trace->events[work->peer].thread], index, &guessed);
    return status;
}

/* The legacy default stream waits for all blocking streams, and they for it. */
static hr_status heed_null_stream(hr_builder *b, uint32_t index)
{
    const hr_trace *trace = b->trace;
    const hr_event *work = &trace->events[index];
    hr_stream_flag flag = trace->streams[work->stream].flag;
    if (flag != HR_STREAM_FLAG_NULL && flag != HR_STREAM_FLAG_BLOCKING)
        return HR_OK;
    hr_stream_flag wanted = flag == HR_STREAM_FLAG_NULL ? HR_STREAM_FLAG_BLOCKING : HR_STREAM_FLAG_NULL;
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        const hr_trace_stream *stream = &trace->streams[s];
        uint32_t other = b->last_on_stream[s];
        if (stream->flag != wanted || other == HR_NONE ||
            stream->context != trace->streams[work->stream].context ||
            stream->process != trace->streams[work->stream].process)
            continue;
        int64_t lag = work->begin_ns - trace->events[other].end_ns;
        if (lag < -SKEW_NS)
            continue;
        hr_status status = add_edge(b, b->graph->node_of[other], b->graph->node_of[index],
                                    least(lag, b->graph->stream_lag_ns), HR_EDGE_NULL_STREAM);
        if (status != HR_OK)
            return status;
    }
    return HR_OK;
}

/* Work is handed over: its edges from other streams, and from now on it is the last of its stream. */
static hr_status submit_work(hr_builder *b, uint32_t index)
{
    const hr_event *work = &b->trace->events[index];
    if (work->stream == HR_NONE)
        return HR_OK;
    hr_status status = heed_waits(b, index);
    if (status == HR_OK)
        status = heed_null_stream(b, index);
    b->last_on_stream[work->stream] = index;
    if (work->peer != HR_NONE)
        b->last_by_thread[b->trace->events[work->peer].thread] = index;
    return status;
}

/* Does a call that waits for the whole device wait for this stream's work? */
static bool waits_for_stream(const hr_trace *trace, const hr_event *call, uint32_t stream)
{
    const hr_trace_stream *at = &trace->streams[stream];
    return at->process == HR_NONE || at->process == call->process;
}

/*
 * What a synchronising call waited for: the last work of its stream, or of all. A recorder that does not name
 * the stream leaves the guess: the one of the streams whose last work ended latest before the call returned.
 */
static uint32_t awaited_by(const hr_builder *b, const hr_event *call, uint32_t *list)
{
    const hr_trace *trace = b->trace;
    uint32_t count = 0;
    if (call->call == HR_CALL_EVENT_SYNC && call->object != 0) {
        for (uint32_t i = b->recorded_count; i-- > 0;) {
            if (b->recorded[i].object == call->object && b->recorded[i].process == call->process) {
                list[count++] = b->recorded[i].work;
                return count;
            }
        }
    }
    if (call->call == HR_CALL_STREAM_SYNC && call->stream != HR_NONE) {
        if (b->last_on_stream[call->stream] != HR_NONE)
            list[count++] = b->last_on_stream[call->stream];
        return count;
    }
    bool all = call->call == HR_CALL_DEVICE_SYNC || !hr_call_is_sync((hr_call)call->call);
    uint32_t latest = HR_NONE;
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        uint32_t work = b->last_on_stream[s];
        if (work == HR_NONE || !waits_for_stream(trace, call, s) ||
            trace->events[work].end_ns > call->end_ns + SKEW_NS)
            continue;
        if (all)
            list[count++] = work;
        else if (latest == HR_NONE || trace->events[work].end_ns > trace->events[latest].end_ns)
            latest = work;
    }
    if (!all && latest != HR_NONE)
        list[count++] = latest;
    return count;
}

/* Edges from what a call waited for, and what is left as the call's own cost. */
static hr_status add_waits(hr_builder *b, uint32_t node, const hr_event *call, const uint32_t *list,
                           uint32_t count)
{
    const hr_trace *trace = b->trace;
    int64_t latest = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        int64_t end = trace->events[list[i]].end_ns;
        latest = end > latest ? end : latest;
    }
    bool waited = count != 0 && latest > call->begin_ns;
    int64_t tail = waited ? call->end_ns - latest : WAIT_TAIL_NS;
    for (uint32_t i = 0; i < count; i++) {
        int64_t lag = least(tail, call->end_ns - trace->events[list[i]].end_ns);
        hr_status status = add_edge(b, b->graph->node_of[list[i]], hr_graph_end_of(node), lag, HR_EDGE_WAIT);
        if (status != HR_OK)
            return status;
    }
    int64_t own = waited ? least(hr_event_ns(call), WAIT_TAIL_NS) : hr_event_ns(call);
    return add_edge(b, node, hr_graph_end_of(node), own, HR_EDGE_CALL);
}

/* Releases wait for the whole device on today's drivers, and need not: what the call did is what counts. */
static bool waited_for_device(const hr_builder *b, const hr_event *call, const uint32_t *list, uint32_t count)
{
    int64_t latest = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        int64_t end = b->trace->events[list[i]].end_ns;
        latest = end > latest ? end : latest;
    }
    return count != 0 && latest > call->begin_ns && latest <= call->end_ns + SKEW_NS;
}

static hr_status add_call(hr_builder *b, uint32_t index, uint32_t *list)
{
    const hr_trace *trace = b->trace;
    const hr_event *call = &trace->events[index];
    uint32_t node = b->graph->node_of[index];
    uint32_t count = 0;
    hr_status status = HR_OK;
    switch (call->call) {
    case HR_CALL_DEVICE_SYNC:
    case HR_CALL_STREAM_SYNC:
    case HR_CALL_EVENT_SYNC:
        count = awaited_by(b, call, list);
        break;
    case HR_CALL_DEVICE_FREE:
    case HR_CALL_PINNED_FREE:
    case HR_CALL_UNREGISTER:
    case HR_CALL_DEVICE_ALLOC:
        count = awaited_by(b, call, list);
        count = waited_for_device(b, call, list, count) ? count : 0;
        break;
    case HR_CALL_EVENT_RECORD:
        status = note_record(b, call);
        break;
    case HR_CALL_STREAM_WAIT:
        status = note_wait(b, call);
        break;
    default:
        break;
    }
    for (uint32_t work = call->peer; work != HR_NONE && status == HR_OK; work = trace->events[work].next) {
        status = submit_work(b, work);
        if (count == 0 && trace->events[work].kind == HR_EVENT_COPY &&
            hr_trace_blocks(trace, &trace->events[work]))
            list[count++] = work;
    }
    if (status == HR_OK)
        status = add_waits(b, node, call, list, count);
    return status;
}

/* In the order of time: calls, and work whose call is not known. */
static hr_status add_calls_and_waits(hr_builder *b)
{
    const hr_trace *trace = b->trace;
    uint32_t *list = malloc(((size_t)trace->stream_count + 2) * sizeof *list);
    hr_status status = list != NULL ? HR_OK : HR_E_HOST_MEMORY;
    for (uint32_t i = 0; i < trace->event_count && status == HR_OK; i++) {
        const hr_event *event = &trace->events[i];
        if (b->graph->node_of[i] == HR_NONE)
            continue;
        if (event->kind == HR_EVENT_CALL)
            status = add_call(b, i, list);
        else if (event->peer == HR_NONE)
            status = submit_work(b, i);
    }
    free(list);
    return status;
}

/* Another stream's work that ended right before this one began: what it must have waited for. */
static uint32_t prompt_cause(const hr_trace *trace, uint32_t position, const hr_event *work)
{
    enum { LOOK_BACK = 64 };
    uint32_t best = HR_NONE;
    for (uint32_t i = position; i-- > 0 && position - i <= LOOK_BACK;) {
        const hr_event *other = &trace->events[trace->work[i]];
        int64_t lag = work->begin_ns - other->end_ns;
        if (other->device != work->device || other->stream == work->stream || lag < 0 || lag > PROMPT_NS)
            continue;
        if (best == HR_NONE || other->end_ns > trace->events[best].end_ns)
            best = trace->work[i];
    }
    return best;
}

/* Copies of one direction take turns in one engine: no edge is needed to say so. */
static bool same_engine(const hr_event *a, const hr_event *b)
{
    return a->kind == HR_EVENT_COPY && b->kind == HR_EVENT_COPY && a->direction == b->direction;
}

/* Edges into one piece of work from its call and its stream; what they leave open is looked for, or kept as
 * it is. */
static hr_status place_work(hr_builder *b, uint32_t position, const int64_t *ready_ns, uint32_t before)
{
    const hr_trace *trace = b->trace;
    hr_graph *graph = b->graph;
    uint32_t index = trace->work[position];
    const hr_event *work = &trace->events[index];
    uint32_t node = graph->node_of[index];
    const hr_event *call = work->peer != HR_NONE ? &trace->events[work->peer] : NULL;
    int64_t submitted = call != NULL ? call->begin_ns + graph->submit_lag_ns : INT64_MIN;
    int64_t stream = before != HR_NONE ? trace->events[before].end_ns : INT64_MIN;
    int64_t ready = ready_ns[position] > stream ? ready_ns[position] : stream;
    bool queued = ready > (call != NULL ? call->begin_ns : INT64_MIN) && ready + SKEW_NS >= submitted;
    int64_t lag = queued ? work->begin_ns - ready : 0;
    /* Handed over long before, and nothing known held it: its engine was busy, or something unknown did. */
    bool late = !queued && call != NULL && work->begin_ns - call->end_ns > SKEW_NS;
    hr_status status = HR_OK;
    if (late || (queued && lag > 8 * graph->stream_lag_ns + PROMPT_NS)) {
        uint32_t cause = prompt_cause(trace, position, work);
        if (cause != HR_NONE && !same_engine(&trace->events[cause], work))
            status = hr_graph_edge(graph, graph->node_of[cause], node,
                                   work->begin_ns - trace->events[cause].end_ns, HR_EDGE_GUESS);
        if (cause != HR_NONE) {
            lag = graph->stream_lag_ns;
            queued = true;
        } else {
            graph->unexplained_ns += late ? work->begin_ns - call->end_ns : lag;
        }
    }
    if (status == HR_OK && before != HR_NONE) {
        int64_t gap = work->begin_ns - stream;
        int64_t kept = queued && stream == ready ? lag : least(graph->stream_lag_ns, gap);
        status = hr_graph_edge(graph, graph->node_of[before], node, least(kept, gap), HR_EDGE_STREAM);
    }
    if (status != HR_OK)
        return status;
    if (call == NULL) {
        /* Nobody knows when it was handed over: when it began, unless its stream explains that. */
        if (!queued || lag > PROMPT_NS)
            graph->root_ns[node] = work->begin_ns;
        return HR_OK;
    }
    int64_t from_call = work->begin_ns - call->begin_ns;
    int64_t submit = queued ? least(from_call, graph->submit_lag_ns) : from_call;
    return hr_graph_edge(graph, graph->node_of[work->peer], node, submit, HR_EDGE_SUBMIT);
}

static hr_status add_work(hr_builder *b)
{
    const hr_trace *trace = b->trace;
    int64_t *ready_ns = malloc(((size_t)trace->work_count + 1) * sizeof *ready_ns);
    uint32_t *last = malloc(((size_t)trace->stream_count + 1) * sizeof *last);
    hr_status status = ready_ns != NULL && last != NULL ? HR_OK : HR_E_HOST_MEMORY;
    if (status == HR_OK) {
        memset(last, 0xFF, ((size_t)trace->stream_count + 1) * sizeof *last);
        for (uint32_t i = 0; i < trace->work_count; i++)
            ready_ns[i] = INT64_MIN;
        /* What other streams' work demands is known from the edges made so far. */
        for (uint32_t i = 0; i < b->graph->edge_count; i++) {
            const hr_edge *edge = &b->graph->edges[i];
            if (!hr_graph_is_work(b->graph, edge->to) || !hr_graph_is_work(b->graph, edge->from))
                continue;
            int64_t end = trace->events[hr_graph_event(b->graph, edge->from)].end_ns;
            int64_t *ready = &ready_ns[edge->to - b->graph->first_work];
            *ready = end > *ready ? end : *ready;
        }
    }
    for (uint32_t i = 0; i < trace->work_count && status == HR_OK; i++) {
        uint32_t stream = trace->events[trace->work[i]].stream;
        status = place_work(b, i, ready_ns, stream != HR_NONE ? last[stream] : HR_NONE);
        if (stream != HR_NONE)
            last[stream] = trace->work[i];
    }
    free(ready_ns);
    free(last);
    return status;
}

static hr_status number_nodes(hr_graph *graph)
{
    const hr_trace *trace = graph->trace;
    graph->first_work = 2 * trace->call_count;
    graph->node_count = graph->first_work + trace->work_count;
    graph->node_of = malloc(((size_t)trace->event_count + 1) * sizeof *graph->node_of);
    graph->root_ns = malloc(((size_t)graph->node_count + 1) * sizeof *graph->root_ns);
    if (graph->node_of == NULL || graph->root_ns == NULL)
        return HR_E_HOST_MEMORY;
    memset(graph->node_of, 0xFF, ((size_t)trace->event_count + 1) * sizeof *graph->node_of);
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph->root_ns[i] = INT64_MIN;
    for (uint32_t i = 0; i < trace->call_count; i++)
        graph->node_of[trace->calls[i]] = 2 * i;
    for (uint32_t i = 0; i < trace->work_count; i++)
        graph->node_of[trace->work[i]] = graph->first_work + i;
    return HR_OK;
}

static hr_status build(hr_graph *graph)
{
    const hr_trace *trace = graph->trace;
    hr_builder b = {.graph = graph, .trace = trace};
    hr_status status = number_nodes(graph);
    b.last_on_stream = malloc(((size_t)trace->stream_count + 1) * sizeof *b.last_on_stream);
    b.last_by_thread = malloc(((size_t)trace->thread_count + 1) * sizeof *b.last_by_thread);
    b.stream_waits = malloc(((size_t)trace->stream_count + 1) * sizeof *b.stream_waits);
    b.thread_waits = malloc(((size_t)trace->thread_count + 1) * sizeof *b.thread_waits);
    if (b.last_on_stream == NULL || b.last_by_thread == NULL || b.stream_waits == NULL ||
        b.thread_waits == NULL)
        status = HR_E_HOST_MEMORY;
    if (status == HR_OK) {
        memset(b.stream_waits, 0xFF, ((size_t)trace->stream_count + 1) * sizeof *b.stream_waits);
        memset(b.thread_waits, 0xFF, ((size_t)trace->thread_count + 1) * sizeof *b.thread_waits);
        memset(b.last_on_stream, 0xFF, ((size_t)trace->stream_count + 1) * sizeof *b.last_on_stream);
        memset(b.last_by_thread, 0xFF, ((size_t)trace->thread_count + 1) * sizeof *b.last_by_thread);
        status = measure_lags(&b);
    }
    if (status == HR_OK)
        status = add_program_order(&b);
    if (status == HR_OK)
        status = add_calls_and_waits(&b);
    if (status == HR_OK)
        status = add_work(&b);
    free(b.last_on_stream);
    free(b.last_by_thread);
    free(b.stream_waits);
    free(b.thread_waits);
    free(b.recorded);
    free(b.pending);
    return status;
}

hr_status hr_graph_build(const hr_trace *trace, hr_graph **graph, hr_error *error)
{
    hr_graph *made = calloc(1, sizeof *made);
    hr_status status = HR_E_HOST_MEMORY;
    if (made != NULL) {
        made->trace = trace;
        status = build(made);
        if (status == HR_OK)
            status = hr_graph_unwind(made);
    }
    if (status != HR_OK) {
        hr_graph_free(&made);
        return hr_fail(error, status, "%s: no memory to order its %u events", trace->path,
                       trace->event_count);
    }
    *graph = made;
    return HR_OK;
}
