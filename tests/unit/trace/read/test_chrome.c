/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome JSON: what recorders spell differently, and what is damaged. */
#include "support/unit.h"

#include "trace/read/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static hr_status read_bytes(const void *data, size_t bytes, hr_trace **trace, hr_error *error)
{
    hr_trace_input *input = NULL;
    *trace = NULL;
    hr_status status = hr_trace_new("t.json", trace, error);
    if (status == HR_OK)
        status = hr_trace_input_open_memory(data, bytes, "t.json", &input, error);
    if (status == HR_OK)
        status = hr_read_chrome(input, *trace, error);
    if (status == HR_OK)
        status = hr_trace_finish(*trace, error);
    hr_trace_input_close(&input);
    if (status != HR_OK)
        hr_trace_free(trace);
    return status;
}

static hr_trace *read_text(const char *text)
{
    hr_error error = HR_ERROR_INIT;
    hr_trace *trace;
    if (read_bytes(text, strlen(text), &trace, &error) != HR_OK)
        fail_msg("%s", error.text);
    return trace;
}

/* The text of the failure, which must hold `part`. */
static void refused(const char *text, hr_status wanted, const char *part)
{
    hr_error error = HR_ERROR_INIT;
    hr_trace *trace;
    assert_int_equal(read_bytes(text, strlen(text), &trace, &error), wanted);
    assert_null(trace);
    if (strstr(error.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, part);
    assert_null(strchr(error.text, '\n'));
}

#define CALL                                                                                             \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":4,\"tid\":5,\"ts\":10," \
    "\"dur\":2,\"args\":{\"correlation\":9}}"
#define COPY                                                                    \
    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pageable -> " \
    "Device)\",\"pid\":0,\"tid\":7,\"ts\":"                                     \
    "11.5,\"dur\":3.25,\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":9,\"bytes\":4096}}"

static void the_recorder_says_that_launches_wait(void **state)
{
    (void)state;
    hr_trace *trace =
        read_text("{\"recorder\":\"cupti\",\"launch_blocking\":true,\"traceEvents\":[" CALL "," COPY "]}");
    assert_true(trace->serialised);
    hr_trace_free(&trace);
    trace = read_text("{\"recorder\":\"cupti\",\"traceEvents\":[" CALL "," COPY "]}");
    assert_false(trace->serialised);
    hr_trace_free(&trace);
}

static void times_become_exact_nanoseconds(void **state)
{
    (void)state;
    hr_trace *trace = read_text("{\"traceEvents\":[" CALL "," COPY "]}");
    assert_int_equal(trace->work_count, 1);
    const hr_event *copy = &trace->events[trace->work[0]];
    assert_int_equal(copy->begin_ns, 1500);
    assert_int_equal(copy->end_ns, 4750);
    assert_int_equal(copy->bytes, 4096);
    assert_int_equal(copy->direction, HR_DIRECTION_H2D);
    assert_int_equal(copy->source, HR_MEMORY_PAGEABLE);
    assert_int_equal(copy->peer, trace->calls[0]);
    assert_int_equal(trace->origin_ns, 10000);
    hr_trace_free(&trace);
}

static void order_of_keys_and_strange_numbers_do_not_matter(void **state)
{
    (void)state;
    hr_trace *trace = read_text(
        " \n{ \"other\" : [ { \"deep\": [1,2,{\"a\":\"}]\\\"\"}] } ] , \"traceEvents\" : [ "
        "{\"args\":{\"Stream "
        "Id\":\"7\",\"deviceId\":0,\"correlation_id\":9,\"Bytes\":4096.0},\"dur\":\"3.25\",\"ts\":1.15e1,"
        "\"tid\":7,\"pid\":0,\"name\":\"Memcpy DtoH (Device -> "
        "Pinned)\",\"cat\":\"Memcpy\",\"ph\":\"X\"},\n" CALL "\n] }");
    const hr_event *copy = &trace->events[trace->work[0]];
    assert_int_equal(hr_event_ns(copy), 3250);
    assert_int_equal(copy->begin_ns, 1500);
    assert_int_equal(copy->bytes, 4096);
    assert_int_equal(copy->direction, HR_DIRECTION_D2H);
    assert_int_equal(copy->sink, HR_MEMORY_PINNED);
    assert_int_equal(trace->streams[copy->stream].id, 7);
    assert_int_not_equal(copy->peer, HR_NONE);
    hr_trace_free(&trace);
}

static void missing_arguments_are_unknown_and_not_guessed(void **state)
{
    (void)state;
    hr_trace *trace = read_text(
        "[{\"ph\":\"X\",\"name\":\"Memcpy HtoD\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":1}," CALL "]");
    const hr_event *copy = &trace->events[trace->work[0]];
    assert_int_equal(copy->kind, HR_EVENT_COPY);
    assert_int_equal(copy->source, HR_MEMORY_UNKNOWN);
    assert_int_equal(copy->peer, HR_NONE);
    assert_false(trace->has.memory_kinds);
    assert_false(trace->has.bytes);
    assert_false(trace->has.correlation);
    hr_trace_free(&trace);
}

static void ranges_begin_and_end_nested(void **state)
{
    (void)state;
    hr_trace *trace =
        read_text("[" COPY ",{\"ph\":\"B\",\"cat\":\"nvtx\",\"name\":\"step\",\"pid\":4,\"tid\":5,\"ts\":1},"
                  "{\"ph\":\"B\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":4,\"tid\":5,\"ts\":2},"
                  "{\"ph\":\"E\",\"pid\":4,\"tid\":5,\"ts\":3},{\"ph\":\"E\",\"pid\":4,\"tid\":5,\"ts\":9}]");
    const hr_event *marker = NULL;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        if (trace->events[i].kind == HR_EVENT_MARKER)
            marker = &trace->events[i];
    }
    assert_non_null(marker);
    assert_string_equal(hr_trace_text(trace, marker->name), "step");
    assert_int_equal(hr_event_ns(marker), 8000);
    hr_trace_free(&trace);
}

static void waits_of_streams_know_their_record(void **state)
{
    (void)state;
    hr_trace *trace =
        read_text("[" COPY "," CALL ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
                  "\"cudaStreamWaitEvent\",\"pid\":4,\"tid\":5,\"ts\":20,"
                  "\"dur\":1,\"args\":{\"correlation\":12}},{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":"
                  "\"Stream Wait Event\",\"pid\":0,\"tid\":8,"
                  "\"ts\":20,\"dur\":1,\"args\":{\"correlation\":12,\"stream\":8,\"device\":0,\"context\":1,"
                  "\"wait_on_cuda_event_record_corr_id\":11,\"wait_on_cuda_event_id\":3}}]");
    const hr_event *wait = &trace->events[trace->calls[1]];
    assert_int_equal(wait->call, HR_CALL_STREAM_WAIT);
    assert_int_equal(wait->waits_for, 11);
    assert_int_equal(trace->streams[wait->stream].id, 8);
    assert_true(trace->has.events);
    hr_trace_free(&trace);
}

static void calls_of_two_processes_are_not_mixed_up(void **state)
{
    (void)state;
    hr_trace *trace = read_text(
        "[" CALL "," COPY ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":"
        "44,\"tid\":5,\"ts\":10,\"dur\":2,\"args\":{\"correlation\":9}}]");
    /* Both processes have a call 9, and the copy does not say whose it is: nobody can tell. */
    assert_int_equal(trace->events[trace->work[0]].peer, HR_NONE);
    hr_trace_free(&trace);
}

static void names_are_unescaped(void **state)
{
    (void)state;
    hr_trace *trace = read_text("[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
                                "\"a\\u00e9\\ud83d\\ude00\\n\\\"\\\\\",\"pid\":0,\"tid\":7,"
                                "\"ts\":1,\"dur\":1,\"args\":{\"device\":0,\"stream\":7}}]");
    assert_string_equal(hr_trace_text(trace, trace->events[trace->work[0]].name),
                        "a\xC3\xA9\xF0\x9F\x98\x80\n\"\\");
    hr_trace_free(&trace);
}

static void damage_gets_one_line_that_names_the_byte(void **state)
{
    (void)state;
    refused("", HR_E_FORMAT, "is empty");
    refused("  \n ", HR_E_FORMAT, "is empty");
    refused("{\"traceEvents\":[" CALL "," COPY, HR_E_FORMAT, "truncated");
    refused("{\"traceEvents\":[" CALL ",{\"ph\":\"X\",\"cat\":\"ker", HR_E_FORMAT, "truncated");
    refused("{\"traceEvents\":[" CALL "," COPY "]", HR_E_FORMAT, "truncated");
    refused("{\"a\":1}", HR_E_FORMAT, "no Chrome trace");
    refused("{\"traceEvents\":[" CALL "," COPY "]} {", HR_E_FORMAT, "the end of the file");
    refused("{\"traceEvents\":[1,2]}", HR_E_FORMAT, "byte 16");
    refused("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":\"soon\",\"dur\":1}]}",
            HR_E_FORMAT, "no number");
    refused("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":-1}]}",
            HR_E_FORMAT, "duration");
    refused("[" CALL ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":4e15,\"dur\":1}]", HR_E_FORMAT,
            "clock");
    refused("{\"traceEvents\":[]}", HR_E_FORMAT, "no GPU work");
    refused("{\"traceEvents\":[" CALL "]}", HR_E_FORMAT, "record GPU activity");
}

static void a_bare_array_of_a_recorder_that_was_killed_is_read(void **state)
{
    (void)state;
    hr_trace *trace = read_text("[" CALL "," COPY ",\n");
    assert_int_equal(trace->work_count, 1);
    hr_trace_free(&trace);
}

static size_t pack(const char *text, unsigned char *out, size_t room)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)text;
    stream.avail_in = (uInt)strlen(text);
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t bytes = room - stream.avail_out;
    deflateEnd(&stream);
    return bytes;
}

static void gzip_is_read_whole_in_parts_and_refused_when_cut(void **state)
{
    (void)state;
    unsigned char packed[2048];
    hr_error error = HR_ERROR_INIT;
    hr_trace *trace;
    size_t bytes = pack("{\"traceEvents\":[" CALL "," COPY "]}", packed, sizeof packed);
    assert_int_equal(read_bytes(packed, bytes, &trace, &error), HR_OK);
    hr_trace_free(&trace);
    /* Two members one after the other are one text. */
    size_t first = pack("{\"traceEvents\":[" CALL, packed, sizeof packed);
    size_t second = pack("," COPY "]}", packed + first, sizeof packed - first);
    assert_int_equal(read_bytes(packed, first + second, &trace, &error), HR_OK);
    assert_int_equal(trace->work_count, 1);
    hr_trace_free(&trace);
    for (size_t cut = 3; cut < bytes; cut += 7) {
        size_t whole = pack("{\"traceEvents\":[" CALL "," COPY "]}", packed, sizeof packed);
        assert_true(cut < whole);
        assert_int_equal(read_bytes(packed, cut, &trace, &error), HR_E_FORMAT);
        assert_null(trace);
    }
    packed[bytes / 2] ^= 0x40;
    assert_int_equal(read_bytes(packed, bytes, &trace, &error), HR_E_FORMAT);
}

/* Events of all lengths, so that the window's end falls everywhere; metadata longer than the window. */
static void nothing_is_lost_where_a_window_ends(void **state)
{
    (void)state;
    enum { EVENTS = 9000, METADATA = 3 * 1024 * 1024 };
    size_t room = METADATA + EVENTS * 700 + 64;
    char *text = malloc(room);
    assert_non_null(text);
    size_t at = (size_t)snprintf(text, room, "{\"meta\":{\"long\":\"");
    memset(text + at, 'x', METADATA);
    at += METADATA;
    at += (size_t)snprintf(text + at, room - at, "\"},\"traceEvents\":[");
    for (int i = 0; i < EVENTS; i++) {
        char filler[512];
        int length = i * 37 % 500;
        memset(filler, 'a' + i % 26, sizeof filler);
        at += (size_t)snprintf(
            text + at, room - at,
            "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%.*s\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":1,"
            "\"args\":{\"device\":0,\"stream\":7,\"correlation\":%d}}",
            i != 0 ? "," : "", length, filler, 10 * i, i + 1);
    }
    snprintf(text + at, room - at, "]}");
    hr_trace *trace = read_text(text);
    assert_int_equal(trace->work_count, EVENTS);
    for (uint32_t i = 0; i < EVENTS; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        assert_int_equal(event->begin_ns, 10000 * (int64_t)i);
        assert_int_equal(event->correlation, i + 1);
        assert_int_equal(strlen(hr_trace_text(trace, event->name)), 1 + i * 37 % 500);
    }
    hr_trace_free(&trace);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recorder_says_that_launches_wait),
        cmocka_unit_test(times_become_exact_nanoseconds),
        cmocka_unit_test(order_of_keys_and_strange_numbers_do_not_matter),
        cmocka_unit_test(missing_arguments_are_unknown_and_not_guessed),
        cmocka_unit_test(ranges_begin_and_end_nested),
        cmocka_unit_test(waits_of_streams_know_their_record),
        cmocka_unit_test(calls_of_two_processes_are_not_mixed_up),
        cmocka_unit_test(names_are_unescaped),
        cmocka_unit_test(damage_gets_one_line_that_names_the_byte),
        cmocka_unit_test(a_bare_array_of_a_recorder_that_was_killed_is_read),
        cmocka_unit_test(gzip_is_read_whole_in_parts_and_refused_when_cut),
        cmocka_unit_test(nothing_is_lost_where_a_window_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
