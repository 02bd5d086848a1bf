/* SPDX-License-Identifier: Apache-2.0 */
/* The structs are those that CUPTI's headers generate for each call; names and numbers are theirs. */
#include "trace/record/parameters.h"

static void stream_is(hr_parameters *out, void *stream)
{
    out->stream = (CUstream)stream;
    out->has_stream = true;
}

static void copies(hr_parameters *out, uint64_t sink, uint64_t source, void *stream)
{
    out->sink_address = sink;
    out->source_address = source;
    stream_is(out, stream);
}

#define AS(type) const type##_params *p = values

static void read_runtime(CUpti_CallbackId id, const void *values, hr_parameters *out)
{
    switch (id) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020:
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000: {
        AS(cudaMemcpyAsync_v3020);
        copies(out, (uint64_t)(uintptr_t)p->dst, (uint64_t)(uintptr_t)p->src, p->stream);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020:
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_ptds_v7000: {
        AS(cudaMemcpy_v3020);
        copies(out, (uint64_t)(uintptr_t)p->dst, (uint64_t)(uintptr_t)p->src, NULL);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020:
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_ptsz_v7000: {
        AS(cudaEventRecord_v3020);
        out->object = (uint64_t)(uintptr_t)p->event;
        stream_is(out, p->stream);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventRecordWithFlags_v11010: {
        AS(cudaEventRecordWithFlags_v11010);
        out->object = (uint64_t)(uintptr_t)p->event;
        stream_is(out, p->stream);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020:
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_ptsz_v7000: {
        AS(cudaStreamWaitEvent_v3020);
        out->object = (uint64_t)(uintptr_t)p->event;
        stream_is(out, p->stream);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020: {
        AS(cudaEventSynchronize_v3020);
        out->object = (uint64_t)(uintptr_t)p->event;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020: {
        AS(cudaEventQuery_v3020);
        out->object = (uint64_t)(uintptr_t)p->event;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020: {
        AS(cudaEventCreate_v3020);
        out->object = p->event != NULL ? (uint64_t)(uintptr_t)*p->event : 0;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventCreateWithFlags_v3020: {
        AS(cudaEventCreateWithFlags_v3020);
        out->object = p->event != NULL ? (uint64_t)(uintptr_t)*p->event : 0;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020: {
        AS(cudaEventDestroy_v3020);
        out->object = (uint64_t)(uintptr_t)p->event;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020:
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_ptsz_v7000: {
        AS(cudaStreamSynchronize_v3020);
        stream_is(out, p->stream);
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020: {
        AS(cudaMalloc_v3020);
        out->object = p->devPtr != NULL ? (uint64_t)(uintptr_t)*p->devPtr : 0;
        out->bytes = p->size;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020: {
        AS(cudaFree_v3020);
        out->object = (uint64_t)(uintptr_t)p->devPtr;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020: {
        AS(cudaHostAlloc_v3020);
        out->object = p->pHost != NULL ? (uint64_t)(uintptr_t)*p->pHost : 0;
        out->bytes = p->size;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020: {
        AS(cudaMallocHost_v3020);
        out->object = p->ptr != NULL ? (uint64_t)(uintptr_t)*p->ptr : 0;
        out->bytes = p->size;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaFreeHost_v3020: {
        AS(cudaFreeHost_v3020);
        out->object = (uint64_t)(uintptr_t)p->ptr;
        break;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaHostRegister_v4000: {
        AS(cudaHostRegister_v4000);
        out->object = (uint64_t)(uintptr_t)p->ptr;
        out->bytes = p->size;
        break;
    }
    default:
        break;
    }
}

static void read_driver(CUpti_CallbackId id, const void *values, hr_parameters *out)
{
    switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz: {
        AS(cuMemcpyHtoDAsync_v2);
        copies(out, (uint64_t)p->dstDevice, (uint64_t)(uintptr_t)p->srcHost, p->hStream);
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz: {
        AS(cuMemcpyDtoHAsync_v2);
        copies(out, (uint64_t)(uintptr_t)p->dstHost, (uint64_t)p->srcDevice, p->hStream);
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz: {
        AS(cuMemcpyDtoDAsync_v2);
        copies(out, (uint64_t)p->dstDevice, (uint64_t)p->srcDevice, p->hStream);
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz: {
        AS(cuMemcpyAsync);
        copies(out, (uint64_t)p->dst, (uint64_t)p->src, p->hStream);
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2_ptds: {
        AS(cuMemcpyHtoD_v2);
        copies(out, (uint64_t)p->dstDevice, (uint64_t)(uintptr_t)p->srcHost, NULL);
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds: {
        AS(cuMemcpyDtoH_v2);
        copies(out, (uint64_t)(uintptr_t)p->dstHost, (uint64_t)p->srcDevice, NULL);
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecord:
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecord_ptsz: {
        AS(cuEventRecord);
        out->object = (uint64_t)(uintptr_t)p->hEvent;
        stream_is(out, p->hStream);
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz: {
        AS(cuStreamWaitEvent);
        out->object = (uint64_t)(uintptr_t)p->hEvent;
        stream_is(out, p->hStream);
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize: {
        AS(cuEventSynchronize);
        out->object = (uint64_t)(uintptr_t)p->hEvent;
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuEventQuery: {
        AS(cuEventQuery);
        out->object = (uint64_t)(uintptr_t)p->hEvent;
        break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz: {
        AS(cuStreamSynchronize);
        stream_is(out, p->hStream);
        break;
    }
    default:
        break;
    }
}

void hr_parameters_read(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *values,
                        hr_parameters *out)
{
    *out = (hr_parameters){0};
    if (values == NULL)
        return;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
        read_runtime(id, values, out);
    else
        read_driver(id, values, out);
}
