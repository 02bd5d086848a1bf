/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the benches'. */
#ifndef HR_BACKEND_CUDA_HOLD_H
#define HR_BACKEND_CUDA_HOLD_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Holds the stream until *flag (pinned host memory) is not 0, or limit_ns are over: never for ever. */
cudaError_t hr_cuda_kernel_hold(cudaStream_t stream, const volatile uint32_t *flag, uint64_t limit_ns);
/* Holds the stream for so long. */
cudaError_t hr_cuda_kernel_delay(cudaStream_t stream, uint64_t ns);
/* Kernels that no one has launched before: 0, 1 and 2 are three of them. And attributes of 0 or 1 of others.
 */
cudaError_t hr_cuda_kernel_cold(cudaStream_t stream, int which);
cudaError_t hr_cuda_kernel_cold_attributes(int which, struct cudaFuncAttributes *attributes);
/* cudaMemcpyToSymbol() to a variable of the module's, of at most 64 KiB. */
cudaError_t hr_cuda_copy_to_bench_symbol(const void *src, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
