/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: CUDA's, without timing, from a pool of the device's.
 *
 * A record is usually handed to the driver at once. Behind deferred work (stage.c) it is handed over later;
 * until then the event has been asked for more records than were submitted, and counts as pending. A record
 * whose stream failed or was cancelled before its turn is dropped, and the event has failed.
 */
#include "backend/cuda/cuda_backend.h"

#include <stdio.h>
#include <stdlib.h>

static hr_bevent *from_pool(hr_bdevice *device)
{
    pthread_mutex_lock(&device->lock);
    hr_bevent *event = device->free_events;
    if (event != NULL) {
        device->free_events = event->next;
    }
    pthread_mutex_unlock(&device->lock);
    return event;
}

static hr_status make_event(hr_bdevice *device, hr_bevent **event, hr_error *error)
{
    hr_bevent *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "event: its description could not be had");
    }
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    hr_status status = hr_cuda_check(device, cudaEventCreateWithFlags(&made->native, cudaEventDisableTiming),
                                     error, "event: creating it");
    if (status != HR_OK) {
        pthread_mutex_destroy(&made->lock);
        free(made);
        return status;
    }
    *event = made;
    return HR_OK;
}

static void free_event(hr_bevent *event)
{
    hr_cuda_ignore(event->device, cudaEventDestroy(event->native));
    pthread_mutex_destroy(&event->lock);
    free(event);
}

hr_status hr_cuda_event_open(hr_bdevice *device, hr_bevent **event, hr_error *error)
{
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    hr_bevent *made = from_pool(device);
    if (made == NULL) {
        status = make_event(device, &made, error);
    }
    hr_cuda_leave(&scope);
    if (status != HR_OK) {
        return status;
    }
    made->asked = 0;
    made->submitted = 0;
    made->failed = HR_OK;
    atomic_store(&made->references, 1);
    *event = made;
    return HR_OK;
}

void hr_cuda_event_release(hr_bevent *event)
{
    if (atomic_fetch_sub(&event->references, 1) != 1) {
        return;
    }
    hr_bdevice *device = event->device;
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(device, &scope);
    /* A new event counts as done; one that is recorded and pending would not, so it does not go back. */
    if (event->asked == 0 || cudaEventQuery(event->native) == cudaSuccess) {
        pthread_mutex_lock(&device->lock);
        event->next = device->free_events;
        device->free_events = event;
        pthread_mutex_unlock(&device->lock);
    } else {
        (void)cudaGetLastError();
        free_event(event);
    }
    hr_cuda_leave(&scope);
}

void hr_cuda_event_close(hr_bevent *event)
{
    hr_cuda_event_release(event);
}

void hr_cuda_events_free(hr_bdevice *device)
{
    while (device->free_events != NULL) {
        hr_bevent *event = device->free_events;
        device->free_events = event->next;
        free_event(event);
    }
}

static hr_status failure_of(hr_bevent *event, hr_error *error)
{
    return event->failed == HR_OK ? HR_OK : hr_fail(error, event->failed, "%s", event->failed_text);
}

/* Whoever asks the event must learn that what it would have marked will not come. */
static hr_status refuse_record(hr_bevent *event, hr_status status, const hr_error *failure, hr_error *error)
{
    pthread_mutex_lock(&event->lock);
    if (event->submitted == event->asked) {
        event->failed = status;
        snprintf(event->failed_text, sizeof event->failed_text, "%s", failure->text);
    }
    pthread_mutex_unlock(&event->lock);
    if (error != NULL) {
        *error = *failure;
    }
    return status;
}

hr_status hr_cuda_event_record(hr_bevent *event, hr_bstream *stream, hr_error *error)
{
    hr_error failure = HR_ERROR_INIT;
    hr_status status = hr_cuda_stream_ready(stream, &failure);
    if (status != HR_OK) {
        return refuse_record(event, status, &failure, error);
    }
    hr_cuda_scope scope;
    status = hr_cuda_enter(stream->device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    pthread_mutex_lock(&event->lock);
    if (hr_cuda_stream_deferred(stream) || event->submitted < event->asked) {
        /* Also when an older record of this event is still to come: they must arrive in order. */
        status = hr_cuda_defer_record(stream, event, event->asked + 1, error);
        if (status == HR_OK) {
            event->asked++;
        }
    } else {
        status = hr_cuda_check(stream->device, cudaEventRecord(event->native, stream->native), error,
                               "event: recording it");
        if (status == HR_OK) {
            event->asked++;
            event->submitted++;
            event->failed = HR_OK;
        }
    }
    pthread_mutex_unlock(&event->lock);
    hr_cuda_leave(&scope);
    return status;
}

hr_status hr_cuda_stream_wait_event(hr_bstream *stream, hr_bevent *event, hr_error *error)
{
    hr_status status = hr_cuda_stream_ready(stream, error);
    if (status != HR_OK) {
        return status;
    }
    hr_cuda_scope scope;
    status = hr_cuda_enter(stream->device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    hr_error failure = HR_ERROR_INIT;
    hr_status failed = HR_OK;
    pthread_mutex_lock(&event->lock);
    if (hr_cuda_stream_deferred(stream) || event->submitted < event->asked) {
        status = hr_cuda_defer_wait(stream, event, event->asked, error);
    } else if (event->failed != HR_OK) {
        failed = failure_of(event, &failure);
    } else {
        status = hr_cuda_check(stream->device, cudaStreamWaitEvent(stream->native, event->native, 0), error,
                               "stream: waiting for an event");
    }
    pthread_mutex_unlock(&event->lock);
    hr_cuda_leave(&scope);
    if (failed != HR_OK) {
        hr_cuda_stream_fail(stream, failed, &failure);
    }
    return status;
}

hr_status hr_cuda_event_query(hr_bevent *event, hr_error *error)
{
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(event->device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    pthread_mutex_lock(&event->lock);
    if (event->submitted < event->asked) {
        status = HR_PENDING;
    } else if (event->failed != HR_OK) {
        status = failure_of(event, error);
    } else {
        status = hr_cuda_check(event->device, cudaEventQuery(event->native), error, "event: its state");
    }
    pthread_mutex_unlock(&event->lock);
    hr_cuda_leave(&scope);
    return status;
}

hr_status hr_cuda_event_wait(hr_bevent *event, hr_error *error)
{
    hr_bdevice *device = event->device;
    pthread_mutex_lock(&event->lock);
    uint64_t generation = event->asked;
    while (event->submitted < generation) {
        pthread_mutex_unlock(&event->lock);
        hr_cuda_stager_pause(device);
        pthread_mutex_lock(&event->lock);
    }
    hr_status failed = failure_of(event, error);
    pthread_mutex_unlock(&event->lock);
    if (failed != HR_OK) {
        return failed;
    }
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_cuda_check(device, cudaEventSynchronize(event->native), error, "event: waiting for it");
    hr_cuda_leave(&scope);
    return status;
}
