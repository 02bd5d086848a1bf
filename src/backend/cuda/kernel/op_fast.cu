/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/kernel/kernel.h"
#include "backend/cuda/kernel/op_fast.h"
#include "backend/cuda/op_launchers.h"

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
 * Sums of bytes times weights are the same in every order when each weight is a multiple of 2⁻¹² and no partial sum needs more than
 * the 24 bits of an f32. Only then may a kernel with another order round to integers.
 */
bool sums_are_exact(const hr_conv2d_params &p)
{
    constexpr double unit = 4096;
    double most = 0;
    for (std::uint32_t i = 0; i < p.rows * p.columns; i++) {
        const double scaled = p.weight[i] * unit;
        if (scaled != std::nearbyint(scaled)) {
            return false;
        }
        most += std::fabs(scaled) * 255;
    }
    return most < 16777216;
}

} // namespace

extern "C" bool hr_cuda_fast_conv2d(const hr_launch *launch, hr_status *status, hr_error *error)
{
    const auto &p = *static_cast<const hr_conv2d_params *>(launch->params);
    const hr_view &in = launch->in[0], &out = launch->out[0];
    const bool shaped =
        out.shape.rank == 2 && p.rows == p.columns && (p.rows == 3 || p.rows == 5 || p.rows == 7);
    if (!shaped || !(in.dtype == HR_F32 || (in.dtype == HR_U8 && sums_are_exact(p)))) {
        return false;
    }
    float weights[49];
    for (std::uint32_t i = 0; i < p.rows * p.columns; i++) {
        weights[i] = static_cast<float>(p.weight[i]);
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
