/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A span log as Chrome JSON. Device work carries the categories and arguments that GPU profilers write
 * ("gpu_memcpy", "kernel", device, stream, bytes), so that every reader of those understands a Headrace run
 * too. Process i + 1 is device i; process 0 is the host, with one thread for each lane of each stage.
 */
#include "trace/render/span_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEVICES = 64, LANES = 100, MAX_ROWS = 4096 };

static const uint32_t host = UINT32_MAX; /* stands for the process in rows */

typedef struct chrome_file {
    FILE *to;
    const char *devices[MAX_DEVICES];
    uint32_t device_count;
    uint64_t start_ns;
    bool comma;
    struct chrome_row {
        uint32_t process, thread;
        hr_stage stage;
        uint32_t lane;
    } rows[MAX_ROWS];
    size_t row_count;
} chrome_file;

/* ASCII only comes out; a byte that is no printable ASCII becomes '?'. Names of ops and devices are such. */
static void put_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', to);
        fputc(*text >= 0x20 && *text < 0x7F ? *text : '?', to);
    }
    fputc('"', to);
}

static void put_us(FILE *to, uint64_t ns)
{
    fprintf(to, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static uint32_t process_of(chrome_file *file, const hr_span *span)
{
    if (!span->device)
        return host;
    for (uint32_t i = 0; i < file->device_count; i++) {
        if (!strcmp(file->devices[i], span->device))
            return i;
    }
    if (file->device_count == MAX_DEVICES)
        return MAX_DEVICES - 1;
    file->devices[file->device_count] = span->device;
    return file->device_count++;
}

static uint32_t thread_of(const hr_span *span)
{
    if (!span->device)
        return LANES * ((uint32_t)span->stage + 1) + span->lane % LANES;
    uint32_t stream = span->stage == HR_STAGE_H2D ? 1 : span->stage == HR_STAGE_D2H ? 3 : 2;
    return stream + 10 * span->lane;
}

static long pid_of(uint32_t process)
{
    return process == host ? (long)getpid() : (long)process;
}

/* Remembers the rows that occur, so that each gets its name once. */
static void note_row(chrome_file *file, uint32_t process, uint32_t thread, const hr_span *span)
{
    for (size_t i = 0; i < file->row_count; i++) {
        if (file->rows[i].process == process && file->rows[i].thread == thread)
            return;
    }
    if (file->row_count < MAX_ROWS)
        file->rows[file->row_count++] = (struct chrome_row){process, thread, span->stage, span->lane};
}

static void begin_event(chrome_file *file)
{
    fputs(file->comma ? ",\n" : "\n", file->to);
    file->comma = true;
}

static const char *category_of(const hr_span *span)
{
    if (span->device && span->stage == HR_STAGE_COMPUTE)
        return "kernel";
    if (span->device && (span->stage == HR_STAGE_H2D || span->stage == HR_STAGE_D2H))
        return "gpu_memcpy";
    return "headrace_stage";
}

static const char *name_of(const hr_span *span)
{
    if (span->device && span->stage == HR_STAGE_H2D)
        return "Memcpy HtoD (Pinned -> Device)";
    if (span->device && span->stage == HR_STAGE_D2H)
        return "Memcpy DtoH (Device -> Pinned)";
    if (span->stage == HR_STAGE_COMPUTE && span->name)
        return span->name;
    return hr_stage_name(span->stage);
}

static void put_span(chrome_file *file, const hr_span *span)
{
    uint32_t process = process_of(file, span);
    uint32_t thread = thread_of(span);
    uint64_t ns = span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0;
    note_row(file, process, thread, span);
    begin_event(file);
    fprintf(file->to, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category_of(span));
    put_string(file->to, name_of(span));
    fprintf(file->to, ",\"pid\":%ld,\"tid\":%u,\"ts\":", pid_of(process), thread);
    put_us(file->to, span->begin_ns - file->start_ns);
    fputs(",\"dur\":", file->to);
    put_us(file->to, ns);
    fputs(",\"args\":{", file->to);
    if (process != host)
        fprintf(file->to, "\"device\":%u,\"context\":1,\"stream\":%u,", process, thread);
    fprintf(file->to, "\"bytes\":%" PRIu64 ",\"chunk\":%" PRIu64 ",\"port\":%u", span->bytes, span->chunk,
            span->port);
    if (ns && process != host && span->stage != HR_STAGE_COMPUTE)
        fprintf(file->to, ",\"memory bandwidth (GB/s)\":%.3f", (double)span->bytes / (double)ns);
    fputs("}}", file->to);
}

static void put_name(chrome_file *file, const char *what, uint32_t process, uint32_t thread, const char *name)
{
    begin_event(file);
    fprintf(file->to, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":", what,
            process, thread);
    put_string(file->to, name);
    fputs("}}", file->to);
}

static void put_names(chrome_file *file)
{
    put_name(file, "process_name", host, 0, "host");
    for (uint32_t i = 0; i < file->device_count; i++)
        put_name(file, "process_name", i, 0, file->devices[i]);
    for (size_t i = 0; i < file->row_count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %u", hr_stage_name(file->rows[i].stage), file->rows[i].lane);
        put_name(file, "thread_name", file->rows[i].process, file->rows[i].thread, name);
        begin_event(file);
        fprintf(file->to,
                "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%ld,\"tid\":%u,\"args\":{\"sort_"
                "index\":%u}}",
                pid_of(file->rows[i].process), file->rows[i].thread, file->rows[i].thread);
    }
}

static void put_all(chrome_file *file, const hr_span_log *log, const hr_span_log_about *about)
{
    file->start_ns = UINT64_MAX;
    for (size_t i = 0; i < log->count; i++) {
        if (log->spans[i].begin_ns < file->start_ns)
            file->start_ns = log->spans[i].begin_ns;
    }
    fprintf(file->to, "{\"headrace\":\"%s\",\"displayTimeUnit\":\"ns\",", HR_VERSION_STRING);
    if (about && about->title) {
        fputs("\"op\":", file->to);
        put_string(file->to, about->title);
        fputc(',', file->to);
    }
    fputs("\"traceEvents\":[", file->to);
    for (size_t i = 0; i < log->count; i++)
        put_span(file, &log->spans[i]);
    put_names(file);
    fputs("\n],\"deviceProperties\":[", file->to);
    for (uint32_t i = 0; i < file->device_count; i++) {
        fprintf(file->to, "%s{\"id\":%u,\"spec\":", i ? "," : "", i);
        put_string(file->to, file->devices[i]);
        fputs(",\"name\":", file->to);
        put_string(file->to, about && about->device_name ? about->device_name : file->devices[i]);
        fputc('}', file->to);
    }
    fputs("]}\n", file->to);
}

static hr_status fail_with(hr_error *error, const char *path, const char *doing)
{
    int code = errno;
    hr_status status = hr_fail(error, code == ENOSPC || code == EDQUOT ? HR_E_NO_SPACE : HR_E_IO,
                               "%s: %s: %s", path, doing, code ? strerror(code) : "failed");
    if (error)
        error->code = code;
    return status;
}

/* A device, a pipe, or a file that is open already under a number: written as it is. A rename would put a file in its place. */
static bool is_written_in_place(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 &&
           (!S_ISREG(about.st_mode) || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0);
}

/* A new file beside `path`; its name is the caller's to free. */
static FILE *open_beside(const char *path, char **temporary)
{
    enum { TRIES = 100 };
    size_t room = strlen(path) + 32;
    char *name = malloc(room);
    int fd = -1;
    for (unsigned i = 0; name && fd < 0 && i < TRIES; i++) {
        snprintf(name, room, "%s.%ld-%u.part", path, (long)getpid(), i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!to) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
            unlink(name);
        }
        free(name);
        errno = code;
        return NULL;
    }
    *temporary = name;
    return to;
}

hr_status hr_span_log_write(const hr_span_log *log, const char *path, const hr_span_log_about *about,
                            hr_error *error)
{
    if (log->dropped)
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: memory ran out after %zu spans, and %zu were dropped",
                       path, log->count, log->dropped);
    chrome_file *file = calloc(1, sizeof *file);
    if (!file)
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to write the trace", path);
    char *temporary = NULL;
    hr_status status = HR_OK;
    /* A link stays one: what it points to is written. */
    char *real = is_written_in_place(path) ? NULL : realpath(path, NULL);
    const char *named = real ? real : path;
    file->to = is_written_in_place(path) ? fopen(path, "we") : open_beside(named, &temporary);
    if (!file->to) {
        status = fail_with(error, path, "cannot make the trace file");
        free(real);
        free(file);
        return status;
    }
    put_all(file, log, about);
    errno = 0;
    bool written =
        !ferror(file->to) && fflush(file->to) == 0 && (temporary == NULL || fsync(fileno(file->to)) == 0);
    if (!written)
        status = fail_with(error, path, "writing the trace");
    fclose(file->to);
    if (written && temporary != NULL && rename(temporary, named) != 0)
        status = fail_with(error, path, "naming the trace file");
    if (status != HR_OK && temporary != NULL)
        unlink(temporary);
    free(temporary);
    free(real);
    free(file);
    return status;
}
