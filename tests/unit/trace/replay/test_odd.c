/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that are odd in their order: calls within calls, and clocks that contradict each other. */
#include "support/trace_maker.h"

#include "trace/replay/replay.h"

/* Replays the trace unchanged, checks that its span comes out, and gives back how many orders were left out. */
static uint32_t replayed(trace_maker *maker)
{
    hr_trace *trace = maker_finish(maker);
    hr_graph *graph = NULL;
    hr_replay *replay = NULL;
    hr_replay_result result;
    hr_error error = HR_ERROR_INIT;
    const hr_link link = {.h2d = 25.0, .d2h = 25.0};
    if (hr_graph_build(trace, &graph, &error) != HR_OK ||
        hr_replay_new(graph, &link, &replay, &error) != HR_OK ||
        hr_replay_run(replay, NULL, NULL, &result, NULL, NULL, &error) != HR_OK)
        fail_msg("%s", error.text);
    int64_t span = trace->work_end_ns - trace->work_begin_ns;
    assert_true(result.span_ns > span - span / 50 && result.span_ns < span + span / 50);
    uint32_t contradictions = graph->contradictions;
    hr_replay_free(&replay);
    hr_graph_free(&graph);
    return contradictions;
}

/* One call of the runtime makes three of the driver, each with a copy of its own. */
static trace_maker nested_batches(void)
{
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned batch = 0; batch < 10; batch++) {
        double at = batch * 200.0;
        maker_call(&maker, thread, "cudaMemcpyBatchAsync", at, at + 50.0);
        for (unsigned i = 0; i < 3; i++) {
            maker_call(&maker, thread, "cuMemcpyHtoDAsync_v2", at + 1.0 + i * 10.0, at + 9.0 + i * 10.0);
            maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 4096, at + 5.0 + i * 20.0,
                       at + 23.0 + i * 20.0);
        }
    }
    return maker;
}

static void work_of_every_inner_call_belongs_to_the_outer_one(void **state)
{
    (void)state;
    trace_maker maker = nested_batches();
    hr_trace *trace = maker_finish(&maker);
    assert_int_equal(trace->call_count, 10);
    for (uint32_t i = 0; i < trace->call_count; i++) {
        const hr_event *call = &trace->events[trace->calls[i]];
        assert_string_equal(hr_trace_text(trace, call->name), "cudaMemcpyBatchAsync");
        uint32_t count = 0;
        for (uint32_t work = call->peer; work != HR_NONE; work = trace->events[work].next) {
            assert_int_equal(trace->events[work].peer, trace->calls[i]);
            count++;
        }
        assert_int_equal(count, 3);
    }
    hr_trace_free(&maker.trace);
}

static void calls_within_calls_are_replayed(void **state)
{
    (void)state;
    trace_maker maker = nested_batches();
    assert_int_equal(replayed(&maker), 0);
    hr_trace_free(&maker.trace);
}

/* What an inner call knows of what it waited for, the outer one of the same kind is told. */
static void an_outer_wait_learns_its_stream(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    maker_launch(&maker, thread, stream, 0.0, 10.0, 90.0);
    maker_call(&maker, thread, "cudaStreamSynchronize", 20.0, 100.0);
    hr_event *inner = maker_call(&maker, thread, "cuStreamSynchronize", 21.0, 99.0);
    inner->stream = stream;
    inner->device = maker.device;
    hr_trace *trace = maker_finish(&maker);
    assert_int_equal(trace->call_count, 2);
    assert_int_equal(trace->events[trace->calls[1]].stream, stream);
    hr_trace_free(&maker.trace);
}

/* The host waits for a copy before it launches the kernel; the device's clock has the kernel before the copy, in one stream. */
static void clocks_that_contradict_each_other_do_not_end_the_replay(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 10; step++) {
        double at = step * 200.0;
        maker_call(&maker, thread, "cudaMemcpyAsync", at, at + 1.0);
        maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 4096, at + 50.0, at + 60.0);
        maker_call(&maker, thread, "cudaStreamSynchronize", at + 2.0, at + 70.0);
        maker_launch(&maker, thread, stream, at + 71.0, at + 10.0, at + 20.0);
    }
    assert_int_equal(replayed(&maker), 10);
    hr_trace_free(&maker.trace);
}

/* Each kernel ends long before its launch is recorded, so that the parts of the chain overlap. */
static void what_binds_is_never_longer_than_the_run(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    for (unsigned step = 0; step < 20; step++)
        maker_launch(&maker, thread, stream, step * 10.0 + 900.0 * (step % 2), step * 50.0,
                     step * 50.0 + 1.0);
    hr_trace *trace = maker_finish(&maker);
    hr_graph *graph = NULL;
    hr_replay *replay = NULL;
    hr_replay_result result;
    const hr_link link = {.h2d = 25.0, .d2h = 25.0};
    assert_int_equal(hr_graph_build(trace, &graph, NULL), HR_OK);
    assert_int_equal(hr_replay_new(graph, &link, &replay, NULL), HR_OK);
    assert_int_equal(hr_replay_run(replay, NULL, NULL, &result, NULL, NULL, NULL), HR_OK);
    assert_true(result.bound_ns <= result.span_ns);
    hr_replay_free(&replay);
    hr_graph_free(&graph);
    hr_trace_free(&maker.trace);
}

static void a_size_that_no_machine_has_is_refused(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1), stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    hr_error error = HR_ERROR_INIT;
    maker_call(&maker, thread, "cudaMemcpyAsync", 0.0, 5.0);
    maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, UINT64_MAX - 4, 7.0, 9.0);
    assert_int_equal(hr_trace_finish(maker.trace, &error), HR_E_FORMAT);
    assert_non_null(strstr(error.text, "-5 bytes"));
    hr_trace_free(&maker.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_of_every_inner_call_belongs_to_the_outer_one),
        cmocka_unit_test(calls_within_calls_are_replayed),
        cmocka_unit_test(an_outer_wait_learns_its_stream),
        cmocka_unit_test(clocks_that_contradict_each_other_do_not_end_the_replay),
        cmocka_unit_test(what_binds_is_never_longer_than_the_run),
        cmocka_unit_test(a_size_that_no_machine_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
