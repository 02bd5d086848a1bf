/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on wrong data: which copies nothing puts in order. */
#include "support/trace_maker.h"

#include "trace/rule/rules.h"

#define KIB UINT64_C(1024)

enum { HOST = 0x10000, DEVICE = 0x900000 };

/* What stands between the two copies. */
typedef enum edge_kind {
    NOTHING,
    EVENT,       /* recorded after the first, waited for by the second's stream */
    EARLY_EVENT, /* recorded before the first: no help */
    HOST_SYNC,   /* cudaStreamSynchronize of the first's stream */
    OTHER_SYNC,  /* cudaStreamSynchronize of a third stream: no help */
    EVENT_SYNC,  /* cudaEventSynchronize */
    LATE_QUERY   /* cudaEventQuery after the first copy was done */
} edge_kind;

typedef struct scene {
    trace_maker maker;
    uint32_t thread, first, second, third;
} scene;

static void copy(scene *made, uint32_t stream, hr_direction direction, uint64_t host, uint64_t device,
                 double at)
{
    maker_call(&made->maker, made->thread, "cudaMemcpyAsync", at, at + 2.0);
    hr_event *event =
        maker_copy(&made->maker, stream, direction, HR_MEMORY_PINNED, 64 * KIB, at + 10.0, at + 60.0);
    event->source_address = direction == HR_DIRECTION_H2D ? host : device;
    event->sink_address = direction == HR_DIRECTION_H2D ? device : host;
}

static void call_on(scene *made, const char *name, uint32_t stream, uint64_t object, double at)
{
    hr_event *call = maker_call(&made->maker, made->thread, name, at, at + 1.0);
    call->stream = stream;
    call->object = object;
}

static scene begin(edge_kind edge)
{
    scene made = {.maker = maker_open()};
    made.thread = maker_thread(&made.maker, 1);
    made.first = maker_stream(&made.maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    made.second = maker_stream(&made.maker, 8, HR_STREAM_FLAG_NON_BLOCKING);
    made.third = maker_stream(&made.maker, 9, HR_STREAM_FLAG_NON_BLOCKING);
    if (edge == EARLY_EVENT)
        call_on(&made, "cudaEventRecord", made.first, 5, 1.0);
    return made;
}

static void between(scene *made, edge_kind edge)
{
    if (edge == EVENT || edge == EVENT_SYNC)
        call_on(made, "cudaEventRecord", made->first, 5, 14.0);
    if (edge == EVENT || edge == EARLY_EVENT)
        call_on(made, "cudaStreamWaitEvent", made->second, 5, 16.0);
    if (edge == EVENT_SYNC)
        call_on(made, "cudaEventSynchronize", HR_NONE, 5, 16.0);
    if (edge == HOST_SYNC)
        call_on(made, "cudaStreamSynchronize", made->first, 0, 16.0);
    if (edge == OTHER_SYNC)
        call_on(made, "cudaStreamSynchronize", made->third, 0, 16.0);
    if (edge == LATE_QUERY)
        call_on(made, "cudaEventQuery", HR_NONE, 5, 75.0);
}

/* Upload into device memory, then, on another stream, a download from `offset` within it. */
static uint32_t device_pair(edge_kind edge, uint64_t offset)
{
    scene made = begin(edge);
    copy(&made, made.first, HR_DIRECTION_H2D, HOST, DEVICE, 10.0);
    between(&made, edge);
    copy(&made, made.second, HR_DIRECTION_D2H, HOST + 1024 * KIB, DEVICE + offset, 80.0);
    return maker_judge(&made.maker, &hr_rule_missing_dependency, NULL);
}

static void an_edge_between_the_two_makes_the_difference(void **state)
{
    (void)state;
    assert_int_equal(device_pair(NOTHING, 0), 1);
    assert_int_equal(device_pair(EARLY_EVENT, 0), 1);
    assert_int_equal(device_pair(OTHER_SYNC, 0), 1);
    assert_int_equal(device_pair(EVENT, 0), 0);
    assert_int_equal(device_pair(HOST_SYNC, 0), 0);
    assert_int_equal(device_pair(EVENT_SYNC, 0), 0);
    assert_int_equal(device_pair(LATE_QUERY, 0), 0);
}

static void memory_that_only_touches_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(device_pair(NOTHING, 64 * KIB - 1), 1);
    assert_int_equal(device_pair(NOTHING, 64 * KIB), 0);
}

static void the_same_stream_is_in_order(void **state)
{
    (void)state;
    scene made = begin(NOTHING);
    copy(&made, made.first, HR_DIRECTION_H2D, HOST, DEVICE, 10.0);
    copy(&made, made.first, HR_DIRECTION_D2H, HOST + 1024 * KIB, DEVICE, 80.0);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_missing_dependency, NULL), 0);
}

static void an_edge_through_a_third_stream_counts(void **state)
{
    (void)state;
    scene made = begin(NOTHING);
    copy(&made, made.first, HR_DIRECTION_H2D, HOST, DEVICE, 10.0);
    call_on(&made, "cudaEventRecord", made.first, 5, 14.0);
    call_on(&made, "cudaStreamWaitEvent", made.third, 5, 16.0);
    call_on(&made, "cudaEventRecord", made.third, 6, 18.0);
    call_on(&made, "cudaStreamWaitEvent", made.second, 6, 20.0);
    copy(&made, made.second, HR_DIRECTION_D2H, HOST + 1024 * KIB, DEVICE, 80.0);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_missing_dependency, NULL), 0);
}

/* A pair on the same host memory: an upload from it and a download into it, in either order. */
static scene host_pair(edge_kind edge, bool upload_first)
{
    scene made = begin(edge);
    copy(&made, made.first, upload_first ? HR_DIRECTION_H2D : HR_DIRECTION_D2H, HOST, DEVICE, 10.0);
    between(&made, edge);
    copy(&made, made.second, upload_first ? HR_DIRECTION_D2H : HR_DIRECTION_H2D, HOST, DEVICE + 1024 * KIB,
         80.0);
    return made;
}

static void a_buffer_filled_while_it_is_read_is_reuse_and_the_reverse_is_read_early(void **state)
{
    (void)state;
    scene made = host_pair(NOTHING, true);
    hr_finding finding;
    assert_int_equal(maker_judge(&made.maker, &hr_rule_buffer_reuse, &finding), 1);
    assert_int_equal(finding.kind, HR_FINDING_DEFECT);
    made = host_pair(NOTHING, true);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_read_early, NULL), 0);
    made = host_pair(NOTHING, false);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_read_early, &finding), 1);
    made = host_pair(NOTHING, false);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_buffer_reuse, NULL), 0);
    made = host_pair(EVENT, true);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_buffer_reuse, NULL), 0);
    made = host_pair(EVENT_SYNC, false);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_read_early, NULL), 0);
}

/* Upload, a call on memory, and an upload on another stream to the same address. */
static uint32_t taken_again(const char *call)
{
    scene made = begin(NOTHING);
    copy(&made, made.first, HR_DIRECTION_H2D, HOST, DEVICE, 10.0);
    call_on(&made, call, made.first, 0, 14.0);
    copy(&made, made.second, HR_DIRECTION_H2D, HOST + 1024 * KIB, DEVICE, 80.0);
    return maker_judge(&made.maker, &hr_rule_missing_dependency, NULL);
}

static void memory_that_was_released_meanwhile_is_another_one(void **state)
{
    (void)state;
    assert_int_equal(taken_again("cudaFreeAsync"), 0);
    assert_int_equal(taken_again("cudaFree"), 0);
    assert_int_equal(taken_again("cudaMallocAsync"), 1);
    /* What was released lies on the host: the device's memory is what it was. */
    scene made = host_pair(NOTHING, true);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_buffer_reuse, NULL), 1);
    made = begin(NOTHING);
    copy(&made, made.first, HR_DIRECTION_H2D, HOST, DEVICE, 10.0);
    call_on(&made, "cudaFreeHost", made.first, 0, 14.0);
    copy(&made, made.second, HR_DIRECTION_D2H, HOST, DEVICE + 1024 * KIB, 80.0);
    assert_int_equal(maker_judge(&made.maker, &hr_rule_buffer_reuse, NULL), 0);
}

static void an_upload_from_pageable_memory_has_taken_its_data(void **state)
{
    (void)state;
    scene made = host_pair(NOTHING, true);
    for (uint32_t i = 0; i < made.maker.trace->event_count; i++) {
        hr_event *event = &made.maker.trace->events[i];
        if (event->kind == HR_EVENT_COPY && event->direction == HR_DIRECTION_H2D)
            event->source = HR_MEMORY_PAGEABLE;
    }
    assert_int_equal(maker_judge(&made.maker, &hr_rule_buffer_reuse, NULL), 0);
}

static void without_addresses_nobody_can_tell(void **state)
{
    (void)state;
    scene made = host_pair(NOTHING, true);
    for (uint32_t i = 0; i < made.maker.trace->event_count; i++)
        made.maker.trace->events[i].source_address = made.maker.trace->events[i].sink_address = 0;
    hr_trace *trace = maker_finish(&made.maker);
    assert_non_null(hr_rule_missing_dependency.lacks(trace));
    assert_non_null(hr_rule_buffer_reuse.lacks(trace));
    assert_non_null(hr_rule_read_early.lacks(trace));
    hr_trace_free(&made.maker.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edge_between_the_two_makes_the_difference),
        cmocka_unit_test(memory_that_only_touches_does_not_count),
        cmocka_unit_test(the_same_stream_is_in_order),
        cmocka_unit_test(an_edge_through_a_third_stream_counts),
        cmocka_unit_test(a_buffer_filled_while_it_is_read_is_reuse_and_the_reverse_is_read_early),
        cmocka_unit_test(memory_that_was_released_meanwhile_is_another_one),
        cmocka_unit_test(an_upload_from_pageable_memory_has_taken_its_data),
        cmocka_unit_test(without_addresses_nobody_can_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
