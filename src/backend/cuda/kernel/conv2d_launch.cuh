/* SPDX-License-Identifier: Apache-2.0 */
/* Between the entry of conv2d and the files that compile its kernel. */
#ifndef HEADRACE_CUDA_CONV2D_LAUNCH_CUH
#define HEADRACE_CUDA_CONV2D_LAUNCH_CUH

#include "conv2d.cuh"

#include <algorithm>

namespace headrace::kernel
{

struct conv_plan {
    conv_job job;
    float weights[49];
    CUtensorMap map;
    dim3 grid;
    unsigned stages; /* 0: the best */
};

hr_status conv2d_f32(const conv_plan &, unsigned edge, hr_mechanism, cudaStream_t, hr_error *);
hr_status conv2d_f32_separable(const conv_plan &, unsigned edge, hr_mechanism, cudaStream_t, hr_error *);
hr_status conv2d_u8(const conv_plan &, unsigned edge, hr_mechanism, cudaStream_t, hr_error *);
hr_status conv2d_u8_separable(const conv_plan &, unsigned edge, hr_mechanism, cudaStream_t, hr_error *);

template <mechanism M, class T, int Edge, bool Separable>
hr_status conv2d_start(const conv_plan &plan, cudaStream_t stream, hr_error *error)
{
    constexpr int stages = 3;
    using ring_type =
        device::tile_ring<M, stages, T, conv_rows_each(Edge), conv_tile<T>::columns, device::warp_scope>;
    conv_weights<Edge, Separable> weights;
    std::copy(plan.weights, plan.weights + sizeof weights.w / sizeof *weights.w, weights.w);
    return launch("conv2d", conv2d<M, T, Edge, Separable, stages>, plan.grid, dim3(conv_warps * 32),
                  conv_warps * sizeof(typename ring_type::storage), stream, error, plan.job, weights,
                  plan.map);
}

template <class T, int Edge, bool Separable>
hr_status conv2d_by(const conv_plan &plan, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    if constexpr (!Separable) { /* the separable kernels come in three mechanisms, to keep the build short */
        switch (m) {
        case HR_MECHANISM_GROUP:
            return conv2d_start<mechanism::group, T, Edge, Separable>(plan, stream, error);
        case HR_MECHANISM_BARRIER:
            return conv2d_start<mechanism::barrier, T, Edge, Separable>(plan, stream, error);
        case HR_MECHANISM_BULK:
            return conv2d_start<mechanism::bulk, T, Edge, Separable>(plan, stream, error);
        default:
            break;
        }
    }
    switch (m) {
    case HR_MECHANISM_LDGSTS:
        return conv2d_start<mechanism::ldgsts, T, Edge, Separable>(plan, stream, error);
    case HR_MECHANISM_TMA:
        return conv2d_start<mechanism::tma, T, Edge, Separable>(plan, stream, error);
    default:
        return conv2d_start<mechanism::sync, T, Edge, Separable>(plan, stream, error);
    }
}

template <class T, bool Separable>
hr_status conv2d_edges(const conv_plan &plan, unsigned edge, hr_mechanism m, cudaStream_t stream,
                       hr_error *error)
{
    return edge == 3   ? conv2d_by<T, 3, Separable>(plan, m, stream, error)
           : edge == 5 ? conv2d_by<T, 5, Separable>(plan, m, stream, error)
                       : conv2d_by<T, 7, Separable>(plan, m, stream, error);
}

} // namespace headrace::kernel
#endif
