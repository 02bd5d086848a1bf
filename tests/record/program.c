/* SPDX-License-Identifier: Apache-2.0 */
/* A program as the CUDA driver would run it: loads the recorder that CUDA_INJECTION64_PATH names, then makes
 * calls that the double plays. */
#include "cupti_double.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void inner_driver_call(void)
{
    const cuMemcpyHtoDAsync_v2_params parameters = {
        .dstDevice = 0x7000, .srcHost = (void *)0x5000, .hStream = (CUstream)13};
    double_call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                "cuMemcpyHtoDAsync_v2", &parameters, NULL);
}

static void copy(uint32_t correlation, uint64_t begin, uint32_t stream)
{
    const CUpti_ActivityMemcpy6 record = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                          .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                                          .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
                                          .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                          .bytes = 4096,
                                          .start = begin,
                                          .end = begin + 500,
                                          .contextId = 1,
                                          .streamId = stream,
                                          .correlationId = correlation};
    double_work(&record, sizeof record);
}

int main(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *module = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialise)(void) = module != NULL ? (int (*)(void))dlsym(module, "InitializeInjection") : NULL;
    if (initialise == NULL || initialise() != 1) {
        fprintf(stderr, "program: no recorder: %s\n", dlerror());
        return 1;
    }
    const cudaMemcpyAsync_v3020_params upload = {.dst = (void *)0x7000,
                                                 .src = (void *)0x5000,
                                                 .count = 4096,
                                                 .kind = cudaMemcpyHostToDevice,
                                                 .stream = (cudaStream_t)13};
    copy(double_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
                     "cudaMemcpyAsync", &upload, inner_driver_call),
         1010000, 13);
    copy(double_call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                     "cuMemcpyHtoDAsync_v2",
                     &(cuMemcpyHtoDAsync_v2_params){
                         .dstDevice = 0x9000, .srcHost = (void *)0x6000, .hStream = (CUstream)14},
                     NULL),
         1020000, 14);
    uint32_t launch =
        double_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                    "cudaLaunchKernel", NULL, NULL);
    const CUpti_ActivityKernel10 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           .start = 1030000,
                                           .end = 1031500,
                                           .contextId = 1,
                                           .streamId = 13,
                                           .correlationId = launch,
                                           .name = "quoted\"kernel"};
    double_work(&kernel, sizeof kernel);
    double_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
                "cudaEventRecord",
                &(cudaEventRecord_v3020_params){.event = (cudaEvent_t)77, .stream = (cudaStream_t)13}, NULL);
    double_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, "cudaGetDevice",
                NULL, NULL);
    double_call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
                "cudaStreamSynchronize", &(cudaStreamSynchronize_v3020_params){.stream = (cudaStream_t)13},
                NULL);
    const CUpti_ActivityStream stream = {.kind = CUPTI_ACTIVITY_KIND_STREAM,
                                         .contextId = 1,
                                         .streamId = 13,
                                         .flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING};
    double_work(&stream, sizeof stream);
    return 0;
}
