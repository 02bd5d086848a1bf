/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when work fails, is cancelled, or is closed over: each operation ends once, nobody waits for
 * ever. */
#include "conformance/conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define PIECE UINT64_C(1024)

static hr_status fail_on_purpose(const hr_launch *launch, hr_error *error)
{
    (void)launch;
    return hr_fail(error, HR_E_MISMATCH, "a deliberate failure");
}

static hr_status count_launch(const hr_launch *launch, hr_error *error)
{
    (void)error;
    atomic_fetch_add((atomic_int *)launch->user, 1);
    return HR_OK;
}

static bool is_deliberate(fixture *fx, hr_status status)
{
    return status == HR_E_MISMATCH && strstr(fx->error.text, "a deliberate failure") != NULL;
}

static void a_failure_reaches_every_waiter(fixture *fx)
{
    hr_stream *failing, *behind, *other;
    hr_event *event;
    void *device, *host;
    atomic_int ran = 0;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &failing, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &behind, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &other, &fx->error));
    CHECK_OK(hr_event_open(fx->device, &event, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, PIECE, 0, "failing", &device));
    CHECK_OK(hr_pool_take(fx->pinned, PIECE, 0, "failing", &host));
    memset(host, 0, PIECE);
    CHECK_OK(hr_copy_to_device(failing, device, host, PIECE, &fx->error));
    /* A device may find out at once or later; what is submitted meanwhile may be accepted or refused. */
    IGNORE(launch(fx, failing, fail_on_purpose, NULL));
    IGNORE(launch(fx, failing, count_launch, &ran));
    IGNORE(hr_event_record(event, failing, &fx->error));
    IGNORE(hr_stream_wait_event(behind, event, &fx->error));
    IGNORE(launch(fx, behind, count_launch, &ran));

    fx->error = HR_ERROR_INIT;
    CHECK(is_deliberate(fx, hr_event_wait(event, &fx->error)));
    fx->error = HR_ERROR_INIT;
    CHECK(is_deliberate(fx, hr_event_query(event, &fx->error)));
    fx->error = HR_ERROR_INIT;
    CHECK(is_deliberate(fx, hr_stream_wait(failing, &fx->error)));
    fx->error = HR_ERROR_INIT;
    CHECK(is_deliberate(fx, hr_stream_query(failing, &fx->error)));
    fx->error = HR_ERROR_INIT;
    CHECK(is_deliberate(fx, hr_stream_wait(behind, &fx->error)));
    /* Refused from now on. */
    fx->error = HR_ERROR_INIT;
    CHECK(is_deliberate(fx, hr_copy_to_host(failing, host, device, PIECE, &fx->error)));
    CHECK(is_deliberate(fx, launch(fx, failing, count_launch, &ran)));
    CHECK(is_deliberate(fx, hr_event_record(event, failing, &fx->error)));
    CHECK(hr_event_query(event, &fx->error) == HR_E_MISMATCH);
    CHECK(atomic_load(&ran) == 0);
    /* The device lives on, and the event can be used again. */
    CHECK_OK(hr_copy_to_host(other, host, device, PIECE, &fx->error));
    CHECK_OK(hr_event_record(event, other, &fx->error));
    CHECK_OK(hr_event_wait(event, &fx->error));
    CHECK_OK(hr_stream_wait(other, &fx->error));

    CHECK(is_deliberate(fx, hr_stream_close(&failing, &fx->error)));
    CHECK(failing == NULL);
    CHECK(is_deliberate(fx, hr_stream_close(&behind, &fx->error)));
    CHECK_OK(hr_stream_close(&other, &fx->error));
    CHECK_OK(hr_event_close(&event, &fx->error));
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_pool_give(fx->pinned, host));
}

static void a_cancelled_stream_refuses_work(fixture *fx)
{
    hr_stream *stream;
    atomic_int ran = 0;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(launch(fx, stream, count_launch, &ran));
    CHECK_OK(hr_stream_wait(stream, &fx->error));
    CHECK_OK(hr_stream_cancel(stream));
    CHECK(launch(fx, stream, count_launch, &ran) == HR_E_CANCELLED);
    CHECK(hr_stream_query(stream, &fx->error) == HR_E_CANCELLED);
    CHECK(hr_stream_wait(stream, &fx->error) == HR_E_CANCELLED);
    CHECK(hr_stream_close(&stream, &fx->error) == HR_E_CANCELLED);
    CHECK(atomic_load(&ran) == 1);
}

enum { QUEUED = 50 };

/* Some operations have run, one runs, the others are dropped; each event says which it was, and only once. */
static void cancel_ends_each_operation_once(fixture *fx)
{
    if (!gate_works(fx)) {
        fx->skipped = "a launcher cannot hold this device's stream up";
        return;
    }
    atomic_int ran[QUEUED];
    hr_event *events[QUEUED];
    hr_stream *stream;
    stream_gate gate;
    void *device, *host;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, PIECE, 0, "cancel", &device));
    CHECK_OK(hr_pool_take(fx->pinned, PIECE, 0, "cancel", &host));
    memset(host, 1, PIECE);
    CHECK_OK(hr_copy_to_device(stream, device, host, PIECE, &fx->error));
    for (int i = 0; i < QUEUED; i++) {
        atomic_init(&ran[i], 0);
        CHECK_OK(hr_event_open(fx->device, &events[i], &fx->error));
        if (i == QUEUED / 2) {
            CHECK_OK(gate_close_in(fx, &gate, stream));
        }
        CHECK_OK(launch(fx, stream, count_launch, &ran[i]));
        CHECK_OK(hr_event_record(events[i], stream, &fx->error));
    }
    gate_reached(&gate);
    memset(host, 2, PIECE);
    CHECK_OK(hr_copy_to_device(stream, device, host, PIECE, &fx->error)); /* to be dropped */
    CHECK_OK(hr_stream_cancel(stream));
    CHECK_OK(hr_stream_cancel(stream)); /* again is harmless */
    CHECK(hr_stream_query(stream, &fx->error) == HR_PENDING);
    gate_open(&gate);
    CHECK(hr_stream_wait(stream, &fx->error) == HR_E_CANCELLED);
    for (int i = 0; i < QUEUED; i++) {
        bool before = i < QUEUED / 2;
        CHECK(atomic_load(&ran[i]) == (before ? 1 : 0));
        CHECK(hr_event_query(events[i], &fx->error) == (before ? HR_OK : HR_E_CANCELLED));
        CHECK_OK(hr_event_close(&events[i], &fx->error));
    }
    CHECK(hr_stream_close(&stream, &fx->error) == HR_E_CANCELLED);
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_copy_to_host(stream, host, device, PIECE, &fx->error));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
    CHECK(((unsigned char *)host)[0] == 1);
    gate_free(&gate);
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_pool_give(fx->pinned, host));
}

/* A stream that waits for an event of another can be cancelled although the event never comes. */
static void cancel_frees_a_stream_that_waits_for_an_event(fixture *fx)
{
    if (!gate_works(fx)) {
        fx->skipped = "a launcher cannot hold this device's stream up";
        return;
    }
    hr_stream *held, *waiting, *last;
    hr_event *event, *after;
    stream_gate gate;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &held, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &waiting, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &last, &fx->error));
    CHECK_OK(hr_event_open(fx->device, &event, &fx->error));
    CHECK_OK(hr_event_open(fx->device, &after, &fx->error));
    CHECK_OK(gate_close_in(fx, &gate, held));
    CHECK_OK(hr_event_record(event, held, &fx->error));
    CHECK_OK(hr_stream_wait_event(waiting, event, &fx->error));
    CHECK_OK(hr_event_record(after, waiting, &fx->error));
    CHECK_OK(hr_stream_wait_event(last, after, &fx->error));
    CHECK_OK(hr_stream_cancel(waiting));
    CHECK(hr_event_wait(after, &fx->error) == HR_E_CANCELLED);
    CHECK(hr_stream_wait(last, &fx->error) == HR_E_CANCELLED);
    CHECK(hr_stream_close(&waiting, &fx->error) == HR_E_CANCELLED);
    CHECK(hr_stream_close(&last, &fx->error) == HR_E_CANCELLED);
    gate_open(&gate);
    CHECK_OK(hr_stream_close(&held, &fx->error));
    CHECK_OK(hr_event_query(event, &fx->error));
    CHECK_OK(hr_event_close(&event, &fx->error));
    CHECK_OK(hr_event_close(&after, &fx->error));
    gate_free(&gate);
}

static void closing_a_stream_finishes_what_is_queued(fixture *fx)
{
    enum { COPIES = 64 };
    const uint64_t bytes = UINT64_C(256) << 10;
    hr_stream *stream;
    void *device, *host;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, bytes, 0, "closing", &device));
    CHECK_OK(hr_pool_take(fx->pinned, COPIES * bytes, 0, "closing", &host));
    memset(host, 0, COPIES * bytes);
    for (uint32_t i = 0; i < COPIES; i++) {
        hr_fill fill = HR_FILL_INIT;
        fill.dst.base = device;
        fill.width_bytes = bytes;
        fill.value = i + 1;
        CHECK_OK(hr_fill_async(stream, &fill, &fx->error));
        CHECK_OK(hr_copy_to_host(stream, (char *)host + i * bytes, device, bytes, &fx->error));
    }
    CHECK_OK(hr_stream_close(&stream, &fx->error));
    for (uint64_t i = 0; i < COPIES * bytes; i += 509) {
        CHECK(((unsigned char *)host)[i] == i / bytes + 1);
    }
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_pool_give(fx->pinned, host));
}

static void a_device_in_use_is_not_closed(fixture *fx)
{
    hr_device *device = fx->device;
    hr_stream *stream;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK(hr_device_close(&device, &fx->error) == HR_E_BUSY);
    CHECK(device == fx->device);
    CHECK(strstr(fx->error.text, "1 stream") != NULL);
    CHECK(strstr(fx->error.text, "pinned") != NULL); /* the pool, by name */
    hr_runtime *runtime = fx->runtime;
    CHECK(hr_runtime_close(&runtime, &fx->error) == HR_E_BUSY);
    CHECK_OK(hr_stream_close(&stream, &fx->error));
    CHECK_OK(hr_device_close(&(hr_device *){NULL}, &fx->error));
}

/* Submitters run into a cancel: whatever was accepted ends, whatever was refused never ran. */
struct submitter {
    fixture *fx;
    hr_stream *stream;
    atomic_int *ran;
    int accepted;
};

static void *submit_until_refused(void *argument)
{
    struct submitter *own = argument;
    hr_launch values;
    memset(&values, 0, sizeof values);
    values.size = sizeof values;
    values.user = own->ran;
    while (hr_stream_launch(own->stream, count_launch, &values, NULL) == HR_OK) {
        own->accepted++;
    }
    return NULL;
}

static void cancel_races_with_submission(fixture *fx)
{
    enum { THREADS = 3, ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        hr_stream *stream;
        atomic_int ran = 0;
        pthread_t threads[THREADS];
        struct submitter submitters[THREADS];
        CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
        for (int i = 0; i < THREADS; i++) {
            submitters[i] = (struct submitter){fx, stream, &ran, 0};
            CHECK(pthread_create(&threads[i], NULL, submit_until_refused, &submitters[i]) == 0);
        }
        while (atomic_load(&ran) < 20) {
        }
        CHECK_OK(hr_stream_cancel(stream));
        int accepted = 0;
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            accepted += submitters[i].accepted;
        }
        CHECK(hr_stream_wait(stream, &fx->error) == HR_E_CANCELLED);
        CHECK(atomic_load(&ran) >= 20 && atomic_load(&ran) <= accepted);
        CHECK(hr_stream_close(&stream, &fx->error) == HR_E_CANCELLED);
    }
}

const named_case failure_cases[] = {
    {"failure: a failure reaches every waiter", a_failure_reaches_every_waiter},
    {"failure: a cancelled stream refuses work", a_cancelled_stream_refuses_work},
    {"failure: cancel ends each operation once", cancel_ends_each_operation_once},
    {"failure: cancel frees a stream that waits for an event", cancel_frees_a_stream_that_waits_for_an_event},
    {"failure: closing a stream finishes what is queued", closing_a_stream_finishes_what_is_queued},
    {"failure: a device in use is not closed", a_device_in_use_is_not_closed},
    {"failure: cancel races with submission", cancel_races_with_submission},
    {NULL, NULL},
};
