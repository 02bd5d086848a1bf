/* SPDX-License-Identifier: Apache-2.0 */
/* Tells formats apart by their first bytes, and says something useful about those that cannot be read. */
#include "trace/read/read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hr_status foreign(const hr_trace_input *input, const unsigned char *head, size_t bytes,
                         hr_error *error)
{
    const char *path = hr_trace_input_path(input);
    static const struct {
        const char *magic;
        size_t length;
        const char *advice;
    } known[] = {
        {"QDSTRM", 6, "is a raw Nsight Systems stream: open it in Nsight Systems and export it to SQLite"},
        {"\x0a\x83", 2, "is Perfetto's binary format: save it as Chrome JSON"},
        {"PK\x03\x04", 4,
         "is a zip archive or an Nsight Systems report: export it with `nsys export --type sqlite`"},
        {"\x28\xB5\x2F\xFD", 4, "is packed with zstd: unpack it first"},
        {"\x7F"
         "ELF",
         4, "is a program: run it as `headrace audit -- PROGRAM`"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (bytes >= known[i].length && memcmp(head, known[i].magic, known[i].length) == 0)
            return hr_fail(error, HR_E_UNSUPPORTED, "%s: %s", path, known[i].advice);
    }
    size_t length = strlen(path);
    if (length > 9 && strcmp(path + length - 9, ".nsys-rep") == 0)
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "%s: is an Nsight Systems report: export it with `nsys export --type sqlite`", path);
    char shown[40];
    size_t at = 0;
    for (size_t i = 0; i < bytes && i < 8; i++)
        at += (size_t)snprintf(shown + at, sizeof shown - at, isprint(head[i]) ? "%c" : "\\x%02x", head[i]);
    return hr_fail(
        error, HR_E_FORMAT,
        "%s: is neither Chrome JSON (plain or gzip) nor an SQLite export of Nsight Systems: begins "
        "with \"%s\"",
        path, bytes != 0 ? shown : "");
}

static bool starts_json(const unsigned char *head, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (!isspace(head[i]))
            return head[i] == '{' || head[i] == '[';
    }
    return true; /* nothing but white space: the JSON reader says that it is empty */
}

/* A database is read here and there, which a pipe does not allow: all of it comes into memory first. */
static hr_status read_piped(hr_trace_input *input, hr_trace *trace, hr_error *error)
{
    enum { ROOM = 1024 * 1024 };
    char *bytes = NULL;
    size_t have = 0, room = 0, got = 1;
    hr_status status = HR_OK;
    while (status == HR_OK && got != 0) {
        if (have == room) {
            room = room * 2 + ROOM;
            char *more = realloc(bytes, room);
            if (more == NULL) {
                status =
                    hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to read it", hr_trace_input_path(input));
                break;
            }
            bytes = more;
        }
        status = hr_trace_input_read(input, bytes + have, room - have, &got, error);
        have += status == HR_OK ? got : 0;
    }
    if (status == HR_OK)
        status = hr_read_nsight_memory(bytes, have, hr_trace_input_path(input), trace, error);
    free(bytes);
    return status;
}

static hr_status read_by_format(hr_trace_input *input, hr_trace *trace, hr_error *error)
{
    const unsigned char *head;
    size_t bytes = hr_trace_input_head(input, &head);
    if (bytes >= 16 && memcmp(head, "SQLite format 3", 16) == 0)
        return hr_trace_input_is_file(input) ? hr_read_nsight(hr_trace_input_path(input), trace, error)
                                             : read_piped(input, trace, error);
    if ((bytes >= 2 && head[0] == 0x1F && head[1] == 0x8B) || starts_json(head, bytes))
        return hr_read_chrome(input, trace, error);
    return foreign(input, head, bytes, error);
}

hr_status hr_read_trace(const char *path, hr_trace **trace, hr_error *error)
{
    hr_trace_input *input = NULL;
    hr_trace *made = NULL;
    hr_status status = hr_trace_input_open(path, &input, error);
    if (status == HR_OK)
        status = hr_trace_new(path, &made, error);
    if (status == HR_OK)
        status = read_by_format(input, made, error);
    if (status == HR_OK)
        status = hr_trace_finish(made, error);
    hr_trace_input_close(&input);
    if (status != HR_OK) {
        hr_trace_free(&made);
        return status;
    }
    *trace = made;
    return HR_OK;
}
