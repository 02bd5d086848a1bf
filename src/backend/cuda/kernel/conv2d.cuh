/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2-D correlation of f32. A block of a few warps brings a tile of 128 columns with its halo into
 * shared memory, once; each warp makes some of its rows. Every row of the tile is read once a warp and added
 * to the output rows that it reaches, whose sums are in registers: everything is unrolled, so that no
 * multiply-add is wasted, and shared memory is read 16 bytes at a time. One tile a block: with many small
 * blocks in the order of addresses the memory is faster than with few that walk, and the blocks of a
 * multiprocessor overlap each other's copies and sums.
 */
#ifndef HEADRACE_CUDA_CONV2D_CUH
#define HEADRACE_CUDA_CONV2D_CUH

#include "launch.cuh"

#include <type_traits>

namespace headrace::kernel
{

enum class conv_math {
    floats,
    separable /* the column factor's weights, then the row factor's */
};

/* How a filter's tile is laid out. */
template <int Edge> struct conv_shape {
    static constexpr int radius = Edge / 2;
    static constexpr int pixels = 4;          /* a lane, side by side */
    static constexpr int strip = 32 * pixels; /* output columns a block */
    static constexpr int pad = 4;             /* columns of halo on each side: one 16-byte piece */
    static constexpr int columns = strip + 2 * pad;
    static constexpr int rows = 32; /* output rows a block */
    static constexpr int tile_rows = rows + 2 * radius;
    static constexpr int map_pixels = 1; /* an element of the tensor map */
};

/* The warps that share a tile: as many as measured best. Where a whole block makes each copy (group, barrier), or one warp
 * (bulk), more warps are slower. */
template <mechanism M, int Edge, conv_math Math>
inline constexpr int conv_warps = (M == mechanism::sync || M == mechanism::ldgsts || M == mechanism::tma) &&
                                          (Edge < 7 || Math == conv_math::separable)
                                      ? 8
                                      : 4;

struct conv_job {
    const void *src;
    void *dst;
    long long src_pitch, dst_pitch; /* elements */
    int image_rows, columns;
    int src_first, src_rows;
    int dst_first, dst_rows;
    int across; /* blocks side by side */
    int border;
    bool vector_store, vector_load;
};

/* In the kernel's constant bank, so that a multiply-add reads its weight from there. */
template <int Edge, conv_math Math> struct conv_weights {
    float w[Math == conv_math::separable ? 2 * Edge : Edge * Edge];
};

/* Where the border rule finds an index outside 0 … n − 1; below 0 where it says zero. */
__device__ inline int conv_reach(int i, int n, int border)
{
    if (i >= 0 && i < n) {
        return i;
    }
    if (border == HR_BORDER_ZERO) {
        return -1;
    }
    if (border == HR_BORDER_REPLICATE || n == 1) {
        return i < 0 ? 0 : n - 1;
    }
    while (i < 0 || i >= n) { /* there and back, more than once in an image smaller than the filter */
        i = i < 0 ? -i : 2 * (n - 1) - i;
    }
    return i;
}

/*
 * Puts what the border rule says into the part of a tile that lies outside the image and that an output
 * reads; by all threads of the block. The tile's corner is at (row, column) of the source plane. What the rule
 * reaches is in the tile too, since outputs read no further outside than the filter's radius.
 */
template <class Shape, class T>
__device__ __noinline__ void conv_border(T *tile, const conv_job &job, int row, int column)
{
    constexpr int Columns = Shape::columns, left = Shape::pad - Shape::radius;
    const int top = row + job.src_first;
    const int bottom = job.image_rows + Shape::radius - top, end = job.columns + Shape::radius - column;
    const int read_rows = bottom < Shape::tile_rows ? bottom : Shape::tile_rows;
    const int read_end = end < Columns - left ? end : Columns - left;
    const auto put = [&](int y, int x) {
        const int r = conv_reach(top + y, job.image_rows, job.border) - top;
        const int c = conv_reach(column + x, job.columns, job.border) - column;
        tile[y * Columns + x] = job.border == HR_BORDER_ZERO ? T{} : tile[r * Columns + c];
    };
    const int above = top < 0 ? -top : 0, image_end = job.image_rows - top;
    const int inside_end = image_end < read_rows ? image_end : read_rows;
    const int width = read_end - left, rows_outside = above + read_rows - inside_end;
    for (int i = threadIdx.x; i < rows_outside * width; i += blockDim.x) {
        const int y = i / width;
        put(y < above ? y : inside_end + y - above, left + i % width);
    }
    for (int i = threadIdx.x; i < (inside_end - above) * Shape::radius; i += blockDim.x) {
        const int y = above + i / Shape::radius, k = i % Shape::radius;
        const int last = read_end - Shape::radius + k;
        if (column < 0) {
            put(y, left + k);
        }
        if (column + last >= job.columns) {
            put(y, last);
        }
    }
}

/* The pixels that a lane needs of one row: its own, and `Radius` on each side. */
template <int Radius>
__device__ inline void conv_window(float (&x)[4 + 2 * Radius], const float *row, int lane)
{
    const float4 a = reinterpret_cast<const float4 *>(row)[lane];
    const float4 b = reinterpret_cast<const float4 *>(row)[lane + 1];
    const float4 c = reinterpret_cast<const float4 *>(row)[lane + 2];
    const float all[12] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w};
#pragma unroll
    for (int i = 0; i < 4 + 2 * Radius; i++) {
        x[i] = all[4 - Radius + i];
    }
}
/* Writes a lane's pixels, as far as the image goes. */
__device__ inline void conv_store(float *at, const float (&sum)[4], bool whole, int left)
{
    if (whole) {
        store16(at, make_float4(sum[0], sum[1], sum[2], sum[3]));
        return;
    }
#pragma unroll
    for (int p = 0; p < 4; p++) {
        if (p < left) {
            at[p] = sum[p];
        }
    }
}
/* One row of the tile, in the form in which it is added: floats, or for the separable kernel already filtered
 * across. */
template <int Edge, conv_math Math> struct conv_row {
    using shape = conv_shape<Edge>;
    float x[shape::pixels + 2 * shape::radius];

    __device__ conv_row()
    {
    }
    __device__ conv_row(const float *row, int lane, const conv_weights<Edge, Math> &weights)
    {
        conv_window<shape::radius>(x, row, lane);
        across(weights);
    }
    __device__ void across(const conv_weights<Edge, Math> &weights)
    {
        if constexpr (Math == conv_math::separable) {
#pragma unroll
            for (int p = 0; p < shape::pixels; p++) {
                float sum = x[p] * weights.w[Edge];
#pragma unroll
                for (int k = 1; k < Edge; k++) {
                    sum = fmaf(x[p + k], weights.w[Edge + k], sum);
                }
                x[p] = sum;
            }
        }
    }
    /* Row ky of the filter; ky = 0 sets the sum. */
    __device__ void add(float (&sum)[shape::pixels], int ky, const conv_weights<Edge, Math> &weights) const
    {
#pragma unroll
        for (int p = 0; p < shape::pixels; p++) {
            if constexpr (Math == conv_math::separable) {
                sum[p] = ky == 0 ? x[p] * weights.w[0] : fmaf(x[p], weights.w[ky], sum[p]);
            } else {
#pragma unroll
                for (int kx = 0; kx < Edge; kx++) {
                    const float w = weights.w[ky * Edge + kx];
                    sum[p] = ky == 0 && kx == 0 ? x[p] * w : fmaf(x[p + kx], w, sum[p]);
                }
            }
        }
    }
};
/* Does the border rule have a say in this tile? Then it is applied, and all threads see it. */
template <class Shape, class T>
__device__ inline void conv_fix_border(T *tile, const conv_job &job, int row, int column, bool zeros_came)
{
    const bool outside = column < 0 || column + Shape::columns - Shape::pad + Shape::radius > job.columns ||
                         row + job.src_first < 0 || row + job.src_first + Shape::tile_rows > job.image_rows;
    if (outside && !(zeros_came && job.border == HR_BORDER_ZERO)) {
        conv_border<Shape>(tile, job, row, column);
        __syncthreads();
    }
}

/* A warp's rows of the block whose output starts at (out, strip), from a tile that is complete. */
template <int Edge, conv_math Math, int Warps>
__device__ inline void conv_compute(const float *tile, const conv_job &job,
                                    const conv_weights<Edge, Math> &weights, int out, int strip)
{
    using shape = conv_shape<Edge>;
    constexpr int rows_each = shape::rows / Warps;
    const int lane = threadIdx.x % 32, own = static_cast<int>(threadIdx.x) / 32 * rows_each;
    const int rows_left = job.dst_rows - out - own, left = job.columns - strip - lane * shape::pixels;
    const bool whole = job.vector_store && left >= shape::pixels;
    if (rows_left <= 0 || left <= 0) {
        return;
    }
    float *at = static_cast<float *>(job.dst) + (out + own) * job.dst_pitch + strip + lane * shape::pixels;
    float sum[rows_each][shape::pixels];
#pragma unroll
    for (int i = 0; i < rows_each + 2 * shape::radius; i++) {
        const conv_row<Edge, Math> here(tile + (own + i) * shape::columns, lane, weights);
#pragma unroll
        for (int o = 0; o < rows_each; o++) {
            if (i - o >= 0 && i - o < Edge) {
                here.add(sum[o], i - o, weights);
            }
        }
        const int done = i - 2 * shape::radius;
        if (done >= 0) {
            if (done < rows_left) {
                conv_store(at, sum[done], whole, left);
            }
            at += job.dst_pitch;
        }
    }
}

template <mechanism M, int Edge, conv_math Math>
__global__ void __launch_bounds__(32 * conv_warps<M, Edge, Math>)
    conv2d(const __grid_constant__ conv_job job, const __grid_constant__ conv_weights<Edge, Math> weights,
           const __grid_constant__ CUtensorMap map)
{
    if constexpr (device::compiles(M)) {
        using shape = conv_shape<Edge>;
        constexpr int warps = conv_warps<M, Edge, Math>;
        using ring_type =
            device::tile_ring<M, 1, float, shape::tile_rows, shape::columns, device::block_scope<32 * warps>>;
        extern __shared__ __align__(128) unsigned char shared[];
        ring_type ring(*reinterpret_cast<typename ring_type::storage *>(shared));
        after_previous();
        const int strip = static_cast<int>(blockIdx.x) % job.across * shape::strip;
        const int out = static_cast<int>(blockIdx.x) / job.across * shape::rows;
        const int row = out + job.dst_first - job.src_first - shape::radius; /* of the source plane */
        const int column = strip - shape::pad;
        if constexpr (M == mechanism::tma) {
            ring.fill_box(&map, {column, row});
        } else {
            ring.fill(
                {static_cast<const float *>(job.src), job.src_pitch, job.src_rows, job.columns, nullptr}, row,
                column);
        }
        float *const tile = &ring.wait()[0][0];
        conv_fix_border<shape>(tile, job, row, column, true);
        conv_compute<Edge, Math, warps>(tile, job, weights, out, strip);
    }
}

} // namespace headrace::kernel
#endif
