/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C = A · B of f32 rounded to TF32, on Hopper's warpgroup matrix instructions. Those want what they read from shared memory with k innermost, and B has n
 * innermost. So it is Cᵀ = Bᵀ · Aᵀ that is made: A lies in shared memory as it comes, and B goes through registers, where it is turned by reading it. The
 * tensor unit rounds both on their way.
 *
 * Tiles of 256 × 128 of C. In a block one warp brings A, and two warpgroups compute 64 columns of C each; each of their warps brings its own 16 columns of B.
 * Blocks are persistent, and whoever brings something brings it some steps of 32 of k ahead, beyond the tile's end.
 *
 * A slot of A lives thus: `empty` (all consumers' warps are done with it) → the producer announces bytes and asks for them → `full` → the consumers multiply,
 * and arrive at `empty`.
 */
#include "matmul_hopper.cuh"

#include <headrace/device/mbarrier.cuh>
#include <headrace/device/wgmma.cuh>

namespace headrace::kernel
{
namespace
{

namespace ptx = cuda::ptx;

constexpr int consumers = 2;
constexpr int tile_m = matmul_tf32_m, tile_n = 64 * consumers, tile_k = matmul_tf32_k;
constexpr int warp_n = matmul_tf32_warp_n;
constexpr int unit_m = 128; /* rows of A that one instruction takes */
[[maybe_unused]] constexpr int halves = tile_m / unit_m;
constexpr int slots = 4;   /* of A */
constexpr int b_slots = 4; /* of what a warp brings */
constexpr int threads = (1 + consumers) * 128;
[[maybe_unused]] constexpr std::uint32_t a_bytes = tile_m * tile_k * 4, b_bytes = tile_k * warp_n * 4;

struct block_storage {
    alignas(1024) float a[slots][tile_m * tile_k];
    alignas(1024) float b[consumers * 4][b_slots][tile_k * warp_n];
    device::mbarrier full[slots], empty[slots];
    device::mbarrier b_full[consumers * 4][b_slots];
};

using tiles = tile_grid<tile_m, tile_n>;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* What one thread does. */
__device__ void bring_a(block_storage &store, const matmul_job &job, const CUtensorMap &map)
{
    device::ring_turn<slots> turn;
    turn.parity = 1; /* a new barrier's "phase before the first" has ended: all slots are free */
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles::count(job);
         tile += static_cast<int>(gridDim.x)) {
        const int row = tiles::place_of(job, tile).row;
        for (int k = 0; k < job.k; k += tile_k) {
            device::mbarrier &full = store.full[turn.slot];
            store.empty[turn.slot].wait(turn.parity);
            full.arrive_and_expect(a_bytes);
            const std::int32_t at[2] = {k, row};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, store.a[turn.slot], &map, at,
                                      &full.word);
            turn.next();
        }
    }
}

/* Which of a warp's eight pairs of columns a lane has: the four lanes that read two pieces of 16 bytes from the same row at once leave the other two to the
 * rows that the swizzle moves there. */
__device__ int pair_of(int lane)
{
    const int quad = lane / 4;
    return quad % 2 + quad / 2 % 2 * 4 + quad / 4 * 2;
}

/* A warp's columns of B as the matrix unit takes rows of Bᵀ: for each eight of k. Its rows r and r + 8 are two columns side by side. */
struct b_parts {
    std::uint32_t of[tile_k / 8][4];
};

__device__ void turn_b(const float *tile, b_parts &b)
{
    const int lane = lane_of_thread(), pair = pair_of(lane);
#pragma unroll
    for (int i = 0; i < tile_k / 8; i++) {
#pragma unroll
        for (int later = 0; later < 2; later++) {
            const int k = i * 8 + later * 4 + lane % 4;
            const int piece =
                pair / 2 ^ k / 2 % 4; /* rows of 64 bytes: two of them share a place in the swizzle */
            const uint2 v = *reinterpret_cast<const uint2 *>(tile + k * warp_n + piece * 4 + pair % 2 * 2);
            b.of[i][later * 2] = v.x;
            b.of[i][later * 2 + 1] = v.y;
        }
    }
}

__device__ void put(const matmul_job &job, float *to, float v)
{
    *to = job.accumulate ? *to + v : v;
}

/* A thread's results: of each four of d, the first and the third are two neighbours in a row of C, the others two in the next row. Rows 8j and 8j + 1 from the
 * one given. */
__device__ void put_all(const matmul_job &job, const float (&d)[unit_m / 2], int first, int column)
{
#pragma unroll
    for (int j = 0; j < unit_m / 8; j++) {
#pragma unroll
        for (int below = 0; below < 2; below++) {
            const int row = first + j * 8 + below;
            const float left = d[j * 4 + below], right = d[j * 4 + 2 + below];
            float *const to = static_cast<float *>(job.c) + row * job.c_pitch + column;
            if (row < job.m && column + 1 < job.n && job.vector_store && !job.accumulate) {
                *reinterpret_cast<float2 *>(to) = make_float2(left, right);
                continue;
            }
            if (row < job.m && column < job.n) {
                put(job, to, left);
            }
            if (row < job.m && column + 1 < job.n) {
                put(job, to + 1, right);
            }
        }
    }
}

__device__ void multiply(float (&d)[halves][unit_m / 2], const float *a, const b_parts &b, bool add)
{
    device::wgmma_fence();
#pragma unroll
    for (int i = 0; i < tile_k / 8; i++) {
#pragma unroll
        for (int h = 0; h < halves; h++) {
            const float *const at = a + h * unit_m * tile_k + i * 8;
            device::wgmma_64x128x8(d[h], b.of[i], device::wgmma_operand(at, 16, 1024), add || i > 0);
        }
    }
    device::wgmma_commit();
}

/* What a warp of the computing warpgroups does. */
__device__ void consume(block_storage &store, const matmul_job &job, const CUtensorMap &map)
{
    const int warp = warp_of_thread() - 4;
    step_walk<tile_k> ahead;
    int column = tiles::place_of(job, ahead.tile).column + warp * warp_n; /* of what is brought */
    device::ring_turn<b_slots> got;
    device::ring_turn<slots> turn;
    const auto bring = [&](int slot) {
        if (lane_of_thread() == 0 && ahead.tile < tiles::count(job)) {
            device::mbarrier &full = store.b_full[warp][slot];
            full.arrive_and_expect(b_bytes);
            const std::int32_t at[2] = {column, ahead.k};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, store.b[warp][slot], &map, at,
                                      &full.word);
        }
        if (ahead.next(job) && ahead.tile < tiles::count(job)) {
            column = tiles::place_of(job, ahead.tile).column + warp * warp_n;
        }
    };
    for (int i = 0; i < b_slots; i++) {
        bring(i);
    }
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles::count(job);
         tile += static_cast<int>(gridDim.x)) {
        float d[halves][unit_m / 2];
        for (int k = 0; k < job.k; k += tile_k) {
            store.b_full[warp][got.slot].wait(got.parity);
            store.full[turn.slot].wait(turn.parity);
            b_parts b;
            turn_b(store.b[warp][got.slot], b);
            multiply(d, store.a[turn.slot], b, k > 0);
            device::wgmma_wait<0>();
            device::wgmma_results(d[0]);
            device::wgmma_results(d[1]);
            __syncwarp();
            bring(got.slot); /* into what was just read */
            got.next();
            if (lane_of_thread() == 0) {
                store.empty[turn.slot].arrive();
            }
            turn.next();
        }
        const int lane = hidden(lane_of_thread());
        const tiles::place place = tiles::place_of(job, hidden(tile));
        const int row = place.row + lane % 4 * 2, first = place.column + warp * warp_n + pair_of(lane) * 2;
        put_all(job, d[0], row, first);
        put_all(job, d[1], row + unit_m, first);
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
            store.full[i].init(1);
            store.empty[i].init(consumers * 4);
        }
        for (int i = 0; i < consumers * 4 * b_slots; i++) {
            store.b_full[i / b_slots][i % b_slots].init(1);
        }
        device::publish_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        device::registers_give<40>();
        if (threadIdx.x == 0) {
            bring_a(store, job, a_map);
        }
    } else {
        device::registers_take<232>();
        consume(store, job, b_map);
    }
#endif
}

} // namespace

bool matmul_tf32_wgmma_compiled()
{
    static code_memory memory;
    return has_code(product, memory);
}

hr_status matmul_tf32_wgmma(const matmul_job &job, const CUtensorMap &a, const CUtensorMap &b, int sms,
                            cudaStream_t stream, hr_error *error)
{
    return launch_over_tiles<tiles>(product, threads, sizeof(block_storage), job, a, b, sms, stream, error);
}

} // namespace headrace::kernel
