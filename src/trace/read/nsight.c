/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite exports of Nsight Systems. The schema has grown for years: whole tables and single columns are
 * missing in old exports, and nothing but the file itself says which. So each table is asked for its columns,
 * what is missing reads as NULL, and enumerations come from the file's own ENUM tables where it has them.
 */
#include "trace/read/nsight.h"

#include "trace/read/read.h"
#include "trace/read/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hr_status sql_failed(const hr_nsight *from, const char *doing, hr_error *error)
{
    int code = sqlite3_errcode(from->db);
    hr_status status = code == SQLITE_NOMEM ? HR_E_HOST_MEMORY : code == SQLITE_IOERR ? HR_E_IO : HR_E_FORMAT;
    return hr_fail(error, status, "%s: %s: %s", from->trace->path, doing, sqlite3_errmsg(from->db));
}

static hr_status no_memory(const hr_nsight *from, hr_error *error)
{
    return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for its events", from->trace->path);
}

bool hr_nsight_has_table(hr_nsight *from, const char *table)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (sqlite3_prepare_v2(from->db,
                           "SELECT 1 FROM sqlite_master WHERE type IN ('table','view') AND name = ?", -1,
                           &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return found;
}

static bool has_column(hr_nsight *from, const char *table, const char *column)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (sqlite3_prepare_v2(from->db, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?", -1, &statement,
                           NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, column, -1, SQLITE_STATIC);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return found;
}

hr_status hr_nsight_select(hr_nsight *from, const char *table, const char *const *columns, size_t count,
                           sqlite3_stmt **statement, hr_error *error)
{
    char sql[1024] = "SELECT ";
    size_t at = strlen(sql);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(sql + at, sizeof sql - at, "%s%s%s%s", i != 0 ? ", " : "",
                               has_column(from, table, columns[i]) ? "\"" : "NULL",
                               has_column(from, table, columns[i]) ? columns[i] : "",
                               has_column(from, table, columns[i]) ? "\"" : "");
    snprintf(sql + at, sizeof sql - at, " FROM \"%s\"", table);
    if (sqlite3_prepare_v2(from->db, sql, -1, statement, NULL) != SQLITE_OK)
        return sql_failed(from, table, error);
    return HR_OK;
}

/* Is the row's begin a time, and its end one that is not before it, or not there at all: a call that the recorder saw no end of? */
static hr_status check_times(const hr_nsight *from, const char *table, sqlite3_stmt *row, uint64_t number,
                             hr_error *error)
{
    static const char *const names[] = {"start", "end"};
    for (int column = 0; column < 2; column++) {
        int type = sqlite3_column_type(row, column);
        if (type == SQLITE_INTEGER || (column == 1 && type == SQLITE_NULL))
            continue;
        const char *found = type == SQLITE_NULL ? "nothing" : (const char *)sqlite3_column_text(row, column);
        return hr_fail(error, HR_E_FORMAT,
                       "%s: %s, row %llu: \"%s\" is %.40s, and a whole number of nanoseconds is needed",
                       from->trace->path, table, (unsigned long long)number, names[column],
                       found != NULL ? found : "nothing");
    }
    int64_t begin = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    if (sqlite3_column_type(row, 1) == SQLITE_INTEGER && end < begin)
        return hr_fail(error, HR_E_FORMAT, "%s: %s, row %llu: ends at %lld, before it begins at %lld",
                       from->trace->path, table, (unsigned long long)number, (long long)end,
                       (long long)begin);
    return HR_OK;
}

hr_status hr_nsight_rows(hr_nsight *from, const char *table, const char *const *columns, size_t count,
                         hr_nsight_row row, hr_error *error)
{
    return hr_nsight_timed_rows(from, table, columns, count, false, row, error);
}

hr_status hr_nsight_timed_rows(hr_nsight *from, const char *table, const char *const *columns, size_t count,
                               bool timed, hr_nsight_row row, hr_error *error)
{
    sqlite3_stmt *statement = NULL;
    hr_status status = hr_nsight_select(from, table, columns, count, &statement, error);
    for (uint64_t number = 1; status == HR_OK; number++) {
        int code = sqlite3_step(statement);
        if (code == SQLITE_DONE)
            break;
        if (code != SQLITE_ROW)
            status = sql_failed(from, table, error);
        else if (timed)
            status = check_times(from, table, statement, number, error);
        if (status == HR_OK && !row(from, statement))
            status = no_memory(from, error);
    }
    sqlite3_finalize(statement);
    return status;
}

static uint64_t number(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

static bool is_null(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL;
}

/* Strings are looked up once each: an export may hold far more than its GPU events use. */
static uint32_t string_of(hr_nsight *from, sqlite3_stmt *statement, int column)
{
    if (sqlite3_column_type(statement, column) == SQLITE_TEXT) {
        const char *text = (const char *)sqlite3_column_text(statement, column);
        return text != NULL ? hr_trace_string(from->trace, text, strlen(text)) : HR_NONE;
    }
    uint64_t id = number(statement, column);
    if (is_null(statement, column) || from->find_string == NULL)
        return hr_trace_string(from->trace, "", 0);
    if (id < from->known_count && from->known[id] != HR_NONE)
        return from->known[id];
    sqlite3_reset(from->find_string);
    sqlite3_bind_int64(from->find_string, 1, (sqlite3_int64)id);
    const char *text = "";
    if (sqlite3_step(from->find_string) == SQLITE_ROW && sqlite3_column_text(from->find_string, 0) != NULL)
        text = (const char *)sqlite3_column_text(from->find_string, 0);
    uint32_t string = hr_trace_string(from->trace, text, strlen(text));
    enum { CACHED_IDS = 16 * 1024 * 1024 };
    if (id >= from->known_count && id < CACHED_IDS) {
        size_t wanted = (size_t)id * 2 + 1024;
        uint32_t *known = realloc(from->known, wanted * sizeof *known);
        if (known == NULL)
            return HR_NONE;
        memset(known + from->known_count, 0xFF, (wanted - from->known_count) * sizeof *known);
        from->known = known;
        from->known_count = wanted;
    }
    if (id < from->known_count)
        from->known[id] = string;
    return string;
}

/* globalTid and globalPid: hardware and machine in the upper 16 bits, 24 bits of process, 24 of thread. */
static uint32_t process_of(hr_nsight *from, uint64_t global)
{
    return hr_trace_process_of(from->trace, (global >> 24) & 0xFFFFFF);
}

static uint32_t device_of(hr_nsight *from, uint32_t process, uint64_t cuda_id)
{
    uint64_t pid = process < from->trace->process_count ? from->trace->processes[process].id : 0;
    for (size_t i = 0; i < from->map_count; i++) {
        if (from->map[i].pid == pid && from->map[i].cuda_id == cuda_id)
            return hr_trace_device_of(from->trace, from->map[i].gpu_id);
    }
    return hr_trace_device_of(from->trace, cuda_id);
}

enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, COMMON };
#define COMMON_COLUMNS "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"

/* What all device work has. Null: out of memory. */
static hr_event *add_work(hr_nsight *from, sqlite3_stmt *row, hr_event_kind kind)
{
    uint32_t process = is_null(row, PROCESS) ? HR_NONE : process_of(from, number(row, PROCESS));
    uint32_t device = device_of(from, process, number(row, DEVICE));
    uint32_t stream =
        hr_trace_stream_of(from->trace, process, device, number(row, CONTEXT), number(row, STREAM));
    hr_event *event = device != HR_NONE && stream != HR_NONE ? hr_trace_add(from->trace) : NULL;
    if (event == NULL)
        return NULL;
    event->kind = (uint8_t)kind;
    event->begin_ns = (int64_t)number(row, START);
    event->end_ns = (int64_t)number(row, END);
    event->process = process;
    event->device = device;
    event->stream = stream;
    event->correlation = number(row, CORRELATION);
    return event;
}

static bool kernel_row(hr_nsight *from, sqlite3_stmt *row)
{
    int column = is_null(row, COMMON) ? COMMON + 1 : COMMON;
    uint32_t name = string_of(from, row, column);
    hr_event *event = name != HR_NONE ? add_work(from, row, HR_EVENT_KERNEL) : NULL;
    if (event != NULL)
        event->name = name;
    return event != NULL;
}

static bool graph_row(hr_nsight *from, sqlite3_stmt *row)
{
    uint32_t name = hr_trace_string(from->trace, "CUDA graph", 10);
    hr_event *event = name != HR_NONE ? add_work(from, row, HR_EVENT_KERNEL) : NULL;
    if (event != NULL)
        event->name = name;
    return event != NULL;
}

static const char *copy_name(const hr_event *event)
{
    switch (event->direction) {
    case HR_DIRECTION_H2D:
        return "Memcpy HtoD";
    case HR_DIRECTION_D2H:
        return "Memcpy DtoH";
    case HR_DIRECTION_D2D:
        return "Memcpy DtoD";
    case HR_DIRECTION_PEER:
        return "Memcpy PtoP";
    case HR_DIRECTION_H2H:
        return "Memcpy HtoH";
    case HR_DIRECTION_MIGRATE_H2D:
        return "Unified memory HtoD";
    case HR_DIRECTION_MIGRATE_D2H:
        return "Unified memory DtoH";
    default:
        return "Memcpy";
    }
}

static bool copy_row(hr_nsight *from, sqlite3_stmt *row)
{
    enum { BYTES = COMMON, KIND, SOURCE, SINK };
    hr_event *event = add_work(from, row, HR_EVENT_COPY);
    if (event == NULL)
        return false;
    uint64_t kind = number(row, KIND);
    uint64_t source = number(row, SOURCE);
    uint64_t sink = number(row, SINK);
    event->bytes = number(row, BYTES);
    event->direction = kind < HR_NSIGHT_ENUM ? from->direction[kind] : 0;
    event->source = !is_null(row, SOURCE) && source < HR_NSIGHT_ENUM ? from->memory[source] : 0;
    event->sink = !is_null(row, SINK) && sink < HR_NSIGHT_ENUM ? from->memory[sink] : 0;
    const char *name = copy_name(event);
    event->name = hr_trace_string(from->trace, name, strlen(name));
    return event->name != HR_NONE;
}

static bool fill_row(hr_nsight *from, sqlite3_stmt *row)
{
    hr_event *event = add_work(from, row, HR_EVENT_FILL);
    if (event == NULL)
        return false;
    event->bytes = number(row, COMMON);
    event->name = hr_trace_string(from->trace, "Memset", 6);
    return event->name != HR_NONE;
}

/* "cudaMemcpyAsync_v3020" is what the program calls cudaMemcpyAsync; "_v2" of the driver's names belongs to
 * them. */
static uint32_t call_name(hr_nsight *from, uint32_t name)
{
    if (name == HR_NONE)
        return HR_NONE;
    const char *text = from->trace->strings + from->trace->string_at[name];
    size_t length = strlen(text);
    size_t digits = length;
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9')
        digits--;
    if (length - digits < 4 || digits < 2 || text[digits - 1] != 'v' || text[digits - 2] != '_')
        return name;
    char plain[128];
    if (digits - 2 >= sizeof plain)
        return name;
    memcpy(plain, text, digits - 2);
    return hr_trace_string(from->trace, plain, digits - 2);
}

static bool call_row(hr_nsight *from, sqlite3_stmt *row)
{
    enum { CALL_START, CALL_END, CALL_THREAD, CALL_CORRELATION, CALL_NAME };
    hr_trace *trace = from->trace;
    uint64_t global = number(row, CALL_THREAD);
    uint32_t name = call_name(from, string_of(from, row, CALL_NAME));
    uint32_t process = process_of(from, global);
    uint32_t thread = hr_trace_thread_of(trace, process, global & 0xFFFFFF);
    if (name == HR_NONE || process == HR_NONE || thread == HR_NONE)
        return false;
    const char *text = trace->strings + trace->string_at[name];
    hr_call call;
    if (!hr_call_from_name(text, strlen(text), &call))
        return true;
    hr_event *event = hr_trace_add(trace);
    if (event == NULL)
        return false;
    event->kind = HR_EVENT_CALL;
    event->call = (uint8_t)call;
    event->begin_ns = (int64_t)number(row, CALL_START);
    event->end_ns = (int64_t)number(row, CALL_END);
    event->name = name;
    event->process = process;
    event->thread = thread;
    event->correlation = number(row, CALL_CORRELATION);
    return true;
}

static bool sync_row(hr_nsight *from, sqlite3_stmt *row)
{
    /* A wait for a whole context carries the stream 2^32 − 1. */
    bool whole = is_null(row, STREAM) || (uint32_t)number(row, STREAM) == UINT32_MAX;
    uint64_t id = is_null(row, COMMON) ? 0 : number(row, COMMON);
    hr_event *event = add_work(from, row, HR_EVENT_SYNC);
    if (event == NULL)
        return false;
    if (whole)
        event->stream = HR_NONE;
    event->object = (uint32_t)id == UINT32_MAX ? 0 : id;
    event->name = hr_trace_string(from->trace, "sync", 4);
    return event->name != HR_NONE;
}

/* An event's record has one time, and its device may be 0 although it lies on another: the stream says it. */
static bool record_row(hr_nsight *from, sqlite3_stmt *row)
{
    uint32_t first = from->trace->event_count;
    if (!sync_row(from, row))
        return false;
    hr_event *event = &from->trace->events[first];
    /* The call's own record has the time; this one only has to be found by its number. */
    event->begin_ns = event->end_ns = INT64_MAX / 4;
    return true;
}

static bool range_row(hr_nsight *from, sqlite3_stmt *row)
{
    enum { RANGE_START, RANGE_END, RANGE_THREAD, RANGE_TEXT, RANGE_TEXT_ID };
    if (is_null(row, RANGE_END))
        return true;
    uint64_t global = number(row, RANGE_THREAD);
    uint32_t name = string_of(from, row, is_null(row, RANGE_TEXT) ? RANGE_TEXT_ID : RANGE_TEXT);
    uint32_t process = process_of(from, global);
    uint32_t thread = hr_trace_thread_of(from->trace, process, global & 0xFFFFFF);
    hr_event *event =
        name != HR_NONE && process != HR_NONE && thread != HR_NONE ? hr_trace_add(from->trace) : NULL;
    if (event == NULL)
        return false;
    event->kind = HR_EVENT_MARKER;
    event->begin_ns = (int64_t)number(row, RANGE_START);
    event->end_ns = (int64_t)number(row, RANGE_END);
    event->name = name;
    event->process = process;
    event->thread = thread;
    return true;
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const kernel_columns[] = {COMMON_COLUMNS, "demangledName", "shortName"};
static const char *const graph_columns[] = {COMMON_COLUMNS};
static const char *const copy_columns[] = {COMMON_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind"};
static const char *const fill_columns[] = {COMMON_COLUMNS, "bytes"};
static const char *const call_columns[] = {"start", "end", "globalTid", "correlationId", "nameId"};
static const char *const sync_columns[] = {COMMON_COLUMNS, "eventId"};
static const char *const record_columns[] = {"timestamp", "timestamp",     "deviceId",  "contextId",
                                             "streamId",  "correlationId", "globalPid", "eventId"};
static const char *const range_columns[] = {"start", "end", "globalTid", "text", "textId"};

/* Every release has written these; a file without them is not what it seems, and zeroes in their place would be judged. */
static const char *const work_needs[] = {"start", "end", "deviceId", "streamId", NULL};
static const char *const call_needs[] = {"start", "end", "globalTid", "nameId", NULL};

static const struct {
    const char *table;
    const char *const *columns;
    size_t count;
    hr_nsight_row row;
    const char *without; /* what cannot be said without it; null: nothing of weight */
    const char *const
        *needed; /* columns without which a row says nothing; null: none, its rows only add to others */
    bool work;
} tables[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", kernel_columns, COUNT_OF(kernel_columns), kernel_row, "kernels",
     work_needs, true},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", copy_columns, COUNT_OF(copy_columns), copy_row, "copies", work_needs,
     true},
    {"CUPTI_ACTIVITY_KIND_MEMSET", fill_columns, COUNT_OF(fill_columns), fill_row, NULL, work_needs, true},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_columns, COUNT_OF(graph_columns), graph_row, NULL, work_needs,
     true},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", call_columns, COUNT_OF(call_columns), call_row, "host calls", call_needs,
     false},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync_columns, COUNT_OF(sync_columns), sync_row, "waits", NULL,
     false},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT", record_columns, COUNT_OF(record_columns), record_row, NULL, NULL,
     false},
    {"NVTX_EVENTS", range_columns, COUNT_OF(range_columns), range_row, NULL, NULL, false},
};

static void note_missing(hr_trace *trace, const char *table, const char *what)
{
    size_t at = strlen(trace->missing);
    snprintf(trace->missing + at, sizeof trace->missing - at, "%sno table %s (%s)", at != 0 ? ", " : "",
             table, what);
}

static hr_status check_columns(hr_nsight *from, const char *table, const char *const *needed, hr_error *error)
{
    for (; *needed != NULL; needed++) {
        if (!has_column(from, table, *needed))
            return hr_fail(error, HR_E_FORMAT,
                           "%s: table %s has no column \"%s\", which every export of Nsight Systems has",
                           from->trace->path, table, *needed);
    }
    return HR_OK;
}

static hr_status read_tables(hr_nsight *from, hr_error *error)
{
    bool any = false;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        if (!hr_nsight_has_table(from, tables[i].table)) {
            if (tables[i].without != NULL)
                note_missing(from->trace, tables[i].table, tables[i].without);
            continue;
        }
        bool needs = tables[i].needed != NULL;
        hr_status status = needs ? check_columns(from, tables[i].table, tables[i].needed, error) : HR_OK;
        if (status == HR_OK)
            status = hr_nsight_timed_rows(from, tables[i].table, tables[i].columns, tables[i].count, needs,
                                          tables[i].row, error);
        if (status != HR_OK)
            return status;
        any |= tables[i].work;
    }
    if (!any)
        return hr_fail(
            error, HR_E_FORMAT,
            "%s: is an SQLite file without the tables of GPU work (CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, "
            "_MEMSET): record with `nsys profile --trace=cuda` and export to SQLite",
            from->trace->path);
    return HR_OK;
}

static hr_status open_strings(hr_nsight *from, hr_error *error)
{
    if (!hr_nsight_has_table(from, "StringIds")) {
        note_missing(from->trace, "StringIds", "names");
        return HR_OK;
    }
    if (sqlite3_prepare_v2(from->db, "SELECT value FROM StringIds WHERE id = ?", -1, &from->find_string,
                           NULL) != SQLITE_OK)
        return sql_failed(from, "StringIds", error);
    return HR_OK;
}

static hr_status read_all(hr_nsight *from, hr_error *error)
{
    /* A file from elsewhere may hold views and triggers; none of them may do anything. */
    sqlite3_db_config(from->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(from->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    from->trace->format = HR_FORMAT_NSIGHT;
    if (sqlite3_exec(from->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) != SQLITE_OK)
        return sql_failed(from, "cannot be read", error);
    hr_status status = open_strings(from, error);
    if (status == HR_OK)
        status = hr_nsight_enums(from, error);
    if (status == HR_OK)
        status = hr_nsight_devices(from, error);
    if (status == HR_OK)
        status = read_tables(from, error);
    if (status == HR_OK)
        status = hr_nsight_streams(from, error);
    if (status == HR_OK)
        status = hr_nsight_names(from, error);
    return status;
}

static hr_status read_and_close(hr_nsight *from, hr_error *error)
{
    hr_status status = read_all(from, error);
    sqlite3_finalize(from->find_string);
    sqlite3_close(from->db);
    free(from->known);
    free(from->map);
    return status;
}

hr_status hr_read_nsight(const char *path, hr_trace *trace, hr_error *error)
{
    hr_nsight from = {.trace = trace};
    if (sqlite3_open_v2(path, &from.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        hr_status status =
            from.db != NULL ? sql_failed(&from, "cannot be opened", error) : no_memory(&from, error);
        sqlite3_close(from.db);
        return status;
    }
    return read_and_close(&from, error);
}

hr_status hr_read_nsight_memory(const void *data, size_t bytes, const char *path, hr_trace *trace,
                                hr_error *error)
{
    (void)path;
    hr_nsight from = {.trace = trace};
    unsigned char *copy = sqlite3_malloc64(bytes != 0 ? bytes : 1);
    if (copy == NULL || sqlite3_open(":memory:", &from.db) != SQLITE_OK) {
        sqlite3_free(copy);
        sqlite3_close(from.db);
        return no_memory(&from, error);
    }
    if (bytes != 0)
        memcpy(copy, data, bytes);
    /* The database owns the copy from here on, also when it refuses it. */
    if (sqlite3_deserialize(from.db, "main", copy, (sqlite3_int64)bytes, (sqlite3_int64)bytes,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) {
        hr_status status = sql_failed(&from, "cannot be opened", error);
        sqlite3_close(from.db);
        return status;
    }
    return read_and_close(&from, error);
}
