/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C = A · B of f32, to f32's accuracy, on Hopper's bf16 matrix instructions. Each operand is the sum of three bf16 numbers of eight bits each, exactly; of the
 * nine products the six are made that are not below 2⁻²² of the whole. See docs/decisions/0075.
 *
 * Tiles of 192 × 128. In a block one warpgroup splits B: each of its warps brings its own rows of B by the tensor unit, splits them, and writes the three parts
 * where the matrix instructions read them. Three warpgroups compute 64 rows each: each warp brings its own 16 rows of A, and splits them in registers. Blocks
 * are persistent, and whoever brings something brings it some steps ahead, beyond the tile's end.
 *
 * A step is 32 of k. The matrix units cut off what does not fit when they add, so that their sums cover one step only, the small products first; the sums of
 * the steps are added to the result by ordinary additions, which round. While one warpgroup does that, the matrix units work for the others.
 *
 * A slot of B's parts lives thus: `empty` (all consumers' warps are done with it) → the splitting warps write, fence, and arrive at `full` → the consumers
 * multiply, and arrive at `empty`.
 */
#include "matmul_hopper.cuh"

#include <headrace/device/mbarrier.cuh>
#include <headrace/device/wgmma.cuh>

#include <cuda_bf16.h>

namespace headrace::kernel
{
namespace
{

namespace ptx = cuda::ptx;

constexpr int consumers = 3;
constexpr int tile_m = matmul_split_m, tile_n = matmul_split_n, tile_k = matmul_split_k;
static_assert(tile_m == 64 * consumers, "each group of warps makes 64 rows");
[[maybe_unused]] constexpr int stretch = 4096; /* of k, whose sum is then added to C */
constexpr int slots = 4;                       /* of B's parts */
constexpr int a_slots = 3, b_slots = 3;        /* of what a warp brings */
constexpr int box_n = 64;                      /* columns of B's parts that a swizzled box holds */
constexpr int a_rows = matmul_split_a_rows, b_rows = matmul_split_b_rows;
constexpr int threads = (1 + consumers) * 128;
[[maybe_unused]] constexpr int part_count = 3;
[[maybe_unused]] constexpr std::uint32_t a_bytes = a_rows * tile_k * 4, b_bytes = b_rows * tile_n * 4;
[[maybe_unused]] constexpr std::uint32_t box_bytes = tile_k * box_n * 2, part_bytes = tile_k * tile_n * 2;
[[maybe_unused]] constexpr int b_batch = 4; /* rows of B that are read at once */

/*
 * Operands are multiplied by 2¹⁶ before they are split, so that the last part of the smallest number is still one of bf16's; the result is multiplied by 2⁻³².
 * What overflows by that is found with the infinities.
 */
[[maybe_unused]] constexpr float operand_scale = 65536.0F, result_scale = 1.0F / 65536.0F / 65536.0F;

struct block_storage {
    alignas(1024) std::uint16_t b_part[slots][part_count][tile_n / box_n][tile_k * box_n];
    alignas(1024) float a[consumers * 4][a_slots][a_rows * tile_k];
    alignas(1024) float b[4][b_slots][b_rows * tile_n];
    device::mbarrier full[slots], empty[slots];
    device::mbarrier a_full[consumers * 4][a_slots], b_full[4][b_slots];
};

using tiles = tile_grid<tile_m, tile_n>;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Two numbers, each as three parts; the first in the lower halves. */
struct parts {
    std::uint32_t first, second, third;
};

__device__ float upper_half(std::uint32_t bits)
{
    return __uint_as_float(bits & 0xFFFF0000U);
}

__device__ std::uint32_t upper_halves(float low, float high)
{
    return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
}

/* The first part is cut off, so that the largest number does not become infinite; the second is rounded, so that what is not multiplied has no sign to favour;
 * the third takes the rest, of at most eight bits. */
__device__ parts split(float x, float y)
{
    parts p;
    x *= operand_scale;
    y *= operand_scale;
    p.first = upper_halves(x, y);
    x -= upper_half(__float_as_uint(x));
    y -= upper_half(__float_as_uint(y));
    const __nv_bfloat162 rounded = __floats2bfloat162_rn(x, y);
    p.second = *reinterpret_cast<const std::uint32_t *>(&rounded);
    p.third = upper_halves(x - __uint_as_float(p.second << 16), y - upper_half(p.second));
    return p;
}

/*
 * k may run in any order, as long as it is the same for A and B. The matrix unit wants of a thread of A the columns 2q, 2q + 1, 2q + 8, 2q + 9 of 16 (q is the
 * lane modulo 4); it gets 4q … 4q + 3, which is one read. This is the row of B that goes with column k of A.
 */
__device__ constexpr int unit_row(int k)
{
    return k % 4 / 2 * 8 + k / 4 * 2 + k % 2;
}

/* The rows of A, too: those of two lanes' quads that read at once are four apart, so that the swizzle puts them into different banks. */
__device__ int own_row(int lane)
{
    return lane / 4 % 2 * 4 + lane / 8;
}

/* What a warp of the splitting warpgroup does: `warp` owns b_rows rows of each step. */
__device__ void split_b(block_storage &store, const matmul_job &job, const CUtensorMap &map)
{
    const int warp = warp_of_thread(), lane = lane_of_thread();
    step_walk<tile_k> ahead, now;
    int column = tiles::place_of(job, ahead.tile).column; /* of what is brought */
    device::ring_turn<b_slots> got;
    device::ring_turn<slots> turn;
    turn.parity = 1; /* a new barrier's "phase before the first" has ended: all slots are free */
    const auto bring = [&](int slot) {
        if (lane == 0 && ahead.tile < tiles::count(job)) {
            device::mbarrier &full = store.b_full[warp][slot];
            full.arrive_and_expect(b_bytes);
            const std::int32_t at[2] = {column, ahead.k + warp * b_rows};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, store.b[warp][slot], &map, at,
                                      &full.word);
        }
        if (ahead.next(job) && ahead.tile < tiles::count(job)) {
            column = tiles::place_of(job, ahead.tile).column;
        }
    };
    for (int i = 0; i < b_slots; i++) {
        bring(i);
    }
    /* Four columns a lane; the 16-byte pieces of a row of 64 lie swizzled. */
    const int half = warp % 2, box = lane / 16, piece = lane % 16 / 2;
    for (; now.tile < tiles::count(job); now.next(job)) {
        store.b_full[warp][got.slot].wait(got.parity);
        store.empty[turn.slot].wait(turn.parity);
        const float *const from = store.b[warp][got.slot] + lane * 4;
        unsigned char *const to =
            reinterpret_cast<unsigned char *>(store.b_part[turn.slot][0][box]) + warp / 2 * 16 * 128;
#pragma unroll
        for (int first = 0; first < b_rows; first += b_batch) {
            float4 v[b_batch];
#pragma unroll
            for (int r = 0; r < b_batch; r++) {
                v[r] = *reinterpret_cast<const float4 *>(from + (first + r) * tile_n);
            }
#pragma unroll
            for (int r = 0; r < b_batch; r++) {
                const parts low = split(v[r].x, v[r].y), high = split(v[r].z, v[r].w);
                const int row = unit_row(first + r) + half * 4;
                unsigned char *const at = to + row * 128 + (piece ^ (row & 7)) * 16 + lane % 2 * 8;
                *reinterpret_cast<uint2 *>(at) = make_uint2(low.first, high.first);
                *reinterpret_cast<uint2 *>(at + part_bytes) = make_uint2(low.second, high.second);
                *reinterpret_cast<uint2 *>(at + 2 * part_bytes) = make_uint2(low.third, high.third);
            }
        }
        device::fence_for_copy_engine();
        __syncwarp();
        if (lane == 0) {
            store.full[turn.slot].arrive();
        }
        bring(got.slot); /* into what was just read */
        got.next();
        turn.next();
    }
}

/* The 16 × 32 of A that a warp multiplies in a step, split: for each 16 of k, and each part, what the matrix unit takes. */
struct a_parts {
    std::uint32_t of[tile_k / 16][part_count][4];
};

__device__ void split_a(const float *tile, a_parts &a)
{
    const int lane = lane_of_thread(), row = own_row(lane);
    float4 v[tile_k / 16][2];
#pragma unroll
    for (int i = 0; i < tile_k / 16; i++) {
#pragma unroll
        for (int below = 0; below < 2; below++) {
            const int piece = (i * 4 + lane % 4) ^ row;
            v[i][below] = *reinterpret_cast<const float4 *>(tile + (row + below * 8) * tile_k + piece * 4);
        }
    }
#pragma unroll
    for (int i = 0; i < tile_k / 16; i++) {
#pragma unroll
        for (int below = 0; below < 2; below++) {
            const parts low = split(v[i][below].x, v[i][below].y), high = split(v[i][below].z, v[i][below].w);
            a.of[i][0][below] = low.first;
            a.of[i][1][below] = low.second;
            a.of[i][2][below] = low.third;
            a.of[i][0][2 + below] = high.first;
            a.of[i][1][2 + below] = high.second;
            a.of[i][2][2 + below] = high.third;
        }
    }
}

/* The six products of a step, the small ones first: what is cut off is measured by the sum so far. */
__device__ void multiply(float (&d)[64], const a_parts &a,
                         const std::uint16_t (*b)[tile_n / box_n][tile_k * box_n])
{
    constexpr int pairs[6][2] = {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}};
    device::wgmma_fence();
#pragma unroll
    for (int p = 0; p < 6; p++) {
#pragma unroll
        for (int i = 0; i < tile_k / 16; i++) {
            const std::uint64_t part =
                device::wgmma_operand(b[pairs[p][1]][0] + i * 16 * box_n, box_bytes, 1024);
            device::wgmma_64x128x16(d, a.of[i][pairs[p][0]], part, p > 0 || i > 0);
        }
    }
    device::wgmma_commit();
}

__device__ bool finite(float v)
{
    return (__float_as_uint(v) & 0x7F800000U) != 0x7F800000U;
}

/* Where a thread's results go, and what they are the sums of. */
struct target {
    int row, column;
    int k_begin, k_end;
    bool add; /* to what is there */
};

/* An element as plain multiply-adds make it. */
__device__ float plain_element(const matmul_job &job, const target &t, int row, int column)
{
    const float *const a = static_cast<const float *>(job.a) + row * job.a_pitch;
    const float *const b = static_cast<const float *>(job.b) + column;
    float sum = 0;
    for (int k = t.k_begin; k < t.k_end && sum == sum; k++) {
        sum = fmaf(a[k], b[k * job.b_pitch], sum);
    }
    return sum;
}

__device__ void put(const target &t, float *to, float v)
{
    *to = t.add ? *to + v : v;
}

/* Stores two neighbours where they are finite. Two bits say which are not. */
__device__ std::uint32_t put_pair(const matmul_job &job, const target &t, int row, int column, float low,
                                  float high)
{
    const bool low_in = row < job.m && column < job.n, high_in = row < job.m && column + 1 < job.n;
    float *const to = static_cast<float *>(job.c) + row * job.c_pitch + column;
    low *= result_scale;
    high *= result_scale;
    if (high_in && job.vector_store && finite(low) && finite(high)) {
        auto *const pair = reinterpret_cast<float2 *>(to);
        const float2 old = t.add ? *pair : make_float2(0, 0);
        *pair = t.add ? make_float2(old.x + low, old.y + high) : make_float2(low, high);
        return 0;
    }
    if (low_in && finite(low)) {
        put(t, to, low);
    }
    if (high_in && finite(high)) {
        put(t, to + 1, high);
    }
    return (low_in && !finite(low) ? 1U : 0U) | (high_in && !finite(high) ? 2U : 0U);
}

/* A thread's results: d[4j], d[4j + 1] belong to the target's row, the other two to the eighth after it, columns 8j and 8j + 1 from the target's. Those that
 * are not finite, because an operand is not or because the scale was too much, are made again. */
__device__ void put_all(const matmul_job &job, const target &t, const float (&d)[64])
{
    std::uint32_t left[2] = {};
#pragma unroll
    for (int j = 0; j < tile_n / 8; j++) {
#pragma unroll
        for (int below = 0; below < 2; below++) {
            left[below] |= put_pair(job, t, t.row + below * 8, t.column + j * 8, d[j * 4 + below * 2],
                                    d[j * 4 + below * 2 + 1])
                           << j * 2;
        }
    }
    for (int below = 0; below < 2; below++) {
        for (std::uint32_t bits = left[below]; bits != 0; bits &= bits - 1) {
            const int bit = __ffs(static_cast<int>(bits)) - 1;
            const int row = t.row + below * 8, column = t.column + bit / 2 * 8 + bit % 2;
            put(t, static_cast<float *>(job.c) + row * job.c_pitch + column,
                plain_element(job, t, row, column));
        }
    }
}

/* What a warp of the computing warpgroups does. */
__device__ void consume(block_storage &store, const matmul_job &job, const CUtensorMap &map)
{
    const int warp = warp_of_thread() - 4;
    step_walk<tile_k> ahead;
    int row = tiles::place_of(job, ahead.tile).row + warp * a_rows; /* of what is brought */
    device::ring_turn<a_slots> got;
    device::ring_turn<slots> turn;
    const auto bring = [&](int slot) {
        if (lane_of_thread() == 0 && ahead.tile < tiles::count(job)) {
            device::mbarrier &full = store.a_full[warp][slot];
            full.arrive_and_expect(a_bytes);
            const std::int32_t at[2] = {ahead.k, row};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, store.a[warp][slot], &map, at,
                                      &full.word);
        }
        if (ahead.next(job) && ahead.tile < tiles::count(job)) {
            row = tiles::place_of(job, ahead.tile).row + warp * a_rows;
        }
    };
    for (int i = 0; i < a_slots; i++) {
        bring(i);
    }
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles::count(job);
         tile += static_cast<int>(gridDim.x)) {
        for (int begin = 0; begin < job.k; begin += stretch) {
            const int end = job.k - begin > stretch ? begin + stretch : job.k;
            float sum[64] = {};
            for (int k = begin; k < end; k += tile_k) {
                a_parts a;
                float d[64];
                store.a_full[warp][got.slot].wait(got.parity);
                split_a(store.a[warp][got.slot], a);
                __syncwarp();
                bring(got.slot); /* into what was just read */
                got.next();
                store.full[turn.slot].wait(turn.parity);
                multiply(d, a, store.b_part[turn.slot]);
                device::wgmma_wait<0>();
                device::wgmma_results(d);
                if (lane_of_thread() == 0) {
                    store.empty[turn.slot].arrive();
                }
                turn.next();
#pragma unroll
                for (int i = 0; i < 64; i++) {
                    sum[i] += d[i];
                }
            }
            const int lane = hidden(lane_of_thread());
            const tiles::place place = tiles::place_of(job, hidden(tile));
            const target to = {place.row + warp * a_rows + own_row(lane), place.column + lane % 4 * 2, begin,
                               end, job.accumulate || begin > 0};
            put_all(job, to, sum);
        }
    }
}

#endif

__global__ void __launch_bounds__(threads, 1)
    product(const __grid_constant__ matmul_job job, const __grid_constant__ CUtensorMap a_map,
            const __grid_constant__ CUtensorMap b_map)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(1024) unsigned char shared[];
    block_storage &store = *reinterpret_cast<block_storage *>(shared);
    if (threadIdx.x == 0) {
        for (int i = 0; i < slots; i++) {
            store.full[i].init(4);
            store.empty[i].init(consumers * 4);
        }
        for (int i = 0; i < consumers * 4 * a_slots; i++) {
            store.a_full[i / a_slots][i % a_slots].init(1);
        }
        for (int i = 0; i < 4 * b_slots; i++) {
            store.b_full[i / b_slots][i % b_slots].init(1);
        }
        device::publish_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        device::registers_give<32>();
        split_b(store, job, b_map);
    } else {
        device::registers_take<160>();
        consume(store, job, a_map);
    }
#endif
}

} // namespace

bool matmul_f32_split_compiled()
{
    static code_memory memory;
    return has_code(product, memory);
}

hr_status matmul_f32_split(const matmul_job &job, const CUtensorMap &a, const CUtensorMap &b, int sms,
                           cudaStream_t stream, hr_error *error)
{
    return launch_over_tiles<tiles>(product, threads, sizeof(block_storage), job, a, b, sms, stream, error);
}

} // namespace headrace::kernel
