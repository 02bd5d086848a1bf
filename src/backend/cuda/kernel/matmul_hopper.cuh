/* SPDX-License-Identifier: Apache-2.0 */
/* What the products of f32 on Hopper's matrix units share. Device code; for sm_90a alone. */
#ifndef HEADRACE_CUDA_MATMUL_HOPPER_CUH
#define HEADRACE_CUDA_MATMUL_HOPPER_CUH

#include "matmul.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace headrace::kernel
{

__device__ inline int lane_of_thread()
{
    return static_cast<int>(threadIdx.x % 32);
}

/* The same for all lanes, as the compiler is to know. */
__device__ inline int warp_of_thread()
{
    return __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x / 32), 0);
}

/* A value that the compiler cannot have computed anything from before: registers are short while the matrix units work. */
__device__ inline int hidden(int value)
{
    asm volatile("" : "+r"(value));
    return value;
}

/* The steps of a block, all of k for each of its tiles, as those see them who bring operands. */
template <int TileK> struct step_walk {
    int tile = static_cast<int>(blockIdx.x), k = 0;

    /* True when a tile has ended. */
    __device__ bool next(const matmul_job &job)
    {
        k += TileK;
        if (k < job.k) {
            return false;
        }
        k = 0;
        tile += static_cast<int>(gridDim.x);
        return true;
    }
};

} // namespace headrace::kernel

#endif
#endif
