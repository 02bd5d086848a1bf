/* SPDX-License-Identifier: Apache-2.0 */
/* Use from many threads at once, and in the child of a fork. */
#include "conformance/conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 60 };
#define BYTES UINT64_C(20000)

typedef struct worker {
    fixture *shared;
    hr_stream *stream; /* one for all */
    hr_error error;
    unsigned number;
    int line; /* of the first failure */
} worker;

#define WORKER_OK(call)           \
    do {                          \
        if ((call) != HR_OK) {    \
            own->line = __LINE__; \
            return NULL;          \
        }                         \
    } while (0)

/* Up on the common stream, over to an own one by event, down again: the data must be this thread's. */
static void *go_round(void *argument)
{
    worker *own = argument;
    fixture *fx = own->shared;
    hr_stream *stream;
    hr_event *up;
    WORKER_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &own->error));
    WORKER_OK(hr_event_open(fx->device, &up, &own->error));
    for (unsigned round = 0; round < ROUNDS; round++) {
        void *device, *host;
        WORKER_OK(hr_pool_take(fx->on_device, BYTES, 0, "thread", &device));
        WORKER_OK(hr_pool_take(fx->pinned, 2 * BYTES, 0, "thread", &host));
        memset(host, (int)(own->number * ROUNDS + round) % 251, BYTES);
        memset((char *)host + BYTES, 255, BYTES);
        WORKER_OK(hr_copy_to_device(own->stream, device, host, BYTES, &own->error));
        WORKER_OK(hr_event_record(up, own->stream, &own->error));
        WORKER_OK(hr_stream_wait_event(stream, up, &own->error));
        WORKER_OK(hr_copy_to_host(stream, (char *)host + BYTES, device, BYTES, &own->error));
        WORKER_OK(hr_event_record(up, stream, &own->error));
        WORKER_OK(hr_event_wait(up, &own->error));
        WORKER_OK(memcmp(host, (char *)host + BYTES, BYTES) == 0 ? HR_OK : HR_E_MISMATCH);
        WORKER_OK(hr_pool_give(fx->on_device, device));
        WORKER_OK(hr_pool_give(fx->pinned, host));
    }
    WORKER_OK(hr_event_close(&up, &own->error));
    WORKER_OK(hr_stream_close(&stream, &own->error));
    return NULL;
}

/* A stream of the storm, and what came out of it. */
typedef struct storm_stream {
    hr_stream *stream;
    atomic_uint accepted; /* launches */
    atomic_uint ran;
    atomic_bool out_of_order;
    pthread_mutex_t submit; /* numbers are given out in the order of the queue */
} storm_stream;

typedef struct storm_launch {
    storm_stream *stream;
    unsigned number;
} storm_launch;

enum { STREAMS = 5, EVENTS = 8, LAUNCHES_MAX = 4000 };

typedef struct weather {
    fixture *shared;
    storm_stream streams[STREAMS];
    hr_event *events[EVENTS];
    storm_launch launches[STREAMS][LAUNCHES_MAX];
} weather;

static hr_status note_order(const hr_launch *launch_values, hr_error *error)
{
    (void)error;
    const storm_launch *own = launch_values->user;
    if (atomic_fetch_add(&own->stream->ran, 1) != own->number) {
        atomic_store(&own->stream->out_of_order, true);
    }
    return HR_OK;
}

static void launch_next(weather *storm, unsigned index)
{
    storm_stream *stream = &storm->streams[index];
    hr_launch values;
    memset(&values, 0, sizeof values);
    values.size = sizeof values;
    pthread_mutex_lock(&stream->submit);
    unsigned number = atomic_load(&stream->accepted);
    if (number < LAUNCHES_MAX) {
        storm->launches[index][number] = (storm_launch){stream, number};
        values.user = &storm->launches[index][number];
        if (hr_stream_launch(stream->stream, note_order, &values, NULL) == HR_OK) {
            atomic_store(&stream->accepted, number + 1);
        }
    }
    pthread_mutex_unlock(&stream->submit);
}

/* Everything at random: launches, records, waits, queries; one stream is cancelled on the way. */
static void *blow(void *argument)
{
    weather *storm = argument;
    fixture own = {.random = (uintptr_t)&own | 1};
    for (int i = 0; i < 3000; i++) {
        unsigned stream = (unsigned)random_below(&own, STREAMS), event = (unsigned)random_below(&own, EVENTS);
        switch (random_below(&own, 6)) {
        case 0:
            IGNORE(hr_event_record(storm->events[event], storm->streams[stream].stream, NULL));
            break;
        case 1:
            IGNORE(hr_stream_wait_event(storm->streams[stream].stream, storm->events[event], NULL));
            break;
        case 2:
            IGNORE(hr_event_query(storm->events[event], NULL));
            break;
        case 3:
            if (i % 100 == 0) {
                IGNORE(hr_event_wait(storm->events[event], NULL));
            }
            break;
        default:
            launch_next(storm, stream);
            break;
        }
        if (i == 2500) {
            IGNORE(hr_stream_cancel(storm->streams[0].stream));
        }
    }
    return NULL;
}

/* Waits only lead back to what was recorded before, so all must come to an end; launches run in order, none
 * twice. */
static void a_storm_of_events_and_waits_ends(fixture *fx)
{
    static weather storm;
    pthread_t threads[THREADS];
    memset(&storm, 0, sizeof storm);
    storm.shared = fx;
    for (unsigned i = 0; i < STREAMS; i++) {
        CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &storm.streams[i].stream, &fx->error));
        pthread_mutex_init(&storm.streams[i].submit, NULL);
    }
    for (unsigned i = 0; i < EVENTS; i++) {
        CHECK_OK(hr_event_open(fx->device, &storm.events[i], &fx->error));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, blow, &storm) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        storm_stream *stream = &storm.streams[i];
        hr_status status = hr_stream_wait(stream->stream, &fx->error);
        CHECK(status == HR_OK || status == HR_E_CANCELLED);
        CHECK(i > 0 || status == HR_E_CANCELLED);
        CHECK(!atomic_load(&stream->out_of_order));
        CHECK(atomic_load(&stream->ran) <= atomic_load(&stream->accepted));
        CHECK(status != HR_OK || atomic_load(&stream->ran) == atomic_load(&stream->accepted));
        CHECK(hr_stream_close(&stream->stream, &fx->error) == status);
        pthread_mutex_destroy(&stream->submit);
    }
    for (unsigned i = 0; i < EVENTS; i++) {
        CHECK(hr_event_query(storm.events[i], NULL) <= HR_OK); /* none is pending */
        CHECK_OK(hr_event_close(&storm.events[i], &fx->error));
    }
}

static void many_threads_use_one_device(fixture *fx)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    hr_stream *stream;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_IN, &stream, &fx->error));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.shared = fx, .stream = stream, .number = i};
        CHECK(pthread_create(&threads[i], NULL, go_round, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        if (workers[i].line != 0) {
            fixture_fail(fx, __FILE__, workers[i].line, workers[i].error.text, HR_OK);
            return;
        }
    }
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

/* What is opened in the child works there. */
static bool works_in_child(void)
{
#ifdef __SANITIZE_THREAD__
    return true; /* the thread sanitizer starts no threads after a fork */
#else
    hr_runtime *runtime;
    hr_device *device;
    hr_stream *stream;
    char byte[2] = {1, 2};
    return hr_runtime_open(NULL, &runtime, NULL) == HR_OK &&
           hr_device_open(runtime, "cpu", &device, NULL) == HR_OK &&
           hr_stream_open(device, HR_STREAM_ANY, &stream, NULL) == HR_OK &&
           hr_copy_to_device(stream, &byte[0], &byte[1], 1, NULL) == HR_OK &&
           hr_stream_close(&stream, NULL) == HR_OK && byte[0] == 2 &&
           hr_device_close(&device, NULL) == HR_OK && hr_runtime_close(&runtime, NULL) == HR_OK;
#endif
}

/* In the child: 0, or the line that went wrong. */
static int line_in_child(fixture *fx, hr_stream *stream, hr_event *event)
{
    hr_error error = HR_ERROR_INIT;
    hr_stream *made;
    void *block;
    char byte[2] = {1, 2};
    if (hr_stream_wait(stream, &error) != HR_E_FORKED || strstr(error.text, "fork") == NULL) {
        return __LINE__;
    }
    if (hr_copy_to_device(stream, &byte[0], &byte[1], 1, &error) != HR_E_FORKED ||
        hr_event_wait(event, &error) != HR_E_FORKED ||
        hr_event_record(event, stream, &error) != HR_E_FORKED) {
        return __LINE__;
    }
    if (hr_stream_open(fx->device, HR_STREAM_ANY, &made, &error) != HR_E_FORKED ||
        hr_pool_take(fx->on_device, 1, 0, "child", &block) != HR_E_FORKED) {
        return __LINE__;
    }
    if (hr_stream_close(&stream, &error) != HR_E_FORKED ||
        hr_device_close(&fx->device, &error) != HR_E_FORKED) {
        return __LINE__;
    }
    return works_in_child() ? 0 : __LINE__;
}

static void a_child_process_is_refused(fixture *fx)
{
    hr_stream *stream;
    hr_event *event;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_event_open(fx->device, &event, &fx->error));
    CHECK_OK(hr_event_record(event, stream, &fx->error));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int line = line_in_child(fx, stream, event);
        /* Exit statuses have eight bits; the line is told on standard error. */
        if (line != 0) {
            fprintf(stderr, "in the child: line %d went wrong\n", line);
        }
        _exit(line != 0);
    }
    CHECK(child > 0);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* The parent goes on as if nothing had happened. */
    CHECK_OK(hr_event_wait(event, &fx->error));
    CHECK_OK(hr_event_close(&event, &fx->error));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

const named_case thread_cases[] = {
    {"threads: many threads use one device", many_threads_use_one_device},
    {"threads: a storm of events and waits ends", a_storm_of_events_and_waits_ends},
    {"threads: a child process is refused", a_child_process_is_refused},
    {NULL, NULL},
};
