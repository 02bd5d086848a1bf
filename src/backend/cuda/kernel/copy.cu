/* SPDX-License-Identifier: Apache-2.0 */
/* Copy and scale, one dimension: the plainest streams, and the sweep of arithmetic intensity. */
#include "launch.cuh"

#include <algorithm>

namespace headrace::kernel
{
namespace
{
namespace ptx = device::ptx;

constexpr int threads = 256;
constexpr int tile_floats = 4096;
constexpr int box_columns = 256; /* of the tensor map's rows: the largest box edge */
constexpr int box_rows = tile_floats / box_columns;
constexpr int ring_stages = 4;
constexpr int plain_floats = threads * 4;
constexpr int engine_floats =
    1024; /* 4 KiB a block: small blocks in the order of addresses suit the memory best */
constexpr int engine_rows = engine_floats / box_columns;

template <mechanism M>
using float_ring =
    device::tile_ring<M, ring_stages, float, M == mechanism::tma ? box_rows : 1,
                      M == mechanism::tma ? box_columns : tile_floats, device::block_scope<threads>>;

struct stream_job {
    float *dst;
    const float *src;
    long long floats;
    float by, plus;
    unsigned steps; /* 0 copies the bits */
};

__device__ float4 steps_of(float4 v, const stream_job &job)
{
    for (unsigned s = 0; s < job.steps; s++) {
        v.x = fmaf(v.x, job.by, job.plus);
        v.y = fmaf(v.y, job.by, job.plus);
        v.z = fmaf(v.z, job.by, job.plus);
        v.w = fmaf(v.w, job.by, job.plus);
    }
    return v;
}

__device__ void steps_of(float4 (&v)[4], const stream_job &job)
{
    for (unsigned s = 0; s < job.steps; s++) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            v[k].x = fmaf(v[k].x, job.by, job.plus);
            v[k].y = fmaf(v[k].y, job.by, job.plus);
            v[k].z = fmaf(v[k].z, job.by, job.plus);
            v[k].w = fmaf(v[k].w, job.by, job.plus);
        }
    }
}

__device__ void one_by_one(const stream_job &job, long long first, long long end)
{
    for (long long i = first + threadIdx.x; i < end; i += blockDim.x) {
        job.dst[i] = job.steps == 0 ? job.src[i] : steps_of(float4{job.src[i], 0, 0, 0}, job).x;
    }
}

/* Plain loads and stores, 16 bytes a thread: more a thread was slower at every block size. */
template <bool Vector> __global__ void __launch_bounds__(threads) scale_plain(const stream_job job)
{
    const long long first = static_cast<long long>(blockIdx.x) * plain_floats;
    const long long end = first + plain_floats < job.floats ? first + plain_floats : job.floats;
    if (!Vector || end - first < plain_floats) {
        one_by_one(job, first, end);
        return;
    }
    const float4 v = reinterpret_cast<const float4 *>(job.src + first)[threadIdx.x];
    reinterpret_cast<float4 *>(job.dst + first)[threadIdx.x] = steps_of(v, job);
}

/* Through shared memory, a ring of tiles a block. */
template <mechanism M>
__global__ void __launch_bounds__(threads)
    scale_ring(const stream_job job, const __grid_constant__ CUtensorMap map)
{
    if constexpr (device::compiles(M)) {
        extern __shared__ __align__(128) unsigned char shared[];
        using ring_type = float_ring<M>;
        ring_type ring(*reinterpret_cast<typename ring_type::storage *>(shared));
        constexpr bool boxed = M == mechanism::tma;
        const long long whole = boxed ? job.floats / box_columns * box_columns : job.floats;
        const device::plane<float> source{job.src, boxed ? box_columns : job.floats,
                                          boxed ? job.floats / box_columns : 1,
                                          boxed ? box_columns : job.floats, &map};
        const long long tiles = (whole + tile_floats - 1) / tile_floats;
        const auto fill = [&](long long tile) {
            if (tile >= tiles) {
                ring.skip();
            } else if (boxed) {
                ring.fill(source, tile * box_rows, 0);
            } else {
                ring.fill(source, 0, tile * tile_floats);
            }
        };
        for (int i = 0; i < ring_type::stages - 1; i++) {
            fill(blockIdx.x + static_cast<long long>(i) * gridDim.x);
        }
        for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const float *here = &ring.wait()[0][0];
            fill(tile + static_cast<long long>(ring_type::stages - 1) * gridDim.x);
            const long long first = tile * tile_floats;
            float4 v[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                v[k] = reinterpret_cast<const float4 *>(here)[threadIdx.x + k * threads];
            }
            steps_of(v, job);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const long long at = first + (threadIdx.x + k * threads) * 4;
                if (at + 4 <= whole) {
                    __stcs(reinterpret_cast<float4 *>(job.dst + at), v[k]);
                } else {
                    const float lane[4] = {v[k].x, v[k].y, v[k].z, v[k].w};
                    for (int e = 0; e < 4 && at + e < whole; e++) {
                        job.dst[at + e] = lane[e];
                    }
                }
            }
        }
        if (blockIdx.x == 0) {
            one_by_one(job, whole, job.floats);
        }
    }
}

/* Copies without touching registers: one thread asks the copy engine for a load, and then for the store. */
template <mechanism M>
__global__ void __launch_bounds__(32)
    copy_engine(const stream_job job, const __grid_constant__ CUtensorMap from,
                const __grid_constant__ CUtensorMap to)
{
    if constexpr (device::compiles(M)) {
        __shared__ alignas(128) float slot[engine_floats];
        __shared__ device::mbarrier full;
        constexpr bool boxed = M == mechanism::tma;
        const long long whole = boxed ? job.floats / box_columns * box_columns : job.floats / 4 * 4;
        const long long first = static_cast<long long>(blockIdx.x) * engine_floats;
        if (threadIdx.x == 0 && first < whole) {
            const int row = static_cast<int>(blockIdx.x) * engine_rows;
            const auto bytes =
                static_cast<unsigned>((whole - first < engine_floats ? whole - first : engine_floats) * 4);
            full.init(1);
            device::publish_barriers();
            if constexpr (boxed) {
                full.arrive_and_expect(sizeof slot);
                ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, slot, &from, {0, row},
                                          &full.word);
            } else {
                full.arrive_and_expect(bytes);
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slot, job.src + first, bytes,
                                   &full.word);
            }
            full.wait(0);
            if constexpr (boxed) {
                ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, {0, row}, slot);
            } else {
                ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, job.dst + first, slot, bytes);
            }
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        }
        if (blockIdx.x == 0) {
            one_by_one(job, whole, job.floats);
        }
    }
}

/* Plain copy in units of the alignment that both ends share. */
template <class Unit>
__global__ void __launch_bounds__(threads) copy_units(Unit *dst, const Unit *src, long long units)
{
    const long long step = static_cast<long long>(gridDim.x) * threads;
    for (long long i = static_cast<long long>(blockIdx.x) * threads + threadIdx.x; i < units; i += step) {
        dst[i] = src[i];
    }
}

/* The tail of a copy that is not whole floats: at most three bytes. */
__global__ void copy_tail(unsigned char *dst, const unsigned char *src, int bytes)
{
    if (static_cast<int>(threadIdx.x) < bytes) {
        dst[threadIdx.x] = src[threadIdx.x];
    }
}

int blocks_for(const chip &c, const hr_kernel_tuning *tuning, long long tiles, unsigned best)
{
    const unsigned per_sm = tuning != nullptr && tuning->blocks_per_sm > 0 ? tuning->blocks_per_sm : best;
    return static_cast<int>(std::min<long long>(tiles, static_cast<long long>(c.sms) * per_sm));
}

bool float_rows_map(const float *base, long long floats, int rows, CUtensorMap *map, char *reason)
{
    hr_tensor t = {};
    t.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    t.rank = 2;
    t.base = base;
    t.extent[0] = box_columns;
    t.extent[1] = static_cast<uint64_t>(floats / box_columns);
    t.stride_bytes[1] = box_columns * 4;
    t.box[0] = box_columns;
    t.box[1] = static_cast<uint32_t>(rows);
    t.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    return hr_tensor_map_make(&t, map, reason) != 0;
}

template <mechanism M>
hr_status start_ring(const char *what, const chip &c, const stream_job &job, const CUtensorMap &map,
                     const hr_kernel_tuning *tuning, cudaStream_t stream, hr_error *error)
{
    const long long tiles = (job.floats + tile_floats - 1) / tile_floats;
    return launch(what, scale_ring<M>, dim3(blocks_for(c, tuning, tiles, 3)), dim3(threads),
                  sizeof(typename float_ring<M>::storage), stream, error, job, map);
}

hr_status start_stream(const char *what, const chip &c, hr_mechanism m, const stream_job &job,
                       const CUtensorMap &map, const hr_kernel_tuning *tuning, cudaStream_t stream,
                       hr_error *error)
{
    const long long blocks = (job.floats + plain_floats - 1) / plain_floats;
    if (m == HR_MECHANISM_SYNC && blocks > INT32_MAX) {
        return hr_fail(error, HR_E_RANGE, "%s: %lld elements, needs at most 2^41", what, job.floats);
    }
    switch (m) {
    case HR_MECHANISM_LDGSTS:
        return start_ring<mechanism::ldgsts>(what, c, job, map, tuning, stream, error);
    case HR_MECHANISM_GROUP:
        return start_ring<mechanism::group>(what, c, job, map, tuning, stream, error);
    case HR_MECHANISM_BARRIER:
        return start_ring<mechanism::barrier>(what, c, job, map, tuning, stream, error);
    case HR_MECHANISM_BULK:
        return start_ring<mechanism::bulk>(what, c, job, map, tuning, stream, error);
    case HR_MECHANISM_TMA:
        return start_ring<mechanism::tma>(what, c, job, map, tuning, stream, error);
    default:
        return launch(what, aligned16(job.src) && aligned16(job.dst) ? scale_plain<true> : scale_plain<false>,
                      dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, stream, error, job);
    }
}

bool stream_fits(const chip &c, hr_mechanism m, const stream_job &job, int rows, CUtensorMap *map,
                 char (&reason)[HR_TENSOR_REASON_BYTES])
{
    if (!chip_has(c, m, reason)) {
        return false;
    }
    if (m == HR_MECHANISM_SYNC) {
        return true;
    }
    if (!aligned16(job.src) || !aligned16(job.dst)) {
        std::snprintf(reason, sizeof reason, "needs both ends aligned to 16 bytes, found %u and %u past it",
                      static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(job.src) % 16),
                      static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(job.dst) % 16));
        return false;
    }
    if (m == HR_MECHANISM_TMA) {
        if (job.floats < box_columns) {
            std::snprintf(reason, sizeof reason, "needs at least %d elements, found %lld", box_columns,
                          job.floats);
            return false;
        }
        if (job.floats / box_columns > INT32_MAX - box_rows) {
            std::snprintf(reason, sizeof reason, "tensor coordinates are 32 bits, %lld rows need more",
                          job.floats / box_columns);
            return false;
        }
        return float_rows_map(job.src, job.floats, rows, map, reason);
    }
    return true;
}

hr_status start_units(const hr_kernel_copy_args *a, const chip &c, cudaStream_t stream, hr_error *error)
{
    const auto bits =
        reinterpret_cast<std::uintptr_t>(a->dst) | reinterpret_cast<std::uintptr_t>(a->src) | a->bytes;
    const dim3 grid(blocks_for(c, nullptr, static_cast<long long>(a->bytes / threads + 1), 8)),
        block(threads);
    const auto bytes = static_cast<long long>(a->bytes);
    if (bits % 8 == 0) {
        return launch("copy", copy_units<uint2>, grid, block, 0, stream, error, static_cast<uint2 *>(a->dst),
                      static_cast<const uint2 *>(a->src), bytes / 8);
    }
    if (bits % 2 == 0) {
        return launch("copy", copy_units<unsigned short>, grid, block, 0, stream, error,
                      static_cast<unsigned short *>(a->dst), static_cast<const unsigned short *>(a->src),
                      bytes / 2);
    }
    return launch("copy", copy_units<unsigned char>, grid, block, 0, stream, error,
                  static_cast<unsigned char *>(a->dst), static_cast<const unsigned char *>(a->src), bytes);
}

template <mechanism M>
hr_status start_engine(const stream_job &job, const CUtensorMap &from, const CUtensorMap &to,
                       cudaStream_t stream, hr_error *error)
{
    const long long blocks = (job.floats + engine_floats - 1) / engine_floats;
    if (blocks > INT32_MAX / engine_rows) {
        return hr_fail(error, HR_E_RANGE, "copy: %lld elements, needs at most 2^39", job.floats);
    }
    return launch("copy", copy_engine<M>, dim3(static_cast<unsigned>(blocks)), dim3(32), 0, stream, error,
                  job, from, to);
}

constexpr hr_mechanism order[] = {HR_MECHANISM_SYNC,    HR_MECHANISM_BULK,  HR_MECHANISM_TMA,
                                  HR_MECHANISM_BARRIER, HR_MECHANISM_GROUP, HR_MECHANISM_LDGSTS};

} // namespace
} // namespace headrace::kernel

using namespace headrace::kernel;

extern "C" hr_status hr_kernel_copy(const hr_kernel_copy_args *a, hr_mechanism m, cudaStream_t stream,
                                    hr_error *error)
{
    chip c;
    if (a->bytes == 0) {
        return HR_OK;
    }
    if (a->bytes > INT64_MAX) {
        return hr_fail(error, HR_E_RANGE, "copy: %llu bytes, needs fewer than 2^63",
                       static_cast<unsigned long long>(a->bytes));
    }
    hr_status status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    const stream_job job{static_cast<float *>(a->dst),
                         static_cast<const float *>(a->src),
                         static_cast<long long>(a->bytes / 4),
                         1,
                         0,
                         0};
    CUtensorMap from = {}, to = {};
    const auto fits = [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) {
        return stream_fits(c, k, job, engine_rows, &from, reason) &&
               (k != HR_MECHANISM_TMA || float_rows_map(job.dst, job.floats, engine_rows, &to, reason));
    };
    const auto start = [&](hr_mechanism k) {
        const auto ends = reinterpret_cast<std::uintptr_t>(a->dst) | reinterpret_cast<std::uintptr_t>(a->src);
        if (k == HR_MECHANISM_SYNC && ends % 4 != 0) {
            return start_units(a, c, stream, error);
        }
        hr_status done = HR_OK;
        if (job.floats > 0) {
            done = k == HR_MECHANISM_BULK  ? start_engine<mechanism::bulk>(job, from, to, stream, error)
                   : k == HR_MECHANISM_TMA ? start_engine<mechanism::tma>(job, from, to, stream, error)
                                           : start_stream("copy", c, k, job, from, a->tuning, stream, error);
        }
        if (done == HR_OK && a->bytes % 4 != 0) {
            done = launch("copy", copy_tail, dim3(1), dim3(32), 0, stream, error,
                          static_cast<unsigned char *>(a->dst) + job.floats * 4,
                          static_cast<const unsigned char *>(a->src) + job.floats * 4,
                          static_cast<int>(a->bytes % 4));
        }
        return done;
    };
    return with_mechanism("copy", m, order, sizeof order / sizeof *order, a->used, error, fits, start);
}

extern "C" hr_status hr_kernel_scale(const hr_kernel_scale_args *a, hr_mechanism m, cudaStream_t stream,
                                     hr_error *error)
{
    chip c;
    if (a->elements == 0) {
        return HR_OK;
    }
    if (a->elements > INT64_MAX / 4) {
        return hr_fail(error, HR_E_RANGE, "scale: %llu elements, needs fewer than 2^61",
                       static_cast<unsigned long long>(a->elements));
    }
    if (a->steps == 0) {
        return hr_fail(error, HR_E_INVALID, "scale: 0 steps, needs at least 1");
    }
    hr_status status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    const stream_job job{a->dst, a->src, static_cast<long long>(a->elements), a->by, a->plus, a->steps};
    CUtensorMap map = {};
    return with_mechanism(
        "scale", m, order, sizeof order / sizeof *order, a->used, error,
        [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) {
            return stream_fits(c, k, job, box_rows, &map, reason);
        },
        [&](hr_mechanism k) { return start_stream("scale", c, k, job, map, a->tuning, stream, error); });
}
