/* SPDX-License-Identifier: Apache-2.0 */
#include "conv2d_launch.cuh"

hr_status headrace::kernel::conv2d_separable(const conv_plan &plan, hr_dtype dtype, unsigned edge,
                                             hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return dtype == HR_U8 ? conv2d_edges<unsigned char, conv_math::separable>(plan, edge, m, stream, error)
                          : conv2d_edges<float, conv_math::separable>(plan, edge, m, stream, error);
}
