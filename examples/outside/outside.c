/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside Headrace's tree: adds two arrays in memory on the device that it finds, and logs what
 * happened when. */
#include <headrace/headrace.h>
#include <headrace/span_log.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

static float a[COUNT], b[COUNT], c[COUNT];

static void check(hr_status status, const hr_error *error)
{
    if (status < HR_OK) {
        fprintf(stderr, "outside: %s\n", error->text[0] ? error->text : hr_status_text(status));
        exit(1);
    }
}

int main(void)
{
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)i;
        b[i] = 1;
    }

    hr_error error = HR_ERROR_INIT;
    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_span_log *log = NULL;
    check(hr_runtime_open(NULL, &runtime, &error), &error);
    check(hr_device_open(runtime, "auto", &device, &error), &error);
    check(hr_span_log_open(&log, &error), &error);

    hr_source in[2] = {hr_source_from_memory(a, sizeof a), hr_source_from_memory(b, sizeof b)};
    hr_sink out = hr_sink_to_memory(c, sizeof c);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = hr_op_find("add");
    options.devices = &device;
    options.device_count = 1;
    options.observer = hr_span_log_observer(log);
    for (int i = 0; i < 2; i++) {
        options.in[i].source = &in[i];
        options.in[i].dtype = HR_F32;
        options.in[i].shape.rank = 1;
        options.in[i].shape.extent[0] = COUNT;
    }
    options.out[0].sink = &out;

    hr_pipeline *pipeline = NULL;
    hr_report report = HR_REPORT_INIT;
    check(hr_pipeline_open(&options, &pipeline, &error), &error);
    check(hr_pipeline_run(pipeline, &report, &error), &error);
    check(hr_pipeline_close(&pipeline, &error), &error);

    size_t spans;
    hr_span_log_spans(log, &spans);
    for (int i = 0; i < COUNT; i++) {
        if (c[i] != a[i] + b[i]) {
            fprintf(stderr, "outside: element %d is wrong\n", i);
            return 1;
        }
    }
    printf("headrace %s: %d sums, %zu spans\n", hr_version(), COUNT, spans);
    hr_span_log_close(&log);
    check(hr_device_close(&device, &error), &error);
    check(hr_runtime_close(&runtime, &error), &error);
    return spans ? 0 : 1;
}
