/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/rule/support.h"

#include <stdio.h>
#include <stdlib.h>

hr_status hr_durations_add(hr_durations *list, int64_t ns)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        int64_t *larger = realloc(list->at, capacity * sizeof *larger);
        if (larger == NULL)
            return HR_E_HOST_MEMORY;
        list->at = larger;
        list->capacity = capacity;
    }
    list->at[list->count++] = ns;
    return HR_OK;
}

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int64_t hr_durations_percentile(hr_durations *list, double percent)
{
    if (list->count == 0)
        return 0;
    qsort(list->at, list->count, sizeof *list->at, ascending);
    return list->at[(size_t)((double)(list->count - 1) * percent / 100.0 + 0.5)];
}

int64_t hr_durations_sum(const hr_durations *list)
{
    int64_t sum = 0;
    for (size_t i = 0; i < list->count; i++)
        sum += list->at[i];
    return sum;
}

void hr_durations_free(hr_durations *list)
{
    free(list->at);
    *list = (hr_durations){0};
}

const char *hr_rule_time(int64_t ns, char text[24])
{
    double value = (double)ns;
    if (ns >= 1000 * HR_RULE_MS)
        snprintf(text, 24, "%.2f s", value / 1e9);
    else if (ns >= 10 * HR_RULE_MS)
        snprintf(text, 24, "%.0f ms", value / 1e6);
    else if (ns >= HR_RULE_MS)
        snprintf(text, 24, "%.1f ms", value / 1e6);
    else
        snprintf(text, 24, "%.0f µs", value / 1e3);
    return text;
}

const char *hr_rule_bytes(uint64_t bytes, char text[24])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000.0;
        unit++;
    }
    snprintf(text, 24, value < 10.0 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

hr_status hr_rule_take(hr_finding *finding, const hr_trace *trace, uint32_t event, int64_t blocked_ns)
{
    hr_status status = hr_repair_add(&finding->repair, event);
    return status != HR_OK ? status : hr_finding_count(finding, trace, event, blocked_ns);
}

hr_status hr_rule_show(hr_finding *finding, uint32_t event)
{
    /* Grows by doubling at powers of two, so that the list needs no capacity of its own. */
    uint32_t count = finding->evidence_count;
    if ((count & (count - 1)) == 0) {
        size_t room = count == 0 ? 1 : (size_t)count * 2;
        uint32_t *larger = realloc(finding->evidence, room * sizeof *larger);
        if (larger == NULL)
            return HR_E_HOST_MEMORY;
        finding->evidence = larger;
    }
    finding->evidence[finding->evidence_count++] = event;
    return HR_OK;
}

hr_status hr_rule_no_memory(const hr_trace *trace, hr_error *error)
{
    return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to judge %u events", trace->path,
                   trace->event_count);
}

uint32_t hr_rule_before_in_stream(const hr_trace *trace, uint32_t work)
{
    uint32_t stream = trace->events[work].stream;
    if (stream >= trace->stream_count)
        return HR_NONE;
    uint32_t low = trace->stream_work_at[stream];
    uint32_t high = trace->stream_work_at[stream + 1];
    uint32_t first = low;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trace->stream_work[middle] < work)
            low = middle + 1;
        else
            high = middle;
    }
    return low > first ? trace->stream_work[low - 1] : HR_NONE;
}

int64_t hr_rule_ready_ns(const hr_trace *trace, uint32_t work)
{
    const hr_event *event = &trace->events[work];
    int64_t ready = event->begin_ns;
    if (event->peer != HR_NONE) {
        const hr_event *call = &trace->events[event->peer];
        /* Work may begin before its call has returned. */
        ready = call->end_ns < event->begin_ns ? call->end_ns : event->begin_ns;
    }
    uint32_t before = hr_rule_before_in_stream(trace, work);
    if (before != HR_NONE && trace->events[before].end_ns > ready)
        ready = trace->events[before].end_ns;
    return ready < event->begin_ns ? ready : event->begin_ns;
}

hr_status hr_rule_busy(const hr_trace *trace, hr_intervals *busy)
{
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        hr_status status = hr_intervals_add(busy, event->begin_ns, event->end_ns);
        if (status != HR_OK)
            return status;
    }
    hr_intervals_normalise(busy);
    return HR_OK;
}

const char *hr_rule_lacks_calls(const hr_trace *trace)
{
    return trace->has.calls ? NULL : "the calls of the host threads";
}

const char *hr_rule_lacks_nothing(const hr_trace *trace)
{
    (void)trace;
    return NULL;
}
