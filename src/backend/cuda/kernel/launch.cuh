/* SPDX-License-Identifier: Apache-2.0 */
/* What every launcher of this folder shares: choosing and refusing a mechanism, and checking the launch. */
#ifndef HEADRACE_CUDA_LAUNCH_CUH
#define HEADRACE_CUDA_LAUNCH_CUH

#include "kernel.h"

#include <headrace/device/tensor_map.h>
#include <headrace/device/tile_ring.cuh>

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

/* Raises the shared memory limit of a kernel and launches it. */
template <class... Parameters, class... Arguments>
hr_status launch(const char *what, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
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
    kernel<<<grid, block, shared, stream>>>(static_cast<Parameters>(arguments)...);
    return check_launch(what, error);
}

/* The same for a kernel whose blocks form clusters of `blocks` side by side. */
template <class... Parameters, class... Arguments>
hr_status launch_cluster(const char *what, void (*kernel)(Parameters...), unsigned blocks, dim3 grid,
                         dim3 block, std::size_t shared, cudaStream_t stream, hr_error *error,
                         Arguments &&...arguments)
{
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (code == cudaSuccess) {
        cudaLaunchAttribute attribute = {};
        cudaLaunchConfig_t config = {};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = blocks;
        attribute.val.clusterDim.y = 1;
        attribute.val.clusterDim.z = 1;
        config.gridDim = grid;
        config.blockDim = block;
        config.dynamicSmemBytes = shared;
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = 1;
        code = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
    }
    if (code == cudaSuccess) {
        return check_launch(what, error);
    }
    (void)cudaGetLastError();
    return hr_fail(error, HR_E_DEVICE, "%s: launch of clusters of %u blocks: %s", what, blocks,
                   cudaGetErrorString(code));
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
