/* SPDX-License-Identifier: Apache-2.0 */
/* The double's streams and events: a thread for each stream, so that order holds only where it was asked for.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The event's last reference frees it. Locked. */
static void release_event(cudaEvent_t event)
{
    if (--event->references == 0) {
        the_double.events--;
        free(event);
    }
}

static void free_work(work *one)
{
    if (one->event != NULL) {
        release_event(one->event);
    }
    free(one->argument);
    free(one);
}

/* Locked, unlocked while the work itself runs. */
static void run_one(struct CUstream_st *stream, work *one)
{
    const int *dead = &the_double.dead[stream->device];
    if (one->kind == WORK_WAIT) {
        const int *other_dead = &the_double.dead[one->event->device];
        while (one->event->done < one->generation && *dead == 0 && *other_dead == 0) {
            pthread_cond_wait(&the_double.changed, &the_double.lock);
        }
        return;
    }
    if (one->kind == WORK_RECORD) {
        /* Behind work that a death took away, no event is ever done. */
        if (*dead == 0 && one->event->done < one->generation) {
            one->event->done = one->generation;
            one->event->done_ns = now_ns();
        }
        return;
    }
    while (the_double.held && *dead == 0) {
        pthread_cond_wait(&the_double.changed, &the_double.lock);
    }
    if (the_double.fail_work_in > 0 && --the_double.fail_work_in == 0) {
        double_kill_device(stream->device, the_double.fail_work_code);
    }
    if (*dead != 0) {
        return;
    }
    unsigned delay = the_double.delay_us;
    pthread_mutex_unlock(&the_double.lock);
    if (delay > 0) {
        nanosleep(&(struct timespec){delay / 1000000, (long)(delay % 1000000) * 1000}, NULL);
    }
    one->fn(one->argument);
    pthread_mutex_lock(&the_double.lock);
}

static void *stream_thread(void *argument)
{
    struct CUstream_st *stream = argument;
    pthread_mutex_lock(&the_double.lock);
    for (;;) {
        while (stream->head == NULL && !stream->closing) {
            pthread_cond_wait(&stream->wake, &the_double.lock);
        }
        work *one = stream->head;
        if (one == NULL) {
            break;
        }
        stream->head = one->next;
        if (stream->head == NULL) {
            stream->tail = NULL;
        }
        stream->busy = true;
        run_one(stream, one);
        free_work(one);
        stream->busy = false;
        pthread_cond_broadcast(&the_double.changed);
    }
    pthread_mutex_unlock(&the_double.lock);
    return NULL;
}

bool double_stream_idle(const struct CUstream_st *stream)
{
    return stream->head == NULL && !stream->busy;
}

bool double_device_busy(int device)
{
    for (const struct CUstream_st *s = the_double.streams; s != NULL; s = s->next) {
        if (s->device == device && !double_stream_idle(s)) {
            return true;
        }
    }
    return false;
}

void double_wait_device(int device)
{
    pthread_mutex_lock(&the_double.lock);
    the_double.device_waits++;
    while (double_device_busy(device) && the_double.dead[device] == 0) {
        pthread_cond_wait(&the_double.changed, &the_double.lock);
    }
    pthread_mutex_unlock(&the_double.lock);
}

static void append(work **head, work **tail, work *one)
{
    if (*tail == NULL) {
        *head = one;
    } else {
        (*tail)->next = one;
    }
    *tail = one;
}

/* Locked. Into the stream, or into the graph that it is being captured to. */
static void push(struct CUstream_st *stream, work *one)
{
    if (stream->graph != NULL) {
        append(&stream->graph->head, &stream->graph->tail, one);
        return;
    }
    append(&stream->head, &stream->tail, one);
    pthread_cond_signal(&stream->wake);
}

/* Is it a stream that the double made? Counts the default stream and what stands for it. */
static bool known(cudaStream_t stream)
{
    bool found = false;
    pthread_mutex_lock(&the_double.lock);
    if ((uintptr_t)stream <= 2) {
        the_double.default_stream_calls++;
    } else {
        for (const struct CUstream_st *s = the_double.streams; s != NULL && !found; s = s->next) {
            found = s == stream;
        }
    }
    pthread_mutex_unlock(&the_double.lock);
    return found;
}

cudaError_t double_submit(cudaStream_t stream, void (*fn)(void *argument), const void *argument, size_t bytes)
{
    if (!known(stream)) {
        return double_answer(cudaErrorInvalidResourceHandle);
    }
    work *one = calloc(1, sizeof *one);
    one->kind = WORK_RUN;
    one->fn = fn;
    one->argument = malloc(bytes > 0 ? bytes : 1);
    memcpy(one->argument, argument, bytes);
    pthread_mutex_lock(&the_double.lock);
    push(stream, one);
    pthread_mutex_unlock(&the_double.lock);
    return cudaSuccess;
}

cudaError_t hr_double_launch(cudaStream_t stream, void (*fn)(void *argument), const void *argument,
                             size_t bytes)
{
    cudaError_t code = double_enter("cudaLaunchKernel");
    if (code != cudaSuccess) {
        return code;
    }
    /* A kernel wants its stream's device to be current; copies do not mind. */
    if (known(stream) && stream->device != double_current_device()) {
        return double_answer(cudaErrorInvalidResourceHandle);
    }
    return double_submit(stream, fn, argument, bytes);
}

HR_DOUBLE_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    ENTER();
    struct CUstream_st *made = calloc(1, sizeof *made);
    made->device = double_current_device();
    pthread_cond_init(&made->wake, NULL);
    pthread_mutex_lock(&the_double.lock);
    the_double.blocking_streams += (flags & cudaStreamNonBlocking) == 0;
    made->next = the_double.streams;
    the_double.streams = made;
    pthread_mutex_unlock(&the_double.lock);
    if (pthread_create(&made->thread, NULL, stream_thread, made) != 0) {
        abort();
    }
    *stream = made;
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t code = double_enter("cudaStreamDestroy");
    if (!known(stream)) {
        return double_answer(cudaErrorInvalidResourceHandle);
    }
    pthread_mutex_lock(&the_double.lock);
    stream->closing = true;
    pthread_cond_signal(&stream->wake);
    pthread_mutex_unlock(&the_double.lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&the_double.lock);
    struct CUstream_st **link = &the_double.streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    pthread_mutex_unlock(&the_double.lock);
    pthread_cond_destroy(&stream->wake);
    free(stream);
    return code;
}

HR_DOUBLE_API cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    ENTER();
    if (!known(stream)) {
        return double_answer(cudaErrorInvalidResourceHandle);
    }
    pthread_mutex_lock(&the_double.lock);
    cudaError_t code = stream->graph != NULL             ? cudaErrorStreamCaptureUnsupported
                       : the_double.dead[stream->device] ? (cudaError_t)the_double.dead[stream->device]
                       : double_stream_idle(stream)      ? cudaSuccess
                                                         : cudaErrorNotReady;
    pthread_mutex_unlock(&the_double.lock);
    return double_answer(code);
}

HR_DOUBLE_API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER();
    if (!known(stream)) {
        return double_answer(cudaErrorInvalidResourceHandle);
    }
    pthread_mutex_lock(&the_double.lock);
    cudaError_t code = stream->graph != NULL ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
    while (code == cudaSuccess && !double_stream_idle(stream) && the_double.dead[stream->device] == 0) {
        pthread_cond_wait(&the_double.changed, &the_double.lock);
    }
    if (code == cudaSuccess) {
        code = (cudaError_t)the_double.dead[stream->device];
    }
    pthread_mutex_unlock(&the_double.lock);
    return double_answer(code);
}

HR_DOUBLE_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    ENTER();
    (void)flags;
    if (!known(stream)) {
        return double_answer(cudaErrorInvalidResourceHandle);
    }
    work *one = calloc(1, sizeof *one);
    one->kind = WORK_WAIT;
    one->event = event;
    pthread_mutex_lock(&the_double.lock);
    one->generation = event->asked;
    event->references++;
    push(stream, one);
    pthread_mutex_unlock(&the_double.lock);
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    ENTER();
    if (!known(stream)) {
        return double_answer(cudaErrorInvalidResourceHandle);
    }
    *status = stream->graph != NULL ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    ENTER();
    (void)mode;
    stream->graph = calloc(1, sizeof *stream->graph);
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    ENTER();
    *graph = stream->graph;
    stream->graph = NULL;
    return *graph != NULL ? cudaSuccess : double_answer(cudaErrorStreamCaptureUnmatched);
}

HR_DOUBLE_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                               unsigned long long flags)
{
    ENTER();
    (void)flags;
    struct CUgraphExec_st *made = calloc(1, sizeof *made);
    made->graph = *graph;
    graph->head = NULL;
    graph->tail = NULL;
    *exec = made;
    return cudaSuccess;
}

typedef struct replay {
    void (*fn)(void *argument);
    void *argument;
} replay;

static void run_replay(void *argument)
{
    const replay *one = argument;
    one->fn(one->argument);
}

/* The graph keeps its work; the exec must outlive the launch, as on the real thing for what tests do. */
HR_DOUBLE_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    ENTER();
    for (const work *one = exec->graph.head; one != NULL; one = one->next) {
        if (one->kind == WORK_RUN) {
            replay again = {one->fn, one->argument};
            cudaError_t code = double_submit(stream, run_replay, &again, sizeof again);
            if (code != cudaSuccess) {
                return code;
            }
        }
    }
    return cudaSuccess;
}

static void free_graph(struct CUgraph_st *graph)
{
    pthread_mutex_lock(&the_double.lock);
    while (graph->head != NULL) {
        work *one = graph->head;
        graph->head = one->next;
        free_work(one);
    }
    pthread_mutex_unlock(&the_double.lock);
}

HR_DOUBLE_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    ENTER();
    free_graph(&exec->graph);
    free(exec);
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    ENTER();
    free_graph(graph);
    free(graph);
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    ENTER();
    struct CUevent_st *made = calloc(1, sizeof *made);
    made->device = double_current_device();
    made->timed = (flags & cudaEventDisableTiming) == 0;
    made->references = 1;
    pthread_mutex_lock(&the_double.lock);
    the_double.events++;
    pthread_mutex_unlock(&the_double.lock);
    *event = made;
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t code = double_enter("cudaEventDestroy");
    pthread_mutex_lock(&the_double.lock);
    release_event(event);
    pthread_mutex_unlock(&the_double.lock);
    return code;
}

HR_DOUBLE_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ENTER();
    if (!known(stream) || event->device != stream->device) {
        return double_answer(cudaErrorInvalidResourceHandle);
    }
    work *one = calloc(1, sizeof *one);
    one->kind = WORK_RECORD;
    one->event = event;
    pthread_mutex_lock(&the_double.lock);
    one->generation = ++event->asked;
    event->references++;
    push(stream, one);
    pthread_mutex_unlock(&the_double.lock);
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaEventQuery(cudaEvent_t event)
{
    ENTER();
    pthread_mutex_lock(&the_double.lock);
    /* Asked again under the lock: the device may have died since the call was entered. */
    cudaError_t code = the_double.dead[event->device] ? (cudaError_t)the_double.dead[event->device]
                       : event->done == event->asked  ? cudaSuccess
                                                      : cudaErrorNotReady;
    pthread_mutex_unlock(&the_double.lock);
    return double_answer(code);
}

HR_DOUBLE_API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    ENTER();
    pthread_mutex_lock(&the_double.lock);
    while (event->done < event->asked && the_double.dead[event->device] == 0) {
        pthread_cond_wait(&the_double.changed, &the_double.lock);
    }
    cudaError_t code = (cudaError_t)the_double.dead[event->device];
    pthread_mutex_unlock(&the_double.lock);
    return double_answer(code);
}

HR_DOUBLE_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    ENTER();
    pthread_mutex_lock(&the_double.lock);
    cudaError_t code = cudaSuccess;
    if (!begin->timed || !end->timed || begin->asked == 0 || end->asked == 0) {
        code = cudaErrorInvalidResourceHandle;
    } else if (begin->done < begin->asked || end->done < end->asked) {
        code = cudaErrorNotReady;
    } else {
        *ms = (float)((double)((int64_t)end->done_ns - (int64_t)begin->done_ns) / 1e6);
    }
    pthread_mutex_unlock(&the_double.lock);
    return double_answer(code);
}
