/* SPDX-License-Identifier: Apache-2.0 */
/* Real traces: the figures were counted by other programs (a JSON library, SQL). */
#include "support/traces.h"

#include "trace/read/read.h"

#include <math.h>

typedef struct hr_expected {
    const char *name;
    hr_trace_format format;
    uint32_t device; /* as the recorder numbers it */
    uint64_t kernels, copies;
    double span_ms, kernel_ms, copy_ms, overlap_ms, idle_ms;
    uint32_t pageable_h2d, pinned_h2d, pageable_d2h;
} hr_expected;

static const hr_expected expected[] = {
    {"h200_in_pageable_one_stream.json.gz", HR_FORMAT_KINETO, 0, 40, 40, 424.469, 54.916, 359.963, 0, 9.591,
     40, 0, 0},
    {"h200_in_pinned_ring.json.gz", HR_FORMAT_KINETO, 0, 40, 40, 56.132, 54.851, 48.453, 47.230, 0.057, 0, 40,
     0},
    {"h200_tiny_copies.json.gz", HR_FORMAT_KINETO, 0, 4, 2000, 82.412, 10.880, 1.847, 0, 69.685, 0, 2000, 0},
    {"h200_alloc_churn.json.gz", HR_FORMAT_KINETO, 0, 36, 12, 156.073, 130.197, 14.553, 0, 11.323, 0, 12, 0},
    {"alexnet_pageable_malloc_sync.json.gz", HR_FORMAT_KINETO, 0, 79, 16, 12920.244, 10.630, 55.503, 0,
     12854.103, 16, 0, 0},
    {"pinned_h2d_pageable_d2h.json.gz", HR_FORMAT_KINETO, 3, 8568, 228, 464.594, 369.257, 53.454, 34.692,
     76.007, 0, 150, 60},
    {"h100_owlv2.json.gz", HR_FORMAT_KINETO, 0, 4330, 85, 1078.288, 551.452, 14.570, 0, 511.529, 25, 0, 55},
    {"mi300_qwen.json.gz", HR_FORMAT_KINETO, 2, 1516, 1, 47.086, 43.062, 0.001, 0, 4.023, 0, 0, 0},
    {"h100x2_pinned_offload.sqlite", HR_FORMAT_NSIGHT, 0, 1721, 452, 969.448, 22.385, 940.490, 0, 6.557, 2,
     223, 0},
    {"rtx4060ti_4streams_pinned.sqlite", HR_FORMAT_NSIGHT, 0, 4, 12, 101.999, 4.840, 91.742, 0, 5.417, 0, 8,
     0},
};

static void near(double found, double wanted, const char *what, const char *name)
{
    if (fabs(found - wanted) > 0.0015)
        fail_msg("%s: %s is %.3f, counted elsewhere as %.3f", name, what, found, wanted);
}

static void check_copies(const hr_trace *trace, uint32_t device, const hr_expected *want)
{
    uint32_t pageable_h2d = 0;
    uint32_t pinned_h2d = 0;
    uint32_t pageable_d2h = 0;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->device != device || event->kind != HR_EVENT_COPY)
            continue;
        hr_memory host = hr_event_host_memory(event);
        pageable_h2d += hr_event_is_upload(event) && host == HR_MEMORY_PAGEABLE;
        pinned_h2d += hr_event_is_upload(event) && host == HR_MEMORY_PINNED;
        pageable_d2h += hr_event_is_download(event) && host == HR_MEMORY_PAGEABLE;
    }
    assert_int_equal(pageable_h2d, want->pageable_h2d);
    assert_int_equal(pinned_h2d, want->pinned_h2d);
    assert_int_equal(pageable_d2h, want->pageable_d2h);
}

static void a_real_trace_is_read_to_the_event(void **state)
{
    const hr_expected *want = *state;
    const char *path = trace_path_or_skip(want->name);
    hr_error error = HR_ERROR_INIT;
    hr_trace *trace = NULL;
    if (hr_read_trace(path, &trace, &error) != HR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(trace->format, want->format);
    uint32_t device = HR_NONE;
    for (uint32_t i = 0; i < trace->device_count; i++) {
        if (trace->devices[i].id == want->device)
            device = i;
    }
    hr_trace_usage usage;
    assert_int_equal(hr_trace_measure(trace, device, &usage), HR_OK);
    assert_int_equal(usage.kernels, want->kernels);
    assert_int_equal(usage.copies, want->copies);
    near((double)usage.span_ns / 1e6, want->span_ms, "span", want->name);
    near((double)usage.kernel_ns / 1e6, want->kernel_ms, "kernel time", want->name);
    near((double)usage.copy_ns / 1e6, want->copy_ms, "copy time", want->name);
    near((double)usage.overlap_ns / 1e6, want->overlap_ms, "overlap", want->name);
    near((double)usage.idle_ns / 1e6, want->idle_ms, "idle time", want->name);
    check_copies(trace, device, want);
    hr_trace_free(&trace);
    assert_null(trace);
}

int main(void)
{
    enum { COUNT = sizeof expected / sizeof expected[0] };
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){.name = expected[i].name,
                                       .test_func = a_real_trace_is_read_to_the_event,
                                       .initial_state = (void *)&expected[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
