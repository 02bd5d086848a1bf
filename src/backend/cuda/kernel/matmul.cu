/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the matrix product: checks, tensor maps, and which kernel. */
#include "matmul.cuh"

#include <algorithm>

using namespace headrace::kernel;

namespace
{

constexpr uint64_t most_edge = INT32_MAX - 4096;

uint64_t c_bytes(const hr_kernel_matmul_args *a)
{
    return hr_dtype_bytes(a->dtype == HR_F32 ? HR_F32 : a->c_dtype);
}

hr_status check(const hr_kernel_matmul_args *a, hr_error *error)
{
    const uint64_t size = hr_dtype_bytes(a->dtype);
    const bool narrow = a->dtype == HR_BF16 && (a->c_dtype == HR_BF16 || a->c_dtype == HR_F32);
    if (a->dtype != HR_F32 && !narrow) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "matmul: dtypes %s and %s, needs f32, or bf16 with a result in bf16 or f32",
                       hr_dtype_name(a->dtype), hr_dtype_name(a->c_dtype));
    }
    if (a->m > most_edge || a->n > most_edge || a->k > most_edge) {
        return hr_fail(error, HR_E_RANGE, "matmul: %llu × %llu × %llu, needs edges below 2^31 − 4096",
                       static_cast<unsigned long long>(a->m), static_cast<unsigned long long>(a->n),
                       static_cast<unsigned long long>(a->k));
    }
    const uint64_t pitches[3] = {a->a_pitch_bytes, a->b_pitch_bytes, a->c_pitch_bytes};
    const uint64_t least[3] = {a->k * size, a->n * size, a->n * c_bytes(a)};
    for (int i = 0; i < 3; i++) {
        if (pitches[i] < least[i] || pitches[i] % (i == 2 ? c_bytes(a) : size) != 0) {
            return hr_fail(error, HR_E_INVALID,
                           "matmul: the pitch of %c is %llu bytes, needs whole elements and at least %llu",
                           "ABC"[i], static_cast<unsigned long long>(pitches[i]),
                           static_cast<unsigned long long>(least[i]));
        }
    }
    return HR_OK;
}

bool matrix_map(const void *base, uint64_t rows, uint64_t columns, uint64_t pitch, uint32_t box_rows,
                uint32_t box_columns, CUtensorMapDataType type, CUtensorMapSwizzle swizzle, CUtensorMap *map,
                char *reason)
{
    hr_tensor t = {};
    t.type = type;
    t.rank = 2;
    t.base = base;
    t.extent[0] = columns;
    t.extent[1] = rows;
    t.stride_bytes[1] = pitch;
    t.box[0] = box_columns;
    t.box[1] = box_rows;
    t.swizzle = swizzle;
    t.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    return hr_tensor_map_make(&t, map, reason) != 0;
}

bool of_tf32(const hr_kernel_matmul_args *a)
{
    return a->dtype == HR_F32 && a->tf32 != 0;
}

bool can_split(const chip &c)
{
    return c.major == 9 && matmul_f32_split_compiled();
}

/*
 * f32 by tma is made by the matrix units where there are some that can, or on request by the multiply-add units. Less than a step of k is left to the latter:
 * it is over as soon, and there is little to make up for the first rounding.
 */
bool splits(const hr_kernel_matmul_args *a, const chip &c)
{
    return a->dtype == HR_F32 && !of_tf32(a) && (a->tuning == nullptr || a->tuning->plain == 0) &&
           a->k >= matmul_split_k && can_split(c);
}

bool make_maps(const hr_kernel_matmul_args *a, bool split, CUtensorMap *map_a, CUtensorMap *map_b,
               char *reason)
{
    if (split) {
        return matrix_map(a->a, a->m, a->k, a->a_pitch_bytes, matmul_split_a_rows, matmul_split_k,
                          CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_SWIZZLE_128B, map_a, reason) &&
               matrix_map(a->b, a->k, a->n, a->b_pitch_bytes, matmul_split_b_rows, matmul_split_n,
                          CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_SWIZZLE_NONE, map_b, reason);
    }
    if (of_tf32(a)) { /* the tensor unit rounds */
        return matrix_map(a->a, a->m, a->k, a->a_pitch_bytes, matmul_tf32_m, matmul_tf32_k,
                          CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CU_TENSOR_MAP_SWIZZLE_128B, map_a, reason) &&
               matrix_map(a->b, a->k, a->n, a->b_pitch_bytes, matmul_tf32_k, matmul_tf32_warp_n,
                          CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CU_TENSOR_MAP_SWIZZLE_64B, map_b, reason);
    }
    if (a->dtype == HR_BF16) {
        return matrix_map(a->a, a->m, a->k, a->a_pitch_bytes, matmul_bf16_m, matmul_bf16_k,
                          CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_SWIZZLE_128B, map_a, reason) &&
               matrix_map(a->b, a->k, a->n, a->b_pitch_bytes, matmul_bf16_k, matmul_bf16_box_n,
                          CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_SWIZZLE_128B, map_b, reason);
    }
    return matrix_map(a->a, a->m, a->k, a->a_pitch_bytes, matmul_f32_m, matmul_f32_k,
                      CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_SWIZZLE_128B, map_a, reason) &&
           matrix_map(a->b, a->k, a->n, a->b_pitch_bytes, matmul_f32_k, matmul_f32_n,
                      CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_SWIZZLE_NONE, map_b, reason);
}

bool fits(const hr_kernel_matmul_args *a, const chip &c, bool split, hr_mechanism m, CUtensorMap *map_a,
          CUtensorMap *map_b, char (&reason)[HR_TENSOR_REASON_BYTES])
{
    if (!chip_has(c, m, reason)) {
        return false;
    }
    if (of_tf32(a) && m == HR_MECHANISM_TMA && !(c.major == 9 && matmul_tf32_wgmma_compiled())) {
        std::snprintf(reason, sizeof reason,
                      "TF32 by tma needs compute capability 9.0 (wgmma), and code for it");
        return false;
    }
    if (of_tf32(a) && c.major < 8) {
        std::snprintf(reason, sizeof reason, "TF32 needs compute capability 8.0, this device has %d.x",
                      c.major);
        return false;
    }
    if (a->dtype == HR_BF16 && m != HR_MECHANISM_TMA) {
        std::snprintf(reason, sizeof reason, "bf16 is multiplied by tma and wgmma only");
        return false;
    }
    if (a->dtype == HR_BF16 && c.major != 9) {
        std::snprintf(reason, sizeof reason,
                      "bf16 needs compute capability 9.0 (wgmma), this device has %d.x", c.major);
        return false;
    }
    if (a->dtype == HR_BF16 && !matmul_bf16_compiled()) {
        std::snprintf(reason, sizeof reason, "bf16 needs code for sm_90a (wgmma), and this build has none");
        return false;
    }
    if (m == HR_MECHANISM_SYNC) {
        return true;
    }
    if (m == HR_MECHANISM_TMA) {
        return make_maps(a, split, map_a, map_b, reason);
    }
    if (!aligned16(a->a) || !aligned16(a->b) || a->a_pitch_bytes % 16 != 0 || a->b_pitch_bytes % 16 != 0) {
        std::snprintf(
            reason, sizeof reason,
            "needs bases and pitches of A and B in multiples of 16 bytes, found pitches of %llu and %llu",
            static_cast<unsigned long long>(a->a_pitch_bytes),
            static_cast<unsigned long long>(a->b_pitch_bytes));
        return false;
    }
    return true;
}

constexpr hr_mechanism order[] = {HR_MECHANISM_TMA, HR_MECHANISM_LDGSTS, HR_MECHANISM_SYNC,
                                  HR_MECHANISM_BULK};

} // namespace

extern "C" bool hr_kernel_matmul_block(hr_dtype dtype, uint32_t *rows, uint32_t *columns)
{
    chip c;
    if (chip_of_current_device(&c, nullptr) != HR_OK) {
        return false;
    }
    if (dtype == HR_F32) {
        const bool split = can_split(c);
        *rows = split ? matmul_split_m : matmul_f32_m;
        *columns = split ? matmul_split_n : matmul_f32_n;
        return true;
    }
    if (dtype == HR_BF16 && c.major == 9 && matmul_bf16_compiled()) {
        *rows = matmul_bf16_m;
        *columns = matmul_bf16_n;
        return true;
    }
    return false;
}

extern "C" hr_status hr_kernel_matmul(const hr_kernel_matmul_args *a, hr_mechanism m, cudaStream_t stream,
                                      hr_error *error)
{
    chip c;
    hr_status status = check(a, error);
    if (status != HR_OK || a->m == 0 || a->n == 0 || (a->k == 0 && a->accumulate)) {
        return status;
    }
    status = chip_of_current_device(&c, error);
    if (status != HR_OK) {
        return status;
    }
    if (a->k == 0) {
        const cudaError_t code =
            cudaMemset2DAsync(a->c, a->c_pitch_bytes, 0, a->n * c_bytes(a), a->m, stream);
        return code == cudaSuccess ? HR_OK : check_launch("matmul", error);
    }
    const auto size = static_cast<long long>(hr_dtype_bytes(a->dtype));
    matmul_job job = {};
    job.a = a->a;
    job.b = a->b;
    job.c = a->c;
    job.m = static_cast<int>(a->m);
    job.n = static_cast<int>(a->n);
    job.k = static_cast<int>(a->k);
    job.a_pitch = static_cast<long long>(a->a_pitch_bytes) / size;
    job.b_pitch = static_cast<long long>(a->b_pitch_bytes) / size;
    job.c_pitch = static_cast<long long>(a->c_pitch_bytes / c_bytes(a));
    job.accumulate = a->accumulate != 0;
    job.vector_store = aligned16(a->c) && a->c_pitch_bytes % 16 == 0;
    job.group = a->tuning != nullptr && a->tuning->variant > 0 ? static_cast<int>(a->tuning->variant) : 8;
    const bool split = splits(a, c);
    CUtensorMap map_a = {}, map_b = {};
    return with_mechanism(
        "matmul", m, order, sizeof order / sizeof *order, a->used, error,
        [&](hr_mechanism k, char(&reason)[HR_TENSOR_REASON_BYTES]) {
            return fits(a, c, split, k, &map_a, &map_b, reason);
        },
        [&](hr_mechanism k) {
            if (of_tf32(a)) {
                return k == HR_MECHANISM_TMA ? matmul_tf32_wgmma(job, map_a, map_b, c.sms, stream, error)
                                             : matmul_tf32(job, k, stream, error);
            }
            if (k == HR_MECHANISM_TMA && split) {
                if (a->tuning == nullptr || a->tuning->variant == 0) {
                    job.group = matmul_split_group;
                }
                return matmul_f32_split(job, map_a, map_b, c.sms, stream, error);
            }
            return a->dtype == HR_BF16
                       ? matmul_bf16(job, a->c_dtype == HR_F32, map_a, map_b, c.sms, stream, error)
                       : matmul_f32(job, map_a, map_b, k, stream, error);
        });
}
