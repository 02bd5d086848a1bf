/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an operation.
 *
 *     accepted ──► at the head ──► running ──► done
 *         │             │             └──────► failed: the stream's first failure
 *         └─────────────┴────────────────────► failed or cancelled with the stream, without having run
 *
 * An operation is accepted when it is put into its stream's queue; from then on it leaves the queue exactly
 * once, in retire(), and always in the queue's order. Only the head does anything. What it needs says the
 * stream's state:
 *
 *     IDLE        nobody works on the head: the queue is empty, or advance() is about to look at it
 *     ON_THREAD   the head computes, fills or copies on the stream's own thread (`running` once it began)
 *     ON_ENGINE   the head is a copy in a copy engine's queue, or in its hands
 *     PARKED      the head waits for a point that has not fired
 *
 * advance() takes the head as far as it goes without blocking: it fires points, passes points that have
 * fired, and otherwise gives the head to a thread, an engine or a point and leaves. Whoever then finishes
 * with it sets IDLE and calls advance() again. So no thread sleeps on behalf of a waiting stream, and a chain
 * of small operations runs in the thread that finished the first of them.
 *
 * A failure (of a launcher, of a point that is waited for, or by cancel) is kept as the stream's; from then
 * on advance() retires the whole queue with it, firing the points in it with the failure, and begin()
 * refuses. Running work is never interrupted.
 *
 * Locks: a stream's, then an event's, a point's or an engine's; never two streams' at once. A point that
 * fires while its stream is locked therefore only collects the streams that it releases, and hr_cpu_drive()
 * goes on with them once no lock is held. A stream on that list is PARKED and its head waits, so it cannot be
 * closed meanwhile.
 */
#include "backend/cpu/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_OPERATIONS 16

struct hr_cpu_slab {
    hr_cpu_slab *next;
    hr_cpu_operation operations[SLAB_OPERATIONS];
};

static const char *const use_names[] = {"hr-stream", "hr-in", "hr-compute", "hr-out"};

/* Memory is asked for only when the queue is deeper than ever before. */
static bool grow(hr_bstream *stream)
{
    hr_cpu_slab *slab = calloc(1, sizeof *slab);
    if (slab == NULL) {
        return false;
    }
    slab->next = stream->slabs;
    stream->slabs = slab;
    for (int i = SLAB_OPERATIONS; i-- > 0;) {
        slab->operations[i].next = stream->unused;
        stream->unused = &slab->operations[i];
    }
    return true;
}

static hr_status report_failure(const hr_bstream *stream, hr_error *error)
{
    if (error != NULL && stream->failure != HR_OK) {
        *error = stream->error;
    }
    return stream->failure;
}

/* Under the lock. The first failure stays. */
static void set_failure(hr_bstream *stream, hr_status status, const hr_error *error)
{
    if (stream->failure == HR_OK) {
        stream->failure = status;
        stream->error = *error;
        stream->error.status = status;
    }
}

/* Takes the head off the queue; the one place where operations end. */
static void retire(hr_bstream *stream)
{
    hr_cpu_operation *done = stream->head;
    stream->head = done->next;
    if (stream->head == NULL) {
        stream->tail = NULL;
    }
    done->next = stream->unused;
    stream->unused = done;
}

static bool on_own_thread(const hr_bstream *stream)
{
    return pthread_equal(pthread_self(), stream->thread) != 0;
}

/* The head of a stream that has failed ends without running. */
static void retire_failed(hr_bstream *stream, hr_bstream **ready)
{
    hr_cpu_operation *head = stream->head;
    if (head->kind == HR_CPU_RECORD) {
        hr_cpu_point_fire(head->as.point, stream->failure, &stream->error, ready);
        hr_cpu_point_drop(head->as.point);
    } else if (head->kind == HR_CPU_WAIT) {
        hr_cpu_point_drop(head->as.point);
    } else if (head->kind == HR_CPU_TIMER) {
        atomic_store_explicit(&head->as.timer->status, (int)stream->failure, memory_order_release);
    }
    retire(stream);
}

/* The head waits for a point. True if it has passed, or failed with what the point says. */
static bool pass_point(hr_bstream *stream)
{
    hr_cpu_point *point = stream->head->as.point;
    if (hr_cpu_point_park(point, stream)) {
        stream->state = HR_CPU_PARKED;
        return false;
    }
    hr_status status = (hr_status)atomic_load_explicit(&point->status, memory_order_acquire);
    if (status != HR_OK) {
        set_failure(stream, status, &point->error);
    }
    hr_cpu_point_drop(point);
    retire(stream);
    return true;
}

/* Under the lock, state IDLE. Goes on until the head needs somebody, or nothing is left. */
static void advance(hr_bstream *stream, hr_bstream **ready)
{
    while (stream->head != NULL) {
        hr_cpu_operation *head = stream->head;
        if (stream->failure != HR_OK) {
            retire_failed(stream, ready);
        } else if (head->kind == HR_CPU_RECORD) {
            hr_cpu_point_fire(head->as.point, HR_OK, NULL, ready);
            hr_cpu_point_drop(head->as.point);
            retire(stream);
        } else if (head->kind == HR_CPU_TIMER) {
            atomic_store_explicit(&head->as.timer->time_ns, hr_now_ns(), memory_order_relaxed);
            atomic_store_explicit(&head->as.timer->status, HR_OK, memory_order_release);
            retire(stream);
        } else if (head->kind == HR_CPU_WAIT) {
            if (!pass_point(stream)) {
                return;
            }
        } else if (head->engine != NULL) {
            stream->state = HR_CPU_ON_ENGINE;
            hr_cpu_engine_push(head->engine, stream);
            return;
        } else {
            stream->state = HR_CPU_ON_THREAD;
            if (!on_own_thread(stream)) {
                pthread_cond_signal(&stream->work);
            }
            return;
        }
    }
    pthread_cond_broadcast(&stream->drained);
}

void hr_cpu_drive(hr_bstream *ready)
{
    while (ready != NULL) {
        hr_bstream *stream = ready;
        ready = stream->ready_next;
        pthread_mutex_lock(&stream->lock);
        stream->state = HR_CPU_IDLE;
        stream->chain_ns = hr_now_ns();
        advance(stream, &ready);
        pthread_mutex_unlock(&stream->lock);
    }
}

hr_status hr_cpu_stream_begin(hr_bstream *stream, hr_cpu_kind kind, hr_cpu_operation **operation,
                              hr_error *error)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->failure != HR_OK) {
        hr_status status = report_failure(stream, error);
        pthread_mutex_unlock(&stream->lock);
        return status;
    }
    if (stream->unused == NULL && !grow(stream)) {
        pthread_mutex_unlock(&stream->lock);
        return hr_fail(error, HR_E_HOST_MEMORY, "stream: no memory for %d more operations", SLAB_OPERATIONS);
    }
    hr_cpu_operation *taken = stream->unused;
    stream->unused = taken->next;
    taken->next = NULL;
    taken->kind = kind;
    taken->engine = NULL;
    *operation = taken;
    return HR_OK;
}

void hr_cpu_stream_abandon(hr_bstream *stream, hr_cpu_operation *operation)
{
    operation->next = stream->unused;
    stream->unused = operation;
    pthread_mutex_unlock(&stream->lock);
}

void hr_cpu_stream_submit(hr_bstream *stream, hr_cpu_operation *operation)
{
    hr_bstream *ready = NULL;
    if (stream->tail != NULL) {
        stream->tail->next = operation;
    } else {
        stream->head = operation;
    }
    stream->tail = operation;
    if (stream->state == HR_CPU_IDLE) {
        stream->chain_ns = 0;
        advance(stream, &ready);
    }
    pthread_mutex_unlock(&stream->lock);
    hr_cpu_drive(ready);
}

void hr_cpu_stream_engine_done(hr_bstream *stream, uint64_t end_ns)
{
    hr_bstream *ready = NULL;
    pthread_mutex_lock(&stream->lock);
    stream->state = HR_CPU_IDLE;
    stream->chain_ns = end_ns;
    retire(stream);
    advance(stream, &ready);
    pthread_mutex_unlock(&stream->lock);
    hr_cpu_drive(ready);
}

/* Without a lock: the head is this thread's until it is retired. */
static hr_status run(hr_bstream *stream, hr_cpu_operation *operation, hr_error *error)
{
    switch (operation->kind) {
    case HR_CPU_COPY:
        hr_cpu_move(&operation->as.copy, stream->device->crew);
        return HR_OK;
    case HR_CPU_FILL:
        hr_cpu_fill(&operation->as.fill);
        return HR_OK;
    case HR_CPU_LAUNCH: {
        hr_status status = operation->as.launch.fn(&operation->as.launch.launch, error);
        if (status > HR_OK) {
            return hr_fail(error, HR_E_INTERNAL, "launch: the launcher answered %d; needs HR_OK or a failure",
                           status);
        }
        return status;
    }
    default:
        return hr_fail(error, HR_E_INTERNAL, "stream: operation %d is for no thread", (int)operation->kind);
    }
}

static void *stream_thread(void *argument)
{
    hr_bstream *stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (stream->state != HR_CPU_ON_THREAD && !stream->closing) {
            pthread_cond_wait(&stream->work, &stream->lock);
        }
        if (stream->state != HR_CPU_ON_THREAD) {
            break;
        }
        hr_error error = HR_ERROR_INIT;
        hr_bstream *ready = NULL;
        stream->running = true;
        pthread_mutex_unlock(&stream->lock);
        hr_status status = run(stream, stream->head, &error);
        pthread_mutex_lock(&stream->lock);
        stream->running = false;
        if (status != HR_OK) {
            if (error.text[0] == '\0') {
                hr_fail(&error, status, "launch: %s", hr_status_text(status));
            }
            set_failure(stream, status, &error);
        }
        stream->state = HR_CPU_IDLE;
        stream->chain_ns = hr_now_ns();
        retire(stream);
        advance(stream, &ready);
        if (ready != NULL) {
            pthread_mutex_unlock(&stream->lock);
            hr_cpu_drive(ready);
            pthread_mutex_lock(&stream->lock);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static void free_stream(hr_bstream *stream)
{
    while (stream->slabs != NULL) {
        hr_cpu_slab *slab = stream->slabs;
        stream->slabs = slab->next;
        for (int i = 0; i < SLAB_OPERATIONS; i++) {
            free(slab->operations[i].segments);
        }
        free(slab);
    }
    pthread_cond_destroy(&stream->drained);
    pthread_cond_destroy(&stream->work);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

hr_status hr_cpu_stream_open(hr_bdevice *device, hr_stream_use use, hr_bstream **stream, hr_error *error)
{
    hr_bstream *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "stream: no memory");
    }
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->drained, NULL);
    hr_status status;
    if (!grow(made)) {
        status = hr_fail(error, HR_E_HOST_MEMORY, "stream: no memory for its queue");
    } else {
        const char *name =
            (unsigned)use < sizeof use_names / sizeof use_names[0] ? use_names[use] : use_names[0];
        status = hr_thread_start(&made->thread, name, stream_thread, made, error);
    }
    if (status != HR_OK) {
        free_stream(made);
        return status;
    }
    *stream = made;
    return HR_OK;
}

/* Under the lock. */
static void wait_drained(hr_bstream *stream)
{
    while (stream->head != NULL || stream->state != HR_CPU_IDLE) {
        pthread_cond_wait(&stream->drained, &stream->lock);
    }
}

hr_status hr_cpu_stream_close(hr_bstream *stream, hr_error *error)
{
    pthread_mutex_lock(&stream->lock);
    wait_drained(stream);
    stream->closing = true;
    pthread_cond_signal(&stream->work);
    hr_status status = report_failure(stream, error);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    free_stream(stream);
    return status;
}

hr_status hr_cpu_stream_query(hr_bstream *stream, hr_error *error)
{
    pthread_mutex_lock(&stream->lock);
    bool idle = stream->head == NULL && stream->state == HR_CPU_IDLE;
    hr_status status = idle ? report_failure(stream, error) : HR_PENDING;
    pthread_mutex_unlock(&stream->lock);
    return status;
}

hr_status hr_cpu_stream_wait(hr_bstream *stream, hr_error *error)
{
    pthread_mutex_lock(&stream->lock);
    wait_drained(stream);
    hr_status status = report_failure(stream, error);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* Under the lock. Can the head be taken back from whoever has it? */
static bool take_head_back(hr_bstream *stream)
{
    switch (stream->state) {
    case HR_CPU_IDLE:
        return true;
    case HR_CPU_ON_THREAD:
        return !stream->running;
    case HR_CPU_ON_ENGINE:
        return hr_cpu_engine_pull(stream->head->engine, stream);
    case HR_CPU_PARKED:
        return hr_cpu_point_unpark(stream->head->as.point, stream);
    }
    return false;
}

hr_status hr_cpu_stream_cancel(hr_bstream *stream)
{
    hr_error error = HR_ERROR_INIT;
    hr_bstream *ready = NULL;
    hr_fail(&error, HR_E_CANCELLED, "stream: it was cancelled");
    pthread_mutex_lock(&stream->lock);
    set_failure(stream, HR_E_CANCELLED, &error);
    if (take_head_back(stream)) {
        stream->state = HR_CPU_IDLE;
        advance(stream, &ready);
    }
    pthread_mutex_unlock(&stream->lock);
    hr_cpu_drive(ready);
    return HR_OK;
}
