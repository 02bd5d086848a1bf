/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 7-point stencil without shared memory. A warp makes 128 × 5 cells of eight planes, one plane after the other: of each it
 * loads its five rows, the rows above and below, and the cells beside them, 16 bytes a lane and all at once; the planes
 * before and after stay in registers, and what a lane needs of its neighbours' cells it gets from them. The warps of a block
 * stand two by four, so that most rows that two warps read come from the first-level cache.
 */
#ifndef HEADRACE_CUDA_STENCIL3D_DIRECT_CUH
#define HEADRACE_CUDA_STENCIL3D_DIRECT_CUH

#include "stencil3d.cuh"

namespace headrace::kernel
{

struct stencil_direct_shape {
    static constexpr int cells = 4; /* a lane, side by side */
    static constexpr int warps_x = 2, warps_y = 4;
    static constexpr int threads = 32 * warps_x * warps_y;
    static constexpr int rows = 5;   /* a warp */
    static constexpr int planes = 8; /* a block */
    static constexpr int block_x = 32 * cells * warps_x, block_y = rows * warps_y;
};

/* What a lane has of one plane. */
template <int Rows> struct stencil_plane {
    float4 own[Rows], up, down;
    float outer[Rows]; /* beyond the warp's cells, known to its first and its last lane */
};

/* Four cells from `at`, where x is the first; zeros outside the row. */
__device__ inline float4 stencil_cells(const float *at, long long x, long long nx)
{
    if (x + 4 <= nx) {
        return *reinterpret_cast<const float4 *>(at);
    }
    return make_float4(x < nx ? at[0] : 0.0F, x + 1 < nx ? at[1] : 0.0F, x + 2 < nx ? at[2] : 0.0F, 0.0F);
}

/* `centre`: with what only the plane in the middle needs. */
template <int Rows>
__device__ inline void stencil_load(stencil_plane<Rows> &plane, const stencil_job &job, long long x,
                                    long long y, long long z, int lane, bool centre)
{
    const float4 zero = make_float4(0, 0, 0, 0);
    const bool inside = z >= 0 && z < job.nz;
    const float *const at = job.src + z * job.src_slice + y * job.src_row + x;
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        plane.own[r] = inside && y + r < job.ny ? stencil_cells(at + r * job.src_row, x, job.nx) : zero;
    }
    plane.up = inside && centre && y > 0 ? stencil_cells(at - job.src_row, x, job.nx) : zero;
    plane.down =
        inside && centre && y + Rows < job.ny ? stencil_cells(at + Rows * job.src_row, x, job.nx) : zero;
    const int beside = lane == 0 ? -1 : 4;
    const bool outer =
        inside && centre && (lane == 0 || lane == 31) && x + beside >= 0 && x + beside < job.nx;
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        plane.outer[r] = outer && y + r < job.ny ? at[r * job.src_row + beside] : 0.0F;
    }
}

/* Row r of the plane in the middle. */
template <int Rows>
__device__ inline float4 stencil_row(const stencil_job &job, const stencil_plane<Rows> &below,
                                     const stencil_plane<Rows> &here, const stencil_plane<Rows> &above, int r,
                                     int lane)
{
    const float4 c = here.own[r];
    float left = __shfl_up_sync(~0U, c.w, 1), right = __shfl_down_sync(~0U, c.x, 1);
    left = lane == 0 ? here.outer[r] : left;
    right = lane == 31 ? here.outer[r] : right;
    float4 sum = scaled(job.w[0], c);
    sum = added(job.w[1], make_float4(left, c.x, c.y, c.z), sum);
    sum = added(job.w[2], make_float4(c.y, c.z, c.w, right), sum);
    sum = added(job.w[3], r > 0 ? here.own[r > 0 ? r - 1 : 0] : here.up, sum);
    sum = added(job.w[4], r + 1 < Rows ? here.own[r + 1 < Rows ? r + 1 : r] : here.down, sum);
    sum = added(job.w[5], below.own[r], sum);
    return added(job.w[6], above.own[r], sum);
}

static __global__ void __launch_bounds__(stencil_direct_shape::threads)
    stencil3d_direct(const __grid_constant__ stencil_job job)
{
    using shape = stencil_direct_shape;
    constexpr int rows = shape::rows;
    after_previous();
    const int lane = threadIdx.x % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const long long x = static_cast<long long>(blockIdx.x) * shape::block_x +
                        (warp % shape::warps_x * 32 + lane) * shape::cells;
    const long long y = static_cast<long long>(blockIdx.y) * shape::block_y + warp / shape::warps_x * rows;
    const long long z = static_cast<long long>(blockIdx.z) * shape::planes;
    if (y >= job.ny) {
        return;
    }
    stencil_plane<rows> below, here, above;
    stencil_load(below, job, x, y, z - 1, lane, false);
    stencil_load(here, job, x, y, z, lane, true);
#pragma unroll
    for (int i = 0; i < shape::planes; i++) {
        if (z + i < job.nz) {
            stencil_load(above, job, x, y, z + i + 1, lane, i + 1 < shape::planes);
#pragma unroll
            for (int r = 0; r < rows; r++) {
                store_cells(job, x, y + r, z + i, stencil_row(job, below, here, above, r, lane));
            }
            below = here;
            here = above;
        }
    }
}

/* Can it? 16-byte loads need aligned rows, and a grid has at most 65,535 blocks in y and z. */
inline bool stencil3d_direct_fits(const stencil_job &job)
{
    using shape = stencil_direct_shape;
    constexpr long long most = 65535;
    return aligned16(job.src) && job.src_row % 4 == 0 && job.src_slice % 4 == 0 &&
           job.ny <= most * shape::block_y && job.nz <= most * shape::planes;
}

inline hr_status stencil3d_direct_start(const chip &c, const stencil_job &job, cudaStream_t stream,
                                        hr_error *error)
{
    using shape = stencil_direct_shape;
    const dim3 grid(static_cast<unsigned>((job.nx + shape::block_x - 1) / shape::block_x),
                    static_cast<unsigned>((job.ny + shape::block_y - 1) / shape::block_y),
                    static_cast<unsigned>((job.nz + shape::planes - 1) / shape::planes));
    return launch_early(c, "stencil3d", stencil3d_direct, grid, dim3(shape::threads), 0, stream, error, job);
}

} // namespace headrace::kernel
#endif
