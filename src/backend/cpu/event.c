/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event is a place for a point; recording puts a new point there. A point is pending, then fires once and
 * stays as it is. Whoever waits holds a reference to the point, not to the event, so recording the event
 * again or closing it takes nothing away from them. When only the event refers to its point, recording makes
 * the same point pending again, and so a pipeline that goes round asks for no memory.
 */
#include "backend/cpu/internal.h"

#include <stdlib.h>

struct hr_bevent {
    pthread_mutex_t lock;
    hr_cpu_point *point; /* never null */
};

hr_cpu_point *hr_cpu_point_make(void)
{
    hr_cpu_point *made = calloc(1, sizeof *made);
    if (made != NULL) {
        atomic_init(&made->refs, 1);
        atomic_init(&made->status, HR_PENDING);
        pthread_mutex_init(&made->lock, NULL);
        pthread_cond_init(&made->fired, NULL);
    }
    return made;
}

static void point_hold(hr_cpu_point *point)
{
    atomic_fetch_add_explicit(&point->refs, 1, memory_order_relaxed);
}

void hr_cpu_point_drop(hr_cpu_point *point)
{
    if (atomic_fetch_sub_explicit(&point->refs, 1, memory_order_acq_rel) == 1) {
        pthread_cond_destroy(&point->fired);
        pthread_mutex_destroy(&point->lock);
        free(point);
    }
}

void hr_cpu_point_fire(hr_cpu_point *point, hr_status status, const hr_error *error, hr_bstream **ready)
{
    pthread_mutex_lock(&point->lock);
    if (status != HR_OK) {
        point->error = *error;
    }
    atomic_store_explicit(&point->status, (int)status, memory_order_release);
    while (point->parked != NULL) {
        hr_bstream *stream = point->parked;
        point->parked = stream->park_next;
        stream->ready_next = *ready;
        *ready = stream;
    }
    pthread_cond_broadcast(&point->fired);
    pthread_mutex_unlock(&point->lock);
}

bool hr_cpu_point_park(hr_cpu_point *point, hr_bstream *stream)
{
    if (atomic_load_explicit(&point->status, memory_order_acquire) != HR_PENDING) {
        return false;
    }
    pthread_mutex_lock(&point->lock);
    bool park = atomic_load_explicit(&point->status, memory_order_relaxed) == HR_PENDING;
    if (park) {
        stream->park_next = point->parked;
        point->parked = stream;
    }
    pthread_mutex_unlock(&point->lock);
    return park;
}

bool hr_cpu_point_unpark(hr_cpu_point *point, hr_bstream *stream)
{
    pthread_mutex_lock(&point->lock);
    hr_bstream **link = &point->parked;
    while (*link != NULL && *link != stream) {
        link = &(*link)->park_next;
    }
    bool found = *link != NULL;
    if (found) {
        *link = stream->park_next;
    }
    pthread_mutex_unlock(&point->lock);
    return found;
}

hr_status hr_cpu_event_open(hr_bdevice *device, hr_bevent **event, hr_error *error)
{
    (void)device;
    hr_bevent *made = calloc(1, sizeof *made);
    hr_cpu_point *point = made != NULL ? hr_cpu_point_make() : NULL;
    if (point == NULL) {
        free(made);
        return hr_fail(error, HR_E_HOST_MEMORY, "event: no memory");
    }
    atomic_store(&point->status, HR_OK); /* a new event counts as done */
    pthread_mutex_init(&made->lock, NULL);
    made->point = point;
    *event = made;
    return HR_OK;
}

void hr_cpu_event_close(hr_bevent *event)
{
    hr_cpu_point_drop(event->point);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* The event's point, with a reference for the caller. */
static hr_cpu_point *current(hr_bevent *event)
{
    pthread_mutex_lock(&event->lock);
    hr_cpu_point *point = event->point;
    point_hold(point);
    pthread_mutex_unlock(&event->lock);
    return point;
}

/* Puts a pending point into the event; the caller gets a reference. Null if there is no memory. */
static hr_cpu_point *renew(hr_bevent *event)
{
    pthread_mutex_lock(&event->lock);
    hr_cpu_point *point = event->point;
    /* Only through the event can more references come, and it is locked. */
    if (atomic_load_explicit(&point->refs, memory_order_acquire) == 1) {
        atomic_store_explicit(&point->status, HR_PENDING, memory_order_relaxed);
    } else {
        hr_cpu_point *made = hr_cpu_point_make();
        if (made != NULL) {
            event->point = made;
            hr_cpu_point_drop(point);
        }
        point = made;
    }
    if (point != NULL) {
        point_hold(point);
    }
    pthread_mutex_unlock(&event->lock);
    return point;
}

/* Whoever looks at the event must not take the old answer for this one's, nor wait for ever. */
static hr_status record_failure(hr_bevent *event, hr_status status, const hr_error *reason, hr_error *error)
{
    hr_bstream *ready = NULL;
    hr_cpu_point *point = renew(event);
    if (point != NULL) {
        hr_cpu_point_fire(point, status, reason, &ready);
        hr_cpu_point_drop(point);
        hr_cpu_drive(ready);
    }
    if (error != NULL) {
        *error = *reason;
    }
    return status;
}

/*
 * The point is put into the event under the stream's lock: others see it at once, and if they could queue a
 * wait for it in this very stream before the record that fires it is queued, the stream would wait for
 * itself.
 */
hr_status hr_cpu_event_record(hr_bevent *event, hr_bstream *stream, hr_error *error)
{
    hr_cpu_operation *operation;
    hr_error reason = HR_ERROR_INIT;
    hr_status status = hr_cpu_stream_begin(stream, HR_CPU_RECORD, &operation, &reason);
    if (status != HR_OK) {
        return record_failure(event, status, &reason, error);
    }
    operation->as.point = renew(event);
    if (operation->as.point == NULL) {
        hr_cpu_stream_abandon(stream, operation);
        return hr_fail(error, HR_E_HOST_MEMORY, "event record: no memory");
    }
    hr_cpu_stream_submit(stream, operation);
    return HR_OK;
}

hr_status hr_cpu_stream_wait_event(hr_bstream *stream, hr_bevent *event, hr_error *error)
{
    hr_cpu_operation *operation;
    hr_status status = hr_cpu_stream_begin(stream, HR_CPU_WAIT, &operation, error);
    if (status != HR_OK) {
        return status;
    }
    operation->as.point = current(event);
    hr_cpu_stream_submit(stream, operation);
    return HR_OK;
}

static hr_status answer(hr_cpu_point *point, hr_error *error)
{
    hr_status status = (hr_status)atomic_load_explicit(&point->status, memory_order_acquire);
    if (status < HR_OK && error != NULL) {
        *error = point->error;
    }
    return status;
}

hr_status hr_cpu_event_query(hr_bevent *event, hr_error *error)
{
    pthread_mutex_lock(&event->lock);
    hr_status status = answer(event->point, error);
    pthread_mutex_unlock(&event->lock);
    return status;
}

hr_status hr_cpu_event_wait(hr_bevent *event, hr_error *error)
{
    hr_cpu_point *point = current(event);
    pthread_mutex_lock(&point->lock);
    while (atomic_load_explicit(&point->status, memory_order_relaxed) == HR_PENDING) {
        pthread_cond_wait(&point->fired, &point->lock);
    }
    pthread_mutex_unlock(&point->lock);
    hr_status status = answer(point, error);
    hr_cpu_point_drop(point);
    return status;
}

hr_status hr_cpu_timer_open(hr_bdevice *device, hr_btimer **timer, hr_error *error)
{
    (void)device;
    hr_btimer *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "timer: no memory");
    }
    atomic_init(&made->status, HR_PENDING);
    *timer = made;
    return HR_OK;
}

void hr_cpu_timer_close(hr_btimer *timer)
{
    free(timer);
}

hr_status hr_cpu_timer_record(hr_btimer *timer, hr_bstream *stream, hr_error *error)
{
    hr_cpu_operation *operation;
    hr_status status = hr_cpu_stream_begin(stream, HR_CPU_TIMER, &operation, error);
    if (status != HR_OK) {
        return status;
    }
    atomic_store_explicit(&timer->status, HR_PENDING, memory_order_relaxed);
    operation->as.timer = timer;
    hr_cpu_stream_submit(stream, operation);
    return HR_OK;
}

hr_status hr_cpu_timer_read(hr_btimer *timer, uint64_t *time_ns, hr_error *error)
{
    hr_status status = (hr_status)atomic_load_explicit(&timer->status, memory_order_acquire);
    if (status == HR_OK) {
        *time_ns = atomic_load_explicit(&timer->time_ns, memory_order_relaxed);
    } else if (status < HR_OK) {
        hr_fail(error, status, "timer: the stream failed before it was reached");
    }
    return status;
}
