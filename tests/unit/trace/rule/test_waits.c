/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on waits: of the host, of streams, of threads for each other. */
#include "support/trace_maker.h"

#include "trace/rule/rules.h"

#define MIB (UINT64_C(1) << 20)

static trace_maker fills(double call_us)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 20; step++) {
        double at = step * 1000.0;
        maker_launch(&maker, thread, stream, at, at + 10.0, at + 400.0);
        maker_call(&maker, thread, "cudaMemset", at + 20.0, at + 20.0 + call_us);
        hr_event *fill = maker_kernel(&maker, stream, "Memset", at + 405.0, at + 410.0);
        fill->kind = HR_EVENT_FILL;
    }
    return maker;
}

static void a_fill_that_holds_the_host_is_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker slow = fills(380.0);
    assert_int_equal(maker_judge(&slow, &hr_rule_sync_memset, &finding), 1);
    assert_int_equal(finding.repair.kind, HR_REPAIR_UNBLOCK);
    trace_maker quick = fills(4.0);
    assert_int_equal(maker_judge(&quick, &hr_rule_sync_memset, NULL), 0);
}

/* Work of two streams with one operation of the default stream between the steps. */
static trace_maker beside_the_default_stream(hr_stream_flag flag)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t null = maker_stream(&maker, 0, HR_STREAM_FLAG_NULL);
    uint32_t first = maker_stream(&maker, 13, flag), second = maker_stream(&maker, 14, flag);
    for (unsigned step = 0; step < 6; step++) {
        double at = step * 1000.0;
        maker_launch(&maker, thread, first, at, at + 10.0, at + 300.0);
        maker_launch(&maker, thread, null, at + 6.0, at + 301.0, at + 310.0);
        maker_launch(&maker, thread, second, at + 12.0, at + 311.0, at + 600.0);
    }
    return maker;
}

static void the_default_stream_between_blocking_streams_is_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker blocking = beside_the_default_stream(HR_STREAM_FLAG_BLOCKING);
    assert_int_equal(maker_judge(&blocking, &hr_rule_null_stream, &finding), 1);
    assert_int_equal(finding.count, 6);
    assert_int_equal(finding.repair.kind, HR_REPAIR_FREE_STREAM);
    trace_maker free_streams = beside_the_default_stream(HR_STREAM_FLAG_NON_BLOCKING);
    assert_int_equal(maker_judge(&free_streams, &hr_rule_null_stream, NULL), 0);
}

static void without_the_flags_of_streams_nobody_can_tell(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_UNKNOWN);
    maker_launch(&maker, thread, stream, 0.0, 10.0, 20.0);
    assert_non_null(hr_rule_null_stream.lacks(maker_finish(&maker)));
    hr_trace_free(&maker.trace);
}

/* Steps of 400 µs of kernel and `silence_us` in which nobody calls anything. */
static trace_maker steps_with_silence(double silence_us)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 4711),
             stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 10; step++) {
        double at = step * (410.0 + silence_us);
        maker_launch(&maker, thread, stream, at, at + 5.0, at + 405.0);
    }
    return maker;
}

static void silence_of_the_host_is_found_and_names_the_thread(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker slow = steps_with_silence(600.0);
    assert_int_equal(maker_judge(&slow, &hr_rule_cpu_feeder, &finding), 1);
    assert_int_equal(finding.count, 9);
    assert_non_null(strstr(finding.text, "4711"));
    trace_maker quick = steps_with_silence(4.0);
    assert_int_equal(maker_judge(&quick, &hr_rule_cpu_feeder, NULL), 0);
}

/* Upload, wait, then the host fills the buffer for `fill_us`, and again. */
static trace_maker staged(double fill_us, bool reads_back)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 12; step++) {
        double at = step * (190.0 + fill_us);
        maker_call(&maker, thread, "cudaMemcpyAsync", at, at + 2.0);
        maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 8 * MIB, at + 5.0, at + 165.0);
        if (reads_back) {
            maker_call(&maker, thread, "cudaMemcpyAsync", at + 3.0, at + 5.0);
            maker_copy(&maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PINNED, 4, at + 166.0, at + 168.0);
        }
        maker_call(&maker, thread, "cudaStreamSynchronize", at + 6.0, at + 170.0);
    }
    return maker;
}

static void one_staging_buffer_in_turn_is_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker turns = staged(150.0, false);
    assert_int_equal(maker_judge(&turns, &hr_rule_host_staging, &finding), 1);
    assert_int_equal(finding.count, 11);
    assert_int_equal(finding.repair.kind, HR_REPAIR_DROP_CALL);
    trace_maker direct = staged(0.0, false);
    assert_int_equal(maker_judge(&direct, &hr_rule_host_staging, NULL), 0);
    /* The host waits for what it reads back, not for the buffer. */
    trace_maker reading = staged(150.0, true);
    assert_int_equal(maker_judge(&reading, &hr_rule_host_staging, NULL), 0);
}

/* 1,500 launches ahead of the GPU; every call after `full` pending ones takes 200 µs. */
static trace_maker far_ahead(unsigned full)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    double at = 0.0;
    for (unsigned i = 0; i < 1500; i++) {
        double length = i >= full ? 200.0 : 2.0;
        maker_call(&maker, thread, "cudaLaunchKernel", at, at + length);
        maker_kernel(&maker, stream, "work", 4000.0 + i * 200.0, 4000.0 + i * 200.0 + 199.0);
        at += length + 1.0;
    }
    return maker;
}

static void calls_held_by_a_full_queue_are_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker full = far_ahead(1024);
    assert_int_equal(maker_judge(&full, &hr_rule_queue_full, &finding), 1);
    assert_true(finding.count >= 400);
    trace_maker room = far_ahead(1500);
    assert_int_equal(maker_judge(&room, &hr_rule_queue_full, NULL), 0);
}

/* One thread launches; another allocates now and then; launches beside an allocation take `beside_us`. */
static trace_maker two_threads(double beside_us)
{
    trace_maker maker = maker_open();
    uint32_t launcher = maker_thread(&maker, 1), other = maker_thread(&maker, 2);
    uint32_t stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned i = 0; i < 100; i++) {
        double at = i * 1000.0;
        bool beside = i % 2 == 1;
        if (beside)
            maker_call(&maker, other, "cudaMalloc", at, at + 500.0);
        maker_call(&maker, launcher, "cudaLaunchKernel", at + 10.0, at + 10.0 + (beside ? beside_us : 5.0));
        maker_kernel(&maker, stream, "work", at + 600.0, at + 900.0);
    }
    return maker;
}

static void calls_long_only_beside_another_thread_are_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker locked = two_threads(480.0);
    assert_int_equal(maker_judge(&locked, &hr_rule_driver_lock, &finding), 1);
    assert_int_equal(finding.count, 50);
    assert_non_null(strstr(finding.text, "cudaMalloc"));
    trace_maker free_threads = two_threads(6.0);
    assert_int_equal(maker_judge(&free_threads, &hr_rule_driver_lock, NULL), 0);
}

/* `streams` streams launch at once; at most `at_once` of their kernels run together. */
static trace_maker many_streams(unsigned streams, unsigned at_once)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    for (unsigned s = 0; s < streams; s++) {
        uint32_t stream = maker_stream(&maker, 20 + s, HR_STREAM_FLAG_NON_BLOCKING);
        double begin = 200.0 + (s / at_once) * 1000.0;
        maker_launch(&maker, thread, stream, s * 6.0, begin, begin + 990.0);
    }
    return maker;
}

static void more_streams_than_queues_are_found_only_when_they_waited(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker many = many_streams(16, 8);
    assert_int_equal(maker_judge(&many, &hr_rule_false_dependency, &finding), 1);
    assert_int_equal(finding.count, 8);
    trace_maker together = many_streams(16, 16);
    assert_int_equal(maker_judge(&together, &hr_rule_false_dependency, NULL), 0);
    trace_maker few = many_streams(8, 4);
    assert_int_equal(maker_judge(&few, &hr_rule_false_dependency, NULL), 0);
}

/* A kernel of 2 ms holds the GPU; another stream's kernel and copy come after it, or beside it. */
static trace_maker behind_a_large_kernel(bool waits)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t large = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    uint32_t small = maker_stream(&maker, 8, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 5; step++) {
        double at = step * 3000.0;
        maker_launch(&maker, thread, large, at, at + 10.0, at + 2010.0);
        double begin = waits ? at + 2011.0 : at + 25.0;
        maker_launch(&maker, thread, small, at + 10.0, begin, begin + 50.0);
        maker_call(&maker, thread, "cudaMemcpyAsync", at + 16.0, at + 18.0);
        maker_copy(&maker, small, HR_DIRECTION_D2H, HR_MEMORY_PINNED, MIB, begin + 52.0, begin + 72.0);
    }
    return maker;
}

static void a_kernel_without_room_and_the_copy_behind_it_are_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker waits = behind_a_large_kernel(true);
    assert_int_equal(maker_judge(&waits, &hr_rule_sm_full, &finding), 1);
    assert_int_equal(finding.count, 5);
    trace_maker beside = behind_a_large_kernel(false);
    assert_int_equal(maker_judge(&beside, &hr_rule_sm_full, NULL), 0);
}

/* An event, made in the trace or before it, waited for `early` times before its record, if there is one. */
static trace_maker event_waited(unsigned early, bool recorded, bool created)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    if (created)
        maker_call(&maker, thread, "cudaEventCreateWithFlags", 0.0, 1.0)->object = 77;
    for (unsigned i = 0; i < early; i++)
        maker_call(&maker, thread, "cudaStreamWaitEvent", 2.0 + i, 2.5 + i)->object = 77;
    if (recorded)
        maker_call(&maker, thread, "cudaEventRecord", 20.0, 21.0)->object = 77;
    maker_call(&maker, thread, "cudaStreamWaitEvent", 22.0, 23.0)->object = 77;
    maker_launch(&maker, thread, stream, 24.0, 35.0, 40.0);
    return maker;
}

static void waits_for_an_event_nobody_recorded_are_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker never = event_waited(0, false, true);
    assert_int_equal(maker_judge(&never, &hr_rule_event_misuse, &finding), 1);
    assert_int_equal(finding.count, 1);
    trace_maker often = event_waited(3, true, true);
    assert_int_equal(maker_judge(&often, &hr_rule_event_misuse, &finding), 1);
    assert_int_equal(finding.count, 3);
    trace_maker right = event_waited(0, true, true);
    assert_int_equal(maker_judge(&right, &hr_rule_event_misuse, NULL), 0);
    /* A ring begins with a wait for a buffer that was never used. */
    trace_maker ring = event_waited(1, true, true);
    assert_int_equal(maker_judge(&ring, &hr_rule_event_misuse, NULL), 0);
    /* It may have been recorded before the trace began. */
    trace_maker older = event_waited(3, true, false);
    assert_int_equal(maker_judge(&older, &hr_rule_event_misuse, NULL), 0);
}

static void a_wait_that_names_no_event_cannot_be_judged(void **state)
{
    (void)state;
    trace_maker maker = event_waited(1, true, true);
    for (uint32_t i = 0; i < maker.trace->event_count; i++)
        maker.trace->events[i].object = 0;
    assert_non_null(hr_rule_event_misuse.lacks(maker_finish(&maker)));
    hr_trace_free(&maker.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fill_that_holds_the_host_is_found),
        cmocka_unit_test(the_default_stream_between_blocking_streams_is_found),
        cmocka_unit_test(without_the_flags_of_streams_nobody_can_tell),
        cmocka_unit_test(silence_of_the_host_is_found_and_names_the_thread),
        cmocka_unit_test(one_staging_buffer_in_turn_is_found),
        cmocka_unit_test(calls_held_by_a_full_queue_are_found),
        cmocka_unit_test(calls_long_only_beside_another_thread_are_found),
        cmocka_unit_test(more_streams_than_queues_are_found_only_when_they_waited),
        cmocka_unit_test(a_kernel_without_room_and_the_copy_behind_it_are_found),
        cmocka_unit_test(waits_for_an_event_nobody_recorded_are_found),
        cmocka_unit_test(a_wait_that_names_no_event_cannot_be_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
