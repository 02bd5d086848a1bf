/* SPDX-License-Identifier: Apache-2.0 */
/* What every launcher of this folder shares: choosing and refusing a mechanism, and checking the launch. */
#ifndef HEADRACE_CUDA_LAUNCH_CUH
#define HEADRACE_CUDA_LAUNCH_CUH

#include "kernel.h"

#include <headrace/device/tensor_map.h>
#include <headrace/device/tile_ring.cuh>

#include <utility>

namespace headrace::kernel
{
using device::mechanism;

/* The device that a launch goes to. */
struct chip {
    int sms = 0;
    int major = 0;
    int shared_bytes = 0; /* that one block may have */
};

hr_status chip_of_current_device(chip *found, hr_error *error);

/* HR_OK, or HR_E_DEVICE with what cudaGetLastError says of the launch before. */
hr_status check_launch(const char *what, hr_error *error);

/* Is `m` one that this chip has? Fills the reason. */
bool chip_has(const chip &c, hr_mechanism m, char (&reason)[HR_TENSOR_REASON_BYTES]);

inline bool aligned16(const void *p)
{
    return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}

/* Can rows be read 16 bytes at a time? Else the reason says what was found. */
bool reads_by_16(const void *base, std::uint64_t pitch_bytes, char (&reason)[HR_TENSOR_REASON_BYTES]);

hr_status refuse(const char *kernel, hr_mechanism m, const char *reason, hr_error *error);

/*
 * Shared memory for a kernel that needs `bytes`, so that at most `blocks` of it are on a multiprocessor at a time: more
 * bytes in flight than the memory needs make it slower. 0 blocks: as many as fit.
 */
inline std::size_t shared_for(const chip &c, std::size_t bytes, unsigned blocks)
{
    const std::size_t share = blocks == 0 ? 0 : (static_cast<std::size_t>(c.shared_bytes) + 1024) / blocks;
    return share > bytes + 1024 ? (share - 1024) / 128 * 128 : bytes;
}

/*
 * One store of 16 bytes to global memory. A plain one beside a branch that stores the same elements one at a time is
 * merged with that branch by nvcc 13.0: into four predicated stores of 4 bytes, four times the requests to the L2 cache.
 */
__device__ inline void store16(float *at, float4 v)
{
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(at)), "f"(v.x),
                 "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}

/*
 * In a kernel started by launch_early(), by all threads before they touch global memory: lets the blocks of the next kernel
 * move in as ours leave, and waits until the kernel before has ended and its writes are seen. Otherwise nothing.
 */
__device__ inline void after_previous()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Raises the shared memory limit of a kernel and launches it, with attributes. */
template <class... Parameters, class... Arguments>
hr_status launch_with(cudaLaunchAttribute *attributes, unsigned count, const char *what,
                      void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
                      cudaStream_t stream, hr_error *error, Arguments &&...arguments)
{
    if (shared > 48 * 1024) {
        const cudaError_t set = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                     static_cast<int>(shared));
        if (set != cudaSuccess) {
            (void)cudaGetLastError();
            return hr_fail(error, HR_E_DEVICE, "%s: %zu bytes of shared memory a block: %s", what, shared,
                           cudaGetErrorString(set));
        }
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    (void)cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
    return check_launch(what, error);
}

template <class... Parameters, class... Arguments>
hr_status launch(const char *what, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
                 cudaStream_t stream, hr_error *error, Arguments &&...arguments)
{
    return launch_with(nullptr, 0, what, kernel, grid, block, shared, stream, error,
                       std::forward<Arguments>(arguments)...);
}

/*
 * The same for a kernel that calls after_previous(): its launch overlaps the end of a kernel before it in the stream, which
 * saves about 1.5 µs on an H200. Anything else before it (a copy, an event) is waited for as always.
 */
template <class... Parameters, class... Arguments>
hr_status launch_early(const chip &c, const char *what, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                       std::size_t shared, cudaStream_t stream, hr_error *error, Arguments &&...arguments)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    return launch_with(&early, c.major >= 9 ? 1 : 0, what, kernel, grid, block, shared, stream, error,
                       std::forward<Arguments>(arguments)...);
}

/* The same for a kernel whose blocks form clusters of `blocks` side by side. */
template <class... Parameters, class... Arguments>
hr_status launch_cluster(const char *what, void (*kernel)(Parameters...), unsigned blocks, dim3 grid,
                         dim3 block, std::size_t shared, cudaStream_t stream, hr_error *error,
                         Arguments &&...arguments)
{
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = blocks;
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
    return launch_with(&cluster, 1, what, kernel, grid, block, shared, stream, error,
                       std::forward<Arguments>(arguments)...);
}

/*
 * Tries mechanisms in the order given when asked for `auto`, or only the one asked for. `fits` returns true
 * or fills the reason; `start` launches. Sets *used on success.
 */
template <class Fits, class Start>
hr_status with_mechanism(const char *kernel, hr_mechanism asked, const hr_mechanism *order, int count,
                         hr_mechanism *used, hr_error *error, Fits fits, Start start)
{
    char reason[HR_TENSOR_REASON_BYTES] = "the kernel has no such mechanism";
    for (int i = 0; i < count; i++) {
        if (asked != HR_MECHANISM_AUTO && asked != order[i]) {
            continue;
        }
        if (fits(order[i], reason)) {
            const hr_status status = start(order[i]);
            if (status == HR_OK && used != nullptr) {
                *used = order[i];
            }
            return status;
        }
        if (asked != HR_MECHANISM_AUTO) {
            break;
        }
    }
    return refuse(kernel, asked, reason, error);
}

} // namespace headrace::kernel
#endif
