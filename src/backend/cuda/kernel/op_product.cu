// SPDX-License-Identifier: Apache-2.0
// matmul, the plain way: a block of 16 × 16 threads makes 64 × 64 elements of C from tiles in shared memory.
// Sums are f32 (f64 for f64); those of 16-bit outputs stay in the launch's accumulator from panel to panel.
#include "backend/cuda/kernel/kernel.h"
#include "backend/cuda/kernel/op_device.cuh"
#include "backend/cuda/kernel/op_fast.h"

namespace headrace::op
{
namespace
{

constexpr int edge = 64;  // of a block's tile of C
constexpr int depth = 16; // of k at a time
constexpr int each = 4;   // elements of C that one thread makes, in both directions

template <class T, class A> struct product {
    const T *a, *b;
    T *c;
    A *sums; // the accumulator, or null
    uint64_t lda, ldb, ldc;
    uint64_t m, n, k;
    bool accumulate, last;
};

template <class T, class A>
__device__ inline A element_or_zero(const T *from, uint64_t ld, uint64_t row, uint64_t rows, uint64_t column,
                                    uint64_t columns)
{
    return row < rows && column < columns ? static_cast<A>(widen(from[row * ld + column])) : A(0);
}

// Adds what the panels before left, and stores for the next panel or for good.
template <class T, class A>
__device__ inline void finish(const product<T, A> &p, uint64_t row, uint64_t column, A sum)
{
    T *out = p.c + row * p.ldc + column;
    A *kept = p.sums != nullptr ? p.sums + row * p.n + column : nullptr;
    if (p.accumulate) {
        sum += kept != nullptr ? *kept : static_cast<A>(widen(*out));
    }
    if (kept != nullptr && !p.last) {
        *kept = sum;
    } else {
        *out = narrow<T>(sum);
    }
}

template <class T, class A>
__device__ inline void multiply_tiles(const A (&a)[depth][edge + 1], const A (&b)[depth][edge],
                                      A (&sum)[each][each])
{
#pragma unroll
    for (int p = 0; p < depth; p++) {
        A x[each];
        A y[each];
#pragma unroll
        for (int i = 0; i < each; i++) {
            x[i] = a[p][threadIdx.y + 16 * i];
            y[i] = b[p][threadIdx.x + 16 * i];
        }
#pragma unroll
        for (int i = 0; i < each; i++) {
#pragma unroll
            for (int j = 0; j < each; j++) {
                sum[i][j] = fma(x[i], y[j], sum[i][j]);
            }
        }
    }
}

template <class T, class A>
__global__ void __launch_bounds__(block_threads)
    multiply(const __grid_constant__ product<T, A> p, uint64_t tiles_across, uint64_t tiles)
{
    __shared__ A a[depth][edge + 1];
    __shared__ A b[depth][edge];
    const unsigned t = threadIdx.y * 16 + threadIdx.x;
    for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const uint64_t row0 = tile / tiles_across * edge;
        const uint64_t column0 = tile % tiles_across * edge;
        A sum[each][each] = {};
        for (uint64_t k0 = 0; k0 < p.k; k0 += depth) {
#pragma unroll
            for (int i = 0; i < each; i++) {
                const unsigned at = t + block_threads * i;
                a[at % depth][at / depth] =
                    element_or_zero<T, A>(p.a, p.lda, row0 + at / depth, p.m, k0 + at % depth, p.k);
                b[at / edge][at % edge] =
                    element_or_zero<T, A>(p.b, p.ldb, k0 + at / edge, p.k, column0 + at % edge, p.n);
            }
            __syncthreads();
            multiply_tiles<T, A>(a, b, sum);
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < each; i++) {
#pragma unroll
            for (int j = 0; j < each; j++) {
                const uint64_t row = row0 + threadIdx.y + 16 * i;
                const uint64_t column = column0 + threadIdx.x + 16 * j;
                if (row < p.m && column < p.n) {
                    finish(p, row, column, sum[i][j]);
                }
            }
        }
    }
}

template <class T> hr_status launch_product(const hr_launch *launch, hr_error *error)
{
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const hr_view &a = launch->in[0];
    const hr_view &b = launch->in[1];
    const hr_view &c = launch->out[0];
    product<T, A> p;
    p.a = static_cast<const T *>(a.data);
    p.b = static_cast<const T *>(b.data);
    p.c = static_cast<T *>(c.data);
    p.sums = is_half<T> ? static_cast<A *>(launch->accumulator) : nullptr;
    p.lda = a.row_pitch_bytes / sizeof(T);
    p.ldb = b.row_pitch_bytes / sizeof(T);
    p.ldc = c.row_pitch_bytes / sizeof(T);
    p.m = c.shape.extent[0];
    p.n = c.shape.extent[1];
    p.k = a.shape.extent[1];
    p.accumulate = launch->accumulate;
    p.last = launch->last;
    if (p.m == 0 || p.n == 0) {
        return HR_OK;
    }
    const uint64_t across = (p.n + edge - 1) / edge;
    const uint64_t tiles = across * ((p.m + edge - 1) / edge);
    multiply<T, A><<<grid_for(tiles * block_threads), dim3(16, 16), 0, stream_of(launch)>>>(p, across, tiles);
    return hr_cuda_op_launched("matmul", error);
}

__global__ void __launch_bounds__(block_threads)
    round_sums(const float *__restrict__ sums, bf16 *out, uint64_t ldc, uint64_t columns, uint64_t elements)
{
    for (uint64_t i = first_index(); i < elements; i += index_stride()) {
        out[i / columns * ldc + i % columns] = narrow<bf16>(sums[i]);
    }
}

} // namespace
} // namespace headrace::op

extern "C" hr_status hr_cuda_op_round_bf16(const hr_launch *launch, hr_error *error)
{
    using namespace headrace::op;
    const hr_view &c = launch->out[0];
    const uint64_t elements = c.shape.extent[0] * c.shape.extent[1];
    if (elements == 0) {
        return HR_OK;
    }
    round_sums<<<grid_for(elements), block_threads, 0, stream_of(launch)>>>(
        static_cast<const float *>(launch->accumulator), static_cast<bf16 *>(c.data), c.row_pitch_bytes / 2,
        c.shape.extent[1], elements);
    return hr_cuda_op_launched("matmul", error);
}

extern "C" void hr_cuda_op_product_block(hr_dtype dtype, uint32_t *rows, uint32_t *columns)
{
    if (!hr_kernel_matmul_block(dtype, rows, columns)) {
        *rows = *columns = headrace::op::edge;
    }
}

extern "C" hr_status hr_cuda_op_matmul(const hr_launch *launch, hr_error *error)
{
    using namespace headrace::op;
    hr_status fast;
    if (hr_cuda_fast_matmul(launch, &fast, error)) {
        return fast;
    }
    return with_type(launch->out[0].dtype, [&](auto tag) -> hr_status {
        using T = typename decltype(tag)::type;
        if constexpr (is_float<T>) {
            return launch_product<T>(launch, error);
        } else {
            return hr_fail(error, HR_E_UNSUPPORTED, "matmul: not of %s", hr_dtype_name(launch->out[0].dtype));
        }
    });
}
