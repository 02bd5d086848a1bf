/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 7-point stencil through a ring of planes, and its entry. A block owns a column of 128 × 32 cells and walks along z: the ring brings one plane of
 * the column, with its halo, at a time; what a cell needs of the planes before and after stays in registers.
 * With the tensor unit a plane is one box of a three-dimensional tensor, and the zeros outside come from the
 * unit.
 */
#include "stencil3d_direct.cuh"

#include <algorithm>

namespace headrace::kernel
{
namespace
{

constexpr int threads = 256;
constexpr int cells_x = 128;
constexpr int cells_y = 32;
constexpr int rows_each = cells_y / (threads / 32); /* rows a warp */
constexpr int pad = 4;                              /* one 16-byte piece beside the cells */
constexpr int stages = 4;

template <mechanism M>
using plane_ring =
    device::tile_ring<M, stages, float, cells_y + 2, cells_x + 2 * pad, device::block_scope<threads>>;

/* What the cells of plane z get from planes z and z − 1. */
template <class Tile>
__device__ inline void gather_plane(const stencil_job &job, const Tile &tile, int first_row, int lane,
                                    const float4 (&below)[rows_each], float4 (&centre)[rows_each],
                                    float4 (&sum)[rows_each])
{
#pragma unroll
    for (int r = 0; r < rows_each; r++) {
        const auto *row = reinterpret_cast<const float4 *>(&tile[first_row + r + 1][0]) + lane;
        const float4 left = row[0], here = row[1], right = row[2];
        const float4 up = reinterpret_cast<const float4 *>(&tile[first_row + r][0])[lane + 1];
        const float4 down = reinterpret_cast<const float4 *>(&tile[first_row + r + 2][0])[lane + 1];
        float4 s = scaled(job.w[0], here);
        s = added(job.w[1], make_float4(left.w, here.x, here.y, here.z), s);
        s = added(job.w[2], make_float4(here.y, here.z, here.w, right.x), s);
        s = added(job.w[3], up, s);
        s = added(job.w[4], down, s);
        sum[r] = added(job.w[5], below[r], s);
        centre[r] = here;
    }
}

template <mechanism M>
__global__ void __launch_bounds__(threads)
    stencil3d(const __grid_constant__ stencil_job job, const __grid_constant__ CUtensorMap map)
{
    if constexpr (device::compiles(M)) {
        extern __shared__ __align__(128) unsigned char shared[];
        using ring_type = plane_ring<M>;
        ring_type ring(*reinterpret_cast<typename ring_type::storage *>(shared));
        after_previous();
        const long long x = static_cast<long long>(blockIdx.x) * cells_x;
        const long long y = static_cast<long long>(blockIdx.y) * cells_y;
        const long long z_begin = blockIdx.z * job.walk;
        const long long z_end = z_begin + job.walk < job.nz ? z_begin + job.walk : job.nz;
        const auto fill = [&](long long z) {
            if (z > z_end) {
                ring.skip();
            } else if constexpr (M == mechanism::tma) {
                ring.fill_box(&map,
                              {static_cast<int>(x - pad), static_cast<int>(y - 1), static_cast<int>(z)});
            } else {
                const bool inside = z >= 0 && z < job.nz;
                const device::plane<float> source{job.src + (inside ? z * job.src_slice : 0), job.src_row,
                                                  inside ? job.ny : 0, inside ? job.nx : 0, nullptr};
                ring.fill(source, y - 1, x - pad);
            }
        };
        for (int i = 0; i < stages - 1; i++) {
            fill(z_begin - 1 + i);
        }
        const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * rows_each;
        float4 below[rows_each] = {}, sum[rows_each] = {};
        for (long long z = z_begin - 1; z <= z_end; z++) {
            const auto &tile = ring.wait();
            fill(z + stages - 1);
            float4 centre[rows_each], next[rows_each];
            gather_plane(job, tile, first_row, lane, below, centre, next);
#pragma unroll
            for (int r = 0; r < rows_each; r++) {
                if (z > z_begin) {
                    store_cells(job, x + lane * 4, y + first_row + r, z - 1,
                                added(job.w[6], centre[r], sum[r]));
                }
                below[r] = centre[r];
                sum[r] = next[r];
            }
        }
    }
}

bool stencil_map(const hr_kernel_stencil3d_args *a, CUtensorMap *map, char *reason)
{
    hr_tensor t = {};
    t.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    t.rank = 3;
    t.base = a->src;
    t.extent[0] = a->nx;
    t.extent[1] = a->ny;
    t.extent[2] = a->nz;
    t.stride_bytes[1] = a->src_row_pitch_bytes;
    t.stride_bytes[2] = a->src_slice_pitch_bytes;
    t.box[0] = cells_x + 2 * pad;
    t.box[1] = cells_y + 2;
    t.box[2] = 1;
    t.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    return hr_tensor_map_make(&t, map, reason) != 0;
}

bool fits(const hr_kernel_stencil3d_args *a, const chip &c, hr_mechanism m, CUtensorMap *map,
          char (&reason)[HR_TENSOR_REASON_BYTES])
{
    if (!chip_has(c, m, reason)) {
        return false;
    }
    if (m == HR_MECHANISM_SYNC) {
        return true;
    }
    if (m == HR_MECHANISM_TMA) {
        return stencil_map(a, map, reason);
    }
    if (!aligned16(a->src) || a->src_row_pitch_bytes % 16 != 0 || a->src_slice_pitch_bytes % 16 != 0) {
        std::snprintf(reason, sizeof reason,
                      "needs source base and pitches in multiples of 16 bytes, found %u, %llu, %llu",
                      static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(a->src) % 16),
                      static_cast<unsigned long long>(a->src_row_pitch_bytes),
                      static_cast<unsigned long long>(a->src_slice_pitch_bytes));
        return false;
    }
    return true;
}

template <mechanism M>
hr_status start(const chip &c, std::size_t shared, const stencil_job &job, const CUtensorMap &map,
                cudaStream_t stream, hr_error *error)
{
    const dim3 grid(static_cast<unsigned>((job.nx + cells_x - 1) / cells_x),
                    static_cast<unsigned>((job.ny + cells_y - 1) / cells_y),
                    static_cast<unsigned>((job.nz + job.walk - 1) / job.walk));
    return launch_early(c, "stencil3d", stencil3d<M>, grid, dim3(threads), shared, stream, error, job, map);
}

constexpr hr_mechanism order[] = {HR_MECHANISM_TMA,  HR_MECHANISM_BULK,    HR_MECHANISM_LDGSTS,
                                  HR_MECHANISM_SYNC, HR_MECHANISM_BARRIER, HR_MECHANISM_GROUP};
constexpr int order_count = sizeof order / sizeof *order;
/* Where plain loads do without shared memory (stencil3d_direct.cuh) nothing is faster. */
constexpr hr_mechanism direct_order[] = {HR_MECHANISM_SYNC};

hr_status check(const hr_kernel_stencil3d_args *a, hr_error *error)
{
    if (a->nx > INT32_MAX || a->ny > 65535ULL * cells_y || a->nz > INT32_MAX) {
        return hr_fail(error, HR_E_RANGE, "stencil3d: %llu × %llu × %llu cells, needs at most %d × %llu × %d",
                       static_cast<unsigned long long>(a->nx), static_cast<unsigned long long>(a->ny),
                       static_cast<unsigned long long>(a->nz), INT32_MAX, 65535ULL * cells_y, INT32_MAX);
    }
    const uint64_t pitches[] = {a->src_row_pitch_bytes, a->src_slice_pitch_bytes, a->dst_row_pitch_bytes,
                                a->dst_slice_pitch_bytes};
    for (int i = 0; i < 4; i++) {
        const uint64_t least = i % 2 == 0 ? a->nx * 4 : pitches[i - 1] * a->ny;
        if (pitches[i] % 4 != 0 || pitches[i] < least) {
            return hr_fail(error, HR_E_INVALID,
                           "stencil3d: a pitch of %llu bytes, needs a multiple of 4 of at least %llu",
                           static_cast<unsigned long long>(pitches[i]),
                           static_cast<unsigned long long>(least));
        }
    }
    return HR_OK;
}

} // namespace
} // namespace headrace::kernel

using namespace headrace::kernel;

extern "C" hr_status hr_kernel_stencil3d(const hr_kernel_stencil3d_args *a, hr_mechanism m,
                                         cudaStream_t stream, hr_error *error)
{
    chip c;
    hr_status status = check(a, error);
    if (status != HR_OK || a->nx == 0 || a->ny == 0 || a->nz == 0) {
        return status;
    }
    status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    stencil_job job = {};
    job.src = a->src;
    job.dst = a->dst;
    job.nx = static_cast<long long>(a->nx);
    job.ny = static_cast<long long>(a->ny);
    job.nz = static_cast<long long>(a->nz);
    job.src_row = static_cast<long long>(a->src_row_pitch_bytes / 4);
    job.src_slice = static_cast<long long>(a->src_slice_pitch_bytes / 4);
    job.dst_row = static_cast<long long>(a->dst_row_pitch_bytes / 4);
    job.dst_slice = static_cast<long long>(a->dst_slice_pitch_bytes / 4);
    job.walk = a->tuning != nullptr && a->tuning->rows > 0 ? a->tuning->rows : 8;
    job.walk = std::max(job.walk, (job.nz + 65534) / 65535);
    std::copy(a->weights, a->weights + 7, job.w);
    job.vector_store =
        aligned16(a->dst) && a->dst_row_pitch_bytes % 16 == 0 && a->dst_slice_pitch_bytes % 16 == 0;
    const unsigned at_once = a->tuning != nullptr ? a->tuning->blocks_per_sm : 0;
    const std::size_t shared = shared_for(c, sizeof(plane_ring<mechanism::barrier>::storage), at_once);
    CUtensorMap map = {};
    const bool direct = stencil3d_direct_fits(job);
    const bool plain = m == HR_MECHANISM_AUTO && direct;
    return with_mechanism(
        "stencil3d", m, plain ? direct_order : order, plain ? 1 : order_count, a->used, error,
        [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) { return fits(a, c, k, &map, reason); },
        [&](hr_mechanism k) {
            switch (k) {
            case HR_MECHANISM_LDGSTS:
                return start<mechanism::ldgsts>(c, shared, job, map, stream, error);
            case HR_MECHANISM_GROUP:
                return start<mechanism::group>(c, shared, job, map, stream, error);
            case HR_MECHANISM_BARRIER:
                return start<mechanism::barrier>(c, shared, job, map, stream, error);
            case HR_MECHANISM_BULK:
                return start<mechanism::bulk>(c, shared, job, map, stream, error);
            case HR_MECHANISM_TMA:
                return start<mechanism::tma>(c, shared, job, map, stream, error);
            default:
                if (direct) {
                    return stencil3d_direct_start(c, job, stream, error);
                }
                return start<mechanism::sync>(c, shared, job, map, stream, error);
            }
        });
}
