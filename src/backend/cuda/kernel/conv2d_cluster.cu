/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d where the blocks of a cluster stand side by side and give each other their halos: each brings its own 128
 * columns from global memory and sends the 16 bytes at both ends of every row to its neighbours, out of registers
 * (st.async) or by the copy engine. The ends of the cluster read their outer halo themselves.
 */
#include "conv2d_launch.cuh"

#include <headrace/device/cluster.cuh>

namespace headrace::kernel
{
namespace
{

constexpr int cluster_size = 4;
constexpr int warps = 4, threads = 32 * warps;

template <int Edge>
using own_ring =
    device::tile_ring<mechanism::bulk, 1, float, conv_shape<Edge>::tile_rows, conv_shape<Edge>::strip,
                      device::block_scope<threads>, conv_shape<Edge>::columns>;

/* The ring's rows hold the block's own columns and then eight more: the right halo, and the next row's left one. Row 0
 * has its left halo before the ring. */
template <int Edge> struct cluster_storage {
    alignas(128) unsigned char before[112];
    float first_left[4];
    typename own_ring<Edge>::storage own;
};

/* One 16-byte piece of a row from global memory, zeros outside. */
__device__ inline float4 outer_piece(const conv_job &job, int row, int column)
{
    float v[4] = {};
    if (row >= 0 && row < job.src_rows) {
        for (int i = 0; i < 4; i++) {
            if (column + i >= 0 && column + i < job.columns) {
                v[i] = static_cast<const float *>(job.src)[row * job.src_pitch + column + i];
            }
        }
    }
    return make_float4(v[0], v[1], v[2], v[3]);
}

template <int Edge, bool Engine>
__global__ void __launch_bounds__(threads)
    conv2d_halo(const __grid_constant__ conv_job job,
                const __grid_constant__ conv_weights<Edge, conv_math::floats> weights)
{
    if constexpr (device::have_bulk) {
        using shape = conv_shape<Edge>;
        extern __shared__ __align__(128) unsigned char shared[];
        auto &storage = *reinterpret_cast<cluster_storage<Edge> *>(shared);
        __shared__ device::mbarrier halo;
        const int across = (job.across + cluster_size - 1) / cluster_size * cluster_size;
        const int strip = static_cast<int>(blockIdx.x) % across * shape::strip;
        const int out = static_cast<int>(blockIdx.x) / across * shape::rows;
        const int row = out + job.dst_first - job.src_first - shape::radius;
        const unsigned rank = device::cluster_rank();
        const bool has_left = rank > 0 && strip < job.columns;
        const bool has_right = rank + 1 < cluster_size && strip + shape::strip < job.columns;
        if (threadIdx.x == 0) {
            halo.init(1);
            device::publish_barriers();
            halo.arrive_and_expect((has_left + has_right) * shape::tile_rows * 16);
        }
        own_ring<Edge> ring(storage.own);
        ring.fill({static_cast<const float *>(job.src), job.src_pitch, job.src_rows, job.columns, nullptr},
                  row, strip);
        device::cluster_sync();
        float *const tile = &ring.wait()[0][0] - shape::pad; /* with its left halo */
        const int r = static_cast<int>(threadIdx.x) / 2;
        if (r < shape::tile_rows) {
            const bool right = threadIdx.x % 2 != 0;
            float *const own = tile + r * shape::columns + (right ? shape::strip : shape::pad);
            /* Where the neighbour keeps it: my right end is its left halo. */
            float *const there = tile + r * shape::columns + (right ? 0 : shape::strip + shape::pad);
            if (right ? has_right : has_left) {
                const unsigned to = right ? rank + 1 : rank - 1;
                if constexpr (Engine) {
                    device::send_bytes(device::in_block(there, to), own, 16, device::in_block(&halo, to));
                } else {
                    device::send_piece(device::in_block(there, to), *reinterpret_cast<const uint4 *>(own),
                                       device::in_block(&halo, to));
                }
            } else {
                float *const outer = tile + r * shape::columns + (right ? shape::strip + shape::pad : 0);
                *reinterpret_cast<float4 *>(outer) =
                    outer_piece(job, row + r, right ? strip + shape::strip : strip - shape::pad);
            }
        }
        halo.wait_cluster(0);
        __syncthreads();
        if (strip < job.columns) { /* the last cluster may reach beyond the image */
            conv_fix_border<shape>(tile, job, row, strip - shape::pad, true);
            conv_compute<Edge, conv_math::floats, warps>(tile, job, weights, out, strip);
        }
        device::
            cluster_sync(); /* nobody leaves while a neighbour still reads from, or writes to, its memory */
    }
}

template <int Edge, bool Engine> hr_status start(const conv_plan &plan, cudaStream_t stream, hr_error *error)
{
    conv_weights<Edge, conv_math::floats> weights;
    std::copy(plan.weights, plan.weights + Edge * Edge, weights.w);
    const unsigned across = static_cast<unsigned>(plan.job.across);
    const unsigned padded = (across + cluster_size - 1) / cluster_size * cluster_size;
    return launch_cluster("conv2d", conv2d_halo<Edge, Engine>, cluster_size,
                          dim3(plan.blocks / across * padded), dim3(threads), sizeof(cluster_storage<Edge>),
                          stream, error, plan.job, weights);
}

template <bool Engine>
hr_status edges(const conv_plan &plan, unsigned edge, cudaStream_t stream, hr_error *error)
{
    return edge == 3   ? start<3, Engine>(plan, stream, error)
           : edge == 5 ? start<5, Engine>(plan, stream, error)
                       : start<7, Engine>(plan, stream, error);
}

} // namespace

hr_status conv2d_cluster(const conv_plan &plan, unsigned edge, hr_mechanism m, cudaStream_t stream,
                         hr_error *error)
{
    return m == HR_MECHANISM_CLUSTER ? edges<true>(plan, edge, stream, error)
                                     : edges<false>(plan, edge, stream, error);
}

} // namespace headrace::kernel
