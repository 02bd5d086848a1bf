/* SPDX-License-Identifier: Apache-2.0 */
/* Order within a stream, independence of streams, events between them, timers. */
#include "conformance/conformance.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <string.h>

#define PIECE UINT64_C(4096)

static hr_status fill_with(fixture *fx, hr_stream *stream, void *base, uint64_t bytes, uint32_t value)
{
    hr_fill fill = HR_FILL_INIT;
    fill.dst.base = base;
    fill.width_bytes = bytes;
    fill.value = value;
    return hr_fill_async(stream, &fill, &fx->error);
}

/* fill 1, out, fill 2, out, …: each copy out must see the fill before it and no later one. */
static void work_in_a_stream_runs_in_order(fixture *fx)
{
    enum { ROUNDS = 200 };
    hr_stream *stream;
    void *device, *host;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, PIECE, 0, "order", &device));
    CHECK_OK(hr_pool_take(fx->pinned, PIECE * ROUNDS, 0, "order", &host));
    memset(host, 0, PIECE * ROUNDS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        CHECK_OK(fill_with(fx, stream, device, PIECE, i % 255 + 1));
        CHECK_OK(hr_copy_to_host(stream, (char *)host + i * PIECE, device, PIECE, &fx->error));
    }
    CHECK_OK(hr_stream_wait(stream, &fx->error));
    CHECK_OK(hr_stream_query(stream, &fx->error));
    for (uint64_t i = 0; i < ROUNDS * PIECE; i++) {
        CHECK(((unsigned char *)host)[i] == i / PIECE % 255 + 1);
    }
    CHECK_OK(hr_pool_give(fx->pinned, host));
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

/* A long queue of uploads on one stream; a small download on another is done long before. */
static void streams_run_beside_each_other(fixture *fx)
{
    const uint64_t large = UINT64_C(32) << 20;
    hr_stream *busy, *quick;
    void *device, *host, *small_device, *small_host;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_IN, &busy, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_OUT, &quick, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, large, 0, "large", &device));
    CHECK_OK(hr_pool_take(fx->pinned, large, 0, "large", &host));
    CHECK_OK(hr_pool_take(fx->on_device, PIECE, 0, "small", &small_device));
    CHECK_OK(hr_pool_take(fx->pinned, PIECE, 0, "small", &small_host));
    memset(host, 3, large);
    CHECK_OK(fill_with(fx, quick, small_device, PIECE, 77));
    CHECK_OK(hr_stream_wait(quick, &fx->error));
    for (int i = 0; i < 64; i++) {
        CHECK_OK(hr_copy_to_device(busy, device, host, large, &fx->error));
    }
    CHECK_OK(hr_copy_to_host(quick, small_host, small_device, PIECE, &fx->error));
    CHECK_OK(hr_stream_wait(quick, &fx->error));
    CHECK(hr_stream_query(busy, &fx->error) == HR_PENDING);
    CHECK(((unsigned char *)small_host)[PIECE - 1] == 77);
    CHECK_OK(hr_stream_wait(busy, &fx->error));
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_pool_give(fx->pinned, host));
    CHECK_OK(hr_pool_give(fx->on_device, small_device));
    CHECK_OK(hr_pool_give(fx->pinned, small_host));
    CHECK_OK(hr_stream_close(&busy, &fx->error));
    CHECK_OK(hr_stream_close(&quick, &fx->error));
}

/* A ball goes back and forth between two streams; each hit reads what the other wrote. */
static void events_order_work_across_streams(fixture *fx)
{
    enum { ROUNDS = 100 };
    hr_stream *streams[2];
    hr_event *hit[2];
    void *device, *host;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &streams[i], &fx->error));
        CHECK_OK(hr_event_open(fx->device, &hit[i], &fx->error));
    }
    CHECK_OK(hr_pool_take(fx->on_device, PIECE * (ROUNDS + 1), 0, "ball", &device));
    CHECK_OK(hr_pool_take(fx->pinned, PIECE, 0, "ball", &host));
    CHECK_OK(fill_with(fx, streams[1], device, PIECE, 42));
    CHECK_OK(hr_event_record(hit[1], streams[1], &fx->error));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        int own = (int)(i % 2);
        CHECK_OK(hr_stream_wait_event(streams[own], hit[1 - own], &fx->error));
        hr_copy copy = HR_COPY_INIT;
        copy.src.place = copy.dst.place = HR_PLACE_DEVICE;
        copy.src.base = (char *)device + i * PIECE;
        copy.dst.base = (char *)device + (i + 1) * PIECE;
        copy.width_bytes = PIECE;
        CHECK_OK(hr_copy_async(streams[own], &copy, &fx->error));
        CHECK_OK(hr_event_record(hit[own], streams[own], &fx->error));
    }
    CHECK_OK(hr_event_wait(hit[1], &fx->error));
    CHECK_OK(hr_event_query(hit[1], &fx->error));
    CHECK_OK(hr_copy_to_host(streams[1], host, (char *)device + ROUNDS * PIECE, PIECE, &fx->error));
    CHECK_OK(hr_stream_wait(streams[1], &fx->error));
    for (uint64_t i = 0; i < PIECE; i++) {
        CHECK(((unsigned char *)host)[i] == 42);
    }
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_pool_give(fx->pinned, host));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hr_event_close(&hit[i], &fx->error));
        CHECK_OK(hr_stream_close(&streams[i], &fx->error));
    }
}

static void a_new_event_counts_as_done(fixture *fx)
{
    hr_event *event;
    hr_stream *stream;
    CHECK_OK(hr_event_open(fx->device, &event, &fx->error));
    CHECK_OK(hr_event_query(event, &fx->error));
    CHECK_OK(hr_event_wait(event, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_stream_wait_event(stream, event, &fx->error));
    CHECK_OK(hr_stream_wait(stream, &fx->error));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
    CHECK_OK(hr_event_close(&event, &fx->error));
    CHECK(event == NULL && stream == NULL);
}

static hr_status count_launch(const hr_launch *launch, hr_error *error)
{
    (void)error;
    atomic_fetch_add((atomic_int *)launch->user, 1);
    return HR_OK;
}

/* Recorded again while others wait: they go on waiting for the old point. Then the event is closed under
 * them. */
static void recording_again_leaves_earlier_waiters_alone(fixture *fx)
{
    if (!gate_works(fx)) {
        fx->skipped = "a launcher cannot hold this device's stream up";
        return;
    }
    hr_stream *held, *waiting, *idle;
    hr_event *event;
    stream_gate gate;
    atomic_int ran = 0;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &held, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &waiting, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &idle, &fx->error));
    CHECK_OK(hr_event_open(fx->device, &event, &fx->error));
    CHECK_OK(gate_close_in(fx, &gate, held));
    CHECK_OK(hr_event_record(event, held, &fx->error));
    CHECK(hr_event_query(event, &fx->error) == HR_PENDING);
    CHECK_OK(hr_stream_wait_event(waiting, event, &fx->error));
    CHECK_OK(launch(fx, waiting, count_launch, &ran));
    CHECK_OK(hr_event_record(event, idle, &fx->error));
    CHECK_OK(hr_event_wait(event, &fx->error)); /* the new point is done */
    CHECK(hr_stream_query(waiting, &fx->error) == HR_PENDING);
    CHECK(atomic_load(&ran) == 0);
    CHECK_OK(hr_event_record(event, held, &fx->error));
    CHECK_OK(hr_event_close(&event, &fx->error)); /* pending */
    gate_open(&gate);
    CHECK_OK(hr_stream_wait(waiting, &fx->error));
    CHECK(atomic_load(&ran) == 1);
    CHECK_OK(hr_stream_close(&held, &fx->error));
    CHECK_OK(hr_stream_close(&waiting, &fx->error));
    CHECK_OK(hr_stream_close(&idle, &fx->error));
    gate_free(&gate);
}

static void launches_run_exactly_once(fixture *fx)
{
    enum { LAUNCHES = 500 };
    static atomic_int ran[LAUNCHES];
    hr_stream *stream;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_COMPUTE, &stream, &fx->error));
    for (int i = 0; i < LAUNCHES; i++) {
        atomic_store(&ran[i], 0);
        CHECK_OK(launch(fx, stream, count_launch, &ran[i]));
    }
    CHECK_OK(hr_stream_wait(stream, &fx->error));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
    for (int i = 0; i < LAUNCHES; i++) {
        CHECK(atomic_load(&ran[i]) == 1);
    }
}

/* Device times lie on the host's clock, in order. */
static void timers_tell_the_hosts_time(fixture *fx)
{
    const uint64_t slack_ns = 2000000;
    hr_stream *stream;
    hr_timer *begin, *end;
    void *device;
    uint64_t begin_ns, end_ns;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_timer_open(fx->device, &begin, &fx->error));
    CHECK_OK(hr_timer_open(fx->device, &end, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, UINT64_C(8) << 20, 0, "timed", &device));
    uint64_t before = hr_now_ns();
    CHECK_OK(hr_timer_record(begin, stream, &fx->error));
    CHECK_OK(fill_with(fx, stream, device, UINT64_C(8) << 20, 1));
    CHECK_OK(hr_timer_record(end, stream, &fx->error));
    CHECK_OK(hr_stream_wait(stream, &fx->error));
    uint64_t after = hr_now_ns();
    CHECK_OK(hr_timer_read(begin, &begin_ns, &fx->error));
    CHECK_OK(hr_timer_read(end, &end_ns, &fx->error));
    CHECK(begin_ns < end_ns);
    CHECK(begin_ns + slack_ns >= before);
    CHECK(end_ns <= after + slack_ns);
    hr_timer_close(&begin);
    hr_timer_close(&end);
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

/* Deeper than any queue that was made beforehand. */
static void a_queue_may_be_as_deep_as_memory(fixture *fx)
{
    enum { DEPTH = 20000 };
    hr_stream *stream;
    void *device, *host;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_IN, &stream, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, DEPTH, 0, "deep", &device));
    CHECK_OK(hr_pool_take(fx->pinned, 2 * (uint64_t)DEPTH, 0, "deep", &host));
    random_bytes(fx, host, DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        CHECK_OK(hr_copy_to_device(stream, (char *)device + i, (char *)host + i, 1, &fx->error));
    }
    CHECK_OK(hr_copy_to_host(stream, (char *)host + DEPTH, device, DEPTH, &fx->error));
    CHECK_OK(hr_stream_wait(stream, &fx->error));
    CHECK(memcmp(host, (char *)host + DEPTH, DEPTH) == 0);
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_pool_give(fx->pinned, host));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

const named_case order_cases[] = {
    {"order: work in a stream runs in order", work_in_a_stream_runs_in_order},
    {"order: streams run beside each other", streams_run_beside_each_other},
    {"order: events order work across streams", events_order_work_across_streams},
    {"order: a new event counts as done", a_new_event_counts_as_done},
    {"order: recording again leaves earlier waiters alone", recording_again_leaves_earlier_waiters_alone},
    {"order: launches run exactly once", launches_run_exactly_once},
    {"order: timers tell the host's time", timers_tell_the_hosts_time},
    {"order: a queue may be as deep as memory", a_queue_may_be_as_deep_as_memory},
    {NULL, NULL},
};
