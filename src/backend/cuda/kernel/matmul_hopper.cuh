/* SPDX-License-Identifier: Apache-2.0 */
/* What the products of f32 on Hopper's matrix units share. */
#ifndef HEADRACE_CUDA_MATMUL_HOPPER_CUH
#define HEADRACE_CUDA_MATMUL_HOPPER_CUH

#include "matmul.cuh"

namespace headrace::kernel
{

/* C in tiles, of which a block takes every gridDim.x-th. */
template <int TileM, int TileN> struct tile_grid {
    __host__ __device__ static int rows(const matmul_job &job)
    {
        return (job.m + TileM - 1) / TileM;
    }

    __host__ __device__ static int columns(const matmul_job &job)
    {
        return (job.n + TileN - 1) / TileN;
    }

    __device__ static int count(const matmul_job &job)
    {
        return rows(job) * columns(job);
    }

    /* Where a tile begins in C. */
    struct place {
        int row, column;
    };

    __device__ static place place_of(const matmul_job &job, int tile)
    {
        int row, column;
        matmul_tile(tile, rows(job), columns(job), job.group, &row, &column);
        return {row * TileM, column * TileN};
    }
};

/* Starts a kernel that walks such tiles: a block a multiprocessor, or a tile where those are fewer. */
template <class Grid, class Kernel>
hr_status launch_over_tiles(Kernel *kernel, int threads, std::size_t shared, const matmul_job &job,
                            const CUtensorMap &a, const CUtensorMap &b, int sms, cudaStream_t stream,
                            hr_error *error)
{
    const long long tiles = static_cast<long long>(Grid::rows(job)) * Grid::columns(job);
    if (tiles > INT32_MAX - sms) {
        return hr_fail(error, HR_E_RANGE, "matmul: %d × %d makes %lld tiles, needs at most %d", job.m, job.n,
                       tiles, INT32_MAX - sms);
    }
    const dim3 grid(static_cast<unsigned>(tiles < sms ? tiles : sms));
    return launch("matmul", kernel, grid, dim3(static_cast<unsigned>(threads)), shared, stream, error, job, a,
                  b);
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

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

#endif

} // namespace headrace::kernel
#endif
