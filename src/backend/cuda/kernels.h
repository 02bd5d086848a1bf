/* SPDX-License-Identifier: Apache-2.0 */
/* The module's own kernels, as its C files call them. Each enqueues and returns what the launch said. */
#ifndef HR_BACKEND_CUDA_KERNELS_H
#define HR_BACKEND_CUDA_KERNELS_H

#include <headrace/copy.h>

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Segments that travel as an argument of the kernel: what CUDA allows of arguments is 32,764 bytes. */
#define HR_CUDA_SEGMENTS_BY_VALUE 1024

/*
 * Copies the segments, each by one warp; dst and src may be device memory or pinned host memory at the
 * address that the device has for it. Any alignment; 16 bytes a lane where both sides allow it.
 */
cudaError_t hr_cuda_kernel_segments_by_value(cudaStream_t stream, void *dst, const void *src,
                                             const hr_segment *segments, uint32_t count, uint32_t blocks);
/* The same with the list in memory that the device can read, until the kernel is done. */
cudaError_t hr_cuda_kernel_segments(cudaStream_t stream, void *dst, const void *src,
                                    const hr_segment *segments, uint32_t count, uint32_t blocks);

#ifdef __cplusplus
}
#endif
#endif
