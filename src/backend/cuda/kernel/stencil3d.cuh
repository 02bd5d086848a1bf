/* SPDX-License-Identifier: Apache-2.0 */
/* What the two kernels of the 7-point stencil share. */
#ifndef HEADRACE_CUDA_STENCIL3D_CUH
#define HEADRACE_CUDA_STENCIL3D_CUH

#include "launch.cuh"

namespace headrace::kernel
{

struct stencil_job {
    const float *src;
    float *dst;
    long long nx, ny, nz;
    long long src_row, src_slice, dst_row, dst_slice; /* elements */
    long long walk;                                   /* planes a block */
    float w[7];
    bool vector_store;
};

__device__ inline float4 scaled(float w, float4 v)
{
    return make_float4(w * v.x, w * v.y, w * v.z, w * v.w);
}
__device__ inline float4 added(float w, float4 v, float4 to)
{
    return make_float4(fmaf(w, v.x, to.x), fmaf(w, v.y, to.y), fmaf(w, v.z, to.z), fmaf(w, v.w, to.w));
}

__device__ inline void store_cells(const stencil_job &job, long long x, long long y, long long z, float4 v)
{
    if (y >= job.ny || x >= job.nx) {
        return;
    }
    float *const at = job.dst + z * job.dst_slice + y * job.dst_row + x;
    if (job.vector_store && x + 4 <= job.nx) {
        store16(at, v);
        return;
    }
    const float lane[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (x + i < job.nx) {
            at[i] = lane[i];
        }
    }
}

} // namespace headrace::kernel
#endif
