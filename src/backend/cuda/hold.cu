// SPDX-License-Identifier: Apache-2.0
// Kernels that benches need: two that hold a stream, and a plain addition.
#include "kernels.h"

#include <cstdint>

namespace
{

__device__ uint64_t now_ns()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void hold(const volatile uint32_t *flag, uint64_t limit_ns)
{
    const uint64_t begin = now_ns();
    while (*flag == 0 && now_ns() - begin < limit_ns) {
        __nanosleep(200);
    }
}

__global__ void delay(uint64_t ns)
{
    const uint64_t begin = now_ns();
    while (now_ns() - begin < ns) {
        __nanosleep(200);
    }
}

__global__ void add(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, uint64_t count)
{
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        c[i] = a[i] + b[i];
    }
}

} // namespace

extern "C" cudaError_t hr_cuda_kernel_hold(cudaStream_t stream, const volatile uint32_t *flag, uint64_t limit_ns)
{
    hold<<<1, 1, 0, stream>>>(flag, limit_ns);
    return cudaGetLastError();
}

extern "C" cudaError_t hr_cuda_kernel_delay(cudaStream_t stream, uint64_t ns)
{
    delay<<<1, 1, 0, stream>>>(ns);
    return cudaGetLastError();
}

extern "C" cudaError_t hr_cuda_kernel_add(cudaStream_t stream, const float *a, const float *b, float *c,
                                          uint64_t count)
{
    const uint64_t blocks = (count + 255) / 256;
    add<<<static_cast<unsigned>(blocks < 65535 ? (blocks > 0 ? blocks : 1) : 65535), 256, 0, stream>>>(a, b, c, count);
    return cudaGetLastError();
}
