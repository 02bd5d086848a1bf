/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder, from a program's calls to the trace that the audit reads. */
#include "support/unit.h"

#include "trace/model/model.h"
#include "trace/read/read.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "record-XXXXXX";

/* Runs the program with the recorder; returns its exit status, and the trace's path if it left one. */
static int run(const char *events, char path[512])
{
    pid_t child = fork();
    if (child == 0) {
        setenv("CUDA_INJECTION64_PATH", RECORDER, 1);
        setenv("HEADRACE_RECORD", folder, 1);
        if (events != NULL)
            setenv("HEADRACE_RECORD_EVENTS", events, 1);
        execl(PROGRAM, PROGRAM, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    snprintf(path, 512, "%s/%d.json", folder, (int)child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static hr_trace *recorded(const char *events)
{
    char path[512];
    assert_int_equal(run(events, path), 0);
    hr_trace *trace = NULL;
    hr_error error = HR_ERROR_INIT;
    hr_status status = hr_read_trace(path, &trace, &error);
    if (status != HR_OK)
        fail_msg("%s", error.text);
    remove(path);
    return trace;
}

static const hr_event *find(const hr_trace *trace, const char *name, uint32_t *count)
{
    const hr_event *found = NULL;
    *count = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        if (strcmp(hr_trace_text(trace, trace->events[i].name), name) == 0) {
            found = &trace->events[i];
            (*count)++;
        }
    }
    return found;
}

static void a_call_its_work_and_their_memory_are_joined(void **state)
{
    (void)state;
    hr_trace *trace = recorded(NULL);
    assert_int_equal(trace->format, HR_FORMAT_RECORDED);
    uint32_t count;
    const hr_event *call = find(trace, "cudaMemcpyAsync", &count);
    assert_int_equal(count, 1);
    assert_int_not_equal(call->peer, HR_NONE);
    const hr_event *copy = &trace->events[call->peer];
    assert_int_equal(copy->kind, HR_EVENT_COPY);
    assert_int_equal(copy->direction, HR_DIRECTION_H2D);
    assert_int_equal(hr_event_host_memory(copy), HR_MEMORY_PINNED);
    assert_int_equal(copy->bytes, 4096);
    assert_int_equal(copy->source_address, 0x5000);
    assert_int_equal(copy->sink_address, 0x7000);
    assert_int_equal(hr_event_ns(copy), 500);
    assert_true(trace->has.addresses);
    hr_trace_free(&trace);
}

static void a_driver_call_counts_once_and_only_outside_a_runtime_call(void **state)
{
    (void)state;
    hr_trace *trace = recorded(NULL);
    uint32_t count;
    const hr_event *call = find(trace, "cuMemcpyHtoDAsync_v2", &count);
    assert_int_equal(count, 1);
    assert_int_equal(trace->events[call->peer].sink_address, 0x9000);
    hr_trace_free(&trace);
}

static void what_no_rule_looks_at_is_not_recorded(void **state)
{
    (void)state;
    hr_trace *trace = recorded(NULL);
    uint32_t count;
    assert_null(find(trace, "cudaGetDevice", &count));
    hr_trace_free(&trace);
}

static void names_streams_and_events_come_through(void **state)
{
    (void)state;
    hr_trace *trace = recorded(NULL);
    uint32_t count;
    const hr_event *kernel = find(trace, "quoted\"kernel", &count);
    assert_int_equal(count, 1);
    assert_int_equal(trace->streams[kernel->stream].id, 13);
    assert_int_equal(trace->streams[kernel->stream].flag, HR_STREAM_FLAG_NON_BLOCKING);
    const hr_event *record = find(trace, "cudaEventRecord", &count);
    assert_int_equal(record->object, 77);
    assert_int_equal(record->stream, kernel->stream);
    assert_int_equal(find(trace, "cudaStreamSynchronize", &count)->stream, kernel->stream);
    hr_trace_free(&trace);
}

static void beyond_the_limit_events_are_left_out_and_the_file_is_whole(void **state)
{
    (void)state;
    /* Calls come first, so the device work is what is lost; a trace without it is refused by name. */
    char path[512];
    assert_int_equal(run("4", path), 0);
    hr_trace *trace = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_read_trace(path, &trace, &error), HR_E_FORMAT);
    assert_non_null(strstr(error.text, "4 runtime calls and no GPU work"));
    remove(path);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_its_work_and_their_memory_are_joined),
        cmocka_unit_test(a_driver_call_counts_once_and_only_outside_a_runtime_call),
        cmocka_unit_test(what_no_rule_looks_at_is_not_recorded),
        cmocka_unit_test(names_streams_and_events_come_through),
        cmocka_unit_test(beyond_the_limit_events_are_left_out_and_the_file_is_whole),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
