/* SPDX-License-Identifier: Apache-2.0 */
/* Between the entry of conv2d and the files that compile its kernel. */
#ifndef HEADRACE_CUDA_CONV2D_LAUNCH_CUH
#define HEADRACE_CUDA_CONV2D_LAUNCH_CUH

#include "conv2d_digits.h"
#include "conv2d_direct.cuh"

#include <algorithm>

namespace headrace::kernel
{

struct conv_plan {
    conv_job job;
    float weights[49];      /* of f32 */
    hr_conv2d_digits split; /* of bytes */
    CUtensorMap map;
    unsigned blocks;
    unsigned at_once; /* blocks on a multiprocessor; 0: as many as fit */
    chip device;
};

hr_status conv2d_f32(const conv_plan &, unsigned edge, hr_mechanism, cudaStream_t, hr_error *);
hr_status conv2d_bytes(const conv_plan &, unsigned edge, hr_mechanism, cudaStream_t, hr_error *);
hr_status conv2d_separable(const conv_plan &, unsigned edge, hr_mechanism, cudaStream_t, hr_error *);

/* By stas and cluster: halos exchanged between the blocks of a cluster; f32, not separable. */
hr_status conv2d_cluster(const conv_plan &, unsigned edge, hr_mechanism, cudaStream_t, hr_error *);

template <int Edge, conv_math Math> conv_weights<Edge, Math> conv_weights_of(const conv_plan &plan)
{
    conv_weights<Edge, Math> weights;
    std::copy(plan.weights, plan.weights + sizeof weights.w / sizeof *weights.w, weights.w);
    return weights;
}

template <mechanism M, int Edge, conv_math Math>
hr_status conv2d_start(const conv_plan &plan, cudaStream_t stream, hr_error *error)
{
    using shape = conv_shape<Edge>;
    constexpr int threads = 32 * conv_warps<M, Edge, Math>;
    using ring_type =
        device::tile_ring<M, 1, float, shape::tile_rows, shape::columns, device::block_scope<threads>>;
    const auto weights = conv_weights_of<Edge, Math>(plan);
    if constexpr (M == mechanism::sync && Edge == 3) {
        if (direct_fits(plan.job)) {
            return conv2d_direct_start(plan.device, plan.job, weights, stream, error);
        }
    }
    return launch_early(plan.device, "conv2d", conv2d<M, Edge, Math>, dim3(plan.blocks), dim3(threads),
                        shared_for(plan.device, sizeof(typename ring_type::storage), plan.at_once), stream,
                        error, plan.job, weights, plan.map);
}

template <int Edge, conv_math Math>
hr_status conv2d_by(const conv_plan &plan, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    switch (m) {
    case HR_MECHANISM_LDGSTS:
        return conv2d_start<mechanism::ldgsts, Edge, Math>(plan, stream, error);
    case HR_MECHANISM_GROUP:
        return conv2d_start<mechanism::group, Edge, Math>(plan, stream, error);
    case HR_MECHANISM_BARRIER:
        return conv2d_start<mechanism::barrier, Edge, Math>(plan, stream, error);
    case HR_MECHANISM_BULK:
        return conv2d_start<mechanism::bulk, Edge, Math>(plan, stream, error);
    case HR_MECHANISM_TMA:
        return conv2d_start<mechanism::tma, Edge, Math>(plan, stream, error);
    default:
        return conv2d_start<mechanism::sync, Edge, Math>(plan, stream, error);
    }
}

template <conv_math Math>
hr_status conv2d_edges(const conv_plan &plan, unsigned edge, hr_mechanism m, cudaStream_t stream,
                       hr_error *error)
{
    return edge == 3   ? conv2d_by<3, Math>(plan, m, stream, error)
           : edge == 5 ? conv2d_by<5, Math>(plan, m, stream, error)
                       : conv2d_by<7, Math>(plan, m, stream, error);
}

} // namespace headrace::kernel
#endif
