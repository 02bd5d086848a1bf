/* SPDX-License-Identifier: Apache-2.0 */
/* sum and checksum on the CPU: pieces of a chunk are reduced at once, and combined in order. */
#include "op/internal.h"

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/partial.h"

#include <string.h>

#define MAX_PIECES 32
/* Fewer elements than this are not worth a worker. */
#define MIN_PIECE UINT64_C(32768)

static const char *element_at(const hr_view *view, uint64_t element)
{
    return (const char *)view->data + element * hr_dtype_bytes(view->dtype);
}

static bool is_float(hr_dtype dtype)
{
    return dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F32 || dtype == HR_F64;
}

static bool is_signed(hr_dtype dtype)
{
    return dtype == HR_I8 || dtype == HR_I16 || dtype == HR_I32 || dtype == HR_I64;
}

/* Pieces of a chunk of n elements: no more than MAX_PIECES, whole blocks of the sum each. */
static uint64_t piece_size(uint64_t n)
{
    return hr_max_u64(MIN_PIECE, hr_round_up(hr_div_up(n, MAX_PIECES), HR_SUM_BLOCK));
}

hr_status hr_sum_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                      hr_op_plan *plan, hr_error *error)
{
    (void)op, (void)params, (void)dtypes, (void)shapes, (void)error;
    plan->partial_bytes = sizeof(hr_sum_partial);
    plan->align_elements = HR_SUM_BLOCK;
    return HR_OK;
}

static void sum_float_piece(const hr_piece *p, hr_exact_sum *sum)
{
    const hr_view *in = &p->launch->in[0];
    uint64_t lane = (in->first + p->first) % HR_SUM_BLOCK;
    for (uint64_t done = 0; done < p->count;) {
        const uint64_t n = hr_min_u64(HR_SUM_BLOCK - lane, p->count - done);
        hr_exact_sum_add(sum, p->kernels->sum_block(element_at(in, p->first + done), in->dtype, lane, n));
        done += n;
        lane = 0;
    }
    hr_exact_sum_carry(sum);
}

static void sum_piece(void *user, const hr_piece *p)
{
    hr_sum_partial *partial = (hr_sum_partial *)user + p->index;
    memset(partial, 0, sizeof *partial);
    if (is_float(p->launch->in[0].dtype)) {
        sum_float_piece(p, &partial->floats);
        return;
    }
    const uint64_t most = UINT64_C(1) << 30;
    for (uint64_t done = 0; done < p->count; done += most) {
        const uint64_t n = hr_min_u64(most, p->count - done);
        const hr_sum128 more = p->kernels->sum_integers(element_at(&p->launch->in[0], p->first + done),
                                                        p->launch->in[0].dtype, n);
        partial->integers = hr_sum128_add(partial->integers, more);
    }
}

void hr_sum_combine(const hr_op *op, const void *params, void *total, const void *partial, uint64_t elements)
{
    (void)op, (void)params, (void)elements;
    hr_sum_partial *sum = (hr_sum_partial *)total;
    const hr_sum_partial *more = (const hr_sum_partial *)partial;
    sum->integers = hr_sum128_add(sum->integers, more->integers);
    hr_exact_sum_merge(&sum->floats, &more->floats);
}

hr_status hr_sum_cpu(const hr_launch *launch, hr_error *error)
{
    uint64_t n;
    if (hr_shape_elements(&launch->in[0].shape, &n) != HR_OK) {
        return hr_fail(error, HR_E_RANGE, "the chunk has more than 2^64 elements");
    }
    hr_sum_partial piece[MAX_PIECES];
    const uint64_t size = piece_size(n);
    hr_for_pieces(launch, n, size, sum_piece, piece);
    hr_sum_partial *total = (hr_sum_partial *)launch->partial;
    memset(total, 0, sizeof *total);
    for (uint64_t i = 0; i < hr_div_up(n, size); i++) {
        hr_sum_combine(NULL, NULL, total, &piece[i], 0);
    }
    return HR_OK;
}

hr_status hr_sum_result(const hr_op *op, const void *params, hr_dtype dtype, const void *total,
                        hr_result *result, hr_error *error)
{
    (void)params;
    const hr_sum_partial *sum = (const hr_sum_partial *)total;
    if (is_float(dtype)) {
        result->kind = HR_RESULT_F64;
        result->as.f64 = hr_exact_sum_value(&sum->floats);
        return HR_OK;
    }
    const hr_sum128 value = sum->integers;
    if (is_signed(dtype)) {
        if (value.high != (value.low >> 63 != 0 ? UINT64_MAX : 0)) {
            return hr_fail(error, HR_E_RANGE, "%s: the total is %s, and an i64 cannot hold it", op->name,
                           value.high >> 63 != 0 ? "below -2^63" : "at least 2^63");
        }
        result->kind = HR_RESULT_I64;
        result->as.i64 = (int64_t)value.low;
        return HR_OK;
    }
    if (value.high != 0) {
        return hr_fail(error, HR_E_RANGE, "%s: the total is at least 2^64, and a u64 cannot hold it",
                       op->name);
    }
    result->kind = HR_RESULT_U64;
    result->as.u64 = value.low;
    return HR_OK;
}

hr_status hr_checksum_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                           const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    (void)op, (void)params, (void)dtypes, (void)shapes, (void)error;
    plan->partial_bytes = sizeof(hr_checksum_partial);
    return HR_OK;
}

static void checksum_piece(void *user, const hr_piece *p)
{
    hr_checksum_partial *partial = (hr_checksum_partial *)user + p->index;
    partial->bytes = p->count * hr_dtype_bytes(p->launch->in[0].dtype);
    partial->crc = p->kernels->crc32c(0, element_at(&p->launch->in[0], p->first), partial->bytes);
}

void hr_checksum_combine(const hr_op *op, const void *params, void *total, const void *partial,
                         uint64_t elements)
{
    (void)op, (void)params, (void)elements;
    hr_checksum_partial *sum = (hr_checksum_partial *)total;
    const hr_checksum_partial *more = (const hr_checksum_partial *)partial;
    sum->crc = hr_crc32c_combine((uint32_t)sum->crc, (uint32_t)more->crc, more->bytes);
    sum->bytes += more->bytes;
}

hr_status hr_checksum_cpu(const hr_launch *launch, hr_error *error)
{
    uint64_t n;
    if (hr_shape_elements(&launch->in[0].shape, &n) != HR_OK) {
        return hr_fail(error, HR_E_RANGE, "the chunk has more than 2^64 elements");
    }
    hr_checksum_partial piece[MAX_PIECES];
    const uint64_t size = piece_size(n);
    hr_for_pieces(launch, n, size, checksum_piece, piece);
    hr_checksum_partial *total = (hr_checksum_partial *)launch->partial;
    memset(total, 0, sizeof *total);
    for (uint64_t i = 0; i < hr_div_up(n, size); i++) {
        hr_checksum_combine(NULL, NULL, total, &piece[i], 0);
    }
    return HR_OK;
}

hr_status hr_checksum_result(const hr_op *op, const void *params, hr_dtype dtype, const void *total,
                             hr_result *result, hr_error *error)
{
    (void)op, (void)params, (void)dtype, (void)error;
    result->kind = HR_RESULT_HEX32;
    result->as.hex32 = (uint32_t)((const hr_checksum_partial *)total)->crc;
    return HR_OK;
}
