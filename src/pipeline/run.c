/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run.h"

#include "base/clock.h"
#include "base/thread.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void *thread_main(void *argument)
{
    hr_run_thread *self = argument;
    hr_pipeline *pipeline = self->pipeline;
    pthread_mutex_lock(&pipeline->lock);
    while (pipeline->phase == HR_RUN_OPENED || pipeline->phase == HR_RUN_STARTING) {
        pthread_cond_wait(&pipeline->gate, &pipeline->lock);
    }
    bool runs = pipeline->phase == HR_RUN_RUNNING;
    pthread_mutex_unlock(&pipeline->lock);
    if (!runs) {
        return NULL;
    }
    self->body(pipeline, self->argument);
    pthread_mutex_lock(&pipeline->lock);
    bool last = --pipeline->active == 0;
    pthread_mutex_unlock(&pipeline->lock);
    if (last) {
        sem_post(&pipeline->wake);
    }
    return NULL;
}

hr_status hr_run_spawn(hr_pipeline *pipeline, const char *name,
                       void (*body)(hr_pipeline *pipeline, void *argument), void *argument, hr_error *error)
{
    if (pipeline->thread_count == HR_RUN_MAX_THREADS) {
        return hr_fail(error, HR_E_THREAD, "the pipeline needs more than %d threads", HR_RUN_MAX_THREADS);
    }
    hr_run_thread *slot = &pipeline->threads[pipeline->thread_count];
    *slot = (hr_run_thread){.pipeline = pipeline, .body = body, .argument = argument};
    hr_status status = hr_thread_start(&slot->thread, name, thread_main, slot, error);
    if (status != HR_OK) {
        return status;
    }
    pipeline->thread_count++;
    return HR_OK;
}

bool hr_run_stopped(const hr_pipeline *pipeline, uint64_t chunk)
{
    return atomic_load(&pipeline->cancelled) || chunk >= atomic_load(&pipeline->stop_at) ||
           chunk >= atomic_load(&pipeline->chunks);
}

static void lower(_Atomic uint64_t *value, uint64_t to)
{
    uint64_t now = atomic_load(value);
    while (to < now && !atomic_compare_exchange_weak(value, &now, to)) {
    }
}

static void interrupt_ports(hr_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->cut.inputs; i++) {
        hr_source *source = pipeline->options.in[i].source;
        if (source->interrupt != NULL) {
            source->interrupt(source->self);
        }
    }
    for (uint32_t i = 0; i < pipeline->cut.outputs; i++) {
        hr_sink *sink = pipeline->options.out[i].sink;
        if (sink->interrupt != NULL) {
            sink->interrupt(sink->self);
        }
    }
}

void hr_run_fail(hr_pipeline *pipeline, uint64_t chunk, const hr_error *error)
{
    pthread_mutex_lock(&pipeline->lock);
    /* What is interrupted because the run is ending says that it was cancelled: that is no failure of its
     * own. */
    bool ending = atomic_load(&pipeline->cancelled) || atomic_load(&pipeline->stop_at) != UINT64_MAX;
    bool echo = error->status == HR_E_CANCELLED && ending;
    /* HR_NO_CHUNK is the largest number: a failure that names a chunk goes before one that does not. */
    if (!echo && (!pipeline->failed || chunk < pipeline->failure.chunk)) {
        pipeline->failed = true;
        if (chunk == HR_NO_CHUNK) {
            pipeline->failure = *error;
        } else {
            hr_fail(&pipeline->failure, error->status, "chunk %" PRIu64 ": %s", chunk, error->text);
            pipeline->failure.code = error->code;
        }
        pipeline->failure.chunk = chunk;
    }
    lower(&pipeline->stop_at, chunk == HR_NO_CHUNK ? 0 : chunk);
    pipeline->executor->wake_all(pipeline);
    pthread_mutex_unlock(&pipeline->lock);
    interrupt_ports(pipeline);
}

void hr_run_stop(hr_pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->lock);
    lower(&pipeline->stop_at, 0);
    pipeline->executor->wake_all(pipeline);
    pthread_mutex_unlock(&pipeline->lock);
    if (pipeline->executor->cancel != NULL) {
        pipeline->executor->cancel(pipeline);
    }
    interrupt_ports(pipeline);
}

void hr_run_end(hr_pipeline *pipeline, uint64_t chunks)
{
    pthread_mutex_lock(&pipeline->lock);
    lower(&pipeline->chunks, chunks);
    pipeline->executor->wake_all(pipeline);
    pthread_mutex_unlock(&pipeline->lock);
}

void hr_run_done(hr_pipeline *pipeline, uint64_t chunk, uint64_t units)
{
    (void)chunk;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pipeline->cut.inputs; i++) {
        bytes += units * pipeline->cut.in[i].unit_bytes;
    }
    atomic_fetch_add(&pipeline->done_bytes, bytes);
}

hr_status hr_run_refused(hr_status status, const char *who, hr_error *error)
{
    if (status > 0) {
        return hr_fail(error, HR_E_INVALID, "%s answered %d (%s), which is neither success nor a failure",
                       who, (int)status, hr_status_text(status));
    }
    if (error->status == HR_OK) {
        return hr_fail(error, status, "%s failed: %s", who, hr_status_text(status));
    }
    error->status = status;
    return status;
}

hr_status hr_run_prepare(const hr_pipeline *pipeline, void *state, hr_error *error)
{
    const hr_op *op = pipeline->options.op;
    hr_error why = HR_ERROR_INIT;
    hr_status status = op->prepare != NULL ? op->prepare(op, pipeline->options.params, state, &why) : HR_OK;
    if (status != HR_OK) {
        status = hr_run_refused(status, op->name, &why);
        *error = why;
    }
    return status;
}

hr_status hr_turn_init(hr_turn *turn)
{
    turn->next = 0;
    return pthread_cond_init(&turn->moved, NULL) == 0 ? HR_OK : HR_E_HOST_MEMORY;
}

void hr_turn_destroy(hr_turn *turn)
{
    pthread_cond_destroy(&turn->moved);
}

bool hr_turn_wait(hr_pipeline *pipeline, hr_turn *turn, uint64_t chunk)
{
    pthread_mutex_lock(&pipeline->lock);
    while (turn->next != chunk && !hr_run_stopped(pipeline, chunk)) {
        pthread_cond_wait(&turn->moved, &pipeline->lock);
    }
    bool ours = turn->next == chunk && !hr_run_stopped(pipeline, chunk);
    pthread_mutex_unlock(&pipeline->lock);
    return ours;
}

void hr_turn_pass(hr_pipeline *pipeline, hr_turn *turn, uint64_t chunk)
{
    pthread_mutex_lock(&pipeline->lock);
    turn->next = chunk + 1;
    pthread_cond_broadcast(&turn->moved);
    pthread_mutex_unlock(&pipeline->lock);
}

static void tell_span(hr_pipeline *pipeline, hr_place_in_run place, uint64_t begin_ns, uint64_t end_ns,
                      uint64_t bytes)
{
    const hr_observer *observer = pipeline->options.observer;
    if (observer != NULL && observer->span != NULL) {
        hr_span span = {.size = sizeof span,
                        .stage = place.stage,
                        .chunk = place.chunk,
                        .port = place.port,
                        .lane = place.lane,
                        .begin_ns = begin_ns,
                        .end_ns = end_ns,
                        .bytes = bytes,
                        .device = place.device,
                        .name = pipeline->options.op->name};
        observer->span(observer->self, &span);
    }
}

hr_mark hr_run_enter(hr_pipeline *pipeline, hr_stage stage)
{
    return hr_gauge_enter(&pipeline->gauge[stage], hr_now_ns());
}

void hr_run_leave(hr_pipeline *pipeline, hr_place_in_run place, hr_mark mark, uint64_t bytes)
{
    uint64_t now = hr_now_ns();
    hr_gauge_leave(&pipeline->gauge[place.stage], mark, now, bytes);
    if (bytes > 0) {
        tell_span(pipeline, place, mark.begin_ns, now, bytes);
    }
}

void hr_run_span(hr_pipeline *pipeline, hr_place_in_run place, uint64_t begin_ns, uint64_t end_ns,
                 uint64_t bytes)
{
    hr_gauge_add(&pipeline->gauge[place.stage], begin_ns, end_ns, bytes);
    tell_span(pipeline, place, begin_ns, end_ns, bytes);
}

void hr_run_finished(hr_pipeline *pipeline, hr_place_in_run place, uint64_t begin_ns, uint64_t end_ns)
{
    hr_gauge_finish(&pipeline->gauge[place.stage], begin_ns, end_ns);
    tell_span(pipeline, place, begin_ns, end_ns, 0);
}

void hr_run_note(hr_pipeline *pipeline, const char *format, ...)
{
    const hr_observer *observer = pipeline->options.observer;
    if (observer == NULL || observer->note == NULL) {
        return;
    }
    char text[HR_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    observer->note(observer->self, text);
}

hr_launch hr_run_launch(const hr_pipeline *pipeline, uint64_t chunk)
{
    return (hr_launch){.size = sizeof(hr_launch),
                       .chunk = chunk,
                       .inputs = pipeline->cut.inputs,
                       .outputs = pipeline->cut.outputs,
                       .params = pipeline->options.params,
                       .user = pipeline->options.user};
}
