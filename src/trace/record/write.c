/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/record/write.h"

#include "trace/record/store.h"
#include "trace/record/work.h"

#include <headrace/version.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct json_file {
    FILE *out;
    uint64_t origin_ns;
    bool first;
    /* Calls with addresses, by correlation: copies are told where they went by their call. */
    const hr_call_record **addressed;
    size_t addressed_count;
} json_file;

/* Names are C++ symbols and the like: quotation marks and control characters are rare, and escaped all the
 * same. */
static void text(FILE *out, const char *value)
{
    fputc('"', out);
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if ((unsigned char)*at < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*at);
        else
            fputc(*at, out);
    }
    fputc('"', out);
}

static void next(json_file *writer)
{
    fputs(writer->first ? "\n" : ",\n", writer->out);
    writer->first = false;
}

/* Microseconds with three decimals, exact: the nanoseconds are whole. */
static void span(json_file *writer, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t at = begin_ns - writer->origin_ns, length = end_ns > begin_ns ? end_ns - begin_ns : 0;
    fprintf(writer->out, ",\"ts\":%" PRIu64 ".%03" PRIu64 ",\"dur\":%" PRIu64 ".%03" PRIu64, at / 1000,
            at % 1000, length / 1000, length % 1000);
}

static int by_correlation(const void *left, const void *right)
{
    const hr_call_record *a = *(const hr_call_record *const *)left,
                         *b = *(const hr_call_record *const *)right;
    return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

static void survey(json_file *writer)
{
    uint64_t origin = UINT64_MAX;
    size_t addressed = 0;
    for (hr_call_chunk *chunk = hr_store_calls(); chunk != NULL; chunk = chunk->next) {
        unsigned count = atomic_load_explicit(&chunk->count, memory_order_acquire);
        for (unsigned i = 0; i < count; i++) {
            origin = chunk->at[i].begin_ns < origin ? chunk->at[i].begin_ns : origin;
            addressed += chunk->at[i].source_address != 0;
        }
    }
    for (hr_work_chunk *chunk = hr_store_works(); chunk != NULL; chunk = chunk->next) {
        for (unsigned i = 0; i < chunk->count; i++)
            origin = chunk->at[i].begin_ns < origin ? chunk->at[i].begin_ns : origin;
    }
    writer->origin_ns = origin;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression) */
    writer->addressed = malloc((addressed + 1) * sizeof *writer->addressed);
    if (writer->addressed == NULL)
        return; /* the trace loses the addresses, not itself */
    for (hr_call_chunk *chunk = hr_store_calls(); chunk != NULL; chunk = chunk->next) {
        unsigned count = atomic_load_explicit(&chunk->count, memory_order_acquire);
        for (unsigned i = 0; i < count && writer->addressed_count < addressed; i++) {
            if (chunk->at[i].source_address != 0)
                writer->addressed[writer->addressed_count++] = &chunk->at[i];
        }
    }
    /* NOLINTNEXTLINE(bugprone-sizeof-expression) */
    qsort(writer->addressed, writer->addressed_count, sizeof *writer->addressed, by_correlation);
}

static const hr_call_record *call_of(const json_file *writer, uint64_t correlation)
{
    const hr_call_record key = {.correlation = correlation}, *wanted = &key;
    if (writer->addressed_count == 0)
        return NULL;
    const hr_call_record *const *found = bsearch(&wanted, writer->addressed, writer->addressed_count,
                                                 /* NOLINTNEXTLINE(bugprone-sizeof-expression) */
                                                 sizeof *writer->addressed, by_correlation);
    return found != NULL ? *found : NULL;
}

static void write_call(json_file *writer, pid_t process, pid_t thread, const hr_call_record *call)
{
    next(writer);
    fprintf(writer->out,
            "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", call->driver ? "cuda_driver" : "cuda_runtime");
    text(writer->out, call->name);
    fprintf(writer->out, ",\"pid\":%d,\"tid\":%d", (int)process, (int)thread);
    span(writer, call->begin_ns, call->end_ns);
    fprintf(writer->out, ",\"args\":{\"correlation\":%" PRIu64, call->correlation);
    if (call->has_stream)
        fprintf(writer->out, ",\"device\":%" PRIu32 ",\"context\":%" PRIu32 ",\"stream\":%" PRIu32,
                call->device, call->context, call->stream);
    if (call->object != 0)
        fprintf(writer->out, ",\"event_id\":%" PRIu64, call->object);
    if (call->bytes != 0)
        fprintf(writer->out, ",\"bytes\":%" PRIu64, call->bytes);
    fputs("}}", writer->out);
}

static const char *memory_name(uint8_t kind)
{
    static const char *const names[] = {"Unknown", "Pageable", "Pinned", "Device", "Array", "Managed"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}

static const char *copy_name(uint8_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return "HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return "DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "PtoP";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "HtoH";
    default:
        return "DtoD";
    }
}

static void write_work(json_file *writer, const hr_work_record *work)
{
    const char *category = work->kind == CUPTI_ACTIVITY_KIND_MEMCPY   ? "gpu_memcpy"
                           : work->kind == CUPTI_ACTIVITY_KIND_MEMSET ? "gpu_memset"
                                                                      : "kernel";
    next(writer);
    fprintf(writer->out, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category);
    if (work->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        fprintf(writer->out, "\"Memcpy %s (%s -> %s)\"", copy_name(work->copy_kind),
                memory_name(work->source), memory_name(work->sink));
    else if (work->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        fprintf(writer->out, "\"Memset (%s)\"", memory_name(work->sink));
    else
        text(writer->out, work->name);
    fprintf(writer->out, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, work->device, work->stream);
    span(writer, work->begin_ns, work->end_ns);
    fprintf(writer->out,
            ",\"args\":{\"device\":%" PRIu32 ",\"context\":%" PRIu32 ",\"stream\":%" PRIu32
            ",\"correlation\":%" PRIu32,
            work->device, work->context, work->stream, work->correlation);
    if (work->bytes != 0)
        fprintf(writer->out, ",\"bytes\":%" PRIu64, work->bytes);
    const hr_call_record *call =
        work->kind == CUPTI_ACTIVITY_KIND_MEMCPY ? call_of(writer, work->correlation) : NULL;
    if (call != NULL)
        fprintf(writer->out, ",\"source_address\":%" PRIu64 ",\"sink_address\":%" PRIu64,
                call->source_address, call->sink_address);
    fputs("}}", writer->out);
}

static void write_names(json_file *writer)
{
    char command[256] = "";
    FILE *comm = fopen("/proc/self/comm", "r");
    if (comm != NULL) {
        if (fgets(command, sizeof command, comm) != NULL)
            command[strcspn(command, "\n")] = '\0';
        fclose(comm);
    }
    next(writer);
    fprintf(writer->out,
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":", (int)getpid());
    text(writer->out, command);
    fputs("}}", writer->out);
    const hr_work_facts *facts = hr_work_get_facts();
    for (uint32_t i = 0; i < facts->device_count; i++) {
        next(writer);
        fprintf(writer->out,
                "{\"ph\":\"M\",\"name\":\"device_name\",\"pid\":%" PRIu32 ",\"args\":{\"device\":%" PRIu32
                ",\"name\":",
                facts->devices[i].device, facts->devices[i].device);
        text(writer->out, facts->devices[i].name);
        fputs("}}", writer->out);
    }
}

/* Behind the work: a reader knows the streams by then. */
static void write_stream_flags(json_file *writer)
{
    const hr_work_facts *facts = hr_work_get_facts();
    for (uint32_t i = 0; i < facts->stream_count; i++) {
        next(writer);
        fprintf(writer->out,
                "{\"ph\":\"M\",\"name\":\"stream_flag\",\"pid\":0,\"args\":{\"context\":%" PRIu32
                ",\"stream\":%" PRIu32 ",\"kind\":\"%s\"}}",
                facts->streams[i].context, facts->streams[i].stream, facts->streams[i].flag);
    }
}

static void write_events(json_file *writer)
{
    for (hr_call_chunk *chunk = hr_store_calls(); chunk != NULL; chunk = chunk->next) {
        unsigned count = atomic_load_explicit(&chunk->count, memory_order_acquire);
        for (unsigned i = 0; i < count; i++)
            write_call(writer, getpid(), chunk->thread, &chunk->at[i]);
    }
    for (hr_work_chunk *chunk = hr_store_works(); chunk != NULL; chunk = chunk->next) {
        for (unsigned i = 0; i < chunk->count; i++)
            write_work(writer, &chunk->at[i]);
    }
}

/* Is PyTorch in this process? Then fixes are told in its words. */
static bool has_pytorch(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[1024];
    bool found = false;
    while (!found && maps != NULL && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, "/libtorch") != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* Then every launch waits for its kernel, and the trace does not show the program as it is without. */
static bool launches_wait(void)
{
    const char *set = getenv("CUDA_LAUNCH_BLOCKING");
    return set != NULL && *set != '\0' && strcmp(set, "0") != 0;
}

bool hr_record_write(const char *path)
{
    size_t length = strlen(path) + 8;
    char *beside = malloc(length);
    if (beside == NULL)
        return false;
    snprintf(beside, length, "%s.part", path);
    json_file writer = {.out = fopen(beside, "we"), .first = true};
    bool done = false;
    if (writer.out != NULL) {
        survey(&writer);
        fprintf(writer.out,
                "{\"headrace\":\"%s\",\"recorder\":\"cupti\",%s%s\"lost\":%" PRIu64
                ",\"displayTimeUnit\":\"ns\",\"traceEvents\":[",
                HR_VERSION_STRING, has_pytorch() ? "\"pytorch\":true," : "",
                launches_wait() ? "\"launch_blocking\":true," : "",
                hr_store_lost() + hr_work_get_facts()->dropped);
        write_names(&writer);
        write_events(&writer);
        write_stream_flags(&writer);
        fputs("\n]}\n", writer.out);
        done = ferror(writer.out) == 0;
        done = fclose(writer.out) == 0 && done && rename(beside, path) == 0;
        if (!done)
            unlink(beside);
    }
    free(writer.addressed);
    free(beside);
    return done;
}
