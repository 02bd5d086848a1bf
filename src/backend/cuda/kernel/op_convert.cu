// SPDX-License-Identifier: Apache-2.0
// convert: every dtype to every dtype. A kernel knows what it writes and the pivot that the source goes
// through (the narrowest type that holds it: one of five); the source's own type is a branch that all threads
// take alike. That is 60 kernels instead of 144.
#include "backend/cuda/kernel/op_device.cuh"

namespace headrace::op
{
namespace
{

constexpr int convert_pack = 4;

template <class P, class S>
__device__ inline pack<P, convert_pack> load_as(const void *a, uint64_t g, bool vector)
{
    pack<P, convert_pack> x = {};
    if (vector) {
        const auto raw = static_cast<const pack<S, convert_pack> *>(a)[g];
#pragma unroll
        for (int k = 0; k < convert_pack; k++) {
            x.at[k] = static_cast<P>(widen(raw.at[k]));
        }
    } else {
        x.at[0] = static_cast<P>(widen(static_cast<const S *>(a)[g]));
    }
    return x;
}

// Four elements from element 4 × g on, or the one element g.
template <class P>
__device__ inline pack<P, convert_pack> load(const void *a, hr_dtype from, uint64_t g, bool vector)
{
    if constexpr (std::is_same_v<P, float>) {
        switch (from) {
        case HR_F16:
            return load_as<P, f16>(a, g, vector);
        case HR_BF16:
            return load_as<P, bf16>(a, g, vector);
        default:
            return load_as<P, float>(a, g, vector);
        }
    } else if constexpr (std::is_same_v<P, int32_t>) {
        switch (from) {
        case HR_I8:
            return load_as<P, int8_t>(a, g, vector);
        case HR_U8:
            return load_as<P, uint8_t>(a, g, vector);
        case HR_I16:
            return load_as<P, int16_t>(a, g, vector);
        case HR_U16:
            return load_as<P, uint16_t>(a, g, vector);
        default:
            return load_as<P, int32_t>(a, g, vector);
        }
    } else if constexpr (std::is_same_v<P, int64_t>) {
        return from == HR_U32 ? load_as<P, uint32_t>(a, g, vector) : load_as<P, int64_t>(a, g, vector);
    } else {
        return load_as<P, P>(a, g, vector);
    }
}

template <class P, class D>
__global__ void __launch_bounds__(block_threads)
    convert(const void *__restrict__ a, hr_dtype from, D *__restrict__ c, uint64_t packs, uint64_t n)
{
    for (uint64_t g = first_index(); g < packs; g += index_stride()) {
        const pack<P, convert_pack> x = load<P>(a, from, g, true);
        pack<D, convert_pack> y;
#pragma unroll
        for (int k = 0; k < convert_pack; k++) {
            y.at[k] = narrow<D>(x.at[k]);
        }
        reinterpret_cast<pack<D, convert_pack> *>(c)[g] = y;
    }
    for (uint64_t i = packs * convert_pack + first_index(); i < n; i += index_stride()) {
        c[i] = narrow<D>(load<P>(a, from, i, false).at[0]);
    }
}

template <class P> hr_status launch_convert(const hr_launch *launch, uint64_t n, hr_error *error)
{
    const hr_view &in = launch->in[0];
    const hr_view &out = launch->out[0];
    return with_type(out.dtype, [&](auto to) {
        using D = typename decltype(to)::type;
        // What four elements are aligned to, 16 bytes at most, is enough for each end.
        const bool vector = aligned(in.data, 16) && aligned(out.data, 16);
        const uint64_t packs = vector ? n / convert_pack : 0;
        convert<P, D><<<grid_for(vector ? packs + 1 : n), block_threads, 0, stream_of(launch)>>>(
            in.data, in.dtype, static_cast<D *>(out.data), packs, n);
        return hr_cuda_op_launched("convert", error);
    });
}

} // namespace
} // namespace headrace::op

extern "C" hr_status hr_cuda_op_convert(const hr_launch *launch, hr_error *error)
{
    using namespace headrace::op;
    const hr_view &in = launch->in[0];
    if (in.dtype == launch->out[0].dtype) {
        return hr_cuda_op_copy(launch, error);
    }
    uint64_t n;
    const hr_status status = elements_of(in, &n);
    if (status != HR_OK || n == 0) {
        return status;
    }
    switch (in.dtype) {
    case HR_F16:
    case HR_BF16:
    case HR_F32:
        return launch_convert<float>(launch, n, error);
    case HR_F64:
        return launch_convert<double>(launch, n, error);
    case HR_U32:
    case HR_I64:
        return launch_convert<int64_t>(launch, n, error);
    case HR_U64:
        return launch_convert<uint64_t>(launch, n, error);
    default:
        return launch_convert<int32_t>(launch, n, error);
    }
}
