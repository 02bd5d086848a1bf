/* SPDX-License-Identifier: Apache-2.0 */
/* Streams (ordered queues of work) and events (points in a stream that others can wait for). */
#ifndef HEADRACE_STREAM_H
#define HEADRACE_STREAM_H

#include <headrace/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_stream hr_stream;
typedef struct hr_event hr_event;

/* What a stream is mainly for; a hint that lets a device choose, and a name in traces. */
typedef enum hr_stream_use {
    HR_STREAM_ANY = 0,
    HR_STREAM_IN,
    HR_STREAM_COMPUTE,
    HR_STREAM_OUT
} hr_stream_use;

/* The caller owns *stream. Work on two streams runs independently. HR_E_THREAD, HR_E_DEVICE. Any thread. */
HR_API HR_CHECKED hr_status hr_stream_open(hr_device *device, hr_stream_use use, hr_stream **stream,
                                           hr_error *error);
/* Waits for what is queued, then clears *stream. Null is accepted. Returns the stream's failure if it had
 * one. */
HR_API HR_CHECKED hr_status hr_stream_close(hr_stream **stream, hr_error *error);
/* HR_OK: idle; HR_PENDING: work left; negative: the stream's first failure. Never blocks. Any thread. */
HR_API HR_CHECKED hr_status hr_stream_query(hr_stream *stream, hr_error *error);
/* Blocks until the stream is idle. */
HR_API HR_CHECKED hr_status hr_stream_wait(hr_stream *stream, hr_error *error);
/*
 * Drops what is queued and not yet running; each dropped operation completes with HR_E_CANCELLED, exactly
 * once, and events recorded after it fail with that. On a device whose queue cannot be recalled (CUDA) what
 * was submitted runs, and only later submissions are refused. The stream stays cancelled. Never blocks. Any
 * thread.
 */
HR_API HR_CHECKED hr_status hr_stream_cancel(hr_stream *stream);
/* The device's own handle (a cudaStream_t), or null on the CPU devices. */
HR_API void *hr_stream_native(hr_stream *stream);

/* The caller owns *event. A new event counts as done. */
HR_API HR_CHECKED hr_status hr_event_open(hr_device *device, hr_event **event, hr_error *error);
/* Clears *event; a recorded event that is still pending may be closed, waiters keep their answer. Null is
 * accepted. */
HR_API HR_CHECKED hr_status hr_event_close(hr_event **event, hr_error *error);
/* The event is done when all that is queued in the stream now is done. Recording again replaces the point;
 * those who waited before keep waiting for the old one. Never blocks. Any thread. */
HR_API HR_CHECKED hr_status hr_event_record(hr_event *event, hr_stream *stream, hr_error *error);
/* Later work in `stream` waits for the event, without the host. The failure of what the event marks fails the
 * stream. */
HR_API HR_CHECKED hr_status hr_stream_wait_event(hr_stream *stream, hr_event *event, hr_error *error);
/* HR_OK, HR_PENDING, or the failure of the work before it. Never blocks. Any thread. */
HR_API HR_CHECKED hr_status hr_event_query(hr_event *event, hr_error *error);
/* Blocks until the event is done or has failed. */
HR_API HR_CHECKED hr_status hr_event_wait(hr_event *event, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
