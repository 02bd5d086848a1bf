/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of conv2d: checks, the choice of the mechanism, and the launch. The kernel is in conv2d.cuh; the
 * files conv2d_*.cu compile it. */
#include "conv2d_bytes.cuh"
#include "conv2d_launch.cuh"

#include <algorithm>
#include <cmath>

using namespace headrace::kernel;

namespace
{

constexpr hr_mechanism order[] = {HR_MECHANISM_TMA,    HR_MECHANISM_BULK,   HR_MECHANISM_BARRIER,
                                  HR_MECHANISM_LDGSTS, HR_MECHANISM_SYNC,   HR_MECHANISM_GROUP,
                                  HR_MECHANISM_STAS,   HR_MECHANISM_CLUSTER};
constexpr int order_count = sizeof order / sizeof *order;
/* Where plain loads do without shared memory (conv2d_direct.cuh, conv2d_bytes.cuh) nothing is faster; but for bytes with
 * weights of several digits and 3 × 3. */
constexpr hr_mechanism direct_order[] = {HR_MECHANISM_SYNC};
constexpr hr_mechanism digits_order[] = {HR_MECHANISM_TMA, HR_MECHANISM_SYNC};

constexpr uint64_t most_edge = INT32_MAX - 4096; /* rows and columns are counted in 32 bits, halos included */

hr_status check(const hr_kernel_conv2d_args *a, hr_error *error)
{
    const uint64_t size = hr_dtype_bytes(a->dtype);
    if (a->dtype != HR_F32 && a->dtype != HR_U8) {
        return hr_fail(error, HR_E_UNSUPPORTED, "conv2d: dtype %s, needs f32 or u8", hr_dtype_name(a->dtype));
    }
    if (a->edge != 3 && a->edge != 5 && a->edge != 7) {
        return hr_fail(error, HR_E_UNSUPPORTED, "conv2d: kernel edge %u, needs 3, 5 or 7", a->edge);
    }
    if (a->image_rows > most_edge || a->columns > most_edge) {
        return hr_fail(error, HR_E_RANGE, "conv2d: image of %llu × %llu, needs edges below 2^31 − 4096",
                       static_cast<unsigned long long>(a->image_rows),
                       static_cast<unsigned long long>(a->columns));
    }
    if (a->src_pitch_bytes % size != 0 || a->dst_pitch_bytes % size != 0 ||
        a->src_pitch_bytes < a->columns * size || a->dst_pitch_bytes < a->columns * size) {
        return hr_fail(error, HR_E_INVALID,
                       "conv2d: pitches of %llu and %llu bytes, need multiples of %llu of at least %llu",
                       static_cast<unsigned long long>(a->src_pitch_bytes),
                       static_cast<unsigned long long>(a->dst_pitch_bytes),
                       static_cast<unsigned long long>(size),
                       static_cast<unsigned long long>(a->columns * size));
    }
    const uint64_t radius = a->edge / 2;
    const uint64_t need_first = a->dst_first > radius ? a->dst_first - radius : 0;
    const uint64_t need_end = std::min(a->dst_first + a->dst_rows + radius, a->image_rows);
    if (a->dst_first + a->dst_rows > a->image_rows || a->src_first > need_first ||
        a->src_first + a->src_rows < need_end || a->src_first + a->src_rows > a->image_rows) {
        return hr_fail(
            error, HR_E_INVALID,
            "conv2d: source holds rows %llu to %llu of %llu, output rows %llu to %llu need %llu to %llu",
            static_cast<unsigned long long>(a->src_first),
            static_cast<unsigned long long>(a->src_first + a->src_rows),
            static_cast<unsigned long long>(a->image_rows), static_cast<unsigned long long>(a->dst_first),
            static_cast<unsigned long long>(a->dst_first + a->dst_rows),
            static_cast<unsigned long long>(need_first), static_cast<unsigned long long>(need_end));
    }
    return HR_OK;
}

struct block_shape {
    uint64_t columns, rows; /* of the output */
    uint32_t box[2];        /* of the tensor map */
};

template <class Shape> block_shape block_of()
{
    return {
        static_cast<uint64_t>(Shape::strip),
        static_cast<uint64_t>(Shape::rows),
        {static_cast<uint32_t>(Shape::columns / Shape::map_pixels), static_cast<uint32_t>(Shape::tile_rows)}};
}
template <int Edge> block_shape block_of(hr_dtype dtype)
{
    return dtype == HR_U8 ? block_of<byte_tile<mechanism::tma, Edge>>() : block_of<conv_shape<Edge>>();
}
block_shape block_of(const hr_kernel_conv2d_args *a)
{
    return a->edge == 3   ? block_of<3>(a->dtype)
           : a->edge == 5 ? block_of<5>(a->dtype)
                          : block_of<7>(a->dtype);
}

bool make_map(const hr_kernel_conv2d_args *a, CUtensorMap *map, char *reason)
{
    hr_tensor t = {};
    const bool bytes = a->dtype == HR_U8;
    const uint32_t together = bytes ? byte_tile<mechanism::tma, 3>::map_pixels : 1;
    const block_shape block = block_of(a);
    t.type = bytes ? CU_TENSOR_MAP_DATA_TYPE_UINT64 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    t.rank = 2;
    t.base = a->src;
    t.extent[0] = (a->columns + together - 1) / together;
    t.extent[1] = a->src_rows;
    t.stride_bytes[1] = a->src_pitch_bytes;
    t.box[0] = block.box[0];
    t.box[1] = block.box[1];
    t.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    return hr_tensor_map_make(&t, map, reason) != 0;
}

bool fits(const hr_kernel_conv2d_args *a, const chip &c, hr_mechanism m, CUtensorMap *map,
          char (&reason)[HR_TENSOR_REASON_BYTES])
{
    if (!chip_has(c, m, reason)) {
        return false;
    }
    if ((m == HR_MECHANISM_STAS || m == HR_MECHANISM_CLUSTER) && (a->dtype != HR_F32 || a->separable)) {
        std::snprintf(reason, sizeof reason,
                      "the exchange of halos is done for f32 kernels that are not separable");
        return false;
    }
    if (m == HR_MECHANISM_SYNC) {
        return true;
    }
    if (m == HR_MECHANISM_TMA) {
        return make_map(a, map, reason);
    }
    return reads_by_16(a->src, a->src_pitch_bytes, reason);
}

/* The weights as the filters of bytes take them, those of a separable kernel multiplied out: products of two f32 are exact. */
hr_status split_weights(const hr_kernel_conv2d_args *a, conv_plan *plan, hr_error *error)
{
    double weights[49];
    for (unsigned i = 0; i < a->edge * a->edge; i++) {
        weights[i] = a->weights[a->separable ? i / a->edge : i];
        if (a->separable) {
            weights[i] *= a->weights[a->edge + i % a->edge];
        }
        if (!std::isfinite(weights[i])) {
            return hr_fail(error, HR_E_INVALID, "conv2d: weight %u is %g, bytes need finite ones", i,
                           weights[i]);
        }
    }
    hr_conv2d_split(weights, a->edge * a->edge, &plan->split);
    return HR_OK;
}

struct choice {
    const hr_mechanism *order;
    int count;
};

/* What to try. */
choice choose(const hr_kernel_conv2d_args *a, hr_mechanism asked, const conv_plan &plan)
{
    const bool bytes = a->dtype == HR_U8;
    if (asked != HR_MECHANISM_AUTO || (!bytes && (a->edge != 3 || !direct_fits(plan.job)))) {
        return {order, order_count};
    }
    return bytes && a->edge == 3 && plan.split.digits > 1 ? choice{digits_order, 2} : choice{direct_order, 1};
}

} // namespace

extern "C" hr_status hr_kernel_conv2d(const hr_kernel_conv2d_args *a, hr_mechanism m, cudaStream_t stream,
                                      hr_error *error)
{
    chip c;
    conv_plan plan = {};
    hr_status status = check(a, error);
    if (status != HR_OK || a->dst_rows == 0 || a->columns == 0) {
        return status;
    }
    status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    const auto size = static_cast<long long>(hr_dtype_bytes(a->dtype));
    const block_shape block = block_of(a);
    const uint64_t across = (a->columns + block.columns - 1) / block.columns;
    const uint64_t blocks = across * ((a->dst_rows + block.rows - 1) / block.rows);
    if (blocks > INT32_MAX) {
        return hr_fail(error, HR_E_RANGE,
                       "conv2d: %llu × %llu needs %llu blocks, a launch has at most 2^31 − 1",
                       static_cast<unsigned long long>(a->dst_rows),
                       static_cast<unsigned long long>(a->columns), static_cast<unsigned long long>(blocks));
    }
    plan.blocks = static_cast<unsigned>(blocks);
    plan.at_once = a->tuning != nullptr ? a->tuning->blocks_per_sm : 0;
    plan.device = c;
    plan.job.src = a->src;
    plan.job.dst = a->dst;
    plan.job.src_pitch = static_cast<long long>(a->src_pitch_bytes) / size;
    plan.job.dst_pitch = static_cast<long long>(a->dst_pitch_bytes) / size;
    plan.job.image_rows = static_cast<int>(a->image_rows);
    plan.job.columns = static_cast<int>(a->columns);
    plan.job.src_first = static_cast<int>(a->src_first);
    plan.job.src_rows = static_cast<int>(a->src_rows);
    plan.job.dst_first = static_cast<int>(a->dst_first);
    plan.job.dst_rows = static_cast<int>(a->dst_rows);
    plan.job.across = static_cast<int>(across);
    plan.job.border = static_cast<int>(a->border);
    plan.job.vector_load = aligned16(a->src) && a->src_pitch_bytes % 16 == 0;
    const uintptr_t lane_bytes = a->dtype == HR_U8 ? 8 : 16;
    plan.job.vector_store = (reinterpret_cast<uintptr_t>(a->dst) | a->dst_pitch_bytes) % lane_bytes == 0;
    if (a->dtype == HR_U8) {
        status = split_weights(a, &plan, error);
        if (status != HR_OK) {
            return status;
        }
    } else {
        std::copy(a->weights, a->weights + (a->separable ? 2 * a->edge : a->edge * a->edge), plan.weights);
    }
    const choice tried = choose(a, m, plan);
    return with_mechanism(
        "conv2d", m, tried.order, tried.count, a->used, error,
        [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) {
            return fits(a, c, k, &plan.map, reason);
        },
        [&](hr_mechanism k) {
            if (a->dtype == HR_U8) {
                return conv2d_bytes(plan, a->edge, k, stream, error);
            }
            if (a->separable) {
                return conv2d_separable(plan, a->edge, k, stream, error);
            }
            if (k == HR_MECHANISM_STAS || k == HR_MECHANISM_CLUSTER) {
                return conv2d_cluster(plan, a->edge, k, stream, error);
            }
            return conv2d_f32(plan, a->edge, k, stream, error);
        });
}
