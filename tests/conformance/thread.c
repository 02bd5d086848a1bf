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
    {"threads: a child process is refused", a_child_process_is_refused},
    {NULL, NULL},
};
