/* SPDX-License-Identifier: Apache-2.0 */
/* pageable-copy, sync-copy, tiny-copies and same-stream on made-up traces. */
#include "support/trace_maker.h"

#include "trace/rule/rules.h"

#define MIB UINT64_C(1048576)

typedef struct hr_loop {
    const char *call;
    hr_direction direction;
    hr_memory host;
    uint64_t bytes;
    double copy_us, kernel_us;
    double call_us; /* how long the copy's call takes */
    bool behind;    /* the call covers the copy */
    uint32_t rounds;
} hr_loop;

/* Rounds of one copy and one kernel in one stream, host and device in step. */
static trace_maker make_loop(const hr_loop *loop)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 7);
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    double at = 0.0;
    for (uint32_t i = 0; i < loop->rounds; i++) {
        double call = loop->behind ? loop->copy_us + 10.0 : loop->call_us;
        maker_call(&maker, thread, loop->call, at, at + call);
        maker_copy(&maker, stream, loop->direction, loop->host, loop->bytes, at + 5.0,
                   at + 5.0 + loop->copy_us);
        double launch = at + call + 1.0;
        double begin = at + 6.0 + loop->copy_us > launch + 3.0 ? at + 6.0 + loop->copy_us : launch + 3.0;
        maker_launch(&maker, thread, stream, launch, begin, begin + loop->kernel_us);
        at = begin + loop->kernel_us + 2.0;
    }
    return maker;
}

static const hr_loop pageable = {
    "cudaMemcpyAsync", HR_DIRECTION_H2D, HR_MEMORY_PAGEABLE, 64 * MIB, 8000.0, 1000.0, 0.0, true, 6};

static void pageable_uploads_that_hold_the_host_are_found(void **state)
{
    (void)state;
    trace_maker maker = make_loop(&pageable);
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_pageable_copy, &found), 1);
    assert_int_equal(found.count, 6);
    assert_int_equal(found.bytes, 6 * 64 * MIB);
    assert_int_equal(found.blocked_ns, 6 * 8010 * 1000);
    assert_int_equal(found.repair.kind, HR_REPAIR_PIN);
}

static void a_driver_call_is_found_like_a_runtime_call(void **state)
{
    (void)state;
    hr_loop loop = pageable;
    loop.call = "cuMemcpyHtoDAsync_v2";
    trace_maker maker = make_loop(&loop);
    assert_int_equal(maker_judge(&maker, &hr_rule_pageable_copy, NULL), 1);
}

static void pinned_copies_are_never_called_pageable(void **state)
{
    (void)state;
    hr_loop loop = pageable;
    loop.host = HR_MEMORY_PINNED;
    trace_maker maker = make_loop(&loop);
    assert_int_equal(maker_judge(&maker, &hr_rule_pageable_copy, NULL), 0);
}

static void small_uploads_that_return_at_once_are_harmless(void **state)
{
    (void)state;
    hr_loop loop = {"cudaMemcpyAsync", HR_DIRECTION_H2D, HR_MEMORY_PAGEABLE, 4096, 2.0, 100.0, 3.0, false, 8};
    trace_maker maker = make_loop(&loop);
    assert_int_equal(maker_judge(&maker, &hr_rule_pageable_copy, NULL), 0);
}

static void small_downloads_that_wait_are_found_by_the_wait_not_by_the_bytes(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t stream = maker_stream(&maker, 7, HR_STREAM_FLAG_UNKNOWN);
    for (int i = 0; i < 5; i++) {
        double at = i * 30000.0;
        maker_launch(&maker, thread, stream, at, at + 10.0, at + 25000.0);
        maker_call(&maker, thread, "cudaMemcpyAsync", at + 20.0, at + 25010.0);
        maker_copy(&maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PAGEABLE, 4, at + 25001.0, at + 25003.7);
    }
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_pageable_copy, &found), 1);
    assert_int_equal(found.blocked_ns, 5 * 24990 * 1000);
}

static void without_memory_kinds_pageable_copy_cannot_tell(void **state)
{
    (void)state;
    hr_loop loop = pageable;
    loop.host = HR_MEMORY_UNKNOWN;
    trace_maker maker = make_loop(&loop);
    hr_trace *trace = maker_finish(&maker);
    assert_non_null(hr_rule_pageable_copy.lacks(trace));
    hr_trace_free(&maker.trace);
}

static void blocking_copies_in_the_loop_are_found_and_the_last_is_left_out(void **state)
{
    (void)state;
    hr_loop loop = {"cudaMemcpy", HR_DIRECTION_H2D, HR_MEMORY_PINNED, 8 * MIB, 200.0, 300.0, 0.0, true, 8};
    trace_maker maker = make_loop(&loop);
    uint32_t thread = maker_thread(&maker, 7);
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    maker_call(&maker, thread, "cudaMemcpy", 10000.0, 10300.0);
    maker_copy(&maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PINNED, MIB, 10005.0, 10290.0);
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_sync_copy, &found), 1);
    /* The first rounds are warm-up, the download at the end is the result. */
    assert_in_range(found.count, 5, 8);
    assert_int_equal(found.repair.kind, HR_REPAIR_UNBLOCK);
}

static void asynchronous_copies_are_no_sync_copy(void **state)
{
    (void)state;
    hr_loop loop = {
        "cudaMemcpyAsync", HR_DIRECTION_H2D, HR_MEMORY_PINNED, 8 * MIB, 200.0, 300.0, 3.0, false, 8};
    trace_maker maker = make_loop(&loop);
    assert_int_equal(maker_judge(&maker, &hr_rule_sync_copy, NULL), 0);
}

static void without_correlation_sync_copy_and_tiny_copies_cannot_tell(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 7);
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    maker_call(&maker, thread, "cudaMemcpy", 0.0, 100.0)->correlation = 0;
    maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 100, 1.0, 90.0)->correlation = 0;
    hr_trace *trace = maker_finish(&maker);
    assert_non_null(hr_rule_sync_copy.lacks(trace));
    assert_non_null(hr_rule_tiny_copies.lacks(trace));
    /* Its only copy is pinned: that much can be told. */
    assert_null(hr_rule_pageable_copy.lacks(trace));
    hr_trace_free(&maker.trace);
}

static void a_pageable_copy_of_an_unknown_call_leaves_it_open(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PAGEABLE, 100, 1.0, 90.0);
    hr_trace *trace = maker_finish(&maker);
    assert_non_null(hr_rule_pageable_copy.lacks(trace));
    hr_trace_free(&maker.trace);
}

/* `count` copies of `bytes`, their calls 6 µs every 10 µs; `between` kernels stand between any two. */
static trace_maker make_small(uint32_t count, uint64_t bytes, bool between)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 7);
    uint32_t stream = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    for (uint32_t i = 0; i < count; i++) {
        double at = i * 40.0;
        maker_call(&maker, thread, "cudaMemcpyAsync", at, at + 6.0);
        maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, bytes, at + 7.0, at + 8.0);
        if (between)
            maker_launch(&maker, thread, stream, at + 10.0, at + 16.0, at + 30.0);
    }
    return maker;
}

static void many_small_copies_in_a_row_are_found(void **state)
{
    (void)state;
    trace_maker maker = make_small(100, 4096, false);
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_tiny_copies, &found), 1);
    assert_int_equal(found.count, 100);
    assert_int_equal(found.repair.kind, HR_REPAIR_BATCH);
}

static void few_copies_large_ones_and_separated_ones_are_no_tiny_copies(void **state)
{
    (void)state;
    trace_maker few = make_small(20, 4096, false);
    assert_int_equal(maker_judge(&few, &hr_rule_tiny_copies, NULL), 0);
    trace_maker large = make_small(100, MIB, false);
    assert_int_equal(maker_judge(&large, &hr_rule_tiny_copies, NULL), 0);
    trace_maker separated = make_small(100, 4096, true);
    assert_int_equal(maker_judge(&separated, &hr_rule_tiny_copies, NULL), 0);
}

static void copies_and_kernels_that_take_turns_are_found(void **state)
{
    (void)state;
    hr_loop loop = {
        "cudaMemcpyAsync", HR_DIRECTION_H2D, HR_MEMORY_PINNED, 64 * MIB, 1200.0, 1300.0, 3.0, false, 8};
    trace_maker maker = make_loop(&loop);
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_same_stream, &found), 1);
    assert_int_equal(found.kind, HR_FINDING_DEFECT);
    assert_int_equal(found.repair.kind, HR_REPAIR_OWN_STREAM);
}

static void a_bound_is_told_where_little_can_be_gained(void **state)
{
    (void)state;
    hr_loop loop = {
        "cudaMemcpyAsync", HR_DIRECTION_H2D, HR_MEMORY_PINNED, 64 * MIB, 1200.0, 20.0, 3.0, false, 8};
    trace_maker maker = make_loop(&loop);
    hr_finding found;
    assert_int_equal(maker_judge(&maker, &hr_rule_same_stream, &found), 1);
    assert_int_equal(found.kind, HR_FINDING_INFORMATION);
    assert_int_equal(found.most_ns, 8 * 20 * 1000);
    assert_int_equal(found.repair.kind, HR_REPAIR_NONE);
}

static void copies_beside_kernels_are_no_same_stream(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 7);
    uint32_t in = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    uint32_t compute = maker_stream(&maker, 14, HR_STREAM_FLAG_NON_BLOCKING);
    for (int i = 0; i < 8; i++) {
        double at = i * 1300.0;
        maker_call(&maker, thread, "cudaMemcpyAsync", at, at + 3.0);
        maker_copy(&maker, in, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 64 * MIB, at + 4.0, at + 1204.0);
        maker_launch(&maker, thread, compute, at + 5.0, at + 10.0, at + 1299.0);
    }
    assert_int_equal(maker_judge(&maker, &hr_rule_same_stream, NULL), 0);
}

static void without_streams_same_stream_cannot_tell(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    maker_kernel(&maker, HR_NONE, "work", 0.0, 10.0);
    hr_trace *trace = maker_finish(&maker);
    assert_non_null(hr_rule_same_stream.lacks(trace));
    hr_trace_free(&maker.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pageable_uploads_that_hold_the_host_are_found),
        cmocka_unit_test(a_driver_call_is_found_like_a_runtime_call),
        cmocka_unit_test(pinned_copies_are_never_called_pageable),
        cmocka_unit_test(small_uploads_that_return_at_once_are_harmless),
        cmocka_unit_test(small_downloads_that_wait_are_found_by_the_wait_not_by_the_bytes),
        cmocka_unit_test(without_memory_kinds_pageable_copy_cannot_tell),
        cmocka_unit_test(blocking_copies_in_the_loop_are_found_and_the_last_is_left_out),
        cmocka_unit_test(asynchronous_copies_are_no_sync_copy),
        cmocka_unit_test(without_correlation_sync_copy_and_tiny_copies_cannot_tell),
        cmocka_unit_test(a_pageable_copy_of_an_unknown_call_leaves_it_open),
        cmocka_unit_test(many_small_copies_in_a_row_are_found),
        cmocka_unit_test(few_copies_large_ones_and_separated_ones_are_no_tiny_copies),
        cmocka_unit_test(copies_and_kernels_that_take_turns_are_found),
        cmocka_unit_test(a_bound_is_told_where_little_can_be_gained),
        cmocka_unit_test(copies_beside_kernels_are_no_same_stream),
        cmocka_unit_test(without_streams_same_stream_cannot_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
