/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: non-blocking ones, and what is known of them beyond what CUDA knows. */
#include "backend/cuda/cuda_backend.h"

#include <stdio.h>
#include <stdlib.h>

hr_status hr_cuda_stream_open(hr_bdevice *device, hr_stream_use use, hr_bstream **stream, hr_error *error)
{
    hr_bstream *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "stream: its description could not be had");
    }
    made->device = device;
    made->use = use;
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status == HR_OK) {
        /* Non-blocking: a stream that is not would wait for, and hold up, whatever is on the default stream.
         */
        status = hr_cuda_check(device, cudaStreamCreateWithFlags(&made->native, cudaStreamNonBlocking), error,
                               "stream: creating it");
        hr_cuda_leave(&scope);
    }
    if (status != HR_OK) {
        free(made);
        return status;
    }
    *stream = made;
    return HR_OK;
}

void hr_cuda_stream_fail(hr_bstream *stream, hr_status status, const hr_error *error)
{
    pthread_mutex_lock(&stream->device->lock);
    if (atomic_load(&stream->failed) == HR_OK) {
        stream->failed_code = error != NULL ? error->code : 0;
        snprintf(stream->failed_text, sizeof stream->failed_text, "%s",
                 error != NULL && error->text[0] != '\0' ? error->text : hr_status_text(status));
        atomic_store_explicit(&stream->failed, (int)status, memory_order_release);
    }
    pthread_mutex_unlock(&stream->device->lock);
}

/* The stream's first failure, or HR_OK. */
static hr_status first_failure(hr_bstream *stream, hr_error *error)
{
    hr_status failed = (hr_status)atomic_load_explicit(&stream->failed, memory_order_acquire);
    if (failed != HR_OK) {
        hr_fail(error, failed, "%s", stream->failed_text);
        if (error != NULL) {
            error->code = stream->failed_code;
        }
    }
    return failed;
}

hr_status hr_cuda_stream_ready(hr_bstream *stream, hr_error *error)
{
    hr_status status = first_failure(stream, error);
    if (status == HR_OK && atomic_load_explicit(&stream->cancelled, memory_order_relaxed)) {
        status = hr_fail(error, HR_E_CANCELLED, "stream: it was cancelled");
    }
    return status;
}

bool hr_cuda_stream_captures(hr_bstream *stream)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream->native, &capture) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return capture != cudaStreamCaptureStatusNone;
}

/* The device's death comes before the stream's own failure: it is the cause. */
static hr_status answer(hr_bstream *stream, hr_status status, hr_error *error)
{
    return status == HR_OK ? hr_cuda_stream_ready(stream, error) : status;
}

hr_status hr_cuda_stream_query(hr_bstream *stream, hr_error *error)
{
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(stream->device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_cuda_stream_deferred(stream)
                 ? HR_PENDING
                 : hr_cuda_check(stream->device, cudaStreamQuery(stream->native), error, "stream: its state");
    hr_cuda_leave(&scope);
    return answer(stream, status, error);
}

hr_status hr_cuda_stream_wait(hr_bstream *stream, hr_error *error)
{
    hr_cuda_drain(stream);
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(stream->device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_cuda_check(stream->device, cudaStreamSynchronize(stream->native), error,
                           "stream: waiting for its work");
    hr_cuda_leave(&scope);
    return answer(stream, status, error);
}

hr_status hr_cuda_stream_close(hr_bstream *stream, hr_error *error)
{
    hr_status status = hr_cuda_stream_wait(stream, error);
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(stream->device, &scope);
    hr_cuda_ignore(stream->device, cudaStreamDestroy(stream->native));
    hr_cuda_leave(&scope);
    free(stream);
    return status;
}

hr_status hr_cuda_stream_cancel(hr_bstream *stream)
{
    atomic_store(&stream->cancelled, true);
    hr_cuda_drop(stream);
    return HR_OK;
}

void *hr_cuda_stream_native(hr_bstream *stream)
{
    /* What the caller puts in itself must come after what was queued before. */
    hr_cuda_drain(stream);
    return stream->native;
}
