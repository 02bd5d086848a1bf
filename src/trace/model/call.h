/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime or driver call does, whatever its vendor, version suffix or spelling. */
#ifndef HR_TRACE_MODEL_CALL_H
#define HR_TRACE_MODEL_CALL_H

#include <stdbool.h>
#include <stddef.h>

typedef enum hr_call {
    HR_CALL_OTHER = 0, /* a runtime or driver call that no rule looks at */
    HR_CALL_COPY,      /* cudaMemcpy, cuMemcpyHtoD, hipMemcpyWithStream: returns when the host may go on */
    HR_CALL_COPY_ASYNC,
    HR_CALL_FILL,
    HR_CALL_FILL_ASYNC,
    HR_CALL_LAUNCH,
    HR_CALL_GRAPH_LAUNCH,
    HR_CALL_DEVICE_SYNC,
    HR_CALL_STREAM_SYNC,
    HR_CALL_EVENT_SYNC,
    HR_CALL_EVENT_RECORD,
    HR_CALL_STREAM_WAIT, /* cudaStreamWaitEvent: the stream waits, the host does not */
    HR_CALL_QUERY,       /* cudaEventQuery, cudaStreamQuery */
    HR_CALL_DEVICE_ALLOC,
    HR_CALL_DEVICE_FREE,
    HR_CALL_POOL_ALLOC, /* cudaMallocAsync */
    HR_CALL_POOL_FREE,
    HR_CALL_POOL_TRIM,
    HR_CALL_PINNED_ALLOC, /* cudaHostAlloc, cudaMallocHost */
    HR_CALL_PINNED_FREE,
    HR_CALL_REGISTER,
    HR_CALL_UNREGISTER,
    HR_CALL_MANAGED_ALLOC,
    HR_CALL_PREFETCH,
    HR_CALL_STREAM_CREATE,
    HR_CALL_STREAM_DESTROY,
    HR_CALL_EVENT_CREATE,
    HR_CALL_EVENT_DESTROY,
    HR_CALL_MODULE_LOAD,
    HR_CALL_HOST_FUNCTION, /* cudaLaunchHostFunc, cudaStreamAddCallback */
    HR_CALL_KINDS
} hr_call;

/*
 * Classifies a name such as "cudaMemcpyAsync_ptsz", "cuMemcpyHtoDAsync_v2" or "hipMemcpyWithStream". False,
 * with *call alone, when it is the name of no call of CUDA or HIP.
 */
bool hr_call_from_name(const char *name, size_t length, hr_call *call);
/* Does the call put work on a stream? */
bool hr_call_submits(hr_call call);
/* Is its purpose to make the host wait? */
bool hr_call_is_sync(hr_call call);
/* Does the name say per-thread default stream ("_ptsz", "_ptds")? */
bool hr_call_name_is_per_thread(const char *name);

#endif
