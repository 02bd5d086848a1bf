/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of deferred work, and the thread that submits it. The design is told in stage.h. */
#include "backend/cuda/stage.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often events are looked at while something waits for one: without a pause at first, since most waits are short.
 */
#define POLL_NS    20000
#define POLL_EAGER 100

static void timed_wait(pthread_cond_t *condition, pthread_mutex_t *lock, long ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(condition, lock, &until);
}

static void free_pending(hr_cuda_pending *op)
{
    if (op->event != NULL) {
        hr_cuda_event_release(op->event);
    }
    if (op->quiet != NULL) {
        hr_cuda_ignore(op->stream->device, cudaEventDestroy(op->quiet));
    }
    free(op->segments);
    free(op);
}

/* The record has reached the driver, or never will. */
static void settle_record(hr_cuda_pending *op, hr_status failed, const char *text)
{
    hr_bevent *event = op->event;
    pthread_mutex_lock(&event->lock);
    event->submitted = op->generation;
    event->failed = failed;
    if (failed != HR_OK) {
        snprintf(event->failed_text, sizeof event->failed_text, "%s", text);
    }
    pthread_mutex_unlock(&event->lock);
}

/* Ends an operation whose stream can do nothing more. */
static hr_step drop(hr_cuda_stager *stager, hr_cuda_pending *op, hr_status why, const hr_error *error)
{
    if (op->kind == HR_CUDA_PENDING_STAGED && hr_stage_copy_abandon(stager, op) == HR_STEP_BLOCKED) {
        return HR_STEP_BLOCKED;
    }
    if (op->kind == HR_CUDA_PENDING_RECORD) {
        settle_record(op, why, error->text);
    }
    if (op->kind == HR_CUDA_PENDING_TIMER) {
        atomic_store(&op->timer->deferred, false);
    }
    return HR_STEP_DONE;
}

static hr_step step_record(hr_cuda_pending *op, hr_error *error)
{
    hr_bevent *event = op->event;
    pthread_mutex_lock(&event->lock);
    bool turn = event->submitted + 1 == op->generation;
    pthread_mutex_unlock(&event->lock);
    if (!turn) {
        return HR_STEP_BLOCKED;
    }
    hr_status status = hr_cuda_check(op->stream->device, cudaEventRecord(event->native, op->stream->native),
                                     error, "event: recording it");
    settle_record(op, status, error->text);
    return HR_STEP_DONE;
}

static hr_step step_wait(hr_cuda_pending *op, hr_error *error)
{
    hr_bevent *event = op->event;
    pthread_mutex_lock(&event->lock);
    bool there = event->submitted >= op->generation;
    hr_status failed = event->failed;
    if (failed != HR_OK) {
        hr_fail(error, failed, "%s", event->failed_text);
    }
    pthread_mutex_unlock(&event->lock);
    if (!there) {
        error->status = HR_OK;
        return HR_STEP_BLOCKED;
    }
    if (failed == HR_OK) {
        (void)hr_cuda_check(op->stream->device, cudaStreamWaitEvent(op->stream->native, event->native, 0),
                            error, "stream: waiting for an event");
    }
    return HR_STEP_DONE;
}

static void step_launch(hr_cuda_pending *op, hr_error *error)
{
    op->launch.native_stream = op->stream->native;
    op->launch.workers = NULL;
    hr_status status = op->fn(&op->launch, error);
    if (status != HR_OK && error->status == HR_OK) {
        hr_fail(error, status, "launch: it failed");
    }
    if (status == HR_OK) {
        error->status = HR_OK;
        (void)hr_cuda_check(op->stream->device, cudaGetLastError(), error,
                            "launch: its launcher left an error");
    }
}

/* One operation at the head of its stream's queue. A failure goes to the stream. */
static hr_step step(hr_cuda_stager *stager, hr_cuda_pending *op)
{
    hr_bstream *stream = op->stream;
    hr_error error = HR_ERROR_INIT;
    hr_status why = hr_cuda_alive(stream->device, &error);
    if (why == HR_OK) {
        why = hr_cuda_stream_ready(stream, &error);
    }
    if (why != HR_OK) {
        return drop(stager, op, why, &error);
    }
    hr_step done = HR_STEP_DONE;
    switch (op->kind) {
    case HR_CUDA_PENDING_COPY:
        (void)hr_cuda_copy_submit(stream->device, stream->native, &op->copy, &error);
        break;
    case HR_CUDA_PENDING_STAGED:
        return hr_stage_copy_step(stager, op);
    case HR_CUDA_PENDING_FILL:
        (void)hr_cuda_fill_submit(stream->device, stream->native, &op->fill, &error);
        break;
    case HR_CUDA_PENDING_LAUNCH:
        step_launch(op, &error);
        break;
    case HR_CUDA_PENDING_RECORD:
        done = step_record(op, &error);
        break;
    case HR_CUDA_PENDING_WAIT:
        done = step_wait(op, &error);
        break;
    case HR_CUDA_PENDING_TIMER:
        (void)hr_cuda_timer_submit(op->timer, stream, &error);
        atomic_store_explicit(&op->timer->deferred, false, memory_order_release);
        break;
    }
    if (error.status != HR_OK) {
        hr_cuda_stream_fail(stream, error.status, &error);
    }
    return done;
}

/* Everything that can be submitted now. Locked; true if something was. */
static bool advance_stream(hr_cuda_stager *stager, hr_bstream *stream)
{
    bool moved = false;
    while (stream->head != NULL) {
        hr_cuda_pending *op = stream->head;
        pthread_mutex_unlock(&stager->lock);
        hr_step result = step(stager, op);
        pthread_mutex_lock(&stager->lock);
        if (result == HR_STEP_BLOCKED) {
            break;
        }
        moved = true;
        stream->head = op->next;
        if (stream->head == NULL) {
            stream->tail = NULL;
        }
        pthread_mutex_unlock(&stager->lock);
        free_pending(op);
        pthread_mutex_lock(&stager->lock);
        /*
         * The last of the stream's work lets go of the stream: it must be out of the list before, since its
         * owner may close it at once.
         */
        if (stream->head == NULL) {
            hr_bstream **link = &stager->streams;
            while (*link != stream) {
                link = &(*link)->next;
            }
            *link = stream->next;
            stream->listed = false;
            atomic_fetch_sub_explicit(&stream->deferred, 1, memory_order_release);
            break;
        }
        atomic_fetch_sub_explicit(&stream->deferred, 1, memory_order_release);
    }
    return moved;
}

static void *submit_thread(void *argument)
{
    hr_cuda_stager *stager = argument;
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(stager->device, &scope);
    pthread_mutex_lock(&stager->lock);
    unsigned idle = 0;
    while (!stager->stop) {
        uint64_t news = stager->news;
        bool moved = false;
        for (hr_bstream *stream = stager->streams; stream != NULL;) {
            /* Read before the stream may go; none but this thread takes streams out of the list. */
            hr_bstream *next = stream->next;
            moved = advance_stream(stager, stream) || moved;
            stream = next;
        }
        bool on_device = false;
        moved = hr_stage_ring_poll(stager, &on_device) || moved;
        if (moved) {
            idle = 0;
            pthread_cond_broadcast(&stager->changed);
        } else if (news != stager->news) {
            idle = 0;
        } else if ((stager->streams != NULL || on_device) && idle < POLL_EAGER) {
            idle++;
            pthread_mutex_unlock(&stager->lock);
            hr_spin_pause();
            pthread_mutex_lock(&stager->lock);
        } else if (stager->streams != NULL || on_device) {
            timed_wait(&stager->work, &stager->lock, POLL_NS);
        } else {
            pthread_cond_wait(&stager->work, &stager->lock);
        }
    }
    pthread_mutex_unlock(&stager->lock);
    hr_cuda_leave(&scope);
    return NULL;
}

static hr_status make_stager(hr_bdevice *device, hr_cuda_stager **stager, hr_error *error)
{
    hr_cuda_stager *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "staging: its description could not be had");
    }
    made->device = device;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, &monotonic);
    pthread_cond_init(&made->tasks, &monotonic);
    pthread_cond_init(&made->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    hr_status status = hr_thread_start(&made->thread, "hr-cuda-submit", submit_thread, made, error);
    if (status != HR_OK) {
        pthread_cond_destroy(&made->changed);
        pthread_cond_destroy(&made->tasks);
        pthread_cond_destroy(&made->work);
        pthread_mutex_destroy(&made->lock);
        free(made);
        return status;
    }
    *stager = made;
    return HR_OK;
}

static hr_status get_stager(hr_bdevice *device, bool with_ring, hr_cuda_stager **stager, hr_error *error)
{
    hr_status status = HR_OK;
    pthread_mutex_lock(&device->making);
    hr_cuda_stager *found = atomic_load(&device->stager);
    if (found == NULL) {
        status = make_stager(device, &found, error);
        if (status == HR_OK) {
            atomic_store(&device->stager, found);
        }
    }
    if (status == HR_OK && with_ring && found->ring == NULL) {
        hr_stage_ring *ring = NULL;
        status = hr_stage_ring_open(found, &ring, error);
        if (status == HR_OK) {
            pthread_mutex_lock(&found->lock);
            found->ring = ring;
            pthread_mutex_unlock(&found->lock);
        }
    }
    pthread_mutex_unlock(&device->making);
    if (status == HR_OK) {
        *stager = found;
    }
    return status;
}

static hr_status enqueue(hr_bstream *stream, const hr_cuda_pending *what, bool with_ring, hr_error *error)
{
    hr_cuda_stager *stager = NULL;
    hr_status status = get_stager(stream->device, with_ring, &stager, error);
    if (status != HR_OK) {
        return status;
    }
    hr_cuda_pending *op = malloc(sizeof *op);
    if (op == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "stream: an operation that must wait could not be kept");
    }
    *op = *what;
    op->stream = stream;
    op->next = NULL;
    if (op->copy.segment_count > 0) {
        op->segments = malloc((size_t)op->copy.segment_count * sizeof *op->segments);
        if (op->segments == NULL) {
            free(op);
            return hr_fail(error, HR_E_HOST_MEMORY, "copy: its list of segments could not be kept");
        }
        memcpy(op->segments, op->copy.segments, (size_t)op->copy.segment_count * sizeof *op->segments);
        op->copy.segments = op->segments;
    }
    if (op->event != NULL) {
        atomic_fetch_add(&op->event->references, 1);
    }
    if (op->kind == HR_CUDA_PENDING_TIMER) {
        atomic_store(&op->timer->deferred, true);
    }
    if (op->kind != HR_CUDA_PENDING_STAGED) {
        hr_cuda_count(stream->device, HR_CUDA_DEFERRED, NULL);
    }
    pthread_mutex_lock(&stager->lock);
    atomic_fetch_add(&stream->deferred, 1);
    if (stream->tail == NULL) {
        stream->head = op;
    } else {
        stream->tail->next = op;
    }
    stream->tail = op;
    if (!stream->listed) {
        stream->listed = true;
        stream->next = stager->streams;
        stager->streams = stream;
    }
    stager->news++;
    pthread_cond_signal(&stager->work);
    pthread_mutex_unlock(&stager->lock);
    return HR_OK;
}

static bool host_memory_is_shared(hr_bdevice *device, const hr_bcopy *copy)
{
    if (device->reads_pageable || copy->segment_count > 0) {
        return true;
    }
    uint64_t span = (copy->depth - 1) * copy->src.slice_pitch_bytes +
                    (copy->height - 1) * copy->src.row_pitch_bytes + copy->width_bytes;
    return hr_cuda_host_kind(device, copy->src.base, span) != HR_MEMORY_PAGEABLE;
}

hr_status hr_cuda_defer_copy(hr_bstream *stream, const hr_bcopy *copy, hr_cuda_stage_way way, hr_error *error)
{
    hr_cuda_pending op = {.kind = HR_CUDA_PENDING_COPY, .copy = *copy, .way = way};
    if (way == HR_CUDA_WAY_NONE) {
        return enqueue(stream, &op, false, error);
    }
    static const hr_cuda_counter counters[] = {[HR_CUDA_WAY_IN] = HR_CUDA_STAGED_IN,
                                               [HR_CUDA_WAY_OUT] = HR_CUDA_STAGED_OUT,
                                               [HR_CUDA_WAY_HOST] = HR_CUDA_STAGED_HOST,
                                               [HR_CUDA_WAY_PEER] = HR_CUDA_STAGED_PEER};
    op.kind = HR_CUDA_PENDING_STAGED;
    op.wait_quiet =
        way == HR_CUDA_WAY_HOST || (way == HR_CUDA_WAY_IN && host_memory_is_shared(stream->device, copy));
    hr_status status = HR_AGAIN;
    if (way == HR_CUDA_WAY_IN && !op.wait_quiet && !hr_cuda_stream_deferred(stream)) {
        hr_cuda_stager *stager = NULL;
        status = get_stager(stream->device, true, &stager, error);
        if (status == HR_OK) {
            status = hr_stage_copy_in_now(stager, stream, copy, error);
        }
    }
    if (status == HR_AGAIN) {
        status = enqueue(stream, &op, true, error);
    }
    if (status == HR_OK) {
        hr_cuda_count(stream->device, counters[way], NULL);
    }
    return status;
}

hr_status hr_cuda_defer_fill(hr_bstream *stream, const hr_bfill *fill, hr_error *error)
{
    hr_cuda_pending op = {.kind = HR_CUDA_PENDING_FILL, .fill = *fill};
    return enqueue(stream, &op, false, error);
}

hr_status hr_cuda_defer_launch(hr_bstream *stream, hr_launch_fn fn, const hr_launch *launch, hr_error *error)
{
    hr_cuda_pending op = {.kind = HR_CUDA_PENDING_LAUNCH, .fn = fn, .launch = *launch};
    return enqueue(stream, &op, false, error);
}

hr_status hr_cuda_defer_record(hr_bstream *stream, hr_bevent *event, uint64_t generation, hr_error *error)
{
    hr_cuda_pending op = {.kind = HR_CUDA_PENDING_RECORD, .event = event, .generation = generation};
    return enqueue(stream, &op, false, error);
}

hr_status hr_cuda_defer_wait(hr_bstream *stream, hr_bevent *event, uint64_t generation, hr_error *error)
{
    hr_cuda_pending op = {.kind = HR_CUDA_PENDING_WAIT, .event = event, .generation = generation};
    return enqueue(stream, &op, false, error);
}

hr_status hr_cuda_defer_timer(hr_bstream *stream, hr_btimer *timer, hr_error *error)
{
    hr_cuda_pending op = {.kind = HR_CUDA_PENDING_TIMER, .timer = timer};
    return enqueue(stream, &op, false, error);
}

void hr_cuda_stager_wake(hr_bdevice *device)
{
    hr_cuda_stager *stager = atomic_load(&device->stager);
    if (stager != NULL) {
        pthread_mutex_lock(&stager->lock);
        stager->news++;
        pthread_cond_signal(&stager->work);
        pthread_cond_broadcast(&stager->changed);
        pthread_mutex_unlock(&stager->lock);
    }
}

void hr_cuda_stager_pause(hr_bdevice *device)
{
    hr_cuda_stager *stager = atomic_load(&device->stager);
    if (stager == NULL) {
        nanosleep(&(struct timespec){0, POLL_NS}, NULL);
        return;
    }
    pthread_mutex_lock(&stager->lock);
    timed_wait(&stager->changed, &stager->lock, 50 * POLL_NS);
    pthread_mutex_unlock(&stager->lock);
}

void hr_cuda_drain(hr_bstream *stream)
{
    while (hr_cuda_stream_deferred(stream)) {
        hr_cuda_stager_pause(stream->device);
    }
}

void hr_cuda_drop(hr_bstream *stream)
{
    /* The submitting thread sees that the stream is cancelled, and drops what it has. */
    hr_cuda_stager_wake(stream->device);
}

static void free_helpers(hr_cuda_stager *stager)
{
    for (int i = 0; i < HR_CUDA_MAX_PEERS; i++) {
        if (stager->helper[i] != NULL) {
            hr_stage_helper_close(stager->helper[i]);
        }
    }
}

void hr_cuda_stager_close(hr_bdevice *device)
{
    hr_cuda_stager *stager = atomic_load(&device->stager);
    if (stager == NULL) {
        return;
    }
    pthread_mutex_lock(&stager->lock);
    stager->stop = true;
    pthread_cond_signal(&stager->work);
    pthread_cond_broadcast(&stager->tasks);
    pthread_mutex_unlock(&stager->lock);
    pthread_join(stager->thread, NULL);
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(device, &scope);
    free_helpers(stager);
    if (stager->ring != NULL) {
        hr_stage_ring_close(stager, stager->ring);
    }
    hr_cuda_leave(&scope);
    atomic_store(&device->stager, NULL);
    pthread_cond_destroy(&stager->changed);
    pthread_cond_destroy(&stager->tasks);
    pthread_cond_destroy(&stager->work);
    pthread_mutex_destroy(&stager->lock);
    free(stager);
}
