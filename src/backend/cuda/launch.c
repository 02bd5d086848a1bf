/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: the launcher gets the stream, and enqueues its kernels there. */
#include "backend/cuda/cuda_backend.h"

hr_status hr_cuda_launch(hr_bstream *stream, hr_launch_fn fn, const hr_launch *launch, hr_error *error)
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
    if (hr_cuda_stream_deferred(stream)) {
        status = hr_cuda_defer_launch(stream, fn, launch, error);
    } else {
        hr_launch here = *launch;
        here.native_stream = stream->native;
        here.workers = NULL;
        status = fn(&here, error);
        /* A launcher that did not look leaves its error behind; the next call of anyone's would report it. */
        hr_status left = hr_cuda_check(stream->device, cudaGetLastError(), status == HR_OK ? error : NULL,
                                       "launch: its launcher left an error");
        status = status == HR_OK ? left : status;
        if (status != HR_OK) {
            /* What it had enqueued before it failed runs; what was to come after it must not. */
            hr_cuda_stream_fail(stream, status, error);
        }
    }
    hr_cuda_leave(&scope);
    return status;
}
