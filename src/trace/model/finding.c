/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/model/finding.h"

#include <stdlib.h>

void hr_findings_drop_last(hr_findings *findings)
{
    hr_finding *last = &findings->at[--findings->count];
    free(last->where);
    free(last->evidence);
    free(last->repair.events);
}

void hr_findings_free(hr_findings *findings)
{
    while (findings->count > 0)
        hr_findings_drop_last(findings);
    free(findings->at);
    *findings = (hr_findings){0};
}

/* Room for one more in an array that doubles. Null: out of memory, the old array stays. */
static void *grown(void *array, uint32_t count, uint32_t *capacity, size_t member_bytes)
{
    if (count < *capacity)
        return array;
    uint32_t wanted = *capacity != 0 ? *capacity * 2 : 16;
    void *larger = realloc(array, wanted * member_bytes);
    if (larger != NULL)
        *capacity = wanted;
    return larger;
}

hr_finding *hr_findings_add(hr_findings *findings, const char *rule)
{
    hr_finding *at = grown(findings->at, findings->count, &findings->capacity, sizeof *at);
    if (at == NULL)
        return NULL;
    findings->at = at;
    at[findings->count] = (hr_finding){.rule = rule, .device = HR_NONE};
    return &at[findings->count++];
}

hr_status hr_repair_add(hr_repair *repair, uint32_t event)
{
    uint32_t *events = grown(repair->events, repair->count, &repair->capacity, sizeof *events);
    if (events == NULL)
        return HR_E_HOST_MEMORY;
    repair->events = events;
    events[repair->count++] = event;
    return HR_OK;
}

/* The call that an event is about: itself, or the one that submitted the work. */
static const hr_event *call_of(const hr_trace *trace, const hr_event *event)
{
    if (event->kind != HR_EVENT_CALL && event->peer != HR_NONE)
        return &trace->events[event->peer];
    return event;
}

hr_status hr_finding_count(hr_finding *finding, const hr_trace *trace, uint32_t event, int64_t blocked_ns)
{
    const hr_event *work = &trace->events[event];
    const hr_event *call = call_of(trace, work);
    uint32_t name = call->kind == HR_EVENT_CALL ? call->name : HR_NONE;
    finding->count++;
    finding->bytes += work->bytes;
    finding->blocked_ns += blocked_ns;
    for (uint32_t i = 0; i < finding->where_count; i++) {
        hr_where *place = &finding->where[i];
        if (place->name == name && place->thread == call->thread && place->stream == work->stream) {
            place->count++;
            place->bytes += work->bytes;
            place->blocked_ns += blocked_ns;
            return HR_OK;
        }
    }
    hr_where *where = realloc(finding->where, (finding->where_count + 1) * sizeof *where);
    if (where == NULL)
        return HR_E_HOST_MEMORY;
    finding->where = where;
    where[finding->where_count++] =
        (hr_where){name, call->thread, work->stream, 1, work->bytes, call->begin_ns, blocked_ns};
    return HR_OK;
}

static int by_cost(const void *left, const void *right)
{
    const hr_where *a = left;
    const hr_where *b = right;
    if (a->blocked_ns != b->blocked_ns)
        return a->blocked_ns < b->blocked_ns ? 1 : -1;
    return (a->count < b->count) - (a->count > b->count);
}

static int by_index(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Ascending, each once. */
static uint32_t sort_unique(uint32_t *events, uint32_t count)
{
    if (count == 0)
        return 0;
    qsort(events, count, sizeof *events, by_index);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (events[i] != events[kept - 1])
            events[kept++] = events[i];
    }
    return kept;
}

void hr_finding_finish(hr_finding *finding)
{
    if (finding->where_count > 1)
        qsort(finding->where, finding->where_count, sizeof *finding->where, by_cost);
    finding->evidence_count = sort_unique(finding->evidence, finding->evidence_count);
    finding->repair.count = sort_unique(finding->repair.events, finding->repair.count);
}
