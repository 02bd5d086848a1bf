/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on copies: their shape, their speed, their order. */
#include "support/trace_maker.h"

#include "trace/rule/rules.h"

#define MIB (UINT64_C(1) << 20)

/* Copies in of `bytes` by `call` at `gbps`, after one flat copy of 64 MiB at 50 GB/s. */
static trace_maker copies_by(const char *call, uint64_t bytes, double gbps, hr_memory memory)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    double at = 0.0, flat_us = 64.0 * (double)MIB / 50e3;
    maker_call(&maker, thread, "cudaMemcpyAsync", at, at + 2.0);
    maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 64 * MIB, at + 5.0, at + 5.0 + flat_us);
    at += 10.0 + flat_us;
    for (unsigned i = 0; i < 10; i++) {
        double length = (double)bytes / (gbps * 1e3);
        maker_call(&maker, thread, call, at, at + 2.0);
        maker_copy(&maker, stream, HR_DIRECTION_H2D, memory, bytes, at + 5.0, at + 5.0 + length);
        at += 10.0 + length;
    }
    return maker;
}

static void narrow_rows_at_a_fifth_of_the_link_are_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker narrow = copies_by("cudaMemcpy2DAsync", 4 * MIB, 10.0, HR_MEMORY_PINNED);
    assert_int_equal(maker_judge(&narrow, &hr_rule_copy_shape, &finding), 1);
    assert_int_equal(finding.count, 10);
    assert_int_equal(finding.bytes, 40 * MIB);
    assert_non_null(strstr(finding.text, "10.0 GB/s"));
    trace_maker wide = copies_by("cudaMemcpy2DAsync", 4 * MIB, 48.0, HR_MEMORY_PINNED);
    assert_int_equal(maker_judge(&wide, &hr_rule_copy_shape, NULL), 0);
    trace_maker flat = copies_by("cudaMemcpyAsync", 4 * MIB, 10.0, HR_MEMORY_PINNED);
    assert_int_equal(maker_judge(&flat, &hr_rule_copy_shape, NULL), 0);
}

static void bulk_copies_far_below_the_best_are_information(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker slow = copies_by("cudaMemcpyAsync", 64 * MIB, 12.0, HR_MEMORY_PINNED);
    assert_int_equal(maker_judge(&slow, &hr_rule_link_slow, &finding), 1);
    assert_int_equal(finding.kind, HR_FINDING_INFORMATION);
    assert_int_equal(finding.count, 10);
    trace_maker good = copies_by("cudaMemcpyAsync", 64 * MIB, 45.0, HR_MEMORY_PINNED);
    assert_int_equal(maker_judge(&good, &hr_rule_link_slow, NULL), 0);
    /* Pageable copies are slow for another reason, which has a rule of its own. */
    trace_maker pageable = copies_by("cudaMemcpyAsync", 64 * MIB, 8.0, HR_MEMORY_PAGEABLE);
    assert_int_equal(maker_judge(&pageable, &hr_rule_link_slow, NULL), 0);
}

static void copies_without_sizes_or_kinds_cannot_be_judged(void **state)
{
    (void)state;
    trace_maker maker = copies_by("cudaMemcpyAsync", 64 * MIB, 45.0, HR_MEMORY_UNKNOWN);
    for (uint32_t i = 0; i < maker.trace->event_count; i++)
        maker.trace->events[i].source = HR_MEMORY_UNKNOWN;
    hr_trace *trace = maker_finish(&maker);
    assert_non_null(hr_rule_link_slow.lacks(trace));
    assert_non_null(hr_rule_copy_shape.lacks(trace));
    assert_non_null(hr_rule_host_staging.lacks(trace));
    hr_trace_free(&maker.trace);
}

/* A copy of 64 MiB on one stream and one of 4 KiB on another, submitted while the large one runs. */
static trace_maker large_then_small(hr_direction small_direction)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t large = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    uint32_t small = maker_stream(&maker, 8, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned i = 0; i < 5; i++) {
        double at = i * 2000.0;
        maker_call(&maker, thread, "cudaMemcpyAsync", at, at + 2.0);
        maker_copy(&maker, large, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 64 * MIB, at + 5.0, at + 1305.0);
        maker_call(&maker, thread, "cudaMemcpyAsync", at + 10.0, at + 12.0);
        double begin = small_direction == HR_DIRECTION_H2D ? at + 1306.0 : at + 14.0;
        maker_copy(&maker, small, small_direction, HR_MEMORY_PINNED, 4096, begin, begin + 2.0);
    }
    return maker;
}

static void a_small_copy_behind_a_large_one_of_its_direction_is_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker same = large_then_small(HR_DIRECTION_H2D);
    assert_int_equal(maker_judge(&same, &hr_rule_head_of_line, &finding), 1);
    assert_int_equal(finding.count, 5);
    assert_int_equal(finding.kind, HR_FINDING_INFORMATION);
    trace_maker other = large_then_small(HR_DIRECTION_D2H);
    assert_int_equal(maker_judge(&other, &hr_rule_head_of_line, NULL), 0);
}

/* Downloads from GPU 0 and uploads of the same, or another, size to GPU 1 right after. */
static trace_maker legs(uint64_t second_bytes)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    uint32_t peer = maker_device(&maker, 1);
    uint32_t peer_stream = hr_trace_stream_of(maker.trace, maker.process, peer, 2, 17);
    for (unsigned i = 0; i < 6; i++) {
        double at = i * 1000.0;
        maker_call(&maker, thread, "cudaMemcpyAsync", at, at + 2.0);
        maker_copy(&maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PINNED, 8 * MIB, at + 5.0, at + 165.0);
        maker_call(&maker, thread, "cudaMemcpyAsync", at + 170.0, at + 172.0);
        hr_event *up = maker_copy(&maker, peer_stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, second_bytes,
                                  at + 175.0, at + 335.0);
        up->device = peer;
    }
    return maker;
}

static void two_legs_of_the_same_size_are_found(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker two = legs(8 * MIB);
    assert_int_equal(maker_judge(&two, &hr_rule_peer_via_host, &finding), 1);
    assert_int_equal(finding.count, 6);
    assert_int_equal(finding.bytes, 48 * MIB);
    trace_maker unlike = legs(7 * MIB);
    assert_int_equal(maker_judge(&unlike, &hr_rule_peer_via_host, NULL), 0);
}

/*
 * Two streams: the first's download waits for a kernel of 1000 µs, the second's, submitted after it, is ready
 * at once. `late`: the engine took them in order of submission.
 */
static trace_maker two_downloads(bool late)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t first = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    uint32_t second = maker_stream(&maker, 8, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned i = 0; i < 5; i++) {
        double at = i * 3000.0;
        maker_launch(&maker, thread, first, at, at + 10.0, at + 1010.0);
        maker_call(&maker, thread, "cudaMemcpyAsync", at + 6.0, at + 8.0);
        maker_copy(&maker, first, HR_DIRECTION_D2H, HR_MEMORY_PINNED, MIB, at + 1012.0, at + 1032.0);
        maker_call(&maker, thread, "cudaMemcpyAsync", at + 9.0, at + 11.0);
        double begin = late ? at + 1033.0 : at + 12.0;
        maker_copy(&maker, second, HR_DIRECTION_D2H, HR_MEMORY_PINNED, MIB, begin, begin + 20.0);
    }
    return maker;
}

static void a_ready_copy_behind_one_that_is_not_is_found_only_when_it_waited(void **state)
{
    (void)state;
    hr_finding finding;
    trace_maker late = two_downloads(true);
    assert_int_equal(maker_judge(&late, &hr_rule_issue_order, &finding), 1);
    assert_int_equal(finding.count, 5);
    trace_maker prompt = two_downloads(false);
    assert_int_equal(maker_judge(&prompt, &hr_rule_issue_order, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_rows_at_a_fifth_of_the_link_are_found),
        cmocka_unit_test(bulk_copies_far_below_the_best_are_information),
        cmocka_unit_test(copies_without_sizes_or_kinds_cannot_be_judged),
        cmocka_unit_test(a_small_copy_behind_a_large_one_of_its_direction_is_found),
        cmocka_unit_test(two_legs_of_the_same_size_are_found),
        cmocka_unit_test(a_ready_copy_behind_one_that_is_not_is_found_only_when_it_waited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
