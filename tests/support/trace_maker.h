/* SPDX-License-Identifier: Apache-2.0 */
/* Small made-up traces for tests of what reads the model: one process, one device, times in microseconds. */
#ifndef HR_TESTS_SUPPORT_TRACE_MAKER_H
#define HR_TESTS_SUPPORT_TRACE_MAKER_H

#include "support/unit.h"

#include "trace/model/model.h"

#include <string.h>

typedef struct trace_maker {
    hr_trace *trace;
    uint32_t process, device;
    uint64_t correlation; /* of the last call */
} trace_maker;

static inline trace_maker maker_open(void)
{
    trace_maker maker = {0};
    assert_int_equal(hr_trace_new("made.json", &maker.trace, NULL), HR_OK);
    maker.process = hr_trace_process_of(maker.trace, 1);
    maker.device = hr_trace_device_of(maker.trace, 0);
    return maker;
}

static inline uint32_t maker_device(trace_maker *maker, uint64_t id)
{
    return hr_trace_device_of(maker->trace, id);
}

static inline uint32_t maker_thread(trace_maker *maker, uint64_t id)
{
    return hr_trace_thread_of(maker->trace, maker->process, id);
}

static inline uint32_t maker_stream(trace_maker *maker, uint64_t id, hr_stream_flag flag)
{
    uint32_t stream = hr_trace_stream_of(maker->trace, maker->process, maker->device, 1, id);
    maker->trace->streams[stream].flag = flag;
    return stream;
}

static inline hr_event *maker_event(trace_maker *maker, const char *name, double begin_us, double end_us)
{
    hr_event *event = hr_trace_add(maker->trace);
    assert_non_null(event);
    event->begin_ns = (int64_t)(begin_us * 1e3);
    event->end_ns = (int64_t)(end_us * 1e3);
    event->process = maker->process;
    event->name = hr_trace_string(maker->trace, name, strlen(name));
    return event;
}

/* A call; work that is added next belongs to it. */
static inline hr_event *maker_call(trace_maker *maker, uint32_t thread, const char *name, double begin_us,
                                   double end_us)
{
    hr_event *event = maker_event(maker, name, begin_us, end_us);
    hr_call call = HR_CALL_OTHER;
    assert_true(hr_call_from_name(name, strlen(name), &call));
    event->kind = HR_EVENT_CALL;
    event->call = (uint8_t)call;
    event->thread = thread;
    event->correlation = ++maker->correlation;
    return event;
}

static inline hr_event *maker_kernel(trace_maker *maker, uint32_t stream, const char *name, double begin_us,
                                     double end_us)
{
    hr_event *event = maker_event(maker, name, begin_us, end_us);
    event->kind = HR_EVENT_KERNEL;
    event->device = maker->device;
    event->stream = stream;
    event->correlation = maker->correlation;
    return event;
}

static inline hr_event *maker_copy(trace_maker *maker, uint32_t stream, hr_direction direction,
                                   hr_memory host, uint64_t bytes, double begin_us, double end_us)
{
    hr_event *event =
        maker_event(maker, direction == HR_DIRECTION_D2H ? "Memcpy DtoH" : "Memcpy HtoD", begin_us, end_us);
    event->kind = HR_EVENT_COPY;
    event->direction = (uint8_t)direction;
    event->source = (uint8_t)(direction == HR_DIRECTION_D2H ? HR_MEMORY_DEVICE : host);
    event->sink = (uint8_t)(direction == HR_DIRECTION_D2H ? host : HR_MEMORY_DEVICE);
    event->bytes = bytes;
    event->device = maker->device;
    event->stream = stream;
    event->correlation = maker->correlation;
    return event;
}

/* One launch at `at_us`, its call of 5 µs on `thread`, running from `begin_us` to `end_us`. */
static inline void maker_launch(trace_maker *maker, uint32_t thread, uint32_t stream, double at_us,
                                double begin_us, double end_us)
{
    maker_call(maker, thread, "cudaLaunchKernel", at_us, at_us + 5.0);
    maker_kernel(maker, stream, "work", begin_us, end_us);
}

static inline hr_trace *maker_finish(trace_maker *maker)
{
    assert_int_equal(hr_trace_finish(maker->trace, NULL), HR_OK);
    return maker->trace;
}

/* Runs one rule and returns how many findings it makes; *first is a copy of the first one's head. Frees the
 * trace. */
static inline uint32_t maker_judge(trace_maker *maker, const hr_rule *rule, hr_finding *first)
{
    hr_trace *trace = maker_finish(maker);
    assert_null(rule->lacks(trace));
    hr_findings findings = {0};
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(rule->check(trace, &findings, &error), HR_OK);
    uint32_t count = findings.count;
    if (count > 0) {
        assert_string_equal(findings.at[0].rule, rule->name);
        assert_true(strlen(findings.at[0].text) > 20);
        assert_true(strlen(findings.at[0].fix) > 20 || findings.at[0].kind == HR_FINDING_SUSPENDED);
        if (first != NULL)
            *first = findings.at[0];
    }
    hr_findings_free(&findings);
    hr_trace_free(&maker->trace);
    return count;
}

#endif
