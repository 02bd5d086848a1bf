/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each repair on programs whose repaired run can be worked out by hand: recurrences over rounds of random length, written
 * without the graph. Times in microseconds.
 */
#include "support/trace_maker.h"

#include "trace/replay/replay.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 40 };

typedef struct hr_rounds {
    double in[ROUNDS], compute[ROUNDS], out[ROUNDS];
} hr_rounds;

static void random_rounds(hr_rounds *rounds, unsigned seed)
{
    for (int i = 0; i < ROUNDS; i++) {
        rounds->in[i] = 200 + rand_r(&seed) % 800;
        rounds->compute[i] = 200 + rand_r(&seed) % 800;
        rounds->out[i] = 200 + rand_r(&seed) % 800;
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Runs the finished trace with one repair of `kind` on what `wanted` picks; milliseconds. */
static double replayed(trace_maker *maker, hr_repair_kind kind, uint32_t buffers,
                       bool (*wanted)(const hr_event *event), hr_replay_result *result)
{
    hr_error error = HR_ERROR_INIT;
    hr_graph *graph = NULL;
    hr_replay *replay = NULL;
    hr_findings findings = {0};
    const hr_link link = {20.0, 20.0, "given", "given"};
    const bool use[1] = {true};
    assert_int_equal(hr_graph_build(maker->trace, &graph, &error), HR_OK);
    assert_int_equal(hr_replay_new(graph, &link, &replay, &error), HR_OK);
    hr_finding *finding = hr_findings_add(&findings, "test");
    assert_non_null(finding);
    finding->repair.kind = kind;
    finding->repair.buffers = buffers;
    for (uint32_t i = 0; wanted != NULL && i < maker->trace->event_count; i++) {
        if (wanted(&maker->trace->events[i]))
            assert_int_equal(hr_repair_add(&finding->repair, i), HR_OK);
    }
    if (hr_replay_run(replay, &findings, use, result, NULL, NULL, &error) != HR_OK)
        fail_msg("%s", error.text);
    hr_findings_free(&findings);
    hr_replay_free(&replay);
    hr_graph_free(&graph);
    return (double)result->span_ns / 1e3;
}

static void within(double found, double wanted, double percent)
{
    if (fabs(found - wanted) > wanted * percent / 100.0)
        fail_msg("%.1f µs is more than %g %% from %.1f µs", found, percent, wanted);
}

static bool host_copy(const hr_event *event)
{
    return hr_event_is_upload(event) || hr_event_is_download(event);
}

static bool any_sync(const hr_event *event)
{
    return event->kind == HR_EVENT_CALL && hr_call_is_sync((hr_call)event->call);
}

static bool blocking_copy_call(const hr_event *event)
{
    return event->kind == HR_EVENT_CALL && event->call == HR_CALL_COPY;
}

/* Copy in, kernel, copy out in one stream; the host submits far ahead. Returns how long it takes. */
static double one_stream(trace_maker *maker, const hr_rounds *rounds)
{
    uint32_t thread = maker_thread(maker, 1);
    uint32_t stream = maker_stream(maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    double host = 0.0;
    double device = 10.0;
    for (int i = 0; i < ROUNDS; i++) {
        maker_call(maker, thread, "cudaMemcpyAsync", host, host + 3.0);
        maker_copy(maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 8000000, device,
                   device + rounds->in[i]);
        device += rounds->in[i] + 1.0;
        maker_launch(maker, thread, stream, host + 4.0, device, device + rounds->compute[i]);
        device += rounds->compute[i] + 1.0;
        maker_call(maker, thread, "cudaMemcpyAsync", host + 10.0, host + 13.0);
        maker_copy(maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PINNED, 8000000, device,
                   device + rounds->out[i]);
        device += rounds->out[i] + 1.0;
        host += 15.0;
    }
    maker_finish(maker);
    return device - 11.0;
}

/* The same with a stream for each and `buffers` rounds in flight. */
static double three_streams(const hr_rounds *rounds, int buffers)
{
    double in[ROUNDS], compute[ROUNDS], out[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double in_free = larger(i > 0 ? in[i - 1] : 0, i >= buffers ? compute[i - buffers] : 0);
        in[i] = in_free + rounds->in[i];
        double ready = larger(in[i], larger(i > 0 ? compute[i - 1] : 0, i >= buffers ? out[i - buffers] : 0));
        compute[i] = ready + rounds->compute[i];
        out[i] = larger(compute[i], i > 0 ? out[i - 1] : 0) + rounds->out[i];
    }
    return out[ROUNDS - 1];
}

static void streams_of_their_own_follow_the_recurrence(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 10; seed++) {
        for (int buffers = 1; buffers <= 4; buffers++) {
            hr_rounds rounds;
            hr_replay_result result;
            trace_maker maker = maker_open();
            random_rounds(&rounds, seed);
            double today = one_stream(&maker, &rounds);
            within(replayed(&maker, HR_REPAIR_NONE, 0, NULL, &result), today, 0.01);
            double foreseen = replayed(&maker, HR_REPAIR_OWN_STREAM, (uint32_t)buffers, host_copy, &result);
            within(foreseen, three_streams(&rounds, buffers), 1.0);
            hr_trace_free(&maker.trace);
        }
    }
}

/* The host waits for each round and then thinks for `think`. Without the wait the device sets the pace, or the host does. */
static void dropped_waits_leave_the_slower_of_host_and_device(void **state)
{
    (void)state;
    static const double thinks[] = {20.0, 300.0, 900.0};
    for (size_t t = 0; t < sizeof thinks / sizeof thinks[0]; t++) {
        trace_maker maker = maker_open();
        uint32_t thread = maker_thread(&maker, 1);
        uint32_t stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
        hr_replay_result result;
        const double kernel = 400.0;
        double at = 0.0;
        for (int i = 0; i < ROUNDS; i++) {
            maker_launch(&maker, thread, stream, at, at + 8.0, at + 8.0 + kernel);
            maker_call(&maker, thread, "cudaStreamSynchronize", at + 6.0, at + 12.0 + kernel);
            at += 12.0 + kernel + thinks[t];
        }
        maker_finish(&maker);
        /* A round of the host is its launch, what stands between the calls, and its thinking. */
        double host = 5.0 + 1.0 + thinks[t];
        double pace = larger(host, kernel + 1.5);
        double foreseen = replayed(&maker, HR_REPAIR_DROP_CALL, 0, any_sync, &result);
        within(foreseen, (ROUNDS - 1) * pace + kernel, 1.0);
        assert_string_equal(result.bound, host > kernel ? "the host" : "compute");
        hr_trace_free(&maker.trace);
    }
}

/* Two kernels on two streams, the second behind an event of the first; between them the host waits for nothing. */
static void an_event_keeps_its_order_when_the_host_no_longer_waits(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t first = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    uint32_t second = maker_stream(&maker, 8, HR_STREAM_FLAG_NON_BLOCKING);
    hr_replay_result result;
    double at = 0.0;
    for (int i = 0; i < ROUNDS; i++) {
        maker_launch(&maker, thread, first, at, at + 8.0, at + 108.0);
        hr_event *record = maker_call(&maker, thread, "cudaEventRecord", at + 6.0, at + 7.0);
        record->object = 5;
        record->stream = first;
        hr_event *wait = maker_call(&maker, thread, "cudaStreamWaitEvent", at + 8.0, at + 9.0);
        wait->object = 5;
        wait->stream = second;
        maker_launch(&maker, thread, second, at + 10.0, at + 110.0, at + 210.0);
        maker_call(&maker, thread, "cudaDeviceSynchronize", at + 16.0, at + 214.0);
        at += 220.0;
    }
    maker_finish(&maker);
    /* The kernels may overlap with those of the next round only in the order that events give: as only one kernel ran
     * at a time in this trace, one after the other, 200 µs a round. */
    double foreseen = replayed(&maker, HR_REPAIR_DROP_CALL, 0, any_sync, &result);
    within(foreseen, ROUNDS * 202.0, 2.0);
    hr_trace_free(&maker.trace);
}

/* cudaMemcpy of pinned memory in one stream, kernel in another, nothing between them but the host's wait. */
static void copies_that_no_longer_wait_run_beside_kernels(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t copies = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    uint32_t kernels = maker_stream(&maker, 8, HR_STREAM_FLAG_NON_BLOCKING);
    hr_replay_result result;
    double at = 0.0;
    for (int i = 0; i < ROUNDS; i++) {
        maker_call(&maker, thread, "cudaMemcpy", at, at + 308.0);
        maker_copy(&maker, copies, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 6000000, at + 6.0, at + 306.0);
        maker_launch(&maker, thread, kernels, at + 309.0, at + 315.0, at + 515.0);
        maker_call(&maker, thread, "cudaDeviceSynchronize", at + 315.0, at + 518.0);
        at += 520.0;
    }
    maker_finish(&maker);
    /* The wait for the device stays: a round takes the longer of the two and the calls. */
    double foreseen = replayed(&maker, HR_REPAIR_UNBLOCK, 0, blocking_copy_call, &result);
    within(foreseen, ROUNDS * (300.0 + 6.0 + 5.0), 3.0);
    hr_trace_free(&maker.trace);
}

static bool on_null_stream(const hr_event *event)
{
    return event->kind == HR_EVENT_FILL;
}

/*
 * Kernels on two blocking streams, a small fill of the default stream between any two rounds. The right kernel of a round
 * runs beside the left one of the next; one of the two is long, so that each fill waits for a long one.
 */
static void the_default_stream_no_longer_cuts(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t left = maker_stream(&maker, 13, HR_STREAM_FLAG_BLOCKING);
    uint32_t right = maker_stream(&maker, 14, HR_STREAM_FLAG_BLOCKING);
    uint32_t null = maker_stream(&maker, 7, HR_STREAM_FLAG_NULL);
    hr_replay_result result;
    double host = 0.0;
    double at = 20.0;
    double all = 0.0;
    for (int i = 0; i < ROUNDS; i++) {
        double left_us = i % 2 == 0 ? 180.0 : 20.0;
        double next_left_us = i % 2 == 0 ? 20.0 : 180.0;
        double right_us = i % 2 == 0 ? 180.0 : 20.0;
        if (i == 0)
            maker_launch(&maker, thread, left, host, at, at + left_us);
        at += i == 0 ? left_us + 1.0 : 0.0;
        maker_call(&maker, thread, "cudaMemsetAsync", host + 6.0, host + 8.0);
        hr_event *fill = maker_event(&maker, "Memset", at, at + 1.0);
        fill->kind = HR_EVENT_FILL;
        fill->device = maker.device;
        fill->stream = null;
        fill->correlation = maker.correlation;
        at += 2.0;
        maker_launch(&maker, thread, right, host + 9.0, at, at + right_us);
        host += 20.0;
        maker_launch(&maker, thread, left, host, at, at + next_left_us);
        all += right_us + 1.0;
        at += larger(right_us, next_left_us) + 1.0;
    }
    maker_finish(&maker);
    within(replayed(&maker, HR_REPAIR_NONE, 0, NULL, &result), at - 21.0, 0.01);
    double foreseen = replayed(&maker, HR_REPAIR_FREE_STREAM, 0, on_null_stream, &result);
    /* The left stream has one kernel more, of 20 or 180 µs; both sum up to about 100 µs a round. */
    within(foreseen, all + 100.0, 4.0);
    hr_trace_free(&maker.trace);
}

/* Two streams, each copy in, kernel, copy out; copies of both directions wait for each other across streams. */
static void one_copy_engine_stays_one(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t streams[2] = {maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING),
                           maker_stream(&maker, 14, HR_STREAM_FLAG_NON_BLOCKING)};
    hr_replay_result result;
    double at = 1000.0;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t stream = streams[i % 2];
        double host = i * 20.0;
        maker_call(&maker, thread, "cudaMemcpyAsync", host, host + 3.0);
        maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 8000000, at, at + 300.0);
        maker_launch(&maker, thread, stream, host + 4.0, at + 301.0, at + 351.0);
        maker_call(&maker, thread, "cudaMemcpyAsync", host + 10.0, host + 13.0);
        maker_copy(&maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PINNED, 8000000, at + 352.0, at + 652.0);
        at += 653.0;
    }
    maker_finish(&maker);
    double foreseen = replayed(&maker, HR_REPAIR_OWN_STREAM, 3, host_copy, &result);
    assert_true(foreseen >= ROUNDS * 600.0);
    assert_string_equal(result.bound, "copies");
    hr_trace_free(&maker.trace);
}

/*
 * Uploads and downloads on two streams, each call holding the host: they take turns because the host does. Once neither call waits
 * both directions run at once.
 */
static void copies_in_turn_by_the_host_need_not_share_an_engine(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t up = maker_stream(&maker, 13, HR_STREAM_FLAG_NON_BLOCKING);
    uint32_t down = maker_stream(&maker, 14, HR_STREAM_FLAG_NON_BLOCKING);
    hr_replay_result result;
    double at = 0.0;
    for (int i = 0; i < ROUNDS; i++) {
        maker_call(&maker, thread, "cudaMemcpy", at, at + 307.0);
        maker_copy(&maker, up, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 6000000, at + 5.0, at + 305.0);
        maker_call(&maker, thread, "cudaMemcpy", at + 308.0, at + 615.0);
        maker_copy(&maker, down, HR_DIRECTION_D2H, HR_MEMORY_PINNED, 6000000, at + 313.0, at + 613.0);
        at += 616.0;
    }
    maker_finish(&maker);
    double foreseen = replayed(&maker, HR_REPAIR_UNBLOCK, 0, blocking_copy_call, &result);
    within(foreseen, ROUNDS * 301.5, 3.0);
    hr_trace_free(&maker.trace);
}

static void batched_copies_cost_one_start(void **state)
{
    (void)state;
    trace_maker maker = maker_open();
    uint32_t thread = maker_thread(&maker, 1);
    uint32_t stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
    hr_replay_result result;
    for (int i = 0; i < 200; i++) {
        maker_call(&maker, thread, "cudaMemcpyAsync", i * 10.0, i * 10.0 + 8.0);
        maker_copy(&maker, stream, HR_DIRECTION_H2D, HR_MEMORY_PINNED, 4000, i * 10.0 + 9.0, i * 10.0 + 10.0);
    }
    maker_finish(&maker);
    double today = replayed(&maker, HR_REPAIR_NONE, 0, NULL, &result);
    within(today, 199 * 10.0 + 1.0, 0.1);
    /* 199 calls of 8 µs go, 2 µs between any two stay; then 800 kB at 20 GB/s, and the start of one copy. */
    double foreseen = replayed(&maker, HR_REPAIR_BATCH, 0, host_copy, &result);
    within(foreseen, 199 * 2.0 + 40.0 + 1.5, 5.0);
    hr_trace_free(&maker.trace);
}

static bool download(const hr_event *event)
{
    return hr_event_is_download(event);
}

/*
 * Each round launches a kernel, reads two results back, waits for both, and thinks. When it waits for those of the round before
 * instead, kernels and thinking overlap, also with two read-backs a round.
 */
static void results_that_are_read_a_round_later_hide_the_thinking(void **state)
{
    (void)state;
    static const double thinks[] = {20.0, 300.0, 900.0};
    const double kernel = 400.0, copy = 4.0;
    for (size_t t = 0; t < sizeof thinks / sizeof thinks[0]; t++) {
        trace_maker maker = maker_open();
        uint32_t thread = maker_thread(&maker, 1);
        uint32_t stream = maker_stream(&maker, 7, HR_STREAM_FLAG_NON_BLOCKING);
        hr_replay_result result;
        double at = 0.0;
        for (int i = 0; i < ROUNDS; i++) {
            double end = at + 8.0 + kernel;
            maker_launch(&maker, thread, stream, at, at + 8.0, end);
            maker_call(&maker, thread, "cudaMemcpy", at + 6.0, end + 1.5 + copy + 3.0);
            maker_copy(&maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PINNED, 4096, end + 1.5, end + 1.5 + copy);
            end += 1.5 + copy + 3.0;
            maker_call(&maker, thread, "cudaMemcpy", end + 1.0, end + 9.0 + copy);
            maker_copy(&maker, stream, HR_DIRECTION_D2H, HR_MEMORY_PINNED, 4096, end + 7.0, end + 7.0 + copy);
            at = end + 9.0 + copy + thinks[t];
        }
        maker_finish(&maker);
        double device = kernel + 2.0 * copy + 3 * 1.5;
        double host = 5.0 + 1.0 + 3.0 + 1.0 + 3.0 + thinks[t];
        double foreseen = replayed(&maker, HR_REPAIR_READ_LATER, 0, download, &result);
        within(foreseen, ROUNDS * larger(host, device), 3.0);
        hr_trace_free(&maker.trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_of_their_own_follow_the_recurrence),
        cmocka_unit_test(dropped_waits_leave_the_slower_of_host_and_device),
        cmocka_unit_test(an_event_keeps_its_order_when_the_host_no_longer_waits),
        cmocka_unit_test(copies_that_no_longer_wait_run_beside_kernels),
        cmocka_unit_test(the_default_stream_no_longer_cuts),
        cmocka_unit_test(one_copy_engine_stays_one),
        cmocka_unit_test(copies_in_turn_by_the_host_need_not_share_an_engine),
        cmocka_unit_test(batched_copies_cost_one_start),
        cmocka_unit_test(results_that_are_read_a_round_later_hide_the_thinking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
