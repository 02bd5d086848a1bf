/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2-D correlation of f32 with a 3 × 3 filter, without shared memory: a warp makes 128 columns of four rows. It loads the
 * six rows that it needs, 16 bytes a lane and all at once; what a lane needs of its neighbours' columns it gets from them,
 * the warp's first and last lane from memory. No block waits for its slowest warp, and the caches serve the rows that two
 * warps read. Larger filters read more rows twice than the L2 cache delivers; they are faster from tiles (conv2d.cuh).
 */
#ifndef HEADRACE_CUDA_CONV2D_DIRECT_CUH
#define HEADRACE_CUDA_CONV2D_DIRECT_CUH

#include "conv2d.cuh"

namespace headrace::kernel
{

struct direct_shape {
    static constexpr int pixels = 4; /* a lane, side by side */
    static constexpr int strip = 32 * pixels;
    static constexpr int warps_across = 4, warps_down = 2;
    static constexpr int threads = 32 * warps_across * warps_down;
    static constexpr int rows_each = 4;
    static constexpr int columns = warps_across * strip; /* of output, a block */
    static constexpr int rows = warps_down * rows_each;
};

/* Source row `row` (of the image) as the border rule sees it. */
struct direct_row {
    const float *at; /* null: zeros */
    int columns, border;

    __device__ direct_row(const conv_job &job, int row) : columns(job.columns), border(job.border)
    {
        const int reached = conv_reach(row, job.image_rows, job.border) - job.src_first;
        const bool there = reached >= 0 && reached < job.src_rows;
        at = there ? static_cast<const float *>(job.src) + reached * job.src_pitch : nullptr;
    }
    __device__ float pixel(int column) const
    {
        const int reached = conv_reach(column, columns, border);
        return at == nullptr || reached < 0 ? 0.0F : at[reached];
    }
    __device__ float4 pixels(int column) const
    {
        if (at != nullptr && column + 4 <= columns) {
            return *reinterpret_cast<const float4 *>(at + column);
        }
        return make_float4(pixel(column), pixel(column + 1), pixel(column + 2), pixel(column + 3));
    }
};

/* A lane's four pixels of a row with `Radius` on each side, from its own and its neighbours'; `outer` are those beyond the
 * warp's strip, known to its first and its last lane. */
template <int Radius>
__device__ inline void direct_window(float (&x)[4 + 2 * Radius], float4 own, const float (&outer)[Radius],
                                     int lane)
{
    const float all[4] = {own.x, own.y, own.z, own.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[Radius + i] = all[i];
    }
#pragma unroll
    for (int k = 0; k < Radius; k++) {
        const float left = __shfl_up_sync(~0U, all[4 - Radius + k], 1);
        const float right = __shfl_down_sync(~0U, all[k], 1);
        x[k] = lane == 0 ? outer[k] : left;
        x[4 + Radius + k] = lane == 31 ? outer[k] : right;
    }
}

template <int Edge, conv_math Math>
__global__ void __launch_bounds__(direct_shape::threads)
    conv2d_direct(const __grid_constant__ conv_job job,
                  const __grid_constant__ conv_weights<Edge, Math> weights)
{
    using shape = direct_shape;
    constexpr int radius = Edge / 2, reads = shape::rows_each + 2 * radius;
    after_previous();
    const int lane = threadIdx.x % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int strip = static_cast<int>(blockIdx.x) % job.across * shape::columns +
                      warp % shape::warps_across * shape::strip;
    const int out = static_cast<int>(blockIdx.x) / job.across * shape::rows +
                    warp / shape::warps_across * shape::rows_each;
    if (strip >= job.columns || out >= job.dst_rows) {
        return;
    }
    const int column = strip + lane * shape::pixels;
    const int beyond =
        lane == 0 ? column - radius : column + shape::pixels; /* of the first and the last lane */
    float4 own[reads];
    float outer[reads][radius] = {};
#pragma unroll
    for (int i = 0; i < reads; i++) {
        const direct_row row(job, out + job.dst_first + i - radius);
        own[i] = row.pixels(column);
        if (lane == 0 || lane == 31) {
#pragma unroll
            for (int k = 0; k < radius; k++) {
                outer[i][k] = row.pixel(beyond + k);
            }
        }
    }
    const int left = job.columns - column;
    const bool whole = job.vector_store && left >= shape::pixels;
    float *at = static_cast<float *>(job.dst) + out * job.dst_pitch + column;
    float sum[shape::rows_each][shape::pixels];
#pragma unroll
    for (int i = 0; i < reads; i++) {
        conv_row<Edge, Math> here;
        direct_window<radius>(here.x, own[i], outer[i], lane);
        here.across(weights);
#pragma unroll
        for (int o = 0; o < shape::rows_each; o++) {
            if (i - o >= 0 && i - o < Edge) {
                here.add(sum[o], i - o, weights);
            }
        }
        const int done = i - 2 * radius;
        if (done >= 0) {
            if (out + done < job.dst_rows) {
                conv_store(at, sum[done], whole, left);
            }
            at += job.dst_pitch;
        }
    }
}

/* Can it? 16-byte loads need aligned rows. */
inline bool direct_fits(const conv_job &job)
{
    return aligned16(job.src) && job.src_pitch % 4 == 0;
}

template <int Edge, conv_math Math>
hr_status conv2d_direct_start(const chip &c, conv_job job, const conv_weights<Edge, Math> &weights,
                              cudaStream_t stream, hr_error *error)
{
    using shape = direct_shape;
    job.across = (job.columns + shape::columns - 1) / shape::columns;
    const long long blocks =
        static_cast<long long>(job.across) * ((job.dst_rows + shape::rows - 1) / shape::rows);
    if (blocks > INT32_MAX) {
        return hr_fail(error, HR_E_RANGE, "conv2d: %d × %d needs %lld blocks, a launch has at most 2^31 − 1",
                       job.dst_rows, job.columns, blocks);
    }
    return launch_early(c, "conv2d", conv2d_direct<Edge, Math>, dim3(static_cast<unsigned>(blocks)),
                        dim3(shape::threads), 0, stream, error, job, weights);
}

} // namespace headrace::kernel
#endif
