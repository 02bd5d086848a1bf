// SPDX-License-Identifier: Apache-2.0
// add, scale, normalize and copy. Products and sums are rounded one by one, as on the CPU: nothing here may
// be fused.
#include "backend/cuda/kernel/op_map.cuh"

#include "base/wide.h"

namespace headrace::op
{
namespace
{

template <class T> struct add_of {
    __device__ T operator()(T a, T b) const
    {
        if constexpr (is_float<T>) {
            return narrow<T>(widen(a) + widen(b));
        } else {
            using U = std::make_unsigned_t<T>;
            return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
        }
    }
};

template <class T> struct scale_of {
    double by, plus;
    float by_f32, plus_f32;
    __device__ T operator()(T a, uint64_t) const
    {
        if constexpr (is_half<T> || std::is_same_v<T, float>) {
            return narrow<T>(__fadd_rn(__fmul_rn(widen(a), by_f32), plus_f32));
        } else {
            return narrow<T>(__dadd_rn(__dmul_rn(static_cast<double>(a), by), plus));
        }
    }
};

// 64-bit integers: exact.
template <class T> struct scale_exactly {
    hr_scale_params params;
    __device__ T operator()(T a, uint64_t) const
    {
        const hr_int128 value = params.is_integer
                                    ? static_cast<hr_int128>(a) * params.by_integer + params.plus_integer
                                    : hr_wide_scale(a, params.by, params.plus);
        if constexpr (std::is_signed_v<T>) {
            return hr_wide_to_i64(value);
        } else {
            return hr_wide_to_u64(value);
        }
    }
};

struct normalize_of {
    hr_normalize_params params;
    uint64_t first;
    __device__ float operator()(uint8_t a, uint64_t i) const
    {
        const uint32_t channel =
            params.channels == 1 ? 0 : static_cast<uint32_t>((first + i) % params.channels);
        const float share = __fdiv_rn(static_cast<float>(a), 255.0f);
        return __fdiv_rn(__fsub_rn(share, params.mean[channel]), params.std_dev[channel]);
    }
};

struct same {
    __device__ uint8_t operator()(uint8_t a, uint64_t) const
    {
        return a;
    }
};

hr_status scale(const hr_launch *launch, hr_error *error)
{
    const auto &params = *static_cast<const hr_scale_params *>(launch->params);
    return with_type(launch->in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
            return launch_one<T, T>("scale", launch, scale_exactly<T>{params}, error);
        } else {
            const scale_of<T> f{params.by, params.plus, static_cast<float>(params.by),
                                static_cast<float>(params.plus)};
            return launch_one<T, T>("scale", launch, f, error);
        }
    });
}

// Bytes, whatever the dtype.
hr_status copy(const hr_launch *launch, hr_error *error)
{
    hr_launch bytes = *launch;
    uint64_t n;
    const hr_status status = hr_shape_bytes(&launch->in[0].shape, launch->in[0].dtype, &n);
    if (status != HR_OK) {
        return status;
    }
    bytes.out[0].shape = {1, {n}};
    return launch_one<uint8_t, uint8_t>("copy", &bytes, same{}, error);
}

} // namespace
} // namespace headrace::op

extern "C" hr_status hr_cuda_op_add(const hr_launch *launch, hr_error *error)
{
    return headrace::op::with_type(launch->in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return headrace::op::launch_two<T>("add", launch, headrace::op::add_of<T>{}, error);
    });
}

extern "C" hr_status hr_cuda_op_scale(const hr_launch *launch, hr_error *error)
{
    return headrace::op::scale(launch, error);
}

extern "C" hr_status hr_cuda_op_normalize(const hr_launch *launch, hr_error *error)
{
    const auto &params = *static_cast<const hr_normalize_params *>(launch->params);
    return headrace::op::launch_one<uint8_t, float>(
        "normalize", launch, headrace::op::normalize_of{params, launch->in[0].first}, error);
}

extern "C" hr_status hr_cuda_op_copy(const hr_launch *launch, hr_error *error)
{
    return headrace::op::copy(launch, error);
}
