/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for the module's .cu files in a build without nvcc: the same entries, run by the double's
 * streams. */
#include "backend/cuda/kernels.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/op_launchers.h"
#include "internal.h"

#include <string.h>

typedef struct list_work {
    char *dst;
    const char *src;
    const hr_segment *listed;
    uint32_t count;
    hr_segment given[HR_CUDA_SEGMENTS_BY_VALUE];
} list_work;

static void run_list(void *argument)
{
    const list_work *list = argument;
    const hr_segment *segments = list->listed != NULL ? list->listed : list->given;
    for (uint32_t i = 0; i < list->count; i++) {
        memcpy(list->dst + segments[i].dst_offset_bytes, list->src + segments[i].src_offset_bytes,
               segments[i].bytes);
    }
}

cudaError_t hr_cuda_kernel_segments_by_value(cudaStream_t stream, void *dst, const void *src,
                                             const hr_segment *segments, uint32_t count, uint32_t blocks)
{
    (void)blocks;
    list_work list = {.dst = dst, .src = src, .count = count};
    memcpy(list.given, segments, count * sizeof *segments);
    return hr_double_launch(stream, run_list, &list, sizeof list);
}

cudaError_t hr_cuda_kernel_segments(cudaStream_t stream, void *dst, const void *src,
                                    const hr_segment *segments, uint32_t count, uint32_t blocks)
{
    (void)blocks;
    list_work list = {.dst = dst, .src = src, .listed = segments, .count = count};
    return hr_double_launch(stream, run_list, &list, sizeof list);
}

/* The built-in ops' kernels are the toolkit's to compile. */
hr_launch_fn hr_cuda_op_launcher(const char *name)
{
    (void)name;
    return NULL;
}

/* Benches measure hardware. */
hr_status hr_cuda_bench(hr_bdevice *device, const hr_bench_options *options, hr_error *error)
{
    (void)device;
    return hr_fail(error, HR_E_UNSUPPORTED, "bench %s: this is a test double of a device", options->what);
}
