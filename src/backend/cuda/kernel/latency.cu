/* SPDX-License-Identifier: Apache-2.0 */
/* How long one small copy takes from its start until its data can be read, by each mechanism. */
#include "launch.cuh"

#include <headrace/device/cluster.cuh>

namespace headrace::kernel
{
namespace
{

constexpr int piece = 128; /* floats */

template <mechanism M>
__global__ void __launch_bounds__(32) latency(const float *src, long long pieces, unsigned steps, float *sink,
                                              const __grid_constant__ CUtensorMap map)
{
    if constexpr (device::compiles(M)) {
        using ring_type = device::tile_ring<M, 1, float, 1, piece, device::warp_scope>;
        __shared__ typename ring_type::storage storage;
        ring_type ring(storage);
        const device::plane<float> source{src, piece, pieces, piece, &map};
        float sum = 0;
        auto at = static_cast<unsigned long long>(clock64()); /* not where the last launch was */
        for (unsigned i = 0; i < steps; i++) {
            at = at * 6364136223846793005ULL + 1442695040888963407ULL;
            ring.fill(source, static_cast<long long>((at >> 33) % static_cast<unsigned long long>(pieces)),
                      0);
            sum += ring.wait()[0][threadIdx.x];
            __syncwarp();
        }
        if (threadIdx.x == 0) {
            *sink = sum;
        }
    }
}

/* Two blocks of one warp throw 512 bytes to and fro. */
template <bool Engine>
__global__ void __launch_bounds__(32) latency_cluster(const float *src, unsigned steps, float *sink)
{
    if constexpr (device::have_bulk) {
        __shared__ alignas(128) float ball[2][piece]; /* to throw, caught */
        __shared__ device::mbarrier caught;
        const unsigned rank = device::cluster_rank(), other = rank ^ 1;
        if (threadIdx.x == 0) {
            caught.init(1);
            device::publish_barriers();
            caught.arrive_and_expect(piece * 4);
        }
        reinterpret_cast<float4 *>(ball[0])[threadIdx.x] = reinterpret_cast<const float4 *>(src)[threadIdx.x];
        device::fence_for_copy_engine();
        device::cluster_sync();
        float *const there = device::in_block(&ball[1][0], other);
        device::mbarrier *const bell = device::in_block(&caught, other);
        float sum = 0;
        for (unsigned i = 0; i < steps; i++) {
            if ((i & 1) == rank) {
                if constexpr (!Engine) {
                    device::send_piece(there + threadIdx.x * 4,
                                       reinterpret_cast<const uint4 *>(ball[0])[threadIdx.x], bell);
                } else if (threadIdx.x == 0) {
                    device::send_bytes(there, ball[0], piece * 4, bell);
                }
            } else {
                caught.wait_cluster(i / 2 & 1);
                sum += ball[1][threadIdx.x];
                __syncwarp();
                if (threadIdx.x == 0) {
                    caught.arrive_and_expect(piece *
                                             4); /* before the answer leaves, so before the next throw */
                }
                __syncwarp();
            }
        }
        device::cluster_sync();
        if (rank == 0 && threadIdx.x == 0) {
            *sink = sum;
        }
    }
}

template <mechanism M>
hr_status start(const hr_kernel_latency_args *a, const CUtensorMap &map, cudaStream_t stream, hr_error *error)
{
    return launch("latency", latency<M>, dim3(1), dim3(32), 0, stream, error,
                  static_cast<const float *>(a->src), static_cast<long long>(a->bytes / (piece * 4)),
                  a->steps, a->sink, map);
}

bool fits(const hr_kernel_latency_args *a, const chip &c, hr_mechanism m, CUtensorMap *map,
          char (&reason)[HR_TENSOR_REASON_BYTES])
{
    hr_tensor t = {};
    t.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    t.rank = 2;
    t.base = a->src;
    t.extent[0] = piece;
    t.extent[1] = a->bytes / (piece * 4);
    t.stride_bytes[1] = piece * 4;
    t.box[0] = piece;
    t.box[1] = 1;
    return chip_has(c, m, reason) && (m != HR_MECHANISM_TMA || hr_tensor_map_make(&t, map, reason) != 0);
}

constexpr hr_mechanism order[] = {HR_MECHANISM_SYNC,    HR_MECHANISM_LDGSTS, HR_MECHANISM_GROUP,
                                  HR_MECHANISM_BARRIER, HR_MECHANISM_BULK,   HR_MECHANISM_TMA,
                                  HR_MECHANISM_STAS,    HR_MECHANISM_CLUSTER};

} // namespace
} // namespace headrace::kernel

using namespace headrace::kernel;

extern "C" hr_status hr_kernel_latency(const hr_kernel_latency_args *a, hr_mechanism m, cudaStream_t stream,
                                       hr_error *error)
{
    chip c;
    if (!aligned16(a->src) || a->bytes < piece * 4 || a->steps == 0) {
        return hr_fail(error, HR_E_INVALID,
                       "latency: needs an aligned source of at least 512 bytes, and steps");
    }
    hr_status status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    CUtensorMap map = {};
    return with_mechanism(
        "latency", m, order, sizeof order / sizeof *order, nullptr, error,
        [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) { return fits(a, c, k, &map, reason); },
        [&](hr_mechanism k) {
            const auto *src = static_cast<const float *>(a->src);
            switch (k) {
            case HR_MECHANISM_LDGSTS:
                return start<mechanism::ldgsts>(a, map, stream, error);
            case HR_MECHANISM_GROUP:
                return start<mechanism::group>(a, map, stream, error);
            case HR_MECHANISM_BARRIER:
                return start<mechanism::barrier>(a, map, stream, error);
            case HR_MECHANISM_BULK:
                return start<mechanism::bulk>(a, map, stream, error);
            case HR_MECHANISM_TMA:
                return start<mechanism::tma>(a, map, stream, error);
            case HR_MECHANISM_STAS:
                return launch_cluster("latency", latency_cluster<false>, 2, dim3(2), dim3(32), 0, stream,
                                      error, src, a->steps, a->sink);
            case HR_MECHANISM_CLUSTER:
                return launch_cluster("latency", latency_cluster<true>, 2, dim3(2), dim3(32), 0, stream,
                                      error, src, a->steps, a->sink);
            default:
                return start<mechanism::sync>(a, map, stream, error);
            }
        });
}
