/* SPDX-License-Identifier: Apache-2.0 */
/* sync-call and alloc-in-loop on made-up traces. */
#include "support/trace_maker.h"

#include "trace/rule/rules.h"

/* Rounds of a kernel of 100 µs and a call of `name` that takes `call_us` from 20 µs behind the launch on. */
static trace_maker make_rounds(uint32_t rounds, const char *name, double call_us)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 7);
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    for (uint32_t i = 0; i < rounds; i++) {
        double at = i * 200.0;
        maker_launch(&maker, thread, stream, at, at + 6.0, at + 106.0);
        if (name != NULL)
            maker_call(&maker, thread, name, at + 20.0, at + 20.0 + call_us);
    }
    return maker;
}

static void a_wait_after_each_launch_is_found_and_recognised(void **state)
{
    (void)state;
    trace_maker maker = make_rounds(20, "cudaDeviceSynchronize", 90.0);
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_sync_call, &found), 1);
    /* Not the last: the result has to be waited for once. The first may be warm-up. */
    assert_in_range(found.count, 18, 19);
    assert_non_null(strstr(found.text, "macro"));
    assert_int_equal(found.repair.kind, HR_REPAIR_DROP_CALL);
}

static void the_final_wait_is_no_defect(void **state)
{
    (void)state;
    trace_maker maker = make_rounds(20, NULL, 0.0);
    maker_call(&maker, maker_thread(&maker, 7), "cudaDeviceSynchronize", 3830.0, 3910.0);
    assert_int_equal(maker_judge(&maker, &hr_rule_sync_call, NULL), 0);
}

static void a_wait_behind_a_download_is_needed(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 7);
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    for (uint32_t i = 0; i < 20; i++) {
        double at = i * 200.0;
        maker_launch(&maker, thread, stream, at, at + 6.0, at + 106.0);
        maker_call(&maker, thread, "cudaMemcpyAsync", at + 10.0, at + 13.0);
        maker_copy(&maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PINNED, 4096, at + 108.0, at + 110.0);
        maker_call(&maker, thread, "cudaStreamSynchronize", at + 20.0, at + 115.0);
    }
    /* No defect; that the host could look at its results a step later is told as a bound. */
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_sync_call, &found), 1);
    assert_int_equal(found.kind, HR_FINDING_INFORMATION);
    assert_int_equal(found.repair.kind, HR_REPAIR_READ_LATER);
    assert_in_range(found.count, 18, 19);
}

static void events_instead_of_waits_are_no_sync_call(void **state)
{
    (void)state;
    trace_maker maker = make_rounds(20, "cudaStreamWaitEvent", 1.0);
    assert_int_equal(maker_judge(&maker, &hr_rule_sync_call, NULL), 0);
}

static void memory_taken_in_the_loop_is_found(void **state)
{
    (void)state;
    trace_maker maker = make_rounds(20, "cudaFree", 90.0);
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_alloc_in_loop, &found), 1);
    assert_in_range(found.count, 18, 20);
    assert_int_equal(found.repair.kind, HR_REPAIR_DROP_CALL);
}

static void memory_taken_before_the_work_is_no_defect(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 7);
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    for (uint32_t i = 0; i < 12; i++)
        maker_call(&maker, thread, "cudaMalloc", i * 100.0, i * 100.0 + 90.0);
    for (uint32_t i = 0; i < 20; i++)
        maker_launch(&maker, thread, stream, 2000.0 + i * 200.0, 2006.0 + i * 200.0, 2106.0 + i * 200.0);
    assert_int_equal(maker_judge(&maker, &hr_rule_alloc_in_loop, NULL), 0);
}

static void a_pool_is_no_alloc_in_loop(void **state)
{
    (void)state;
    trace_maker maker = make_rounds(20, "cudaMallocAsync", 2.0);
    assert_int_equal(maker_judge(&maker, &hr_rule_alloc_in_loop, NULL), 0);
}

static void without_calls_neither_can_tell(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    maker_kernel(&maker, stream, "work", 0.0, 10.0);
    hr_trace *trace = maker_finish(&maker);
    assert_non_null(hr_rule_sync_call.lacks(trace));
    assert_non_null(hr_rule_alloc_in_loop.lacks(trace));
    hr_trace_free(&maker.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_after_each_launch_is_found_and_recognised),
        cmocka_unit_test(the_final_wait_is_no_defect),
        cmocka_unit_test(a_wait_behind_a_download_is_needed),
        cmocka_unit_test(events_instead_of_waits_are_no_sync_call),
        cmocka_unit_test(memory_taken_in_the_loop_is_found),
        cmocka_unit_test(memory_taken_before_the_work_is_no_defect),
        cmocka_unit_test(a_pool_is_no_alloc_in_loop),
        cmocka_unit_test(without_calls_neither_can_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
