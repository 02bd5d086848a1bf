/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f32 product on the tensor cores: operands rounded to TF32 (10 bits of mantissa, to nearest), sums in f32. A block of eight warps makes 128 × 128 of C, a warp
 * 64 × 32, from tiles of A (128 × 32) and B (32 × 128) that come through rings. The warpgroup instructions would need B with k innermost, which it is not;
 * the warp's own (mma.sync) take both as they come. Rows are padded so that the 32 values that a warp reads at once lie in 32 banks.
 */
#include "matmul.cuh"

namespace headrace::kernel
{
namespace
{

constexpr int tile_m = 128, tile_n = 128, tile_k = 32;
constexpr int stages = 4;
constexpr int threads = 256;
constexpr int warp_m = 64, warp_n = 32;
constexpr int parts_m = warp_m / 16, parts_n = warp_n / 8; /* of a warp, in instructions of 16 × 8 × 8 */

template <mechanism M> struct rings {
    using scope = device::block_scope<threads>;
    using a_ring = device::tile_ring<M, stages, float, tile_m, tile_k, scope, tile_k + 4>;
    using b_ring = device::tile_ring<M, stages, float, tile_k, tile_n, scope, tile_n + 8>;
    struct storage {
        typename a_ring::storage a;
        typename b_ring::storage b;
    };
};

/* To nearest, ties away from zero: what the tensor core itself would cut off is rounded. */
__device__ std::uint32_t tf32_of(float value)
{
    std::uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}

__device__ void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* One tile's products for the warp whose part of the tile begins at (row, column). */
template <class A, class B>
__device__ void multiply(const A &a, const B &b, int row, int column, float (&sum)[parts_m][parts_n][4])
{
    const int lane = threadIdx.x % 32, high = lane / 4, low = lane % 4;
#pragma unroll
    for (int k = 0; k < tile_k; k += 8) {
        std::uint32_t left[parts_m][4], right[parts_n][2];
#pragma unroll
        for (int i = 0; i < parts_m; i++) {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                left[i][q] = tf32_of(a[row + i * 16 + high + q % 2 * 8][k + low + q / 2 * 4]);
            }
        }
#pragma unroll
        for (int j = 0; j < parts_n; j++) {
#pragma unroll
            for (int q = 0; q < 2; q++) {
                right[j][q] = tf32_of(b[k + low + q * 4][column + j * 8 + high]);
            }
        }
#pragma unroll
        for (int i = 0; i < parts_m; i++) {
#pragma unroll
            for (int j = 0; j < parts_n; j++) {
                multiply_add(sum[i][j], left[i], right[j]);
            }
        }
    }
}

__device__ void store_pair(const matmul_job &job, int row, int column, float first, float second)
{
    if (row >= job.m) {
        return;
    }
    float *const to = static_cast<float *>(job.c) + row * job.c_pitch + column;
    if (column < job.n) {
        to[0] = job.accumulate ? to[0] + first : first;
    }
    if (column + 1 < job.n) {
        to[1] = job.accumulate ? to[1] + second : second;
    }
}

template <mechanism M>
__global__ void __launch_bounds__(threads, 1) product(const matmul_job job, int tiles_m, int tiles_n)
{
    if constexpr (device::compiles(M)) {
        using kit = rings<M>;
        extern __shared__ __align__(128) unsigned char shared[];
        auto &storage = *reinterpret_cast<typename kit::storage *>(shared);
        typename kit::a_ring a_ring(storage.a);
        typename kit::b_ring b_ring(storage.b);
        const device::plane<float> a{static_cast<const float *>(job.a), job.a_pitch, job.m, job.k, nullptr};
        const device::plane<float> b{static_cast<const float *>(job.b), job.b_pitch, job.k, job.n, nullptr};
        int tile_row, tile_column;
        matmul_tile(static_cast<int>(blockIdx.x), tiles_m, tiles_n, job.group, &tile_row, &tile_column);
        const int steps = (job.k + tile_k - 1) / tile_k;
        const auto fill = [&](int step) {
            if (step < steps) {
                a_ring.fill(a, static_cast<long long>(tile_row) * tile_m,
                            static_cast<long long>(step) * tile_k);
                b_ring.fill(b, static_cast<long long>(step) * tile_k,
                            static_cast<long long>(tile_column) * tile_n);
            } else {
                a_ring.skip();
                b_ring.skip();
            }
        };
        for (int i = 0; i < stages - 1; i++) {
            fill(i);
        }
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int row = warp % 2 * warp_m, column = warp / 2 * warp_n;
        float sum[parts_m][parts_n][4] = {};
        for (int step = 0; step < steps; step++) {
            auto &a_tile = a_ring.wait();
            auto &b_tile = b_ring.wait();
            fill(step + stages - 1);
            multiply(a_tile, b_tile, row, column, sum);
        }
#pragma unroll
        for (int i = 0; i < parts_m; i++) {
#pragma unroll
            for (int j = 0; j < parts_n; j++) {
                const int r = tile_row * tile_m + row + i * 16 + lane / 4;
                const int c = tile_column * tile_n + column + j * 8 + lane % 4 * 2;
                store_pair(job, r, c, sum[i][j][0], sum[i][j][1]);
                store_pair(job, r + 8, c, sum[i][j][2], sum[i][j][3]);
            }
        }
    }
}

template <mechanism M> hr_status start(const matmul_job &job, cudaStream_t stream, hr_error *error)
{
    const int tiles_m = (job.m + tile_m - 1) / tile_m, tiles_n = (job.n + tile_n - 1) / tile_n;
    const long long tiles = static_cast<long long>(tiles_m) * tiles_n;
    if (tiles > INT32_MAX) {
        return hr_fail(error, HR_E_RANGE, "matmul: %d × %d makes %lld tiles, needs at most %d", job.m, job.n,
                       tiles, INT32_MAX);
    }
    return launch("matmul", product<M>, dim3(static_cast<unsigned>(tiles)), dim3(threads),
                  sizeof(typename rings<M>::storage), stream, error, job, tiles_m, tiles_n);
}

} // namespace

hr_status matmul_tf32(const matmul_job &job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    switch (m) {
    case HR_MECHANISM_LDGSTS:
        return start<mechanism::ldgsts>(job, stream, error);
    case HR_MECHANISM_BULK:
        return start<mechanism::bulk>(job, stream, error);
    default:
        return start<mechanism::sync>(job, stream, error);
    }
}

} // namespace headrace::kernel
