/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C = A · B of bf16 with sums in f32, on Hopper's warpgroup matrix instructions. Tiles of 128 × 256. Two
 * blocks of a cluster take two tiles below each other: they need the same columns of B, so each brings half
 * of them and the tensor unit delivers it to both. In a block one warpgroup copies, four stages ahead, and
 * two compute 64 rows each. Blocks are persistent: while two warpgroups write a tile's results, the next
 * tile's operands are under way.
 *
 * A slot's life: `empty` (both blocks' consumers are done with it: 2 × 2 arrivals) → the producer announces A
 * and B's bytes and asks for its A and its half of B → `full` (its own and the neighbour's bytes have come) →
 * each consumer multiplies, and frees the slot in both blocks once the next slot's products are under way.
 */
#include "matmul.cuh"

#include <headrace/device/mbarrier.cuh>
#include <headrace/device/wgmma.cuh>

#include <cuda_bf16.h>

/* The compiler takes the attribute only for architectures that have clusters; on others the kernel is empty. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define HR_CLUSTER
#else
#define HR_CLUSTER __cluster_dims__(cluster_blocks, 1, 1)
#endif

namespace headrace::kernel
{
namespace
{

namespace ptx = cuda::ptx;

constexpr int tile_m = matmul_bf16_m, tile_n = matmul_bf16_n, tile_k = matmul_bf16_k;
constexpr int slots = 4;
constexpr int consumers = 2;
constexpr int cluster_blocks = 2;
constexpr int box_n = matmul_bf16_box_n; /* columns of B that a swizzled box holds */
constexpr int boxes = tile_n / box_n;
[[maybe_unused]] constexpr std::uint32_t slot_bytes = (tile_m + tile_n) * tile_k * 2;
[[maybe_unused]] constexpr std::uint32_t box_bytes = tile_k * box_n * 2;
constexpr int threads = (1 + consumers) * 128;

__host__ __device__ int pairs_of(const matmul_job &job)
{
    return (job.m + tile_m * cluster_blocks - 1) / (tile_m * cluster_blocks);
}

__host__ __device__ int columns_of(const matmul_job &job)
{
    return (job.n + tile_n - 1) / tile_n;
}

[[maybe_unused]] __host__ __device__ int steps_of(const matmul_job &job)
{
    return (job.k + tile_k - 1) / tile_k;
}

struct slot_storage {
    alignas(1024) std::uint16_t a[tile_m * tile_k];
    alignas(1024) std::uint16_t b[boxes][tile_k * box_n];
};

struct block_storage {
    slot_storage slot[slots];
    device::mbarrier full[slots], empty[slots];
};

/* Where a block's tile is: tiles are walked in pairs below each other, one for each block of the cluster. */
struct tile_place {
    int row, column; /* of C */
};

[[maybe_unused]] __device__ tile_place place_of(const matmul_job &job, int index, int rank)
{
    int pair, column;
    matmul_tile(index, pairs_of(job), columns_of(job), job.group, &pair, &column);
    return {(pair * cluster_blocks + rank) * tile_m, column * tile_n};
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/*
 * Arrives at the barrier in the same place of another block of the cluster. Without a release at cluster scope: nothing was written, the products that read the
 * slot are done, and the fence that a release brings costs a fifth of the kernel's time.
 */
__device__ void arrive_at(device::mbarrier &barrier, int block)
{
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(&barrier))),
                 "r"(block)
                 : "memory");
}

__device__ void produce(block_storage &store, const matmul_job &job, const CUtensorMap &a_map,
                        const CUtensorMap &b_map, int rank, int tile, int step)
{
    device::ring_turn<slots> turn;
    turn.parity = 1; /* a new barrier's "phase before the first" has ended: all slots are free */
    for (; tile < pairs_of(job) * columns_of(job); tile += step) {
        const tile_place place = place_of(job, tile, rank);
        for (int k = 0; k < steps_of(job); k++) {
            slot_storage &slot = store.slot[turn.slot];
            device::mbarrier &full = store.full[turn.slot];
            store.empty[turn.slot].wait(turn.parity);
            full.arrive_and_expect(slot_bytes);
            const std::int32_t a_at[2] = {k * tile_k, place.row};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, slot.a, &a_map, a_at,
                                      &full.word);
#pragma unroll
            for (int i = 0; i < boxes / cluster_blocks; i++) {
                const int box = rank * (boxes / cluster_blocks) + i;
                const std::int32_t b_at[2] = {place.column + box * box_n, k * tile_k};
                ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, slot.b[box], &b_map, b_at,
                                          &full.word, static_cast<std::uint16_t>((1 << cluster_blocks) - 1));
            }
            turn.next();
        }
    }
}

/* Four lanes with two columns each of four blocks of eight → each lane with all eight columns of one block.
 */
__device__ void turn_quad(std::uint32_t (&v)[4], int lane)
{
#pragma unroll
    for (int half = 1; half <= 2; half *= 2) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if ((i & half) == 0) {
                const bool upper = (lane & half) != 0;
                const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFF, upper ? v[i] : v[i + half], half);
                v[i] = upper ? got : v[i];
                v[i + half] = upper ? v[i + half] : got;
            }
        }
    }
}

__device__ std::uint32_t packed(float low, float high)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t *>(&pair);
}

__device__ void store_bf16_slow(const matmul_job &job, int row, int column, const std::uint32_t (&v)[4])
{
    auto *const to = static_cast<__nv_bfloat16 *>(job.c) + row * job.c_pitch;
    const auto *const values = reinterpret_cast<const __nv_bfloat16 *>(v);
    for (int i = 0; i < 8 && column + i < job.n; i++) {
        to[column + i] =
            job.accumulate
                ? __float2bfloat16_rn(__bfloat162float(to[column + i]) + __bfloat162float(values[i]))
                : values[i];
    }
}

/* A warp's 16 × 256 results; d[4j], d[4j + 1] belong to row `row`, the other two to row + 8, columns 8j +
 * 2·(lane mod 4). */
__device__ void store_bf16(const matmul_job &job, const float (&d)[tile_n / 2], int row, int column)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < tile_n / 8; j += 4) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            std::uint32_t v[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                v[i] = packed(d[(j + i) * 4 + half * 2], d[(j + i) * 4 + half * 2 + 1]);
            }
            turn_quad(v, lane);
            const int r = row + half * 8, c = column + (j + lane % 4) * 8;
            if (r < job.m && c + 8 <= job.n && job.vector_store && !job.accumulate) {
                *reinterpret_cast<uint4 *>(static_cast<__nv_bfloat16 *>(job.c) + r * job.c_pitch + c) =
                    make_uint4(v[0], v[1], v[2], v[3]);
            } else if (r < job.m) {
                store_bf16_slow(job, r, c, v);
            }
        }
    }
}

__device__ void store_f32(const matmul_job &job, const float (&d)[tile_n / 2], int row, int column)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < tile_n / 8; j++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int r = row + half * 8, c = column + j * 8 + lane % 4 * 2;
            float *const to = static_cast<float *>(job.c) + r * job.c_pitch + c;
            const float low = d[j * 4 + half * 2], high = d[j * 4 + half * 2 + 1];
            if (r < job.m && c < job.n) {
                to[0] = job.accumulate ? to[0] + low : low;
            }
            if (r < job.m && c + 1 < job.n) {
                to[1] = job.accumulate ? to[1] + high : high;
            }
        }
    }
}

template <class C>
__device__ void consume(block_storage &store, const matmul_job &job, int rank, int tile, int step)
{
    const int consumer = threadIdx.x / 128 - 1;
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    device::ring_turn<slots> turn;
    for (; tile < pairs_of(job) * columns_of(job); tile += step) {
        const tile_place place = place_of(job, tile, rank);
        float d[tile_n / 2];
        int before = -1; /* the slot whose products may still be under way */
        for (int k = 0; k < steps_of(job); k++) {
            slot_storage &slot = store.slot[turn.slot];
            store.full[turn.slot].wait(turn.parity);
            device::wgmma_fence();
#pragma unroll
            for (int i = 0; i < tile_k / 16; i++) {
                const std::uint64_t a =
                    device::wgmma_operand(slot.a + consumer * 64 * tile_k + i * 16, 16, 1024);
                const std::uint64_t b = device::wgmma_operand(slot.b[0] + i * 16 * box_n, box_bytes, 1024);
                device::wgmma_64x256x16(d, a, b, k > 0 || i > 0);
            }
            device::wgmma_commit();
            if (before >= 0) {
                device::wgmma_wait<1>();
                if (threadIdx.x % 128 < cluster_blocks) {
                    arrive_at(store.empty[before], threadIdx.x % 128);
                }
            }
            before = turn.slot;
            turn.next();
        }
        device::wgmma_wait<0>();
        if (threadIdx.x % 128 < cluster_blocks) {
            arrive_at(store.empty[before], threadIdx.x % 128);
        }
        const int row = place.row + consumer * 64 + warp * 16 + lane / 4;
        if constexpr (sizeof(C) == 2) {
            store_bf16(job, d, row, place.column);
        } else {
            store_f32(job, d, row, place.column);
        }
    }
}

#endif

template <class C>
__global__ void __launch_bounds__(threads, 1) HR_CLUSTER
    product(const matmul_job job, const __grid_constant__ CUtensorMap a_map,
            const __grid_constant__ CUtensorMap b_map)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ unsigned char shared[];
    block_storage &store =
        *reinterpret_cast<block_storage *>((reinterpret_cast<std::uintptr_t>(shared) + 1023) / 1024 * 1024);
    const int rank = static_cast<int>(blockIdx.x % cluster_blocks);
    const int first = static_cast<int>(blockIdx.x / cluster_blocks),
              step = static_cast<int>(gridDim.x / cluster_blocks);
    if (threadIdx.x == 0) {
        for (int i = 0; i < slots; i++) {
            store.full[i].init(1);
            store.empty[i].init(consumers * cluster_blocks);
        }
        device::publish_barriers();
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (threadIdx.x < 128) {
        device::registers_give<40>();
        if (threadIdx.x == 0) {
            produce(store, job, a_map, b_map, rank, first, step);
        }
    } else {
        device::registers_take<232>();
        consume<C>(store, job, rank, first, step);
    }
    /* A block must not end while the other still delivers to it, or arrives at its barriers. */
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
#endif
}

constexpr std::size_t shared_bytes = sizeof(block_storage) + 1024;

} // namespace

bool matmul_bf16_compiled()
{
    static code_memory narrow, wide;
    return has_code(product<float>, wide) && has_code(product<__nv_bfloat16>, narrow);
}

hr_status matmul_bf16(const matmul_job &job, bool wide_result, const CUtensorMap &a, const CUtensorMap &b,
                      int sms, cudaStream_t stream, hr_error *error)
{
    const long long pairs = static_cast<long long>(pairs_of(job)) * columns_of(job);
    if (pairs > INT32_MAX) {
        return hr_fail(error, HR_E_RANGE, "matmul: %d × %d makes %lld tiles, needs at most %d", job.m, job.n,
                       pairs, INT32_MAX);
    }
    const long long clusters = pairs < sms / cluster_blocks ? pairs : sms / cluster_blocks;
    const dim3 grid(static_cast<unsigned>(clusters * cluster_blocks));
    return wide_result
               ? launch("matmul", product<float>, grid, dim3(threads), shared_bytes, stream, error, job, a, b)
               : launch("matmul", product<__nv_bfloat16>, grid, dim3(threads), shared_bytes, stream, error,
                        job, a, b);
}

} // namespace headrace::kernel
