// SPDX-License-Identifier: Apache-2.0
// sum and checksum. Both leave what the CPU leaves: float sums are added in the order of base/exact_sum.h, a
// warp a block of that order, and what is shared between blocks is integers, whose order does not matter.
#include "backend/cuda/kernel/op_device.cuh"

#include "base/crc32c.h"
#include "base/partial.h"

namespace headrace::op
{
namespace
{

using word64 = unsigned long long; // what atomicAdd takes

__device__ inline void add64(int64_t *to, int64_t value)
{
    if (value != 0) {
        atomicAdd(reinterpret_cast<word64 *>(to), static_cast<word64>(value));
    }
}

__device__ inline void count(uint64_t *to, bool yes)
{
    if (yes) {
        atomicAdd(reinterpret_cast<word64 *>(to), 1ull);
    }
}

__device__ inline void add_exactly(hr_exact_sum *sum, double value)
{
    const uint64_t bits = static_cast<uint64_t>(__double_as_longlong(value));
    if ((bits & 0x7ff0000000000000ull) == 0x7ff0000000000000ull) {
        count(&sum->nan, (bits & 0xfffffffffffffull) != 0);
        count(&sum->plus_infinity, bits == 0x7ff0000000000000ull);
        count(&sum->minus_infinity, bits == 0xfff0000000000000ull);
        return;
    }
    const hr_exact_parts parts = hr_exact_split(bits);
    for (int i = 0; i < 3; i++) {
        add64(&sum->digit[parts.first + i], parts.part[i]);
    }
}

// One warp adds one block: lane l the elements l, l + 32, …, then halves of the lanes.
template <class T>
__device__ inline double block_sum(const T *a, uint64_t begin, uint64_t end, uint64_t block)
{
    const uint64_t base = block * HR_SUM_BLOCK + threadIdx.x % 32;
    double sum = 0;
    if (block * HR_SUM_BLOCK >= begin && (block + 1) * HR_SUM_BLOCK <= end) {
#pragma unroll 8
        for (int i = 0; i < HR_SUM_BLOCK; i += HR_SUM_LANES) {
            sum += static_cast<double>(widen(a[base - begin + i]));
        }
    } else {
        for (uint64_t i = base; i < (block + 1) * HR_SUM_BLOCK; i += HR_SUM_LANES) {
            if (i >= begin && i < end) {
                sum += static_cast<double>(widen(a[i - begin]));
            }
        }
    }
    for (int half = HR_SUM_LANES / 2; half > 0; half /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, half);
    }
    return sum;
}

// Elements begin … end − 1 of the whole.
template <class T>
__global__ void __launch_bounds__(block_threads)
    sum_floats(const T *__restrict__ a, uint64_t begin, uint64_t end, hr_exact_sum *total)
{
    static_assert(HR_SUM_LANES == 32, "a lane of a warp for a lane of the sum");
    __shared__ hr_exact_sum sum;
    int64_t *words = reinterpret_cast<int64_t *>(&sum);
    constexpr int count_of_words = sizeof sum / sizeof(int64_t);
    for (int i = threadIdx.x; i < count_of_words; i += blockDim.x) {
        words[i] = 0;
    }
    __syncthreads();
    const uint64_t warps = index_stride() / 32;
    for (uint64_t block = begin / HR_SUM_BLOCK + first_index() / 32; block * HR_SUM_BLOCK < end;
         block += warps) {
        const double value = block_sum(a, begin, end, block);
        if (threadIdx.x % 32 == 0) {
            add_exactly(&sum, value);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count_of_words; i += blockDim.x) {
        add64(reinterpret_cast<int64_t *>(total) + i, words[i]);
    }
}

// 128 bits by two 64-bit additions: the carry of each is its own.
__device__ inline void add128(hr_sum128 *to, uint64_t low, int64_t high)
{
    const word64 old = atomicAdd(reinterpret_cast<word64 *>(&to->low), static_cast<word64>(low));
    const uint64_t carry = old + low < old ? 1 : 0;
    add64(reinterpret_cast<int64_t *>(&to->high), high + static_cast<int64_t>(carry));
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    sum_integers(const T *__restrict__ a, uint64_t n, hr_sum128 *total)
{
    using W = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    // Low and high halves apart, so that neither overflows.
    uint64_t low = 0;
    int64_t high = 0;
    for (uint64_t i = first_index(); i < n; i += index_stride()) {
        const W x = a[i];
        low += static_cast<uint64_t>(x) & 0xffffffffull;
        high += static_cast<int64_t>(x >> 32);
    }
    for (int half = 16; half > 0; half /= 2) {
        low += __shfl_down_sync(0xffffffffu, low, half);
        high += __shfl_down_sync(0xffffffffu, high, half);
    }
    if (threadIdx.x % 32 == 0) {
        add128(total, static_cast<uint64_t>(high) << 32, high >> 32);
        add128(total, low, 0);
    }
}

hr_status clear(void *partial, size_t bytes, cudaStream_t stream, const char *name, hr_error *error)
{
    const cudaError_t cleared = cudaMemsetAsync(partial, 0, bytes, stream);
    return cleared == cudaSuccess ? HR_OK : hr_cuda_op_launched(name, error);
}

hr_status sum(const hr_launch *launch, hr_error *error)
{
    const hr_view &in = launch->in[0];
    auto *partial = static_cast<hr_sum_partial *>(launch->partial);
    uint64_t n;
    hr_status status = elements_of(in, &n);
    if (status == HR_OK) {
        status = clear(partial, sizeof *partial, stream_of(launch), "sum", error);
    }
    if (status != HR_OK || n == 0) {
        return status;
    }
    return with_type(in.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T *a = static_cast<const T *>(in.data);
        if constexpr (is_float<T>) {
            const unsigned grid = grid_for((n / HR_SUM_BLOCK + 2) * 32);
            sum_floats<T>
                <<<grid, block_threads, 0, stream_of(launch)>>>(a, in.first, in.first + n, &partial->floats);
        } else {
            sum_integers<T>
                <<<grid_for(n / 4 + 1), block_threads, 0, stream_of(launch)>>>(a, n, &partial->integers);
        }
        return hr_cuda_op_launched("sum", error);
    });
}

// A block takes segments of this many bytes, its threads word by word in turn.
constexpr int segment_words = 16384;

// Multiplying by a constant is linear: four tables of what each byte of the other factor gives.
__device__ inline uint32_t times(const uint32_t (&table)[4][256], uint32_t x)
{
    return table[0][x & 255] ^ table[1][x >> 8 & 255] ^ table[2][x >> 16 & 255] ^ table[3][x >> 24];
}

// The words of a segment of `words` words; bytes_after follow it in the chunk. This thread's share of the
// remainder.
__device__ inline uint32_t segment_share(const uint32_t (&table)[4][256], const uint32_t *at, uint64_t words,
                                         uint64_t bytes_after)
{
    uint32_t state = 0;
    uint64_t next = threadIdx.x;
    for (; next < words; next += block_threads) {
        state = times(table, state) ^ at[next];
    }
    // The last word that it took stands before (words − 1 − index) others; a word's own remainder is 4 bytes
    // on.
    const uint64_t words_after = words - 1 - (next - block_threads);
    return threadIdx.x < words ? hr_crc32c_multiply(state, hr_crc32c_power(4 * words_after + 4 + bytes_after))
                               : 0;
}

__global__ void __launch_bounds__(block_threads)
    checksum_words(const uint32_t *__restrict__ words, uint64_t count_of_words, uint64_t bytes, uint32_t step,
                   hr_checksum_partial *partial)
{
    __shared__ uint32_t table[4][256];
    for (int k = 0; k < 4; k++) {
        table[k][threadIdx.x] = hr_crc32c_multiply(threadIdx.x << (8 * k), step);
    }
    __syncthreads();
    uint32_t share = 0;
    for (uint64_t s = blockIdx.x; s * segment_words < count_of_words; s += gridDim.x) {
        const uint64_t begin = s * segment_words;
        const uint64_t left = count_of_words - begin;
        const uint64_t take = left < segment_words ? left : segment_words;
        share ^= segment_share(table, words + begin, take, bytes - 4 * (begin + take));
    }
    share = __reduce_xor_sync(0xffffffffu, share);
    if (threadIdx.x % 32 == 0) {
        atomicXor(reinterpret_cast<word64 *>(&partial->crc), static_cast<word64>(share));
    }
}

// The bytes that are not in words, and what the CRC starts with and ends in.
__global__ void checksum_rest(const uint8_t *__restrict__ data, uint64_t from, uint64_t bytes,
                              hr_checksum_partial *partial)
{
    uint32_t share = 0;
    for (uint64_t i = from + first_index(); i < bytes; i += index_stride()) {
        share ^= hr_crc32c_multiply(data[i], hr_crc32c_power(bytes - i));
    }
    if (first_index() == 0) {
        share ^= ~hr_crc32c_multiply(0xffffffffu, hr_crc32c_power(bytes));
        partial->bytes = bytes;
    }
    atomicXor(reinterpret_cast<word64 *>(&partial->crc), static_cast<word64>(share));
}

hr_status checksum(const hr_launch *launch, hr_error *error)
{
    const hr_view &in = launch->in[0];
    auto *partial = static_cast<hr_checksum_partial *>(launch->partial);
    uint64_t bytes;
    hr_status status = hr_shape_bytes(&in.shape, in.dtype, &bytes);
    if (status == HR_OK) {
        status = clear(partial, sizeof *partial, stream_of(launch), "checksum", error);
    }
    if (status != HR_OK || bytes == 0) {
        return status;
    }
    const uint64_t words = aligned(in.data, 4) ? bytes / 4 : 0;
    if (words > 0) {
        const uint64_t segments = (words + segment_words - 1) / segment_words;
        checksum_words<<<grid_for(segments * block_threads), block_threads, 0, stream_of(launch)>>>(
            static_cast<const uint32_t *>(in.data), words, bytes, hr_crc32c_power(4 * block_threads),
            partial);
    }
    checksum_rest<<<grid_for(bytes - 4 * words), block_threads, 0, stream_of(launch)>>>(
        static_cast<const uint8_t *>(in.data), 4 * words, bytes, partial);
    return hr_cuda_op_launched("checksum", error);
}

} // namespace
} // namespace headrace::op

extern "C" hr_status hr_cuda_op_sum(const hr_launch *launch, hr_error *error)
{
    return headrace::op::sum(launch, error);
}

extern "C" hr_status hr_cuda_op_checksum(const hr_launch *launch, hr_error *error)
{
    return headrace::op::checksum(launch, error);
}
