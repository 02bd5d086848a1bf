/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in ops, and what any op makes of its inputs. */
#include "op/internal.h"

#include "base/checked.h"
#include "base/partial.h"

#include <stdio.h>
#include <string.h>

#define BIT(dtype) (1u << (dtype))
#define FILTERED                                                                                      \
    (BIT(HR_U8) | BIT(HR_I8) | BIT(HR_U16) | BIT(HR_I16) | BIT(HR_F16) | BIT(HR_BF16) | BIT(HR_F32) | \
     BIT(HR_F64))
#define FLOATS (BIT(HR_F16) | BIT(HR_BF16) | BIT(HR_F32) | BIT(HR_F64))

static const hr_op_param scale_params[] = {
    {"by", "number", "1", "what each element is multiplied by"},
    {"plus", "number", "0", "what is added to the product"},
};
static const hr_op_param normalize_params[] = {
    {"mean", "number list", "0", "one mean a channel, or one for all, of values from 0 to 1"},
    {"std", "number list", "1", "one standard deviation a channel, or one for all"},
};
static const hr_op_param convert_params[] = {
    {"to", "dtype", NULL, "the dtype of the result"},
};
static const hr_op_param conv2d_params[] = {
    {"kernel", "file", NULL, "a .npy file with the filter's values: f32 or f64, odd × odd"},
    {"filter", "filter name", NULL, "box3, box5, gauss3, gauss5, gauss7, sobelx, sobely or sharpen"},
    {"border", "border name", "reflect", "zero, replicate or reflect (without repeating the edge)"},
};

#define PARAMS(list) .params = (list), .param_count = sizeof(list) / sizeof((list)[0])

static const hr_builtin builtins[] = {
    {.op = {.size = sizeof(hr_op),
            .name = "add",
            .summary = "c = a + b; integers wrap",
            .inputs = 2,
            .rule = HR_CHUNK_ELEMENTS,
            .cpu = hr_add_cpu},
     .dtypes = HR_ALL_DTYPES},
    {.op = {.size = sizeof(hr_op),
            .name = "scale",
            .summary = "a * by + plus; integers round to nearest even and saturate",
            .inputs = 1,
            .rule = HR_CHUNK_ELEMENTS,
            .cpu = hr_scale_cpu},
     .dtypes = HR_ALL_DTYPES,
     PARAMS(scale_params)},
    {.op = {.size = sizeof(hr_op),
            .name = "normalize",
            .summary = "(a / 255 - mean) / std, channel by channel, as f32",
            .inputs = 1,
            .rule = HR_CHUNK_ELEMENTS,
            .plan = hr_normalize_plan,
            .cpu = hr_normalize_cpu},
     .dtypes = BIT(HR_U8),
     PARAMS(normalize_params)},
    {.op = {.size = sizeof(hr_op),
            .name = "convert",
            .summary = "another dtype; rounds to nearest even, integers saturate, NaN becomes 0",
            .inputs = 1,
            .rule = HR_CHUNK_ELEMENTS,
            .plan = hr_convert_plan,
            .cpu = hr_convert_cpu},
     .dtypes = HR_ALL_DTYPES,
     PARAMS(convert_params)},
    {.op = {.size = sizeof(hr_op),
            .name = "conv2d",
            .summary = "correlation of rows x columns [x channels] with a filter",
            .inputs = 1,
            .rule = HR_CHUNK_ROWS,
            .plan = hr_conv2d_plan,
            .cpu = hr_conv2d_cpu,
            .bound = 1e-5},
     .dtypes = FILTERED,
     PARAMS(conv2d_params)},
    {.op = {.size = sizeof(hr_op),
            .name = "matmul",
            .summary = "matrix product of (m, k) and (k, n)",
            .inputs = 2,
            .rule = HR_CHUNK_TILES,
            .plan = hr_matmul_plan,
            .cpu = hr_matmul_cpu,
            .bound = 1e-5},
     .dtypes = FLOATS},
    {.op = {.size = sizeof(hr_op),
            .name = "sum",
            .summary = "the sum: exact for integers, f64 for floats, the same in any chunks",
            .inputs = 1,
            .rule = HR_CHUNK_REDUCE,
            .plan = hr_sum_plan,
            .cpu = hr_sum_cpu,
            .combine = hr_sum_combine,
            .result = hr_sum_result},
     .dtypes = HR_ALL_DTYPES},
    {.op = {.size = sizeof(hr_op),
            .name = "checksum",
            .summary = "CRC32C of the data bytes",
            .inputs = 1,
            .rule = HR_CHUNK_REDUCE,
            .plan = hr_checksum_plan,
            .cpu = hr_checksum_cpu,
            .combine = hr_checksum_combine,
            .result = hr_checksum_result},
     .dtypes = HR_ALL_DTYPES},
    {.op = {.size = sizeof(hr_op),
            .name = "copy",
            .summary = "the bytes, through the device and back",
            .inputs = 1,
            .rule = HR_CHUNK_ELEMENTS,
            .cpu = hr_copy_cpu},
     .dtypes = HR_ALL_DTYPES},
};
#define BUILTINS (sizeof builtins / sizeof builtins[0])

const hr_op *hr_op_at(uint32_t index)
{
    return index < BUILTINS ? &builtins[index].op : NULL;
}

const hr_op *hr_op_find(const char *name)
{
    for (size_t i = 0; name != NULL && i < BUILTINS; i++) {
        if (strcmp(builtins[i].op.name, name) == 0) {
            return &builtins[i].op;
        }
    }
    return NULL;
}

const hr_builtin *hr_builtin_of(const hr_op *op)
{
    for (size_t i = 0; i < BUILTINS; i++) {
        if (op == &builtins[i].op) {
            return &builtins[i];
        }
    }
    return NULL;
}

const hr_op_param *hr_op_param_at(const hr_op *op, uint32_t index)
{
    const hr_builtin *builtin = hr_builtin_of(op);
    return builtin != NULL && index < builtin->param_count ? &builtin->params[index] : NULL;
}

bool hr_op_takes(const hr_op *op, hr_dtype dtype)
{
    if ((unsigned)dtype - 1u >= HR_DTYPE_COUNT - 1u) {
        return false;
    }
    const hr_builtin *builtin = hr_builtin_of(op);
    return builtin == NULL || (builtin->dtypes >> dtype & 1u) != 0;
}

const char *hr_op_shape_text(const hr_shape *shape, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "(");
    for (uint32_t i = 0; i < shape->rank && used < room; i++) {
        const char *comma = i > 0 ? ", " : "";
        const int more = shape->extent[i] == UINT64_MAX ? snprintf(text + used, room - used, "%s?", comma)
                                                        : snprintf(text + used, room - used, "%s%llu", comma,
                                                                   (unsigned long long)shape->extent[i]);
        used += (size_t)more;
    }
    if (used < room) {
        snprintf(text + used, room - used, shape->rank == 1 ? ",)" : ")");
    }
    return text;
}

static hr_status check_dtypes(const hr_op *op, const hr_dtype *dtypes, hr_error *error)
{
    for (uint32_t i = 0; i < op->inputs; i++) {
        if (hr_op_takes(op, dtypes[i])) {
            continue;
        }
        char list[96] = "";
        size_t used = 0;
        for (int d = 1; d < HR_DTYPE_COUNT; d++) {
            if (hr_op_takes(op, (hr_dtype)d) && used < sizeof list) {
                used += (size_t)snprintf(list + used, sizeof list - used, " %s", hr_dtype_name((hr_dtype)d));
            }
        }
        return hr_fail(error, HR_E_UNSUPPORTED, "%s: input %u is %s, it takes%s", op->name, i + 1,
                       hr_dtype_name(dtypes[i]), list);
    }
    return HR_OK;
}

static hr_status check_shapes(const hr_op *op, const hr_dtype *dtypes, const hr_shape *shapes,
                              hr_error *error)
{
    for (uint32_t i = 0; i < op->inputs; i++) {
        char text[160];
        if (shapes[i].rank > HR_MAX_RANK) {
            return hr_fail(error, HR_E_RANGE, "%s: input %u has %u axes, at most %d are possible", op->name,
                           i + 1, shapes[i].rank, HR_MAX_RANK);
        }
        hr_shape known = shapes[i];
        if (known.rank > 0 && known.extent[0] == UINT64_MAX) {
            known.extent[0] = 1;
        }
        uint64_t bytes;
        if (hr_shape_bytes(&known, dtypes[i], &bytes) != HR_OK) {
            return hr_fail(error, HR_E_RANGE,
                           "%s: input %u of shape %s and dtype %s has more than 2^63 bytes", op->name, i + 1,
                           hr_op_shape_text(&shapes[i], text, sizeof text), hr_dtype_name(dtypes[i]));
        }
    }
    return HR_OK;
}

static bool same_shape(const hr_shape *a, const hr_shape *b)
{
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof a->extent[0]) == 0;
}

/* For ops without a plan: all inputs alike, the output like them. */
static hr_status plan_alike(const hr_op *op, const hr_dtype *dtypes, const hr_shape *shapes, hr_op_plan *plan,
                            hr_error *error)
{
    char first[160];
    char other[160];
    for (uint32_t i = 1; i < op->inputs; i++) {
        if (dtypes[i] != dtypes[0]) {
            return hr_fail(error, HR_E_INVALID, "%s: input %u is %s, input 1 is %s; they must be alike",
                           op->name, i + 1, hr_dtype_name(dtypes[i]), hr_dtype_name(dtypes[0]));
        }
        if (!same_shape(&shapes[0], &shapes[i])) {
            return hr_fail(error, HR_E_INVALID,
                           "%s: input %u has shape %s, input 1 has %s; they must be alike", op->name, i + 1,
                           hr_op_shape_text(&shapes[i], other, sizeof other),
                           hr_op_shape_text(&shapes[0], first, sizeof first));
        }
    }
    plan->outputs = 1;
    plan->dtype[0] = dtypes[0];
    plan->shape[0] = shapes[0];
    return HR_OK;
}

/* A plan may be a user's: what it answers is success or a failure with a reason, whatever it says and leaves unsaid. */
static hr_status call_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                           const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    hr_error why = HR_ERROR_INIT;
    hr_status status = op->plan(op, params, dtypes, shapes, plan, &why);
    if (status == HR_OK) {
        return HR_OK;
    }
    if (status > HR_OK) {
        return hr_fail(error, HR_E_INVALID,
                       "%s: its plan answered %d (%s), which is neither success nor a failure", op->name,
                       (int)status, hr_status_text(status));
    }
    hr_fail(error, status, "%s", why.text[0] != '\0' ? why.text : hr_status_text(status));
    if (error != NULL) {
        error->code = why.code;
    }
    return status;
}

hr_status hr_op_make_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                          hr_op_plan *plan, hr_error *error)
{
    if (op->inputs == 0 || op->inputs > HR_MAX_PORTS) {
        return hr_fail(error, HR_E_INVALID, "%s: an op has 1 to %d inputs, this one has %u", op->name,
                       HR_MAX_PORTS, op->inputs);
    }
    hr_status status = check_dtypes(op, dtypes, error);
    if (status == HR_OK) {
        status = check_shapes(op, dtypes, shapes, error);
    }
    if (status != HR_OK) {
        return status;
    }
    hr_op_plan made;
    memset(&made, 0, sizeof made);
    status = op->plan != NULL ? call_plan(op, params, dtypes, shapes, &made, error)
                              : plan_alike(op, dtypes, shapes, &made, error);
    if (status == HR_OK) {
        *plan = made;
    }
    return status;
}

/* One call of hr_for_pieces(). */
typedef struct cutting {
    hr_piece common;
    uint64_t n, size;
    void (*body)(void *user, const hr_piece *piece);
    void *user;
} cutting;

static void run_piece(void *user, uint64_t index)
{
    const cutting *cut = (const cutting *)user;
    hr_piece piece = cut->common;
    piece.index = index;
    piece.first = index * cut->size;
    piece.count = hr_min_u64(cut->size, cut->n - piece.first);
    cut->body(cut->user, &piece);
}

void hr_for_pieces(const hr_launch *launch, uint64_t n, uint64_t size,
                   void (*body)(void *user, const hr_piece *piece), void *user)
{
    cutting cut = {{launch, hr_kernels_here(), 0, 0, 0}, n, size, body, user};
    launch->workers->run(launch->workers->self, hr_div_up(n, size), run_piece, &cut);
}
