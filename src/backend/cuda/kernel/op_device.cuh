// SPDX-License-Identifier: Apache-2.0
// What the ops' kernels share: element types, how they are read and rounded, and the size of a grid.
#ifndef HR_BACKEND_CUDA_KERNEL_OP_DEVICE_CUH
#define HR_BACKEND_CUDA_KERNEL_OP_DEVICE_CUH

#include "backend/cuda/op_launchers.h"
#include "base/half.h"

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace headrace::op
{

struct f16 {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};

template <class T> inline constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <class T> inline constexpr bool is_float = is_half<T> || std::is_floating_point_v<T>;

template <class T> struct type_tag {
    using type = T;
};

// Calls f(type_tag<T>{}) with the type of the dtype.
template <class F> hr_status with_type(hr_dtype dtype, F f)
{
    switch (dtype) {
    case HR_F16:
        return f(type_tag<f16>{});
    case HR_BF16:
        return f(type_tag<bf16>{});
    case HR_F32:
        return f(type_tag<float>{});
    case HR_F64:
        return f(type_tag<double>{});
    case HR_I8:
        return f(type_tag<int8_t>{});
    case HR_I16:
        return f(type_tag<int16_t>{});
    case HR_I32:
        return f(type_tag<int32_t>{});
    case HR_I64:
        return f(type_tag<int64_t>{});
    case HR_U8:
        return f(type_tag<uint8_t>{});
    case HR_U16:
        return f(type_tag<uint16_t>{});
    case HR_U32:
        return f(type_tag<uint32_t>{});
    case HR_U64:
        return f(type_tag<uint64_t>{});
    default:
        return HR_E_UNSUPPORTED;
    }
}

// The narrowest type that holds every value: f32 of the 16-bit floats, else the type itself.
template <class T> using wide_type = std::conditional_t<is_half<T>, float, T>;

template <class T> __device__ inline wide_type<T> widen(T x)
{
    if constexpr (std::is_same_v<T, f16>) {
        return __half2float(__ushort_as_half(x.bits));
    } else if constexpr (std::is_same_v<T, bf16>) {
        return __bfloat162float(__ushort_as_bfloat16(x.bits));
    } else {
        return x;
    }
}

template <class T> struct limits; // of the integers
#define HR_OP_LIMITS(T, least, most)       \
    template <> struct limits<T> {         \
        static constexpr T lowest = least; \
        static constexpr T highest = most; \
    };
HR_OP_LIMITS(int8_t, INT8_MIN, INT8_MAX)
HR_OP_LIMITS(int16_t, INT16_MIN, INT16_MAX)
HR_OP_LIMITS(int32_t, INT32_MIN, INT32_MAX)
HR_OP_LIMITS(int64_t, INT64_MIN, INT64_MAX)
HR_OP_LIMITS(uint8_t, 0, UINT8_MAX)
HR_OP_LIMITS(uint16_t, 0, UINT16_MAX)
HR_OP_LIMITS(uint32_t, 0, UINT32_MAX)
HR_OP_LIMITS(uint64_t, 0, UINT64_MAX)
#undef HR_OP_LIMITS

// A float to an integer: nearest, ties to even; saturates; NaN is 0. The instruction saturates to its own
// type.
template <class D, class S> __device__ inline D round_to_integer(S x)
{
    if (x != x) {
        return 0;
    }
    if constexpr (std::is_same_v<D, uint64_t>) {
        return std::is_same_v<S, float> ? __float2ull_rn(static_cast<float>(x)) : __double2ull_rn(x);
    } else if constexpr (std::is_same_v<D, int64_t>) {
        return std::is_same_v<S, float> ? __float2ll_rn(static_cast<float>(x)) : __double2ll_rn(x);
    } else if constexpr (std::is_same_v<D, uint32_t>) {
        return std::is_same_v<S, float> ? __float2uint_rn(static_cast<float>(x)) : __double2uint_rn(x);
    } else {
        const int32_t r =
            std::is_same_v<S, float> ? __float2int_rn(static_cast<float>(x)) : __double2int_rn(x);
        const int32_t low = limits<D>::lowest;
        const int32_t high = limits<D>::highest;
        return static_cast<D>(r < low ? low : r > high ? high : r);
    }
}

// An integer to an integer: saturates.
template <class D, class S> __device__ inline D clamp_to(S x)
{
    if constexpr (std::is_signed_v<S> && std::is_unsigned_v<D>) {
        const uint64_t up = x < 0 ? 0 : static_cast<uint64_t>(x);
        return static_cast<D>(up > limits<D>::highest ? limits<D>::highest : up);
    } else if constexpr (std::is_unsigned_v<S>) {
        const uint64_t high = static_cast<uint64_t>(limits<D>::highest);
        return static_cast<D>(x > high ? high : x);
    } else {
        const int64_t low = limits<D>::lowest;
        const int64_t high = limits<D>::highest;
        const int64_t wide = x;
        return static_cast<D>(wide < low ? low : wide > high ? high : wide);
    }
}

// A 16-bit float rounds once: what is wider than f32 is made odd first (base/half.h).
template <class S> __device__ inline float to_odd(S x)
{
    if constexpr (std::is_same_v<S, float>) {
        return x;
    } else if constexpr (std::is_same_v<S, double>) {
        return hr_float_from_double_to_odd(x);
    } else if constexpr (std::is_same_v<S, uint64_t>) {
        return hr_float_from_u64_to_odd(x);
    } else if constexpr (std::is_same_v<S, int64_t>) {
        return hr_float_from_i64_to_odd(x);
    } else {
        return hr_float_from_double_to_odd(static_cast<double>(x));
    }
}

// Any value as T, by the rules of the op `convert`.
template <class D, class S> __device__ inline D narrow(S x)
{
    if constexpr (std::is_same_v<D, f16>) {
        return {__half_as_ushort(__float2half_rn(to_odd(x)))};
    } else if constexpr (std::is_same_v<D, bf16>) {
        return {__bfloat16_as_ushort(__float2bfloat16_rn(to_odd(x)))};
    } else if constexpr (std::is_floating_point_v<D>) {
        return static_cast<D>(x);
    } else if constexpr (std::is_floating_point_v<S>) {
        return round_to_integer<D>(x);
    } else {
        return clamp_to<D>(x);
    }
}

// V elements that are read or written by one instruction where their bytes are 16.
template <class T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) pack {
    T at[V];
};

inline bool aligned(const void *p, uint64_t bytes)
{
    return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

constexpr int block_threads = 256;

// Blocks for `work` threads' worth: enough to fill the device several times, each thread then goes round.
inline unsigned grid_for(uint64_t work)
{
    int device = 0;
    int sms = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
        sms = 64;
    }
    const uint64_t most = static_cast<uint64_t>(sms) * 16;
    const uint64_t blocks = work / block_threads + (work % block_threads != 0);
    return static_cast<unsigned>(blocks < most ? (blocks > 0 ? blocks : 1) : most);
}

__device__ inline uint64_t first_index()
{
    return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline uint64_t index_stride()
{
    return static_cast<uint64_t>(gridDim.x) * blockDim.x;
}

inline cudaStream_t stream_of(const hr_launch *launch)
{
    return static_cast<cudaStream_t>(launch->native_stream);
}

inline hr_status elements_of(const hr_view &view, uint64_t *n)
{
    return hr_shape_elements(&view.shape, n);
}

} // namespace headrace::op
#endif
