/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f32 product on the plain multiply-add units. A block of 256 threads makes 128 × 256 of C, a thread 8 × 16:
 * per step of k it reads 24 floats of shared memory for 128 multiply-adds, so that shared memory keeps up. A
 * lies as it comes, k innermost, and is read two steps of k at a time; its rows are padded, or swizzled by
 * the tensor unit, so that the eight rows that a warp reads at once meet different banks.
 */
#include "matmul.cuh"

#include <algorithm>

namespace headrace::kernel
{
namespace
{

constexpr int threads = 256;
constexpr int tile_m = matmul_f32_m, tile_n = matmul_f32_n, tile_k = matmul_f32_k;
constexpr int stages = 4;
constexpr int thread_m = 8, thread_n = 16;

template <mechanism M>
using a_ring = device::tile_ring<M, stages, float, tile_m, tile_k, device::block_scope<threads>,
                                 M == mechanism::tma ? tile_k : tile_k + 4>;
template <mechanism M>
using b_ring = device::tile_ring<M, stages, float, tile_k, tile_n, device::block_scope<threads>>;

template <mechanism M> struct alignas(1024) tiles_storage { /* the swizzle repeats every 1024 bytes */
    typename a_ring<M>::storage a;
    alignas(1024) typename b_ring<M>::storage b;
};

/* Two steps of k of the thread's rows of A, which are 8 apart. */
template <mechanism M, class Tile>
__device__ inline void a_pairs(float2 (&a)[thread_m], const Tile &tile, int row, int k)
{
    /* The rows differ by multiples of 8, so that the swizzle is the same for all. */
    const int at = M == mechanism::tma ? (k / 4 ^ (row & 7)) * 4 + k % 4 : k;
#pragma unroll
    for (int i = 0; i < thread_m; i++) {
        a[i] = *reinterpret_cast<const float2 *>(&tile[row + 8 * i][at]);
    }
}

template <class Tile>
__device__ inline void b_pieces(float (&b)[thread_n], const Tile &tile, int k, int column)
{
#pragma unroll
    for (int j = 0; j < thread_n / 4; j++) {
        const float4 v = *reinterpret_cast<const float4 *>(&tile[k][column + 16 * j]);
        b[4 * j] = v.x;
        b[4 * j + 1] = v.y;
        b[4 * j + 2] = v.z;
        b[4 * j + 3] = v.w;
    }
}

/*
 * One tile of k: row is the thread's first of A, column its first of B, its others 16 apart. What the next step
 * needs is read while this one multiplies: A two steps ahead, B one. Read all at once, the eight warps would
 * wait for shared memory together.
 */
template <mechanism M, class TileA, class TileB>
__device__ inline void multiply(float (&sum)[thread_m][thread_n], const TileA &tile_a, const TileB &tile_b,
                                int row, int column)
{
    float2 a[2][thread_m];
    float b[2][thread_n];
    a_pairs<M>(a[0], tile_a, row, 0);
    b_pieces(b[0], tile_b, 0, column);
#pragma unroll 1
    for (int k4 = 0; k4 < tile_k; k4 += 4) {
#pragma unroll
        for (int k = 0; k < 4; k++) { /* after the last step the first is read again, for nothing */
            if (k % 2 == 0) {
                a_pairs<M>(a[1 - k / 2], tile_a, row, (k4 + k + 2) % tile_k);
            }
            b_pieces(b[(k + 1) % 2], tile_b, (k4 + k + 1) % tile_k, column);
#pragma unroll
            for (int i = 0; i < thread_m; i++) {
                const float x = k % 2 == 0 ? a[k / 2][i].x : a[k / 2][i].y;
#pragma unroll
                for (int j = 0; j < thread_n; j++) {
                    sum[i][j] = fmaf(x, b[k % 2][j], sum[i][j]);
                }
            }
        }
    }
}

__device__ inline void store_piece(const matmul_job &job, int row, int column, const float *v)
{
    if (row >= job.m || column >= job.n) {
        return;
    }
    float *const at = static_cast<float *>(job.c) + row * job.c_pitch + column;
    if (job.vector_store && column + 4 <= job.n) {
        float4 out = make_float4(v[0], v[1], v[2], v[3]);
        if (job.accumulate) {
            const float4 old = *reinterpret_cast<const float4 *>(at);
            out = make_float4(out.x + old.x, out.y + old.y, out.z + old.z, out.w + old.w);
        }
        store16(at, out);
        return;
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (column + e < job.n) {
            at[e] = job.accumulate ? at[e] + v[e] : v[e];
        }
    }
}

template <mechanism M>
__global__ void __launch_bounds__(threads, 1)
    matmul_plain(const __grid_constant__ matmul_job job, const __grid_constant__ CUtensorMap map_a,
                 const __grid_constant__ CUtensorMap map_b)
{
    if constexpr (device::compiles(M)) {
        extern __shared__ __align__(1024) unsigned char shared[];
        auto &storage = *reinterpret_cast<tiles_storage<M> *>(shared);
        a_ring<M> ring_a(storage.a);
        b_ring<M> ring_b(storage.b);
        int tile_row, tile_column;
        matmul_tile(static_cast<int>(blockIdx.x), (job.m + tile_m - 1) / tile_m,
                    (job.n + tile_n - 1) / tile_n, job.group, &tile_row, &tile_column);
        const int row = tile_row * tile_m, column = tile_column * tile_n;
        const device::plane<float> plane_a{static_cast<const float *>(job.a), job.a_pitch, job.m, job.k,
                                           &map_a};
        const device::plane<float> plane_b{static_cast<const float *>(job.b), job.b_pitch, job.k, job.n,
                                           &map_b};
        const int steps = (job.k + tile_k - 1) / tile_k;
        const auto fill = [&](int step) {
            if (step < steps) {
                ring_a.fill(plane_a, row, step * tile_k);
                ring_b.fill(plane_b, step * tile_k, column);
            } else {
                ring_a.skip();
                ring_b.skip();
            }
        };
        for (int i = 0; i < stages - 1; i++) {
            fill(i);
        }
        /* Warps 2 × 4 of 64 × 64, lanes 8 × 4. */
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int own_row = warp / 4 * 64 + lane / 4, own_column = warp % 4 * 64 + lane % 4 * 4;
        float sum[thread_m][thread_n] = {};
        for (int step = 0; step < steps; step++) {
            const auto &tile_a = ring_a.wait();
            const auto &tile_b = ring_b.wait();
            fill(step + stages - 1);
            multiply<M>(sum, tile_a, tile_b, own_row, own_column);
        }
#pragma unroll
        for (int i = 0; i < thread_m; i++) {
#pragma unroll
            for (int j = 0; j < thread_n / 4; j++) {
                store_piece(job, row + own_row + 8 * i, column + own_column + 16 * j, &sum[i][4 * j]);
            }
        }
    }
}

template <mechanism M>
hr_status start(const matmul_job &job, const CUtensorMap &a, const CUtensorMap &b, cudaStream_t stream,
                hr_error *error)
{
    const long long tiles =
        static_cast<long long>((job.m + tile_m - 1) / tile_m) * ((job.n + tile_n - 1) / tile_n);
    return launch("matmul", matmul_plain<M>, dim3(static_cast<unsigned>(tiles)), dim3(threads),
                  sizeof(tiles_storage<M>), stream, error, job, a, b);
}

} // namespace

hr_status matmul_f32(const matmul_job &job, const CUtensorMap &a, const CUtensorMap &b, hr_mechanism m,
                     cudaStream_t stream, hr_error *error)
{
    switch (m) {
    case HR_MECHANISM_LDGSTS:
        return start<mechanism::ldgsts>(job, a, b, stream, error);
    case HR_MECHANISM_BULK:
        return start<mechanism::bulk>(job, a, b, stream, error);
    case HR_MECHANISM_TMA:
        return start<mechanism::tma>(job, a, b, stream, error);
    default:
        return start<mechanism::sync>(job, a, b, stream, error);
    }
}

} // namespace headrace::kernel
