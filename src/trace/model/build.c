/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a trace: names, threads, streams and events, each found again by hashing. */
#include "trace/model/build.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mixed(uint64_t hash)
{
    hash ^= hash >> 31;
    hash *= UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

static uint64_t hash_bytes(const char *text, size_t length)
{
    uint64_t hash = length * UINT64_C(0x9E3779B97F4A7C15);
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = mixed(hash ^ word);
        text += 8;
        length -= 8;
    }
    uint64_t rest = 0;
    memcpy(&rest, text, length);
    return mixed(hash ^ rest ^ UINT64_C(0x2545F4914F6CDD1D));
}

static uint64_t hash_numbers(uint64_t kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return mixed(mixed(mixed(mixed(kind + 1) ^ a) ^ b) ^ mixed(c ^ UINT64_C(0xA5A5A5A5)) ^ (d << 1));
}

/* Open addressing over (hash, value); the caller compares what the value stands for. */
static bool table_grow(hr_table *table)
{
    size_t slots = table->slots != 0 ? table->slots * 2 : 1024;
    hr_table_slot *at = calloc(slots, sizeof *at);
    if (at == NULL)
        return false;
    for (size_t i = 0; i < table->slots; i++) {
        if (table->at[i].value == 0)
            continue;
        size_t slot = table->at[i].hash & (slots - 1);
        while (at[slot].value != 0)
            slot = (slot + 1) & (slots - 1);
        at[slot] = table->at[i];
    }
    free(table->at);
    table->at = at;
    table->slots = slots;
    return true;
}

static bool table_add(hr_table *table, uint64_t hash, uint32_t value)
{
    if ((table->count + 1) * 2 > table->slots && !table_grow(table))
        return false;
    size_t slot = hash & (table->slots - 1);
    while (table->at[slot].value != 0)
        slot = (slot + 1) & (table->slots - 1);
    table->at[slot] = (hr_table_slot){hash, value + 1};
    table->count++;
    return true;
}

/* The next candidate with this hash, from *slot on; HR_NONE when there is none. */
static uint32_t table_next(const hr_table *table, uint64_t hash, size_t *slot)
{
    while (table->slots != 0 && table->at[*slot & (table->slots - 1)].value != 0) {
        const hr_table_slot *at = &table->at[(*slot)++ & (table->slots - 1)];
        if (at->hash == hash)
            return at->value - 1;
    }
    return HR_NONE;
}

hr_status hr_trace_new(const char *path, hr_trace **trace, hr_error *error)
{
    hr_trace *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->path = strdup(path);
        made->index = calloc(1, sizeof *made->index);
    }
    if (made == NULL || made->path == NULL || made->index == NULL) {
        hr_trace_free(&made);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to read it into", path);
    }
    *trace = made;
    return HR_OK;
}

void hr_trace_index_free(hr_trace *trace)
{
    if (trace->index == NULL)
        return;
    free(trace->index->strings.at);
    free(trace->index->things.at);
    free(trace->index);
    trace->index = NULL;
}

void hr_trace_free(hr_trace **trace)
{
    hr_trace *old = *trace;
    if (old == NULL)
        return;
    hr_trace_index_free(old);
    free(old->path);
    free(old->events);
    free(old->processes);
    free(old->threads);
    free(old->devices);
    free(old->streams);
    free(old->strings);
    free(old->string_at);
    free(old->work);
    free(old->calls);
    free(old->thread_calls);
    free(old->stream_work_at);
    free(old->stream_work);
    free(old);
    *trace = NULL;
}

static bool string_room(hr_trace *trace, size_t length)
{
    if (trace->strings_bytes + length + 1 > trace->strings_capacity) {
        size_t capacity = (trace->strings_capacity + length + 1) * 2 + 4096;
        char *strings = realloc(trace->strings, capacity);
        if (strings == NULL)
            return false;
        trace->strings = strings;
        trace->strings_capacity = capacity;
    }
    if (trace->string_count == trace->string_capacity) {
        uint32_t capacity = trace->string_capacity * 2 + 256;
        uint64_t *at = realloc(trace->string_at, capacity * sizeof *at);
        if (at == NULL)
            return false;
        trace->string_at = at;
        trace->string_capacity = capacity;
    }
    return true;
}

uint32_t hr_trace_string(hr_trace *trace, const char *text, size_t length)
{
    text = length != 0 ? text : ""; /* an empty text may come without a place */
    uint64_t hash = hash_bytes(text, length);
    hr_table *table = &trace->index->strings;
    size_t slot = hash;
    for (uint32_t i; (i = table_next(table, hash, &slot)) != HR_NONE;) {
        const char *known = trace->strings + trace->string_at[i];
        if (strncmp(known, text, length) == 0 && known[length] == '\0')
            return i;
    }
    if (trace->string_count >= HR_NONE - 1 || !string_room(trace, length) ||
        !table_add(table, hash, trace->string_count))
        return HR_NONE;
    char *copy = trace->strings + trace->strings_bytes;
    memcpy(copy, text, length);
    copy[length] = '\0';
    trace->string_at[trace->string_count] = trace->strings_bytes;
    trace->strings_bytes += length + 1;
    return trace->string_count++;
}

/* One more member at the end of a list that is small enough to grow one by one. Null: out of memory. */
static void *lengthened(void *list, uint32_t count, size_t member_bytes)
{
    if ((count & (count - 1)) != 0)
        return list;
    return realloc(list, (count != 0 ? (size_t)count * 2 : 1) * member_bytes);
}

uint32_t hr_trace_process_of(hr_trace *trace, uint64_t id)
{
    for (uint32_t i = trace->process_count; i-- > 0;) {
        if (trace->processes[i].id == id)
            return i;
    }
    hr_trace_process *list = lengthened(trace->processes, trace->process_count, sizeof *list);
    if (list == NULL)
        return HR_NONE;
    trace->processes = list;
    list[trace->process_count] = (hr_trace_process){id, HR_NONE};
    return trace->process_count++;
}

uint32_t hr_trace_thread_of(hr_trace *trace, uint32_t process, uint64_t id)
{
    uint64_t hash = hash_numbers(1, process, id, 0, 0);
    size_t slot = hash;
    for (uint32_t i; (i = table_next(&trace->index->things, hash, &slot)) != HR_NONE;) {
        if (i < trace->thread_count && trace->threads[i].process == process && trace->threads[i].id == id)
            return i;
    }
    hr_trace_thread *list = lengthened(trace->threads, trace->thread_count, sizeof *list);
    if (list == NULL)
        return HR_NONE;
    trace->threads = list;
    if (!table_add(&trace->index->things, hash, trace->thread_count))
        return HR_NONE;
    list[trace->thread_count] = (hr_trace_thread){process, id, HR_NONE};
    return trace->thread_count++;
}

uint32_t hr_trace_device_of(hr_trace *trace, uint64_t id)
{
    for (uint32_t i = 0; i < trace->device_count; i++) {
        if (trace->devices[i].id == id)
            return i;
    }
    hr_trace_device *list = lengthened(trace->devices, trace->device_count, sizeof *list);
    if (list == NULL)
        return HR_NONE;
    trace->devices = list;
    list[trace->device_count] = (hr_trace_device){.id = id, .name = HR_NONE};
    return trace->device_count++;
}

uint32_t hr_trace_stream_of(hr_trace *trace, uint32_t process, uint32_t device, uint64_t context, uint64_t id)
{
    uint64_t hash = hash_numbers(2, process, device, context, id);
    size_t slot = hash;
    for (uint32_t i; (i = table_next(&trace->index->things, hash, &slot)) != HR_NONE;) {
        if (i >= trace->stream_count)
            continue;
        const hr_trace_stream *known = &trace->streams[i];
        if (known->process == process && known->device == device && known->context == context &&
            known->id == id)
            return i;
    }
    hr_trace_stream *list = lengthened(trace->streams, trace->stream_count, sizeof *list);
    if (list == NULL)
        return HR_NONE;
    trace->streams = list;
    if (!table_add(&trace->index->things, hash, trace->stream_count))
        return HR_NONE;
    list[trace->stream_count] = (hr_trace_stream){process, device, context, id, HR_STREAM_FLAG_UNKNOWN};
    return trace->stream_count++;
}

hr_event *hr_trace_add(hr_trace *trace)
{
    if (trace->event_count >= HR_NONE - 1)
        return NULL;
    if (trace->event_count == trace->event_capacity) {
        uint64_t wanted = (uint64_t)trace->event_capacity + trace->event_capacity / 2 + 1024;
        uint32_t capacity = wanted < HR_NONE ? (uint32_t)wanted : HR_NONE - 1;
        hr_event *events = realloc(trace->events, capacity * sizeof *events);
        if (events == NULL)
            return NULL;
        trace->events = events;
        trace->event_capacity = capacity;
    }
    hr_event *event = &trace->events[trace->event_count++];
    *event = (hr_event){.name = HR_NONE,
                        .process = HR_NONE,
                        .thread = HR_NONE,
                        .device = HR_NONE,
                        .stream = HR_NONE,
                        .peer = HR_NONE,
                        .next = HR_NONE};
    return event;
}

const char *hr_trace_format_name(hr_trace_format format)
{
    switch (format) {
    case HR_FORMAT_KINETO:
        return "kineto";
    case HR_FORMAT_NSIGHT:
        return "nsight";
    case HR_FORMAT_HEADRACE:
        return "headrace";
    case HR_FORMAT_RECORDED:
        return "cupti";
    case HR_FORMAT_CHROME:
    case HR_FORMAT_UNKNOWN:
        break;
    }
    return "chrome";
}
