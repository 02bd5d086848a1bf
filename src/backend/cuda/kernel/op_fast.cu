/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/kernel/conv2d_digits.h"
#include "backend/cuda/kernel/kernel.h"
#include "backend/cuda/kernel/op_fast.h"
#include "backend/cuda/op_launchers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace
{

/* A kernel that does not fit says so and has launched nothing; whatever else it says stands. */
bool took(hr_status status, hr_status *out)
{
    if (status == HR_E_UNSUPPORTED || status == HR_E_RANGE) {
        return false;
    }
    *out = status;
    return true;
}

/*
 * Bytes come out of conv2d as the CPU's to the bit, whose f32 sums depend on their order. A kernel that adds in another order may round them to
 * integers only where the order cannot show. Weights of 1/9, 1/25 or 1/49 throughout: a mean of an odd number of integers is at least 1/98 away from
 * every tie, and the errors of both sums are below 1/1000.
 */
bool is_mean(const float *weights, std::uint32_t count)
{
    return std::all_of(weights, weights + count, [&](float w) { return w == weights[0]; }) &&
           std::fabs(static_cast<double>(weights[0]) * count - 1) < 1e-6;
}

/* Or sums that are exact: no partial sum, as a multiple of the weights' common power of two, needs more than the 24 bits of an f32. */
bool sums_are_exact(const float *weights, std::uint32_t count)
{
    int unit = 40;
    double most = 0;
    for (std::uint32_t i = 0; i < count; i++) {
        if (!std::isfinite(weights[i])) {
            return false;
        }
        if (weights[i] != 0) {
            unit = std::min(unit, hr_conv2d_lowest_bit(weights[i]));
            most += std::fabs(weights[i]) * 255.0;
        }
    }
    return unit >= -40 && most < std::ldexp(1.0, std::min(unit + 24, 40));
}

} // namespace

extern "C" bool hr_cuda_fast_conv2d(const hr_launch *launch, hr_status *status, hr_error *error)
{
    const auto &p = *static_cast<const hr_conv2d_params *>(launch->params);
    const hr_view &in = launch->in[0], &out = launch->out[0];
    const bool shaped =
        out.shape.rank == 2 && p.rows == p.columns && (p.rows == 3 || p.rows == 5 || p.rows == 7);
    if (!shaped || (in.dtype != HR_F32 && in.dtype != HR_U8)) {
        return false;
    }
    const std::uint32_t count = p.rows * p.columns;
    float weights[49];
    std::transform(p.weight, p.weight + count, weights, [](double w) { return static_cast<float>(w); });
    if (in.dtype == HR_U8 && !is_mean(weights, count) && !sums_are_exact(weights, count)) {
        return false;
    }
    hr_kernel_conv2d_args args = {};
    args.dtype = in.dtype;
    args.src = in.data;
    args.dst = out.data;
    args.src_pitch_bytes = in.row_pitch_bytes;
    args.dst_pitch_bytes = out.row_pitch_bytes;
    args.image_rows = in.whole.extent[0];
    args.columns = out.shape.extent[1];
    args.src_first = in.first;
    args.src_rows = in.shape.extent[0];
    args.dst_first = out.first;
    args.dst_rows = out.shape.extent[0];
    args.edge = p.rows;
    args.border = p.border;
    args.weights = weights;
    return took(
        hr_kernel_conv2d(&args, HR_MECHANISM_AUTO, static_cast<cudaStream_t>(launch->native_stream), error),
        status);
}

extern "C" bool hr_cuda_fast_matmul(const hr_launch *launch, hr_status *status, hr_error *error)
{
    const hr_view &a = launch->in[0], &b = launch->in[1], &c = launch->out[0];
    /* Panels of bf16 add up in f32 outside C, and the last one rounds. */
    const bool apart = c.dtype == HR_BF16 && launch->accumulator != nullptr;
    if (c.dtype != HR_F32 && !apart && !(c.dtype == HR_BF16 && !launch->accumulate)) {
        return false;
    }
    hr_kernel_matmul_args args = {};
    args.dtype = a.dtype;
    args.c_dtype = apart ? HR_F32 : c.dtype;
    args.accumulate = launch->accumulate ? 1 : 0;
    args.a = a.data;
    args.b = b.data;
    args.c = apart ? launch->accumulator : c.data;
    args.m = c.shape.extent[0];
    args.n = c.shape.extent[1];
    args.k = a.shape.extent[1];
    args.a_pitch_bytes = a.row_pitch_bytes;
    args.b_pitch_bytes = b.row_pitch_bytes;
    args.c_pitch_bytes = apart ? args.n * sizeof(float) : c.row_pitch_bytes;
    const bool taken = took(
        hr_kernel_matmul(&args, HR_MECHANISM_AUTO, static_cast<cudaStream_t>(launch->native_stream), error),
        status);
    if (taken && *status == HR_OK && apart && launch->last) {
        *status = hr_cuda_op_round_bf16(launch, error);
    }
    return taken;
}
