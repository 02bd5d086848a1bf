/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "trace/render/html.h"

#include <stdlib.h>
#include <string.h>

/* One copy and one kernel of one stream, the copy's call, and a name that would end the script if it were not
 * escaped. */
static hr_trace *small_trace(void)
{
    hr_trace *trace = NULL;
    assert_int_equal(hr_trace_new("runs/small.json", &trace, NULL), HR_OK);
    uint32_t process = hr_trace_process_of(trace, 1);
    uint32_t thread = hr_trace_thread_of(trace, process, 11);
    uint32_t device = hr_trace_device_of(trace, 0);
    uint32_t stream = hr_trace_stream_of(trace, process, device, 1, 7);
    static const struct {
        int64_t begin, end;
        const char *name;
        uint8_t kind, call, direction;
        uint64_t bytes;
    } events[] = {{1000, 1500, "cudaMemcpyAsync", HR_EVENT_CALL, HR_CALL_COPY_ASYNC, 0, 0},
                  {1200, 2200, "Memcpy HtoD", HR_EVENT_COPY, 0, HR_DIRECTION_H2D, 4096},
                  {2300, 2900, "kernel</script>", HR_EVENT_KERNEL, 0, 0, 0}};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        hr_event *event = hr_trace_add(trace);
        assert_non_null(event);
        event->begin_ns = events[i].begin;
        event->end_ns = events[i].end;
        event->name = hr_trace_string(trace, events[i].name, strlen(events[i].name));
        event->kind = events[i].kind;
        event->call = events[i].call;
        event->direction = events[i].direction;
        event->bytes = events[i].bytes;
        event->process = process;
        event->thread = thread;
        event->device = device;
        event->stream = stream;
        event->correlation = i < 2 ? 5 : 6;
    }
    assert_int_equal(hr_trace_finish(trace, NULL), HR_OK);
    return trace;
}

static char *rendered(const hr_report *report)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_int_equal(hr_render_html(report, out, NULL), HR_OK);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void the_page_holds_every_event_of_its_row(void **state)
{
    (void)state;
    hr_trace *trace = small_trace();
    hr_report_device device = {.device = 0};
    hr_findings findings = {0};
    hr_report report = {.trace = trace,
                        .findings = &findings,
                        .devices = &device,
                        .device_count = 1,
                        .verdict = HR_VERDICT_CLEAN,
                        .span_ns = 1700,
                        .all_fixed_ns = 1700};
    char *text = rendered(&report);
    /* The call begins the trace at 0: begin, duration, name, bytes, index. */
    assert_non_null(strstr(text, "\"kind\":\"t\",\"today\":[0,500,0,0,0]"));
    assert_non_null(strstr(text, "\"kind\":\"i\",\"today\":[200,1000,1,4096,1]"));
    assert_non_null(strstr(text, "\"kind\":\"k\",\"today\":[1300,600,2,0,2]"));
    /* The stream's row holds both, the second relative to the first. */
    assert_non_null(strstr(text, "\"kind\":\"s\",\"today\":[200,1000,1,4096,1,1100,600,2,0,1]"));
    assert_null(strstr(text, "\"fixed\":"));
    free(text);
    hr_trace_free(&trace);
}

static void no_name_ends_the_script(void **state)
{
    (void)state;
    hr_trace *trace = small_trace();
    hr_report_device device = {.device = 0};
    hr_findings findings = {0};
    hr_report report = {.trace = trace, .findings = &findings, .devices = &device, .device_count = 1};
    char *text = rendered(&report);
    assert_non_null(strstr(text, "\"kernel\\u003c/script>\""));
    assert_null(strstr(text, "kernel</script>"));
    free(text);
    hr_trace_free(&trace);
}

static void the_prediction_leaves_out_what_a_repair_removed(void **state)
{
    (void)state;
    hr_trace *trace = small_trace();
    hr_report_device device = {.device = 0};
    hr_findings findings = {0};
    hr_finding *finding = hr_findings_add(&findings, "sync-call");
    assert_non_null(finding);
    strcpy(finding->text, "it waits");
    assert_int_equal(hr_repair_add(&finding->repair, 0), HR_OK);
    finding->after_ns = 1600;
    const int64_t begin[] = {-1, 0, 1000}, end[] = {-1, 1000, 1600};
    hr_report report = {.trace = trace,
                        .findings = &findings,
                        .devices = &device,
                        .device_count = 1,
                        .span_ns = 1700,
                        .all_fixed_ns = 1600,
                        .fixed_begin_ns = begin,
                        .fixed_end_ns = end};
    char *text = rendered(&report);
    assert_non_null(strstr(text, "\"kind\":\"t\",\"today\":[0,500,0,0,0],\"fixed\":[]"));
    assert_non_null(strstr(text, "\"fixed\":[0,1000,1,4096,1]"));
    assert_non_null(strstr(text, "\"rule\":\"sync-call\""));
    assert_non_null(strstr(text, "\"events\":[0],\"event_count\":1"));
    free(text);
    hr_findings_free(&findings);
    hr_trace_free(&trace);
}

static void a_full_disk_is_reported(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        skip();
    }
    hr_trace *trace = small_trace();
    hr_report_device device = {.device = 0};
    hr_findings findings = {0};
    hr_report report = {.trace = trace, .findings = &findings, .devices = &device, .device_count = 1};
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_render_html(&report, full, &error), HR_E_IO);
    fclose(full);
    hr_trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_holds_every_event_of_its_row),
        cmocka_unit_test(no_name_ends_the_script),
        cmocka_unit_test(the_prediction_leaves_out_what_a_repair_removed),
        cmocka_unit_test(a_full_disk_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
