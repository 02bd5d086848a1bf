/* SPDX-License-Identifier: Apache-2.0 */
#include "conv2d_launch.cuh"

hr_status headrace::kernel::conv2d_f32(const conv_plan &plan, unsigned edge, hr_mechanism m,
                                       cudaStream_t stream, hr_error *error)
{
    return conv2d_edges<conv_math::floats>(plan, edge, m, stream, error);
}
