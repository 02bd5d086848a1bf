/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on what is made and thrown away in the loop, and on what happens once. */
#include "support/trace_maker.h"

#include "trace/rule/rules.h"

/* Twenty steps of one kernel of 400 µs every 500 µs; `call` lasts 60 µs before each when it is not null. */
static trace_maker loop_with(const char *call, unsigned from_step, unsigned every)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 20; step++) {
        double at = step * 500.0;
        if (call != NULL && step >= from_step && step % every == 0)
            maker_call(&maker, thread, call, at, at + 60.0);
        maker_launch(&maker, thread, stream, at + 61.0, at + 70.0, at + 470.0);
    }
    return maker;
}

static void pinning_in_every_step_is_found(void **state)
{
    (void)state;
    trace_maker maker = loop_with("cudaHostAlloc", 0, 1);
    hr_finding finding;
    assert_int_equal(maker_judge(&maker, &hr_rule_pin_churn, &finding), 1);
    assert_int_equal(finding.kind, HR_FINDING_DEFECT);
    assert_int_equal(finding.repair.kind, HR_REPAIR_DROP_CALL);
    /* The first step is warm-up: the kernel is new. */
    assert_int_equal(finding.count, 19);
    assert_int_equal(finding.blocked_ns, 19 * 60000);
}

static void pinning_before_the_loop_is_not(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned i = 0; i < 10; i++)
        maker_call(&maker, thread, "cudaHostAlloc", i * 100.0, i * 100.0 + 90.0);
    for (unsigned step = 0; step < 20; step++)
        maker_launch(&maker, thread, stream, 2000.0 + step * 500.0, 2010.0 + step * 500.0,
                     2400.0 + step * 500.0);
    assert_int_equal(maker_judge(&maker, &hr_rule_pin_churn, NULL), 0);
}

static void making_events_in_every_step_is_found_and_now_and_then_is_not(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker often = loop_with("cudaEventCreateWithFlags", 0, 1);
    assert_int_equal(maker_judge(&often, &hr_rule_resource_churn, &finding), 1);
    assert_int_equal(finding.count, 19);
    trace_maker seldom = loop_with("cudaEventCreateWithFlags", 0, 5);
    assert_int_equal(maker_judge(&seldom, &hr_rule_resource_churn, NULL), 0);
}

/* A launch of a new kernel in the middle, whose call takes `us`. */
static trace_maker first_launch_of(double us, bool busy)
{
    trace_maker maker = loop_with(NULL, 0, 1);
    uint32_t thread = maker_thread(&maker, 2), stream = maker_stream(&maker, 8, HR_STREAM_FLAG_NON_BLOCKING);
    double at = busy ? 5100.0 : 20000.0;
    maker_call(&maker, thread, "cudaLaunchKernel", at, at + us);
    maker_kernel(&maker, stream, "seldom_used", at + us, at + us + 100.0);
    return maker;
}

static void a_first_launch_that_takes_long_beside_running_work_is_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker slow = first_launch_of(4000.0, true);
    assert_int_equal(maker_judge(&slow, &hr_rule_lazy_load, &finding), 1);
    assert_int_equal(finding.count, 1);
    assert_non_null(strstr(finding.text, "seldom_used"));
    trace_maker quick = first_launch_of(20.0, true);
    assert_int_equal(maker_judge(&quick, &hr_rule_lazy_load, NULL), 0);
    trace_maker quiet = first_launch_of(4000.0, false);
    assert_int_equal(maker_judge(&quiet, &hr_rule_lazy_load, NULL), 0);
}

static trace_maker managed(hr_direction direction, const char *call)
{
    trace_maker maker = loop_with(NULL, 0, 1);
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    maker_call(&maker, thread, call, 11000.0, 11010.0);
    maker_copy(&maker, stream, direction, HR_MEMORY_MANAGED, 1 << 21, 11020.0, 11080.0);
    return maker;
}

static void moves_on_demand_are_found_and_prefetched_ones_are_not(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker demand = managed(HR_DIRECTION_MIGRATE_H2D, "cudaLaunchKernel");
    assert_int_equal(maker_judge(&demand, &hr_rule_managed_fault, &finding), 1);
    assert_int_equal(finding.bytes, 1 << 21);
    trace_maker prefetched = managed(HR_DIRECTION_MIGRATE_H2D, "cudaMemPrefetchAsync");
    assert_int_equal(maker_judge(&prefetched, &hr_rule_managed_fault, NULL), 0);
}

static void managed_memory_without_records_of_its_moves_cannot_be_judged(void **state)
{
    (void)state;
    trace_maker maker = loop_with("cudaMallocManaged", 0, 20);
    hr_trace *trace = maker_finish(&maker);
    assert_non_null(hr_rule_managed_fault.lacks(trace));
    hr_trace_free(&maker.trace);
}

/* Launches that last until their kernel is done, or return at once. */
static trace_maker launches(bool blocking)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 40; step++) {
        double at = step * 200.0;
        maker_call(&maker, thread, "cudaLaunchKernel", at, blocking ? at + 180.0 : at + 5.0);
        maker_kernel(&maker, stream, "work", at + 8.0, at + 170.0);
    }
    return maker;
}

static void launches_that_wait_for_their_kernel_suspend_the_verdicts(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker blocking = launches(true);
    assert_int_equal(maker_judge(&blocking, &hr_rule_profiler, &finding), 1);
    assert_int_equal(finding.kind, HR_FINDING_SUSPENDED);
    assert_int_equal(finding.count, 40);
    trace_maker free_running = launches(false);
    assert_int_equal(maker_judge(&free_running, &hr_rule_profiler, NULL), 0);
}

/* Calls of 12 µs under a slow recorder, kernels of 2 µs that begin 6 µs after them: done before the call is, and not waited for. */
static void kernels_that_are_done_before_a_slow_call_are_not_waited_for(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 100; step++) {
        double at = step * 13.0;
        maker_call(&maker, thread, "cudaLaunchKernel", at, at + 12.0);
        maker_kernel(&maker, stream, "work", at + 6.0, at + 8.0);
    }
    assert_int_equal(maker_judge(&maker, &hr_rule_profiler, NULL), 0);
}

static void lost_records_are_told_and_suspend_nothing(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker maker = launches(false);
    maker.trace->lost_records = 12;
    assert_int_equal(maker_judge(&maker, &hr_rule_profiler, &finding), 1);
    assert_int_equal(finding.kind, HR_FINDING_INFORMATION);
    assert_int_equal(finding.count, 12);
}

static void without_calls_nothing_is_judged(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    maker_kernel(&maker, stream, "work", 0.0, 10.0);
    hr_trace *trace = maker_finish(&maker);
    const hr_rule *const need_calls[] = {&hr_rule_pin_churn, &hr_rule_resource_churn, &hr_rule_lazy_load,
                                         &hr_rule_profiler,  &hr_rule_cpu_feeder,     &hr_rule_sync_memset};
    for (size_t i = 0; i < sizeof need_calls / sizeof need_calls[0]; i++)
        assert_non_null(need_calls[i]->lacks(trace));
    hr_trace_free(&maker.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinning_in_every_step_is_found),
        cmocka_unit_test(pinning_before_the_loop_is_not),
        cmocka_unit_test(making_events_in_every_step_is_found_and_now_and_then_is_not),
        cmocka_unit_test(a_first_launch_that_takes_long_beside_running_work_is_found),
        cmocka_unit_test(moves_on_demand_are_found_and_prefetched_ones_are_not),
        cmocka_unit_test(managed_memory_without_records_of_its_moves_cannot_be_judged),
        cmocka_unit_test(launches_that_wait_for_their_kernel_suspend_the_verdicts),
        cmocka_unit_test(kernels_that_are_done_before_a_slow_call_are_not_waited_for),
        cmocka_unit_test(lost_records_are_told_and_suspend_nothing),
        cmocka_unit_test(without_calls_nothing_is_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
