/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and timers: handles around the backend's, with the checks that are the same for all. */
#include "core/internal.h"

#include <stdlib.h>

/* Null handles, whose device is null here, and handles from before a fork end here. */
static hr_status usable(const hr_device *device, const char *what, hr_error *error)
{
    if (device == NULL) {
        return hr_fail(error, HR_E_INVALID, "%s: a null argument", what);
    }
    return hr_device_forked(device) ? hr_fail_forked(device, error, what) : HR_OK;
}

static hr_status usable_stream(const hr_stream *stream, const char *what, hr_error *error)
{
    return usable(stream != NULL ? stream->device : NULL, what, error);
}

static hr_status usable_event(const hr_event *event, const char *what, hr_error *error)
{
    return usable(event != NULL ? event->device : NULL, what, error);
}

static hr_status usable_timer(const hr_timer *timer, const char *what, hr_error *error)
{
    return usable(timer != NULL ? timer->device : NULL, what, error);
}

static hr_status check_open(const hr_device *device, const void *out, const char *what, hr_error *error)
{
    return usable(out != NULL ? device : NULL, what, error);
}

static hr_status check_same_backend(const hr_device *a, const hr_device *b, const char *what, hr_error *error)
{
    if (a->backend != b->backend) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "%s: device %s knows nothing of device %s; wait on the host between them", what,
                       a->spec, b->spec);
    }
    return HR_OK;
}

hr_status hr_stream_open(hr_device *device, hr_stream_use use, hr_stream **stream, hr_error *error)
{
    hr_status status = check_open(device, stream, "stream", error);
    if (status != HR_OK) {
        return status;
    }
    hr_stream *made = malloc(sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "stream: no memory");
    }
    made->device = device;
    status = device->ops->stream_open(device->impl, use, &made->impl, error);
    if (status != HR_OK) {
        free(made);
        return status;
    }
    hr_device_hold(device, HR_HELD_STREAM);
    *stream = made;
    return HR_OK;
}

hr_status hr_stream_close(hr_stream **stream, hr_error *error)
{
    hr_stream *closed = stream != NULL ? *stream : NULL;
    if (closed == NULL) {
        return HR_OK;
    }
    hr_status status = usable_stream(closed, "stream close", error);
    if (status != HR_OK) {
        return status;
    }
    status = closed->device->ops->stream_close(closed->impl, error);
    hr_device_release(closed->device, HR_HELD_STREAM);
    free(closed);
    *stream = NULL;
    return status;
}

hr_status hr_stream_query(hr_stream *stream, hr_error *error)
{
    hr_status status = usable_stream(stream, "stream query", error);
    if (status != HR_OK) {
        return status;
    }
    return stream->device->ops->stream_query(stream->impl, error);
}

hr_status hr_stream_wait(hr_stream *stream, hr_error *error)
{
    hr_status status = usable_stream(stream, "stream wait", error);
    if (status != HR_OK) {
        return status;
    }
    return stream->device->ops->stream_wait(stream->impl, error);
}

hr_status hr_stream_cancel(hr_stream *stream)
{
    hr_status status = usable_stream(stream, "stream cancel", NULL);
    if (status != HR_OK) {
        return status;
    }
    return stream->device->ops->stream_cancel(stream->impl);
}

void *hr_stream_native(hr_stream *stream)
{
    return stream->device->ops->stream_native(stream->impl);
}

hr_device *hr_stream_device(hr_stream *stream)
{
    return stream->device;
}

hr_status hr_event_open(hr_device *device, hr_event **event, hr_error *error)
{
    hr_status status = check_open(device, event, "event", error);
    if (status != HR_OK) {
        return status;
    }
    hr_event *made = malloc(sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "event: no memory");
    }
    made->device = device;
    status = device->ops->event_open(device->impl, &made->impl, error);
    if (status != HR_OK) {
        free(made);
        return status;
    }
    hr_device_hold(device, HR_HELD_EVENT);
    *event = made;
    return HR_OK;
}

hr_status hr_event_close(hr_event **event, hr_error *error)
{
    hr_event *closed = event != NULL ? *event : NULL;
    if (closed == NULL) {
        return HR_OK;
    }
    hr_status status = usable_event(closed, "event close", error);
    if (status != HR_OK) {
        return status;
    }
    closed->device->ops->event_close(closed->impl);
    hr_device_release(closed->device, HR_HELD_EVENT);
    free(closed);
    *event = NULL;
    return HR_OK;
}

hr_status hr_event_record(hr_event *event, hr_stream *stream, hr_error *error)
{
    hr_status status = usable_event(event, "event record", error);
    if (status != HR_OK) {
        return status;
    }
    status = usable_stream(stream, "event record", error);
    if (status != HR_OK) {
        return status;
    }
    if (event->device != stream->device) {
        return hr_fail(error, HR_E_INVALID, "event record: the event is of device %s, the stream of %s",
                       event->device->spec, stream->device->spec);
    }
    return stream->device->ops->event_record(event->impl, stream->impl, error);
}

hr_status hr_stream_wait_event(hr_stream *stream, hr_event *event, hr_error *error)
{
    hr_status status = usable_stream(stream, "stream wait event", error);
    if (status != HR_OK) {
        return status;
    }
    status = usable_event(event, "stream wait event", error);
    if (status != HR_OK) {
        return status;
    }
    status = check_same_backend(stream->device, event->device, "stream wait event", error);
    if (status != HR_OK) {
        return status;
    }
    return stream->device->ops->stream_wait_event(stream->impl, event->impl, error);
}

hr_status hr_event_query(hr_event *event, hr_error *error)
{
    hr_status status = usable_event(event, "event query", error);
    if (status != HR_OK) {
        return status;
    }
    return event->device->ops->event_query(event->impl, error);
}

hr_status hr_event_wait(hr_event *event, hr_error *error)
{
    hr_status status = usable_event(event, "event wait", error);
    if (status != HR_OK) {
        return status;
    }
    return event->device->ops->event_wait(event->impl, error);
}

hr_status hr_timer_open(hr_device *device, hr_timer **timer, hr_error *error)
{
    hr_status status = check_open(device, timer, "timer", error);
    if (status != HR_OK) {
        return status;
    }
    hr_timer *made = malloc(sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "timer: no memory");
    }
    made->device = device;
    status = device->ops->timer_open(device->impl, &made->impl, error);
    if (status != HR_OK) {
        free(made);
        return status;
    }
    hr_device_hold(device, HR_HELD_TIMER);
    *timer = made;
    return HR_OK;
}

void hr_timer_close(hr_timer **timer)
{
    hr_timer *closed = timer != NULL ? *timer : NULL;
    /* In a child the device's side cannot be freed; the process keeps it until it ends. */
    if (closed == NULL || hr_device_forked(closed->device)) {
        return;
    }
    closed->device->ops->timer_close(closed->impl);
    hr_device_release(closed->device, HR_HELD_TIMER);
    free(closed);
    *timer = NULL;
}

hr_status hr_timer_record(hr_timer *timer, hr_stream *stream, hr_error *error)
{
    hr_status status = usable_timer(timer, "timer record", error);
    if (status != HR_OK) {
        return status;
    }
    status = usable_stream(stream, "timer record", error);
    if (status != HR_OK) {
        return status;
    }
    return stream->device->ops->timer_record(timer->impl, stream->impl, error);
}

hr_status hr_timer_read(hr_timer *timer, uint64_t *time_ns, hr_error *error)
{
    hr_status status = usable_timer(timer, "timer read", error);
    if (status != HR_OK) {
        return status;
    }
    return timer->device->ops->timer_read(timer->impl, time_ns, error);
}

hr_status hr_stream_launch(hr_stream *stream, hr_launch_fn fn, const hr_launch *launch, hr_error *error)
{
    hr_status status = usable_stream(stream, "launch", error);
    if (status != HR_OK) {
        return status;
    }
    if (fn == NULL || launch == NULL || launch->size != sizeof *launch) {
        return hr_fail(error, HR_E_INVALID, "launch: a null argument, or size is not sizeof(hr_launch)");
    }
    return stream->device->ops->launch(stream->impl, fn, launch, error);
}
