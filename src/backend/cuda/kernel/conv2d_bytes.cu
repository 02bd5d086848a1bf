/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the filters of bytes. */
#include "conv2d_bytes.cuh"
#include "conv2d_launch.cuh"

#include <cmath>
#include <type_traits>

namespace headrace::kernel
{
namespace
{

constexpr unsigned most_down = 65535; /* blocks in a grid's y */

template <int Digits> byte_weights<Digits> weights_of(const hr_conv2d_digits &split, unsigned edge)
{
    byte_weights<Digits> w = {};
    const int shift = std::max(split.shift, -100); /* beyond that, whatever is not zero saturates */
    for (int d = 0; d < Digits; d++) {
        for (unsigned i = 0; i < edge * edge; i++) {
            const auto byte = static_cast<unsigned char>(split.digit[d][i]);
            w.row[d][i / edge + 3] |= static_cast<unsigned long long>(byte) << 8 * (i % edge);
        }
        w.by[d] = std::ldexp(1.0F, Digits == 1 ? -96 - shift : 8 * d - 36 - shift);
        w.plus -= 1.5F * 0x1p-30F * w.by[d];
    }
    return w;
}

template <mechanism M, int Edge, int Digits>
hr_status start(const conv_plan &plan, cudaStream_t stream, hr_error *error)
{
    constexpr bool direct = M == mechanism::sync;
    using shape = std::conditional_t<direct, byte_direct<Edge, Digits>, byte_tile<M, Edge>>;
    using ring_type = device::tile_ring<M, 1, unsigned char, shape::tile_rows, shape::columns,
                                        device::block_scope<shape::threads>>;
    const auto across = static_cast<unsigned>((plan.job.columns - 1) / shape::strip + 1);
    const auto down = static_cast<unsigned>((plan.job.dst_rows - 1) / shape::rows + 1);
    const dim3 grid(across, std::min(down, most_down), (down - 1) / most_down + 1);
    const std::size_t shared =
        direct ? 0 : shared_for(plan.device, sizeof(typename ring_type::storage), plan.at_once);
    return launch_early(plan.device, "conv2d", correlate_bytes<M, shape, Edge, Digits>, grid,
                        dim3(shape::threads), shared, stream, error, plan.job,
                        weights_of<Digits>(plan.split, Edge), plan.map);
}

template <mechanism M, int Edge>
hr_status by_digits(const conv_plan &plan, cudaStream_t stream, hr_error *error)
{
    return plan.split.digits == 1   ? start<M, Edge, 1>(plan, stream, error)
           : plan.split.digits == 2 ? start<M, Edge, 2>(plan, stream, error)
                                    : start<M, Edge, 3>(plan, stream, error);
}

template <int Edge>
hr_status by_mechanism(const conv_plan &plan, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    switch (m) {
    case HR_MECHANISM_LDGSTS:
        return by_digits<mechanism::ldgsts, Edge>(plan, stream, error);
    case HR_MECHANISM_GROUP:
        return by_digits<mechanism::group, Edge>(plan, stream, error);
    case HR_MECHANISM_BARRIER:
        return by_digits<mechanism::barrier, Edge>(plan, stream, error);
    case HR_MECHANISM_BULK:
        return by_digits<mechanism::bulk, Edge>(plan, stream, error);
    case HR_MECHANISM_TMA:
        return by_digits<mechanism::tma, Edge>(plan, stream, error);
    default:
        return by_digits<mechanism::sync, Edge>(plan, stream, error);
    }
}

} // namespace

hr_status conv2d_bytes(const conv_plan &plan, unsigned edge, hr_mechanism m, cudaStream_t stream,
                       hr_error *error)
{
    return edge == 3   ? by_mechanism<3>(plan, m, stream, error)
           : edge == 5 ? by_mechanism<5>(plan, m, stream, error)
                       : by_mechanism<7>(plan, m, stream, error);
}

} // namespace headrace::kernel
