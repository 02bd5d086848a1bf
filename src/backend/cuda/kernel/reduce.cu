/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums. The grid is the same on every device, each thread takes the same elements and adds them in the same order, so
 * that the bits of a float sum do not depend on chance, nor on the mechanism: threads to warps to a block by shuffles,
 * the eight blocks of a group in their order, the groups in their order. By `stas` a group is a cluster and its sums
 * meet in its first block's shared memory; by `sync` they meet in global memory.
 */
#include "launch.cuh"

#include <headrace/device/cluster.cuh>

namespace headrace::kernel
{
namespace
{

constexpr int threads = 512;
constexpr int group = 8;
constexpr int blocks = 1024;
static_assert(blocks * 8 <= HR_KERNEL_REDUCE_BYTES, "the workspace holds a partial sum a block");

template <class T> struct sum_of;
template <> struct sum_of<float> {
    using type = double;
};
template <> struct sum_of<unsigned> {
    using type = unsigned long long;
};

template <class S> __device__ S across_warp(S v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        v += __shfl_xor_sync(0xffffffff, v, d);
    }
    return v;
}

template <class S> __device__ S across_block(S v)
{
    __shared__ S of_warp[threads / 32];
    v = across_warp(v);
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = v;
    }
    __syncthreads();
    S sum = 0;
    for (int w = 0; w < threads / 32; w++) {
        sum += of_warp[w];
    }
    return sum;
}

template <class T, class S = typename sum_of<T>::type> __device__ S own_sum(const T *src, long long n)
{
    const auto past = static_cast<long long>(reinterpret_cast<std::uintptr_t>(src) % 16 / sizeof(T));
    const long long head = past == 0 ? 0 : (4 - past < n ? 4 - past : n);
    const long long pieces = (n - head) / 4;
    const auto *piece = reinterpret_cast<const uint4 *>(src + head);
    const long long first = static_cast<long long>(blockIdx.x) * threads + threadIdx.x;
    constexpr long long step = static_cast<long long>(blocks) * threads;
    const auto value = [](unsigned bits) {
        T v;
        memcpy(&v, &bits, sizeof v);
        return static_cast<S>(v);
    };
    S sum[4] = {};
    long long i = first;
    for (; i + 3 * step < pieces; i += 4 * step) {
        uint4 v[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            v[k] = __ldcs(piece + i + k * step);
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            sum[k] += (value(v[k].x) + value(v[k].y)) + (value(v[k].z) + value(v[k].w));
        }
    }
    for (; i < pieces; i += step) {
        const uint4 v = __ldcs(piece + i);
        sum[0] += (value(v.x) + value(v.y)) + (value(v.z) + value(v.w));
    }
    if (first < head) {
        sum[1] += static_cast<S>(src[first]);
    }
    if (head + pieces * 4 + first < n) {
        sum[2] += static_cast<S>(src[head + pieces * 4 + first]);
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <class T>
__global__ void __launch_bounds__(threads)
    reduce_blocks(const T *src, long long n, typename sum_of<T>::type *partial)
{
    const auto sum = across_block(own_sum<T>(src, n));
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

template <class T>
__global__ void __launch_bounds__(threads)
    reduce_cluster(const T *src, long long n, typename sum_of<T>::type *partial)
{
    if constexpr (device::have_bulk) {
        using S = typename sum_of<T>::type;
        __shared__ std::uint64_t arrived[group];
        __shared__ device::mbarrier full;
        if (threadIdx.x == 0) {
            arrived[0] = 0;
            full.init(1);
            device::publish_barriers();
            if (device::cluster_rank() == 0) {
                full.arrive_and_expect(group * 8);
            }
        }
        device::cluster_sync();
        const S sum = across_block(own_sum<T>(src, n));
        if (threadIdx.x == 0) {
            device::mbarrier *const there = device::in_block(&full, 0);
            if constexpr (sizeof(T) == sizeof(S) / 2 && static_cast<S>(0.5) == 0) {
                device::send_add(device::in_block(&arrived[0], 0), static_cast<std::uint64_t>(sum), there);
            } else {
                std::uint64_t bits;
                memcpy(&bits, &sum, sizeof bits);
                device::send_word(device::in_block(&arrived[device::cluster_rank()], 0), bits, there);
            }
            if (device::cluster_rank() == 0) {
                full.wait_cluster(0);
                S all = 0;
                for (int b = 0; b < (static_cast<S>(0.5) == 0 ? 1 : group); b++) {
                    S v;
                    memcpy(&v, &arrived[b], sizeof v);
                    all += v;
                }
                partial[blockIdx.x / group] = all;
            }
        }
        device::cluster_sync();
    }
}

/* Groups of `each` partial sums in their order, then the groups in theirs. */
template <class S> __global__ void reduce_partials(const S *partial, int count, int each, S *result)
{
    __shared__ S of_group[blocks / group];
    const int groups = count / each;
    for (int g = threadIdx.x; g < groups; g += blockDim.x) {
        S sum = 0;
        for (int i = 0; i < each; i++) {
            sum += partial[g * each + i];
        }
        of_group[g] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        S sum = 0;
        for (int g = 0; g < groups; g++) {
            sum += of_group[g];
        }
        *result = sum;
    }
}

template <class T>
hr_status start(const hr_kernel_reduce_args *a, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    using S = typename sum_of<T>::type;
    const auto n = static_cast<long long>(a->elements);
    S *const partial = static_cast<S *>(a->workspace);
    const bool cluster = m == HR_MECHANISM_STAS;
    hr_status status = cluster
                           ? launch_cluster("reduce", reduce_cluster<T>, group, dim3(blocks), dim3(threads),
                                            0, stream, error, static_cast<const T *>(a->src), n, partial)
                           : launch("reduce", reduce_blocks<T>, dim3(blocks), dim3(threads), 0, stream, error,
                                    static_cast<const T *>(a->src), n, partial);
    if (status == HR_OK) {
        status = launch("reduce", reduce_partials<S>, dim3(1), dim3(blocks / group), 0, stream, error,
                        static_cast<const S *>(partial), cluster ? blocks / group : blocks,
                        cluster ? 1 : group, static_cast<S *>(a->result));
    }
    return status;
}

constexpr hr_mechanism order[] = {HR_MECHANISM_SYNC, HR_MECHANISM_STAS};

} // namespace
} // namespace headrace::kernel

using namespace headrace::kernel;

extern "C" hr_status hr_kernel_reduce(const hr_kernel_reduce_args *a, hr_mechanism m, cudaStream_t stream,
                                      hr_error *error)
{
    chip c;
    if (a->dtype != HR_F32 && a->dtype != HR_U32) {
        return hr_fail(error, HR_E_UNSUPPORTED, "reduce: dtype %s, needs f32 or u32",
                       hr_dtype_name(a->dtype));
    }
    if (a->elements > INT64_MAX / 8) {
        return hr_fail(error, HR_E_RANGE, "reduce: %llu elements, needs fewer than 2^60",
                       static_cast<unsigned long long>(a->elements));
    }
    if (reinterpret_cast<uintptr_t>(a->src) % 4 != 0) {
        return hr_fail(error, HR_E_INVALID, "reduce: data is not aligned to its 4-byte elements");
    }
    hr_status status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    return with_mechanism(
        "reduce", m, order, sizeof order / sizeof *order, a->used, error,
        [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) { return chip_has(c, k, reason); },
        [&](hr_mechanism k) {
            return a->dtype == HR_F32 ? start<float>(a, k, stream, error)
                                      : start<unsigned>(a, k, stream, error);
        });
}
