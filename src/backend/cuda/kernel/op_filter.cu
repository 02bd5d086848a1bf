// SPDX-License-Identifier: Apache-2.0
// conv2d, the plain way: one thread an output element, taps in the order of the CPU's, so that integers come
// out the same to the bit.
#include "backend/cuda/kernel/op_device.cuh"
#include "backend/cuda/kernel/op_fast.h"

namespace headrace::op
{
namespace
{

// The filter travels as an argument: constant memory that needs no copy. Sums are of type A.
template <class A> struct filter {
    int rows, columns;
    hr_border border;
    A weight[HR_MAX_KERNEL_EDGE * HR_MAX_KERNEL_EDGE];
};

struct image {
    const void *in;
    void *out;
    uint64_t in_pitch, out_pitch;  // bytes
    uint64_t in_first, out_first;  // rows of the whole
    uint64_t whole_rows, out_rows; // rows of the whole, and of the output view
    uint64_t columns, channels;
};

// The index that a border stands for, or -1 for a zero.
__device__ inline int64_t mapped(int64_t index, int64_t n, hr_border border)
{
    if (index >= 0 && index < n) {
        return index;
    }
    if (border == HR_BORDER_ZERO) {
        return -1;
    }
    if (border == HR_BORDER_REPLICATE) {
        return index < 0 ? 0 : n - 1;
    }
    while (n > 1 && (index < 0 || index >= n)) {
        index = index < 0 ? -index : 2 * (n - 1) - index;
    }
    return n > 1 ? index : 0;
}

// A row of the whole array, which the view holds.
template <class T> __device__ inline const T *line_of(const image &s, int64_t row)
{
    const int64_t offset = (row - static_cast<int64_t>(s.in_first)) * static_cast<int64_t>(s.in_pitch);
    return reinterpret_cast<const T *>(static_cast<const char *>(s.in) + offset);
}

template <class T, class A> __device__ inline A add_tap(A value, A weight, A sum)
{
    if constexpr (std::is_integral_v<T>) {
        return __fadd_rn(__fmul_rn(value, weight), sum);
    } else {
        return fma(value, weight, sum);
    }
}

// Near an edge: every tap looks for the element that it stands for.
template <class T, class A>
__device__ inline A edge_sum(const image &s, const filter<A> &f, int64_t row, int64_t column,
                             uint64_t channel)
{
    A sum = 0;
    const int64_t columns = static_cast<int64_t>(s.columns);
    for (int i = 0; i < f.rows; i++) {
        const int64_t y = mapped(row + i - f.rows / 2, static_cast<int64_t>(s.whole_rows), f.border);
        const T *line = line_of<T>(s, y);
        for (int j = 0; j < f.columns; j++) {
            const int64_t x = mapped(column + j - f.columns / 2, columns, f.border);
            const A value =
                y < 0 || x < 0 ? A(0)
                               : static_cast<A>(widen(line[static_cast<uint64_t>(x) * s.channels + channel]));
            sum = add_tap<T, A>(value, f.weight[i * f.columns + j], sum);
        }
    }
    return sum;
}

template <class T, class A>
__device__ inline A inner_sum(const image &s, const filter<A> &f, int64_t row, int64_t column,
                              uint64_t channel)
{
    A sum = 0;
    const uint64_t first = static_cast<uint64_t>(column - f.columns / 2) * s.channels + channel;
    int tap = 0;
    for (int i = 0; i < f.rows; i++) {
        const T *at = line_of<T>(s, row + i - f.rows / 2) + first;
#pragma unroll 4
        for (int j = 0; j < f.columns; j++, tap++, at += s.channels) {
            sum = add_tap<T, A>(static_cast<A>(widen(*at)), f.weight[tap], sum);
        }
    }
    return sum;
}

template <class T, class A>
__device__ inline A element_sum(const image &s, const filter<A> &f, int64_t row, int64_t column,
                                uint64_t channel)
{
    const int64_t half_rows = f.rows / 2;
    const int64_t half_columns = f.columns / 2;
    const bool inner = row >= half_rows && row + half_rows < static_cast<int64_t>(s.whole_rows) &&
                       column >= half_columns && column + half_columns < static_cast<int64_t>(s.columns);
    return inner ? inner_sum<T, A>(s, f, row, column, channel) : edge_sum<T, A>(s, f, row, column, channel);
}

template <class T, class A>
__global__ void __launch_bounds__(block_threads)
    correlate(const __grid_constant__ image s, const __grid_constant__ filter<A> f)
{
    const uint64_t width = s.columns * s.channels;
    for (uint64_t row = blockIdx.y; row < s.out_rows; row += gridDim.y) {
        T *out = reinterpret_cast<T *>(static_cast<char *>(s.out) + row * s.out_pitch);
        for (uint64_t e = first_index(); e < width; e += index_stride()) {
            const A sum = element_sum<T, A>(s, f, static_cast<int64_t>(s.out_first + row),
                                            static_cast<int64_t>(e / s.channels), e % s.channels);
            out[e] = narrow<T>(sum);
        }
    }
}

template <class T, class A> hr_status launch_filter(const hr_launch *launch, const image &s, hr_error *error)
{
    const auto &params = *static_cast<const hr_conv2d_params *>(launch->params);
    filter<A> f;
    f.rows = static_cast<int>(params.rows);
    f.columns = static_cast<int>(params.columns);
    f.border = params.border;
    for (uint32_t i = 0; i < params.rows * params.columns; i++) {
        f.weight[i] = static_cast<A>(params.weight[i]);
    }
    const uint64_t across = (s.columns * s.channels + block_threads - 1) / block_threads;
    const dim3 grid(static_cast<unsigned>(across < 65535 ? across : 65535),
                    static_cast<unsigned>(s.out_rows < 65535 ? s.out_rows : 65535));
    correlate<T, A><<<grid, block_threads, 0, stream_of(launch)>>>(s, f);
    return hr_cuda_op_launched("conv2d", error);
}

} // namespace
} // namespace headrace::op

extern "C" hr_status hr_cuda_op_conv2d(const hr_launch *launch, hr_error *error)
{
    using namespace headrace::op;
    const hr_view &in = launch->in[0];
    const hr_view &out = launch->out[0];
    image s;
    s.in = in.data;
    s.out = out.data;
    s.in_pitch = in.row_pitch_bytes;
    s.out_pitch = out.row_pitch_bytes;
    s.in_first = in.first;
    s.out_first = out.first;
    s.whole_rows = in.whole.extent[0];
    s.out_rows = out.shape.extent[0];
    s.columns = out.shape.extent[1];
    s.channels = out.shape.rank == 3 ? out.shape.extent[2] : 1;
    if (s.out_rows == 0 || s.columns == 0 || s.channels == 0) {
        return HR_OK;
    }
    hr_status fast;
    if (hr_cuda_fast_conv2d(launch, &fast, error)) {
        return fast;
    }
    return with_type(in.dtype, [&](auto tag) -> hr_status {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, double>) {
            return launch_filter<T, double>(launch, s, error);
        } else if constexpr (sizeof(T) <= 2 || std::is_same_v<T, float>) {
            return launch_filter<T, float>(launch, s, error);
        } else {
            return hr_fail(error, HR_E_UNSUPPORTED, "conv2d: not of %s", hr_dtype_name(in.dtype));
        }
    });
}
