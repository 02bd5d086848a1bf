/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome JSON, a window of the file at a time.
 *
 * The window holds whole events: an event that its end cuts off is scanned again once more bytes are there.
 * What stands beside the events (metadata can be megabytes) is passed over piece by piece, so that the window
 * stays small.
 */
#include "trace/read/chrome_event.h"
#include "trace/read/json.h"
#include "trace/read/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 1024 * 1024, EVENT_LIMIT_BYTES = 64 * 1024 * 1024 };

typedef struct hr_window {
    hr_trace_input *input;
    char *bytes;
    size_t room;     /* without the padding */
    hr_json json;    /* what is still to be scanned */
    uint64_t offset; /* in the unpacked file, of bytes[0] */
    bool ended;      /* the file has no more */
} hr_window;

static uint64_t offset_of(const hr_window *window, const char *at)
{
    return window->offset + (uint64_t)(at - window->bytes);
}

/* Moves what is left to the front and reads on. HR_END: there was nothing more. */
static hr_status more(hr_window *window, hr_error *error)
{
    size_t left = (size_t)(window->json.end - window->json.at);
    window->offset += (uint64_t)(window->json.at - window->bytes);
    memmove(window->bytes, window->json.at, left);
    if (left == window->room) {
        if (window->room >= EVENT_LIMIT_BYTES)
            return hr_fail(error, HR_E_FORMAT, "%s: the event at byte %llu is longer than %d MiB",
                           hr_trace_input_path(window->input), (unsigned long long)window->offset,
                           EVENT_LIMIT_BYTES / (1024 * 1024));
        size_t room = window->room * 2;
        char *bytes = realloc(window->bytes, room + HR_JSON_PAD);
        if (bytes == NULL)
            return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to read it",
                           hr_trace_input_path(window->input));
        window->bytes = bytes;
        window->room = room;
    }
    size_t got = 0;
    hr_status status = HR_OK;
    if (!window->ended)
        status = hr_trace_input_read(window->input, window->bytes + left, window->room - left, &got, error);
    if (status != HR_OK)
        return status;
    window->ended = got == 0;
    window->json = (hr_json){window->bytes, window->bytes + left + got};
    memset(window->bytes + left + got, 0, HR_JSON_PAD);
    return window->ended ? HR_END : HR_OK;
}

/* White space, and at least one byte behind it unless the file ends. */
static hr_status next_byte(hr_window *window, char *byte, hr_error *error)
{
    for (;;) {
        hr_json_space(&window->json);
        if (window->json.at < window->json.end) {
            *byte = *window->json.at;
            return HR_OK;
        }
        hr_status status = more(window, error);
        if (status != HR_OK)
            return status;
    }
}

static hr_status unexpected(const hr_window *window, const char *wanted, hr_error *error)
{
    unsigned char found = (unsigned char)*window->json.at;
    char what[32];
    if (window->json.at >= window->json.end)
        return hr_fail(error, HR_E_FORMAT, "%s: ends at byte %llu where %s is needed: the file is truncated",
                       hr_trace_input_path(window->input),
                       (unsigned long long)offset_of(window, window->json.at), wanted);
    snprintf(what, sizeof what, found >= ' ' && found < 127 ? "'%c'" : "0x%02x", found);
    return hr_fail(error, HR_E_FORMAT, "%s: byte %llu is %s where %s is needed",
                   hr_trace_input_path(window->input), (unsigned long long)offset_of(window, window->json.at),
                   what, wanted);
}

/* Runs `scan` until the window holds all of what it scans. HR_OK with the cursor behind it. */
typedef bool (*hr_scan)(hr_json *json, void *user);
static hr_status scan_whole(hr_window *window, hr_scan scan, void *user, const char *wanted, hr_error *error)
{
    for (;;) {
        hr_json tried = window->json;
        if (scan(&tried, user)) {
            window->json = tried;
            return HR_OK;
        }
        if (tried.at < tried.end) {
            window->json = tried;
            return unexpected(window, wanted, error);
        }
        hr_status status = more(window, error);
        if (status == HR_END) {
            window->json.at = window->json.end;
            return unexpected(window, wanted, error);
        }
        if (status != HR_OK)
            return status;
    }
}

/* Passes over a value of any size: brackets and strings are counted across windows. */
static hr_status pass_over(hr_window *window, hr_error *error)
{
    uint64_t depth = 0;
    bool in_string = false;
    bool escaped = false;
    bool in_word = false;
    for (;;) {
        for (const char *at = window->json.at; at < window->json.end; at++) {
            window->json.at = at;
            if (in_string) {
                if (escaped)
                    escaped = false;
                else if (*at == '\\')
                    escaped = true;
                else if (*at == '"')
                    in_string = false;
                if (in_string || depth != 0)
                    continue;
                window->json.at = at + 1;
                return HR_OK;
            }
            bool bracket_ends = *at == '}' || *at == ']';
            if (in_word && depth == 0 && (bracket_ends || *at == ',' || (unsigned char)*at <= ' '))
                return HR_OK;
            if (*at == '"')
                in_string = true;
            else if (*at == '{' || *at == '[')
                depth++;
            else if (bracket_ends && depth == 0)
                return unexpected(window, "a value", error);
            else if (bracket_ends && --depth == 0) {
                window->json.at = at + 1;
                return HR_OK;
            } else if (depth == 0 && (unsigned char)*at > ' ')
                in_word = true;
        }
        window->json.at = window->json.end;
        hr_status status = more(window, error);
        if (status == HR_END)
            return unexpected(window, "the end of a value", error);
        if (status != HR_OK)
            return status;
    }
}

static bool scan_event(hr_json *json, void *user)
{
    return hr_chrome_scan(json, user);
}

/* The events of an array whose opening bracket was taken; `bare`: it is the whole file, and may lack its end.
 */
static hr_status read_events(hr_window *window, hr_chrome *chrome, bool bare, hr_error *error)
{
    char byte;
    for (;;) {
        hr_status status = next_byte(window, &byte, error);
        /* The format says that a bare array's closing bracket may be missing: a recorder that was killed. */
        if (status == HR_END && bare)
            return HR_OK;
        if (status == HR_END)
            return unexpected(window, "an event or the end of the list of events", error);
        if (status != HR_OK)
            return status;
        if (byte == ']') {
            window->json.at++;
            return HR_OK;
        }
        if (byte == ',') {
            window->json.at++;
            continue;
        }
        uint64_t offset = offset_of(window, window->json.at);
        status = scan_whole(window, scan_event, chrome, "the rest of an event", error);
        if (status == HR_OK)
            status = hr_chrome_keep(chrome, offset, error);
        if (status != HR_OK)
            return status;
    }
}

static bool scan_key(hr_json *json, void *user)
{
    return hr_json_string(json, user) && hr_json_take(json, ':');
}

static bool scan_devices(hr_json *json, void *user)
{
    return hr_chrome_scan_devices(json, user);
}

/* How many records the recorder had no room for. */
static bool scan_lost(hr_json *json, void *user)
{
    hr_trace *trace = user;
    hr_json_text value;
    uint64_t lost;
    if (!hr_json_scalar(json, &value))
        return false;
    if (hr_json_whole(&value, &lost))
        trace->lost_records = lost < UINT32_MAX ? (uint32_t)lost : UINT32_MAX;
    return true;
}

/* A trace that an audit wrote says what it was before. */
static bool scan_audited(hr_json *json, void *user)
{
    hr_trace *trace = user;
    hr_json_text value;
    if (!hr_json_scalar(json, &value))
        return false;
    for (int format = HR_FORMAT_CHROME; format <= HR_FORMAT_RECORDED; format++) {
        if (hr_json_is(&value, hr_trace_format_name((hr_trace_format)format)))
            trace->format = (hr_trace_format)format;
    }
    return true;
}

static bool scan_missing(hr_json *json, void *user)
{
    hr_trace *trace = user;
    hr_json_text value;
    if (!hr_json_scalar(json, &value))
        return false;
    hr_json_unescape(&value, trace->missing, sizeof trace->missing);
    return true;
}

/* One key of the file's outermost object, and its value. */
static hr_status read_member(hr_window *window, hr_chrome *chrome, bool *saw_events, hr_error *error)
{
    hr_json_text key;
    char byte;
    hr_status status = scan_whole(window, scan_key, &key, "a key", error);
    if (status != HR_OK)
        return status;
    bool events = hr_json_is(&key, "traceEvents");
    bool devices = hr_json_is(&key, "deviceProperties");
    if (hr_json_is(&key, "headrace"))
        chrome->trace->format = HR_FORMAT_HEADRACE;
    else if (hr_json_is(&key, "recorder"))
        chrome->trace->format = HR_FORMAT_RECORDED;
    else if (hr_json_is(&key, "pytorch"))
        chrome->trace->pytorch = true;
    else if (hr_json_is(&key, "launch_blocking"))
        chrome->trace->serialised = true;
    else if (hr_json_is(&key, "schemaVersion") && chrome->trace->format == HR_FORMAT_UNKNOWN)
        chrome->trace->format = HR_FORMAT_KINETO;
    status = next_byte(window, &byte, error);
    if (status == HR_END)
        return unexpected(window, "a value", error);
    if (status != HR_OK)
        return status;
    if (events && byte == '[') {
        window->json.at++;
        *saw_events = true;
        return read_events(window, chrome, false, error);
    }
    if (hr_json_is(&key, "audited"))
        return scan_whole(window, scan_audited, chrome->trace, "a format", error);
    if (hr_json_is(&key, "auditMissing"))
        return scan_whole(window, scan_missing, chrome->trace, "a text", error);
    if (hr_json_is(&key, "lost") && chrome->trace->format == HR_FORMAT_RECORDED)
        return scan_whole(window, scan_lost, chrome->trace, "a number", error);
    if (devices && byte == '[') {
        if (chrome->trace->format == HR_FORMAT_UNKNOWN)
            chrome->trace->format = HR_FORMAT_KINETO;
        return scan_whole(window, scan_devices, chrome, "a list of devices", error);
    }
    return pass_over(window, error);
}

static hr_status read_object(hr_window *window, hr_chrome *chrome, hr_error *error)
{
    bool saw_events = false;
    char byte;
    for (;;) {
        hr_status status = next_byte(window, &byte, error);
        if (status == HR_END)
            return unexpected(window, "a key or the end of the object", error);
        if (status != HR_OK)
            return status;
        if (byte == '}') {
            window->json.at++;
            break;
        }
        if (byte == ',') {
            window->json.at++;
            continue;
        }
        status = read_member(window, chrome, &saw_events, error);
        if (status != HR_OK)
            return status;
    }
    if (!saw_events)
        return hr_fail(error, HR_E_FORMAT, "%s: is JSON without \"traceEvents\", so it is no Chrome trace",
                       hr_trace_input_path(window->input));
    return HR_OK;
}

/* Nothing may follow; and only who reads to the end learns that a gzip stream's check sum is wrong. */
static hr_status expect_end(hr_window *window, hr_error *error)
{
    char byte;
    hr_status status = next_byte(window, &byte, error);
    if (status == HR_OK)
        return unexpected(window, "the end of the file", error);
    return status == HR_END ? HR_OK : status;
}

hr_status hr_read_chrome(hr_trace_input *input, hr_trace *trace, hr_error *error)
{
    hr_chrome chrome = {.trace = trace};
    hr_window window = {.input = input, .room = WINDOW_BYTES};
    window.bytes = calloc(1, window.room + HR_JSON_PAD);
    if (window.bytes == NULL)
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to read it", hr_trace_input_path(input));
    window.json = (hr_json){window.bytes, window.bytes};
    char byte = 0;
    hr_status status = next_byte(&window, &byte, error);
    if (status == HR_END) {
        status = hr_fail(error, HR_E_FORMAT, "%s: is empty", hr_trace_input_path(input));
    } else if (status == HR_OK && byte == '{') {
        window.json.at++;
        status = read_object(&window, &chrome, error);
    } else if (status == HR_OK && byte == '[') {
        window.json.at++;
        status = read_events(&window, &chrome, true, error);
    } else if (status == HR_OK) {
        status = unexpected(&window, "'{' or '[' of a Chrome JSON trace", error);
    }
    if (status == HR_OK)
        status = expect_end(&window, error);
    if (trace->format == HR_FORMAT_UNKNOWN)
        trace->format = HR_FORMAT_CHROME;
    hr_chrome_end(&chrome);
    free(window.bytes);
    return status;
}
