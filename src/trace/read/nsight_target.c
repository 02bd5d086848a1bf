/* SPDX-License-Identifier: Apache-2.0 */
/* What an Nsight Systems export says about the machine: enumerations, GPUs, streams, names. */
#include "trace/read/nsight.h"

#include "trace/read/words.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t number(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text != NULL ? text : "";
}

static bool memory_row(hr_nsight *from, sqlite3_stmt *row)
{
    uint64_t id = number(row, 0);
    const char *name = text_of(row, 1);
    if (id < HR_NSIGHT_ENUM)
        from->memory[id] = (uint8_t)hr_words_memory(name, strlen(name));
    return true;
}

static bool direction_row(hr_nsight *from, sqlite3_stmt *row)
{
    uint64_t id = number(row, 0);
    const char *label = text_of(row, 2)[0] != '\0' ? text_of(row, 2) : text_of(row, 1);
    if (id >= HR_NSIGHT_ENUM)
        return true;
    hr_event event = {0};
    hr_words_copy(label, strlen(label), &event);
    bool unified = strstr(text_of(row, 1), "UVM") != NULL || strstr(label, "nified") != NULL;
    if (unified && event.direction != HR_DIRECTION_UNKNOWN)
        event.direction =
            event.direction == HR_DIRECTION_D2H ? HR_DIRECTION_MIGRATE_D2H : HR_DIRECTION_MIGRATE_H2D;
    from->direction[id] = event.direction;
    return true;
}

hr_status hr_nsight_enums(hr_nsight *from, hr_error *error)
{
    /* The numbers of exports that are too old to bring their own tables. */
    static const uint8_t memory[] = {HR_MEMORY_PAGEABLE, HR_MEMORY_PINNED, HR_MEMORY_DEVICE, HR_MEMORY_ARRAY,
                                     HR_MEMORY_MANAGED,  HR_MEMORY_DEVICE, HR_MEMORY_MANAGED};
    static const uint8_t direction[] = {
        HR_DIRECTION_UNKNOWN,     HR_DIRECTION_H2D,        HR_DIRECTION_D2H,  HR_DIRECTION_H2D,
        HR_DIRECTION_D2H,         HR_DIRECTION_D2D,        HR_DIRECTION_D2D,  HR_DIRECTION_D2D,
        HR_DIRECTION_D2D,         HR_DIRECTION_H2H,        HR_DIRECTION_PEER, HR_DIRECTION_MIGRATE_H2D,
        HR_DIRECTION_MIGRATE_D2H, HR_DIRECTION_MIGRATE_H2D};
    static const char *const columns[] = {"id", "name", "label"};
    memcpy(from->memory, memory, sizeof memory);
    memcpy(from->direction, direction, sizeof direction);
    hr_status status = HR_OK;
    if (hr_nsight_has_table(from, "ENUM_CUDA_MEM_KIND"))
        status = hr_nsight_rows(from, "ENUM_CUDA_MEM_KIND", columns, COUNT_OF(columns), memory_row, error);
    if (status == HR_OK && hr_nsight_has_table(from, "ENUM_CUDA_MEMCPY_OPER"))
        status =
            hr_nsight_rows(from, "ENUM_CUDA_MEMCPY_OPER", columns, COUNT_OF(columns), direction_row, error);
    return status;
}

static bool gpu_row(hr_nsight *from, sqlite3_stmt *row)
{
    uint32_t device = hr_trace_device_of(from->trace, number(row, 0));
    const char *name = text_of(row, 1);
    if (device == HR_NONE)
        return false;
    hr_trace_device *known = &from->trace->devices[device];
    known->name = hr_trace_string(from->trace, name, strlen(name));
    known->multiprocessors = (uint32_t)number(row, 2);
    known->compute_major = (uint32_t)number(row, 3);
    known->compute_minor = (uint32_t)number(row, 4);
    return known->name != HR_NONE;
}

static bool map_row(hr_nsight *from, sqlite3_stmt *row)
{
    hr_nsight_map *map = realloc(from->map, (from->map_count + 1) * sizeof *map);
    if (map == NULL)
        return false;
    from->map = map;
    map[from->map_count++] = (hr_nsight_map){number(row, 0), number(row, 1), number(row, 2)};
    return true;
}

hr_status hr_nsight_devices(hr_nsight *from, hr_error *error)
{
    static const char *const gpus[] = {"id", "name", "smCount", "computeMajor", "computeMinor"};
    static const char *const map[] = {"pid", "cudaId", "gpuId"};
    hr_status status = HR_OK;
    if (hr_nsight_has_table(from, "TARGET_INFO_GPU"))
        status = hr_nsight_rows(from, "TARGET_INFO_GPU", gpus, COUNT_OF(gpus), gpu_row, error);
    if (status == HR_OK && hr_nsight_has_table(from, "TARGET_INFO_CUDA_DEVICE"))
        status = hr_nsight_rows(from, "TARGET_INFO_CUDA_DEVICE", map, COUNT_OF(map), map_row, error);
    return status;
}

/* Streams that did work and are meant by (process, context, stream). */
static void set_flag(hr_nsight *from, uint64_t pid, bool any_process, uint64_t context, bool any_context,
                     uint64_t id, hr_stream_flag flag)
{
    hr_trace *trace = from->trace;
    for (uint32_t i = 0; i < trace->stream_count; i++) {
        hr_trace_stream *stream = &trace->streams[i];
        bool same_process = any_process || stream->process == HR_NONE ||
                            trace->processes[stream->process].id == (pid & 0xFFFFFF);
        if (stream->id == id && same_process && (any_context || stream->context == context))
            stream->flag = flag;
    }
}

static bool stream_row(hr_nsight *from, sqlite3_stmt *row)
{
    static const hr_stream_flag flags[] = {HR_STREAM_FLAG_UNKNOWN, HR_STREAM_FLAG_BLOCKING,
                                           HR_STREAM_FLAG_NON_BLOCKING, HR_STREAM_FLAG_NULL};
    uint64_t flag = number(row, 3);
    if (flag < COUNT_OF(flags))
        set_flag(from, number(row, 1), sqlite3_column_type(row, 1) == SQLITE_NULL, number(row, 2),
                 sqlite3_column_type(row, 2) == SQLITE_NULL, number(row, 0), flags[flag]);
    return true;
}

static bool null_stream_row(hr_nsight *from, sqlite3_stmt *row)
{
    if (sqlite3_column_type(row, 0) != SQLITE_NULL)
        set_flag(from, number(row, 1), sqlite3_column_type(row, 1) == SQLITE_NULL, number(row, 2),
                 sqlite3_column_type(row, 2) == SQLITE_NULL, number(row, 0), HR_STREAM_FLAG_NULL);
    return true;
}

hr_status hr_nsight_streams(hr_nsight *from, hr_error *error)
{
    static const char *const streams[] = {"streamId", "processId", "contextId", "flag"};
    static const char *const null_streams[] = {"streamId", "processId", "contextId"};
    static const char *const contexts[] = {"nullStreamId", "processId", "contextId"};
    static const struct {
        const char *table;
        const char *const *columns;
        size_t count;
        hr_nsight_row row;
    } sources[] = {
        {"TARGET_INFO_CUDA_STREAM", streams, COUNT_OF(streams), stream_row},
        {"TARGET_INFO_CUDA_NULL_STREAM", null_streams, COUNT_OF(null_streams), null_stream_row},
        {"TARGET_INFO_CUDA_CONTEXT_INFO", contexts, COUNT_OF(contexts), null_stream_row},
    };
    hr_status status = HR_OK;
    for (size_t i = 0; i < COUNT_OF(sources) && status == HR_OK; i++) {
        if (hr_nsight_has_table(from, sources[i].table))
            status = hr_nsight_rows(from, sources[i].table, sources[i].columns, sources[i].count,
                                    sources[i].row, error);
    }
    return status;
}

/* Only those that did something here: an export lists every process of the machine. */
static bool process_row(hr_nsight *from, sqlite3_stmt *row)
{
    uint64_t pid = (number(row, 0) >> 24) & 0xFFFFFF;
    const char *name = text_of(row, 1);
    for (uint32_t i = 0; i < from->trace->process_count; i++) {
        hr_trace_process *process = &from->trace->processes[i];
        if (process->id != pid)
            continue;
        process->name = hr_trace_string(from->trace, name, strlen(name));
        return process->name != HR_NONE;
    }
    return true;
}

hr_status hr_nsight_names(hr_nsight *from, hr_error *error)
{
    static const char *const processes[] = {"globalPid", "name"};
    if (!hr_nsight_has_table(from, "PROCESSES"))
        return HR_OK;
    return hr_nsight_rows(from, "PROCESSES", processes, COUNT_OF(processes), process_row, error);
}
