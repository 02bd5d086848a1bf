/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy engine: one thread a direction that moves bytes as fast as a link of a given speed would.
 *
 * Time is kept by arithmetic, not by sleeping for each copy: a copy begins when its stream comes to it or
 * when the link is free, whichever is later, and ends its length later. The thread moves the bytes and then
 * sleeps until that end. A sleep that lasts too long, or a thread that the system keeps waiting, makes this
 * one copy late and no other, because the next one begins at the end by arithmetic, as it would on a link
 * that nobody holds up; so thousands of small copies take the time that they should. No copy begins before it
 * was asked for.
 */
#include "backend/cpu/internal.h"

#include <errno.h>
#include <sys/prctl.h>

/* Shorter waits are spent awake: going to sleep takes longer. */
#define SPIN_NS UINT64_C(5000)

static void sleep_until(uint64_t when_ns)
{
    uint64_t now = hr_now_ns();
    if (when_ns > now + SPIN_NS) {
        struct timespec when = {(time_t)(when_ns / HR_NS_PER_S), (long)(when_ns % HR_NS_PER_S)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR) {
        }
    }
    while (hr_now_ns() < when_ns) {
        hr_spin_pause();
    }
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Moves the bytes and returns when the link would be done; the returned time is by arithmetic. */
static uint64_t transfer(hr_cpu_engine *engine, const hr_bstream *stream)
{
    const hr_cpu_operation *operation = stream->head;
    uint64_t begin = later(later(operation->accepted_ns, stream->chain_ns), engine->free_ns);
    uint64_t length = engine->latency_ns;
    if (engine->bytes_per_s > 0) {
        length += (uint64_t)((double)hr_cpu_copy_bytes(&operation->as.copy) * 1e9 / engine->bytes_per_s);
    }
    hr_cpu_move(&operation->as.copy, NULL);
    uint64_t end = begin + length;
    if (length > 0) {
        sleep_until(end);
    }
    engine->free_ns = end;
    return end;
}

static void *engine_thread(void *argument)
{
    hr_cpu_engine *engine = argument;
    prctl(PR_SET_TIMERSLACK, 1UL);
    pthread_mutex_lock(&engine->lock);
    for (;;) {
        while (engine->first == NULL && !engine->closing) {
            pthread_cond_wait(&engine->work, &engine->lock);
        }
        hr_bstream *stream = engine->first;
        if (stream == NULL) {
            break;
        }
        engine->first = stream->engine_next;
        pthread_mutex_unlock(&engine->lock);
        hr_cpu_stream_engine_done(stream, transfer(engine, stream));
        pthread_mutex_lock(&engine->lock);
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

hr_status hr_cpu_engine_open(hr_cpu_engine *engine, const char *name, double bytes_per_s, uint64_t latency_ns,
                             hr_error *error)
{
    *engine = (hr_cpu_engine){.bytes_per_s = bytes_per_s, .latency_ns = latency_ns};
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->work, NULL);
    hr_status status = hr_thread_start(&engine->thread, name, engine_thread, engine, error);
    if (status != HR_OK) {
        pthread_cond_destroy(&engine->work);
        pthread_mutex_destroy(&engine->lock);
        return status;
    }
    engine->started = true;
    return HR_OK;
}

void hr_cpu_engine_close(hr_cpu_engine *engine)
{
    if (!engine->started) {
        return;
    }
    pthread_mutex_lock(&engine->lock);
    engine->closing = true;
    pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    pthread_join(engine->thread, NULL);
    pthread_cond_destroy(&engine->work);
    pthread_mutex_destroy(&engine->lock);
    engine->started = false;
}

void hr_cpu_engine_push(hr_cpu_engine *engine, hr_bstream *stream)
{
    pthread_mutex_lock(&engine->lock);
    stream->engine_next = NULL;
    if (engine->first != NULL) {
        engine->last->engine_next = stream;
    } else {
        engine->first = stream;
        pthread_cond_signal(&engine->work);
    }
    engine->last = stream;
    pthread_mutex_unlock(&engine->lock);
}

bool hr_cpu_engine_pull(hr_cpu_engine *engine, hr_bstream *stream)
{
    pthread_mutex_lock(&engine->lock);
    hr_bstream *before = NULL, *at = engine->first;
    while (at != NULL && at != stream) {
        before = at;
        at = at->engine_next;
    }
    if (at != NULL) {
        *(before != NULL ? &before->engine_next : &engine->first) = at->engine_next;
        if (engine->last == at) {
            engine->last = before;
        }
    }
    pthread_mutex_unlock(&engine->lock);
    return at != NULL;
}
