/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2-D correlation, a warp walking down a strip of 128 columns.
 *
 * Each input row is read from shared memory once: it adds to the `Edge` output rows that it reaches, whose
 * sums live in registers and take turns (output row o has slot o mod Edge). So the shared-memory traffic does
 * not grow with the filter, and what limits is the device memory or, at 7×7, the multiply-adds. A stage of
 * the ring holds Edge rows, which makes every slot a compile-time constant.
 *
 * u8 pixels become floats without a conversion: the byte is put into the low bits of a float, which then is
 * the subnormal b · 2^-149, and the weights carry the scale (the host picks a power of two). The products are
 * normal numbers, so nothing is lost; the scale goes out in one multiplication a pixel.
 */
#ifndef HEADRACE_CUDA_CONV2D_CUH
#define HEADRACE_CUDA_CONV2D_CUH

#include "launch.cuh"

namespace headrace::kernel
{

constexpr int conv_warps = 4;

/* How a warp's strip of one dtype is laid out: pixels a lane, and one 16-byte piece of halo on each side. */
template <class T> struct conv_tile {
    static constexpr int lane_pixels = sizeof(T) == 1 ? 8 : 4;
    static constexpr int strip = 32 * lane_pixels;
    static constexpr int pad = 16 / static_cast<int>(sizeof(T));
    static constexpr int columns = strip + 2 * pad;
    /* A tensor map's box has at most 256 elements an edge, so bytes travel eight at a time. */
    static constexpr int map_pixels = sizeof(T) == 1 ? 8 : 1;
};

/* Rows a stage of the ring: a multiple of the filter's edge. */
__host__ __device__ constexpr int conv_rows_each(int edge)
{
    return edge == 3 ? 6 : edge;
}

struct conv_job {
    const void *src;
    void *dst;
    long long src_pitch, dst_pitch; /* elements */
    int image_rows, columns;
    int src_first, src_rows;
    int dst_first, dst_rows;
    int rows; /* output rows a warp */
    int border;
    bool vector_store;
    float scale; /* out of u8's scaled sums */
};

/* In the kernel's constant bank, so that a multiply-add reads its weight from there. */
template <int Edge, bool Separable> struct conv_weights {
    float w[Separable ? 2 * Edge : Edge * Edge];
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
 * reads. The tile's corner is at (row, column) of the source plane. Beside the image that is a few columns,
 * which one pass of the lanes covers: the warps at the sides must not be much slower than the others, or the
 * launch waits for them.
 */
template <int Radius, class T, int Rows, int Columns>
__device__ __noinline__ void conv_border(T (&tile)[Rows][Columns], const conv_job &job, int row, int column)
{
    constexpr int pad = conv_tile<T>::pad;
    const int top = row + job.src_first, end = job.columns - column;
    const bool rows_outside = top < 0 || top + Rows > job.image_rows;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const auto put = [&](int y, int x) {
        const int r = conv_reach(top + y, job.image_rows, job.border);
        const int c = conv_reach(column + x, job.columns, job.border);
        int from = r - job.src_first;
        from = from < 0 ? 0 : from >= job.src_rows ? job.src_rows - 1 : from;
        tile[y][x] = r < 0 || c < 0 ? T{} : static_cast<const T *>(job.src)[from * job.src_pitch + c];
    };
    if (rows_outside) {
        constexpr int wide = Columns - 2 * (pad - Radius);
        for (int i = lane; i < Rows * wide; i += 32) {
            const int y = i / wide, x = pad - Radius + i % wide;
            if (top + y < 0 || top + y >= job.image_rows || column + x < 0 || x >= end) {
                put(y, x);
            }
        }
        return;
    }
    for (int i = lane; i < Rows * Radius; i += 32) {
        const int y = i / Radius, k = i % Radius;
        if (column < 0) {
            put(y, pad - Radius + k);
        }
        if (end + k < Columns - pad + Radius) {
            put(y, end + k);
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
template <int Radius>
__device__ inline void conv_window(float (&x)[8 + 2 * Radius], const unsigned char *row, int lane)
{
    const auto *words = reinterpret_cast<const unsigned *>(row) + 3 + 2 * lane;
    const uint2 own = *reinterpret_cast<const uint2 *>(words + 1);
    const unsigned w[4] = {words[0], own.x, own.y, words[3]};
#pragma unroll
    for (int i = 0; i < 8 + 2 * Radius; i++) {
        const int byte = 4 - Radius + i;
        x[i] = __uint_as_float(__byte_perm(w[byte / 4], 0, 0x4440 | (byte % 4)));
    }
}

__device__ inline unsigned conv_pixel(float sum, float scale)
{
    unsigned out;
    asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(out) : "f"(sum * scale));
    return out;
}

/* Writes a lane's pixels, as far as the image goes. */
__device__ inline void conv_store(float *at, const float (&sum)[4], bool whole, int left, float)
{
    if (whole) {
        __stcs(reinterpret_cast<float4 *>(at), make_float4(sum[0], sum[1], sum[2], sum[3]));
        return;
    }
#pragma unroll
    for (int p = 0; p < 4; p++) {
        if (p < left) {
            at[p] = sum[p];
        }
    }
}
__device__ inline void conv_store(unsigned char *at, const float (&sum)[8], bool whole, int left, float scale)
{
    unsigned out[8];
#pragma unroll
    for (int p = 0; p < 8; p++) {
        out[p] = conv_pixel(sum[p], scale);
    }
    if (whole) {
        unsigned half[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const unsigned low = __byte_perm(out[4 * h], out[4 * h + 1], 0x0040);
            const unsigned high = __byte_perm(out[4 * h + 2], out[4 * h + 3], 0x0040);
            half[h] = __byte_perm(low, high, 0x5410);
        }
        __stcs(reinterpret_cast<uint2 *>(at), make_uint2(half[0], half[1]));
        return;
    }
#pragma unroll
    for (int p = 0; p < 8; p++) {
        if (p < left) {
            at[p] = static_cast<unsigned char>(out[p]);
        }
    }
}

/* One input row's share of the sums. `Turn` is the row's index mod Edge. */
template <int Edge, bool Separable, int Turn, int Pixels>
__device__ inline void conv_add_row(float (&sum)[Edge][Pixels], const float (&x)[Pixels + Edge - 1],
                                    const conv_weights<Edge, Separable> &weights)
{
    float across[Pixels];
    if constexpr (Separable) {
#pragma unroll
        for (int p = 0; p < Pixels; p++) {
            across[p] = x[p] * weights.w[Edge];
#pragma unroll
            for (int k = 1; k < Edge; k++) {
                across[p] = fmaf(x[p + k], weights.w[Edge + k], across[p]);
            }
        }
    }
#pragma unroll
    for (int ky = 0; ky < Edge; ky++) {
        float(&to)[Pixels] = sum[(Turn - ky + Edge) % Edge];
#pragma unroll
        for (int p = 0; p < Pixels; p++) {
            if constexpr (Separable) {
                to[p] = ky == 0 ? across[p] * weights.w[0] : fmaf(across[p], weights.w[ky], to[p]);
            } else {
#pragma unroll
                for (int kx = 0; kx < Edge; kx++) {
                    const float w = weights.w[ky * Edge + kx];
                    to[p] = ky == 0 && kx == 0 ? x[p] * w : fmaf(x[p + kx], w, to[p]);
                }
            }
        }
    }
}

/* The rows of one stage from `Turn` on; done(sum) takes the output row that is complete after each. */
template <class T, int Edge, bool Separable, int Turn, int Rows, int Pixels, class Tile, class Done>
__device__ inline void conv_rows(float (&sum)[Edge][Pixels], const Tile &tile, int lane,
                                 const conv_weights<Edge, Separable> &weights, Done &done)
{
    if constexpr (Turn < Rows) {
        float x[Pixels + Edge - 1];
        conv_window<Edge / 2>(x, &tile[Turn][0], lane);
        conv_add_row<Edge, Separable, Turn % Edge>(sum, x, weights);
        done(sum[(Turn + 1) % Edge]);
        conv_rows<T, Edge, Separable, Turn + 1, Rows>(sum, tile, lane, weights, done);
    }
}

/* Where a warp's complete rows go. Counts from −(Edge − 1): the first rows only fill the sums. */
template <class T> struct conv_writer {
    T *at;
    long long pitch;
    int row, rows, left;
    bool whole;
    float scale;

    __device__ void operator()(const float (&sum)[conv_tile<T>::lane_pixels])
    {
        if (static_cast<unsigned>(row) < static_cast<unsigned>(rows)) {
            conv_store(at, sum, whole, left, scale);
        }
        row++;
        at += pitch;
    }
};

template <mechanism M, class T, int Edge, bool Separable, int Stages>
__global__ void __launch_bounds__(conv_warps * 32)
    conv2d(const __grid_constant__ conv_job job,
           const __grid_constant__ conv_weights<Edge, Separable> weights,
           const __grid_constant__ CUtensorMap map)
{
    if constexpr (device::compiles(M)) {
        using scope = device::warp_scope;
        using shape = conv_tile<T>;
        constexpr int tile_rows = conv_rows_each(Edge), radius = Edge / 2, pixels = shape::lane_pixels;
        using ring_type = device::tile_ring<M, Stages, T, tile_rows, shape::columns, scope>;
        extern __shared__ __align__(128) unsigned char shared[];
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int strip = (static_cast<int>(blockIdx.x) * conv_warps + warp) * shape::strip;
        const int out_begin = static_cast<int>(blockIdx.y) * job.rows;
        const int out_rows = min(job.rows, job.dst_rows - out_begin);
        if (strip >= job.columns) {
            return;
        }
        ring_type ring(reinterpret_cast<typename ring_type::storage *>(shared)[warp]);
        const device::plane<T> source{static_cast<const T *>(job.src), job.src_pitch, job.src_rows,
                                      job.columns, &map};
        const int column = strip - shape::pad;
        const int row = out_begin + job.dst_first - job.src_first - radius; /* of the source plane */
        const int tiles = (out_rows + 2 * radius + tile_rows - 1) / tile_rows;
        const auto fill = [&](int tile) {
            if (tile >= tiles) {
                ring.skip();
            } else if constexpr (M == mechanism::tma) {
                ring.fill_box(&map, {column / shape::map_pixels, row + tile * tile_rows});
            } else {
                ring.fill(source, row + tile * tile_rows, column);
            }
        };
        for (int i = 0; i < Stages - 1; i++) {
            fill(i);
        }
        const int left = job.columns - strip - lane * pixels;
        conv_writer<T> write{static_cast<T *>(job.dst) + strip + lane * pixels +
                                 (out_begin - 2 * radius) * job.dst_pitch,
                             job.dst_pitch,
                             -2 * radius,
                             out_rows,
                             left,
                             job.vector_store && left >= pixels,
                             job.scale};
        /* Zeros come with the copy, except where the tensor unit brings bytes eight at a time. */
        const bool fixes = job.border != HR_BORDER_ZERO || (M == mechanism::tma && shape::map_pixels > 1);
        const bool side = fixes && (column < 0 || strip + shape::strip + radius > job.columns);
        int above = fixes ? row + job.src_first : 0; /* the image row of the tile's first */
        const int last = fixes ? job.image_rows - tile_rows : INT32_MAX;
        float sum[Edge][pixels] = {};
        for (int tile = 0; tile < tiles; tile++, above += fixes ? tile_rows : 0) {
            auto &here = ring.wait();
            fill(tile + Stages - 1);
            if (side || above < 0 || above > last) {
                conv_border<radius>(here, job, row + tile * tile_rows, column);
                ring.touched();
                scope::sync();
            }
            conv_rows<T, Edge, Separable, 0, tile_rows>(sum, here, lane, weights, write);
        }
    }
}

} // namespace headrace::kernel
#endif
