/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms. Bytes: each warp has its own 256 counters in shared memory. 16 bits: 65536 counters do not fit into one
 * block's shared memory, so the four blocks of a cluster hold a quarter each and add to each other's (red.shared
 * ::cluster); by `sync` they are global, and the L2 cache does the adding.
 */
#include "launch.cuh"

#include <headrace/device/cluster.cuh>

#include <algorithm>

namespace headrace::kernel
{
namespace
{

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int cluster_size = 4;
constexpr int wide_threads = 1024;
constexpr int wide_bins = 65536;
constexpr int own_bins = wide_bins / cluster_size;

struct histogram_job {
    const void *src;
    long long elements;
    unsigned long long *bins;
};

/* The first element at a 16-byte multiple, and the end of the whole pieces from there. */
template <class T> struct piece_range {
    long long begin, end;

    __device__ explicit piece_range(const histogram_job &job)
    {
        constexpr long long per = 16 / sizeof(T);
        const auto past = static_cast<long long>(reinterpret_cast<std::uintptr_t>(job.src) % 16 / sizeof(T));
        const long long head = past == 0 ? 0 : per - past;
        begin = head < job.elements ? head : job.elements;
        end = begin + (job.elements - begin) / per * per;
    }
};

/* count(v) for each element of this thread's share. */
template <class T, class Count> __device__ void for_each(const histogram_job &job, const Count &count)
{
    constexpr int per = 16 / sizeof(T);
    const piece_range<T> range(job);
    const T *src = static_cast<const T *>(job.src);
    const auto *pieces = reinterpret_cast<const uint4 *>(src + range.begin);
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = first; i < (range.end - range.begin) / per; i += step) {
        const uint4 piece = __ldcs(pieces + i);
        const unsigned words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
        for (unsigned word : words) {
#pragma unroll
            for (int b = 0; b < 32; b += 8 * static_cast<int>(sizeof(T))) {
                count(word >> b & (sizeof(T) == 1 ? 0xffU : 0xffffU));
            }
        }
    }
    if (first < range.begin) {
        count(src[first]);
    }
    if (range.end + first < job.elements) {
        count(src[range.end + first]);
    }
}

__global__ void __launch_bounds__(threads) histogram_bytes(const histogram_job job)
{
    __shared__ unsigned counts[warps][256];
    for (int i = threadIdx.x; i < warps * 256; i += threads) {
        (&counts[0][0])[i] = 0;
    }
    __syncthreads();
    unsigned *const own = counts[threadIdx.x / 32];
    for_each<unsigned char>(job, [&](unsigned v) { atomicAdd(&own[v], 1U); });
    __syncthreads();
    unsigned long long sum = 0;
    for (int w = 0; w < warps; w++) {
        sum += counts[w][threadIdx.x];
    }
    if (sum > 0) {
        atomicAdd(&job.bins[threadIdx.x], sum);
    }
}

__global__ void __launch_bounds__(wide_threads) histogram_words(const histogram_job job)
{
    for_each<unsigned short>(job, [&](unsigned v) { atomicAdd(&job.bins[v], 1ULL); });
}

/* Counters are 32 bits wide: a launch gives each cluster fewer elements than that. */
template <class T> __global__ void __launch_bounds__(wide_threads) histogram_cluster(const histogram_job job)
{
    if constexpr (device::have_bulk) {
        constexpr int bins = sizeof(T) == 1 ? 256 : wide_bins, own = bins / cluster_size;
        extern __shared__ unsigned counts[];
        for (int i = threadIdx.x; i < own; i += wide_threads) {
            counts[i] = 0;
        }
        unsigned *blocks[cluster_size];
        for (unsigned b = 0; b < cluster_size; b++) {
            blocks[b] = device::in_block(counts, b);
        }
        device::cluster_sync();
        for_each<T>(job, [&](unsigned v) {
            unsigned *const at = v / own == 0   ? blocks[0]
                                 : v / own == 1 ? blocks[1]
                                 : v / own == 2 ? blocks[2]
                                                : blocks[3];
            device::remote_add(at + v % own, 1U);
        });
        device::cluster_sync();
        const unsigned first = device::cluster_rank() * own;
        for (int i = threadIdx.x; i < own; i += wide_threads) {
            if (counts[i] > 0) {
                atomicAdd(&job.bins[first + i], static_cast<unsigned long long>(counts[i]));
            }
        }
    }
}

constexpr hr_mechanism order_bytes[] = {HR_MECHANISM_SYNC, HR_MECHANISM_STAS};
constexpr hr_mechanism order_words[] = {HR_MECHANISM_STAS, HR_MECHANISM_SYNC};

hr_status start(const histogram_job &job, hr_dtype dtype, hr_mechanism m, const chip &c, cudaStream_t stream,
                hr_error *error)
{
    const long long pieces = job.elements * static_cast<long long>(hr_dtype_bytes(dtype)) / 16 + 1;
    if (m == HR_MECHANISM_STAS) {
        const long long most = static_cast<long long>(c.sms) / cluster_size * cluster_size;
        const long long wanted = (pieces + wide_threads - 1) / wide_threads;
        const auto blocks = static_cast<unsigned>(std::clamp<long long>(
            (wanted + cluster_size - 1) / cluster_size * cluster_size, cluster_size, most));
        return dtype == HR_U8
                   ? launch_cluster("histogram", histogram_cluster<unsigned char>, cluster_size, dim3(blocks),
                                    dim3(wide_threads), 256 / cluster_size * 4, stream, error, job)
                   : launch_cluster("histogram", histogram_cluster<unsigned short>, cluster_size,
                                    dim3(blocks), dim3(wide_threads), own_bins * 4, stream, error, job);
    }
    if (dtype == HR_U8) {
        const auto blocks =
            static_cast<unsigned>(std::min<long long>((pieces + threads - 1) / threads, c.sms * 8LL));
        return launch("histogram", histogram_bytes, dim3(blocks), dim3(threads), 0, stream, error, job);
    }
    const auto blocks =
        static_cast<unsigned>(std::min<long long>((pieces + wide_threads - 1) / wide_threads, c.sms * 2LL));
    return launch("histogram", histogram_words, dim3(blocks), dim3(wide_threads), 0, stream, error, job);
}

} // namespace
} // namespace headrace::kernel

using namespace headrace::kernel;

extern "C" hr_status hr_kernel_histogram(const hr_kernel_histogram_args *a, hr_mechanism m,
                                         cudaStream_t stream, hr_error *error)
{
    chip c;
    if (a->dtype != HR_U8 && a->dtype != HR_U16) {
        return hr_fail(error, HR_E_UNSUPPORTED, "histogram: dtype %s, needs u8 or u16",
                       hr_dtype_name(a->dtype));
    }
    const uint64_t size = hr_dtype_bytes(a->dtype);
    if (a->elements >> 34 != 0) {
        return hr_fail(error, HR_E_RANGE, "histogram: %llu elements, needs fewer than 2^34",
                       static_cast<unsigned long long>(a->elements));
    }
    if (reinterpret_cast<uintptr_t>(a->src) % size != 0) {
        return hr_fail(error, HR_E_INVALID, "histogram: u16 data at an odd address");
    }
    hr_status status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    const cudaError_t code = cudaMemsetAsync(a->bins, 0, (a->dtype == HR_U8 ? 256 : wide_bins) * 8, stream);
    if (code != cudaSuccess) {
        return check_launch("histogram", error);
    }
    const histogram_job job{a->src, static_cast<long long>(a->elements),
                            reinterpret_cast<unsigned long long *>(a->bins)};
    return with_mechanism(
        "histogram", m, a->dtype == HR_U8 ? order_bytes : order_words, 2, a->used, error,
        [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) { return chip_has(c, k, reason); },
        [&](hr_mechanism k) {
            return job.elements == 0 ? HR_OK : start(job, a->dtype, k, c, stream, error);
        });
}
