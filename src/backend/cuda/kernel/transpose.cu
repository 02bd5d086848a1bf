/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transpose of 4-byte elements. Each warp of a block takes a tile of 32 × 32: it reads 128 bytes of 32 source
 * rows and writes 128 bytes of 32 destination rows, 16 bytes a lane both ways. The turn happens in registers,
 * a 4 × 4 block a lane, so that shared memory is read 16 bytes at a time; rows are padded by 16 bytes, or
 * swizzled by the tensor unit, so that the eight lanes that read together meet different banks. The four
 * warps stand two by two, which makes 256 bytes of a row on both sides; warps that walked on to further tiles
 * were slower.
 */
#include "launch.cuh"

#include <algorithm>

namespace headrace::kernel
{
namespace
{

constexpr int tile_edge = 32;
constexpr int warps = 4;
constexpr int across = 2; /* warps of a block side by side; the others stand below them */

template <mechanism M>
using transpose_ring = device::tile_ring<M, 1, float, tile_edge, tile_edge, device::warp_scope,
                                         M == mechanism::tma ? tile_edge : tile_edge + 4>;

/* The tensor unit's 128-byte swizzle repeats every 1024 bytes. */
template <mechanism M> struct alignas(1024) warp_storage {
    typename transpose_ring<M>::storage ring;
};

struct transpose_job {
    const float *src;
    float *dst;
    long long src_pitch, dst_pitch; /* elements */
    long long rows, columns;
    int blocks_across, blocks_down;
    int group; /* block rows that are walked together */
    std::size_t shared;
    bool vector_store;
};

/* Piece `piece` (of 16 bytes) of row `row` of a tile. */
template <mechanism M, class Tile> __device__ float4 piece_of(const Tile &tile, int row, int piece)
{
    const int at = M == mechanism::tma ? piece ^ (row & 7) : piece;
    return reinterpret_cast<const float4 *>(&tile[row][0])[at];
}

__device__ void store_row(const transpose_job &job, long long row, long long column, float4 v)
{
    if (row >= job.columns) {
        return;
    }
    float *const at = job.dst + row * job.dst_pitch + column;
    if (job.vector_store && column + 4 <= job.rows) {
        store16(at, v);
        return;
    }
    const float lane[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (column + i < job.rows) {
            at[i] = lane[i];
        }
    }
}

template <mechanism M>
__global__ void __launch_bounds__(warps * 32)
    transpose(const transpose_job job, const __grid_constant__ CUtensorMap map)
{
    if constexpr (device::compiles(M)) {
        extern __shared__ __align__(1024) unsigned char shared[];
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        after_previous();
        const int in_group = static_cast<int>(blockIdx.x) / (job.group * job.blocks_across) * job.group;
        const int place = static_cast<int>(blockIdx.x) - in_group * job.blocks_across;
        const int down = job.blocks_down - in_group < job.group ? job.blocks_down - in_group : job.group;
        const long long column = (static_cast<long long>(place / down) * across + warp % across) * tile_edge;
        const long long row =
            (static_cast<long long>(in_group + place % down) * (warps / across) + warp / across) * tile_edge;
        if (column >= job.columns || row >= job.rows) {
            return;
        }
        transpose_ring<M> ring(reinterpret_cast<warp_storage<M> *>(shared)[warp].ring);
        ring.fill({job.src, job.src_pitch, job.rows, job.columns, &map}, row, column);
        const auto &tile = ring.wait();
        const int four = 2 * (lane / 8) + lane / 4 % 2; /* which four rows of the tile */
        const long long to = row + four * 4;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int piece = lane % 4 + 4 * half;
            const float4 a = piece_of<M>(tile, four * 4 + 0, piece);
            const float4 b = piece_of<M>(tile, four * 4 + 1, piece);
            const float4 c = piece_of<M>(tile, four * 4 + 2, piece);
            const float4 d = piece_of<M>(tile, four * 4 + 3, piece);
            store_row(job, column + piece * 4 + 0, to, make_float4(a.x, b.x, c.x, d.x));
            store_row(job, column + piece * 4 + 1, to, make_float4(a.y, b.y, c.y, d.y));
            store_row(job, column + piece * 4 + 2, to, make_float4(a.z, b.z, c.z, d.z));
            store_row(job, column + piece * 4 + 3, to, make_float4(a.w, b.w, c.w, d.w));
        }
    }
}

template <mechanism M>
hr_status start(const chip &c, const transpose_job &job, const CUtensorMap &map, cudaStream_t stream,
                hr_error *error)
{
    return launch_early(c, "transpose", transpose<M>,
                        dim3(static_cast<unsigned>(job.blocks_across * job.blocks_down)), dim3(warps * 32),
                        job.shared, stream, error, job, map);
}

bool transpose_map(const hr_kernel_transpose_args *a, CUtensorMap *map, char *reason)
{
    hr_tensor t = {};
    t.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    t.rank = 2;
    t.base = a->src;
    t.extent[0] = a->columns;
    t.extent[1] = a->rows;
    t.stride_bytes[1] = a->src_pitch_bytes;
    t.box[0] = t.box[1] = tile_edge;
    t.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    t.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    return hr_tensor_map_make(&t, map, reason) != 0;
}

constexpr hr_mechanism order[] = {HR_MECHANISM_TMA,     HR_MECHANISM_BULK, HR_MECHANISM_LDGSTS,
                                  HR_MECHANISM_BARRIER, HR_MECHANISM_SYNC, HR_MECHANISM_GROUP};

bool fits(const hr_kernel_transpose_args *a, const chip &c, hr_mechanism m, CUtensorMap *map,
          char (&reason)[HR_TENSOR_REASON_BYTES])
{
    if (!chip_has(c, m, reason)) {
        return false;
    }
    if (m == HR_MECHANISM_SYNC) {
        return true;
    }
    if (m == HR_MECHANISM_TMA) {
        return transpose_map(a, map, reason);
    }
    return reads_by_16(a->src, a->src_pitch_bytes, reason);
}

} // namespace
} // namespace headrace::kernel

using namespace headrace::kernel;

extern "C" hr_status hr_kernel_transpose(const hr_kernel_transpose_args *a, hr_mechanism m,
                                         cudaStream_t stream, hr_error *error)
{
    chip c;
    if (a->rows == 0 || a->columns == 0) {
        return HR_OK;
    }
    if (a->rows > INT32_MAX || a->columns > INT32_MAX) {
        return hr_fail(error, HR_E_RANGE, "transpose: %llu × %llu, needs edges below 2^31",
                       static_cast<unsigned long long>(a->rows), static_cast<unsigned long long>(a->columns));
    }
    if (a->src_pitch_bytes % 4 != 0 || a->dst_pitch_bytes % 4 != 0 || a->src_pitch_bytes / 4 < a->columns ||
        a->dst_pitch_bytes / 4 < a->rows) {
        return hr_fail(error, HR_E_INVALID,
                       "transpose: pitches of %llu and %llu bytes for %llu × %llu elements of 4",
                       static_cast<unsigned long long>(a->src_pitch_bytes),
                       static_cast<unsigned long long>(a->dst_pitch_bytes),
                       static_cast<unsigned long long>(a->rows), static_cast<unsigned long long>(a->columns));
    }
    hr_status status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    transpose_job job = {};
    job.src = static_cast<const float *>(a->src);
    job.dst = static_cast<float *>(a->dst);
    job.src_pitch = static_cast<long long>(a->src_pitch_bytes / 4);
    job.dst_pitch = static_cast<long long>(a->dst_pitch_bytes / 4);
    job.rows = static_cast<long long>(a->rows);
    job.columns = static_cast<long long>(a->columns);
    job.vector_store = aligned16(a->dst) && a->dst_pitch_bytes % 16 == 0;
    constexpr long long edge_across = across * tile_edge, edge_down = warps / across * tile_edge;
    job.blocks_across = static_cast<int>((job.columns + edge_across - 1) / edge_across);
    job.blocks_down = static_cast<int>((job.rows + edge_down - 1) / edge_down);
    if (static_cast<long long>(job.blocks_across) * job.blocks_down > INT32_MAX) {
        return hr_fail(error, HR_E_RANGE,
                       "transpose: %lld × %lld needs %lld blocks, a launch has at most 2^31 − 1", job.rows,
                       job.columns, static_cast<long long>(job.blocks_across) * job.blocks_down);
    }
    /* Down the rows first: whole rows of the destination are then under way at once. */
    const int group = a->tuning != nullptr && a->tuning->variant > 0
                          ? static_cast<int>(std::min(a->tuning->variant, 4096U))
                          : 256;
    job.group = std::min(group, job.blocks_down);
    /* More blocks at once, so more bytes in flight, were slower. */
    const unsigned at_once =
        a->tuning != nullptr && a->tuning->blocks_per_sm > 0 ? a->tuning->blocks_per_sm : 4;
    job.shared = shared_for(c, warps * sizeof(warp_storage<mechanism::bulk>), at_once);
    CUtensorMap map = {};
    return with_mechanism(
        "transpose", m, order, sizeof order / sizeof *order, a->used, error,
        [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) { return fits(a, c, k, &map, reason); },
        [&](hr_mechanism k) {
            switch (k) {
            case HR_MECHANISM_LDGSTS:
                return start<mechanism::ldgsts>(c, job, map, stream, error);
            case HR_MECHANISM_GROUP:
                return start<mechanism::group>(c, job, map, stream, error);
            case HR_MECHANISM_BARRIER:
                return start<mechanism::barrier>(c, job, map, stream, error);
            case HR_MECHANISM_BULK:
                return start<mechanism::bulk>(c, job, map, stream, error);
            case HR_MECHANISM_TMA:
                return start<mechanism::tma>(c, job, map, stream, error);
            default:
                return start<mechanism::sync>(c, job, map, stream, error);
            }
        });
}
