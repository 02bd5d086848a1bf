/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "trace/model/call.h"

#include <string.h>

static void spellings_of_runtime_driver_and_hip_mean_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        hr_call call;
    } cases[] = {
        {"cudaMemcpyAsync", HR_CALL_COPY_ASYNC},
        {"cudaMemcpyAsync_v3020", HR_CALL_COPY_ASYNC},
        {"cudaMemcpyAsync_ptsz_v7000", HR_CALL_COPY_ASYNC},
        {"cuMemcpyHtoDAsync_v2", HR_CALL_COPY_ASYNC},
        {"cuMemcpyDtoH_v2", HR_CALL_COPY},
        {"cudaMemcpy2DToArrayAsync", HR_CALL_COPY_ASYNC},
        {"hipMemcpyWithStream", HR_CALL_COPY},
        {"cuMemsetD32Async", HR_CALL_FILL_ASYNC},
        {"cudaMemset_v3020", HR_CALL_FILL},
        {"cudaLaunchKernelExC_v11060", HR_CALL_LAUNCH},
        {"cuLaunchKernel", HR_CALL_LAUNCH},
        {"hipExtModuleLaunchKernel", HR_CALL_LAUNCH},
        {"cuGraphLaunch_ptsz", HR_CALL_GRAPH_LAUNCH},
        {"cuCtxSynchronize", HR_CALL_DEVICE_SYNC},
        {"cudaDeviceSynchronize_v3020", HR_CALL_DEVICE_SYNC},
        {"hipStreamSynchronize", HR_CALL_STREAM_SYNC},
        {"cudaEventRecordWithFlags_v11010", HR_CALL_EVENT_RECORD},
        {"cuStreamWaitEvent", HR_CALL_STREAM_WAIT},
        {"cuMemAlloc_v2", HR_CALL_DEVICE_ALLOC},
        {"cudaMallocAsync_v11020", HR_CALL_POOL_ALLOC},
        {"cudaMallocHost_v3020", HR_CALL_PINNED_ALLOC},
        {"hipHostMalloc", HR_CALL_PINNED_ALLOC},
        {"hipHostFree", HR_CALL_PINNED_FREE},
        {"cuMemFreeHost", HR_CALL_PINNED_FREE},
        {"cuMemHostUnregister", HR_CALL_UNREGISTER},
        {"cudaStreamCreateWithFlags_v5000", HR_CALL_STREAM_CREATE},
        {"cudaStreamIsCapturing_v10000", HR_CALL_OTHER},
        {"cudaEventQuery", HR_CALL_QUERY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hr_call call = HR_CALL_KINDS;
        if (!hr_call_from_name(cases[i].name, strlen(cases[i].name), &call) || call != cases[i].call)
            fail_msg("%s is taken for %d instead of %d", cases[i].name, (int)call, (int)cases[i].call);
    }
}

static void other_names_are_no_calls(void **state)
{
    (void)state;
    static const char *const names[] = {"aten::copy_", "custom_step", "cudagraphs", "hipster", "cu", "",
                                        "cuda"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hr_call call = HR_CALL_QUERY;
        assert_false(hr_call_from_name(names[i], strlen(names[i]), &call));
        assert_int_equal(call, HR_CALL_QUERY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_of_runtime_driver_and_hip_mean_the_same),
        cmocka_unit_test(other_names_are_no_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
