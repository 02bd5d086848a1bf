/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the built-in ops' functions, and how a launch is spread over the
 * workers. */
#ifndef HR_OP_INTERNAL_H
#define HR_OP_INTERNAL_H

#include <headrace/op.h>

#include "op/kernels.h"

/* A built-in op: what programs see, what it takes, and its parameters. */
typedef struct hr_builtin {
    hr_op op;
    const hr_op_param *params;
    uint32_t param_count;
    uint32_t dtypes; /* bit 1 << dtype */
} hr_builtin;

#define HR_ALL_DTYPES ((1u << HR_DTYPE_COUNT) - 2u)

/* The built-in op that `op` is, or null. */
const hr_builtin *hr_builtin_of(const hr_op *op);

/* "(4, 7)", for messages. */
const char *hr_op_shape_text(const hr_shape *shape, char *text, size_t room);

/* A span of elements of one launch, done by one worker. */
typedef struct hr_piece {
    const hr_launch *launch;
    const hr_kernels *kernels;
    uint64_t index; /* of the piece */
    uint64_t first; /* element within the chunk */
    uint64_t count;
} hr_piece;

/* Cuts a chunk of n elements into pieces of `size` elements and runs body on each, over all workers. */
void hr_for_pieces(const hr_launch *launch, uint64_t n, uint64_t size,
                   void (*body)(void *user, const hr_piece *piece), void *user);

hr_status hr_add_cpu(const hr_launch *launch, hr_error *error);
hr_status hr_scale_cpu(const hr_launch *launch, hr_error *error);
hr_status hr_normalize_cpu(const hr_launch *launch, hr_error *error);
hr_status hr_convert_cpu(const hr_launch *launch, hr_error *error);
hr_status hr_copy_cpu(const hr_launch *launch, hr_error *error);
hr_status hr_conv2d_cpu(const hr_launch *launch, hr_error *error);
hr_status hr_matmul_cpu(const hr_launch *launch, hr_error *error);
hr_status hr_sum_cpu(const hr_launch *launch, hr_error *error);
hr_status hr_checksum_cpu(const hr_launch *launch, hr_error *error);

hr_status hr_normalize_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                            const hr_shape *shapes, hr_op_plan *plan, hr_error *error);
hr_status hr_convert_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                          hr_op_plan *plan, hr_error *error);
hr_status hr_conv2d_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                         hr_op_plan *plan, hr_error *error);
hr_status hr_matmul_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                         hr_op_plan *plan, hr_error *error);
hr_status hr_sum_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                      hr_op_plan *plan, hr_error *error);
hr_status hr_checksum_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                           const hr_shape *shapes, hr_op_plan *plan, hr_error *error);

void hr_sum_combine(const hr_op *op, const void *params, void *total, const void *partial, uint64_t elements);
hr_status hr_sum_result(const hr_op *op, const void *params, hr_dtype dtype, const void *total,
                        hr_result *result, hr_error *error);
void hr_checksum_combine(const hr_op *op, const void *params, void *total, const void *partial,
                         uint64_t elements);
hr_status hr_checksum_result(const hr_op *op, const void *params, hr_dtype dtype, const void *total,
                             hr_result *result, hr_error *error);

/* The values of a named filter, or HR_E_NOT_FOUND. */
hr_status hr_filter_named(const char *name, hr_conv2d_params *params);
/* "box3 box5 …", for messages. */
const char *hr_filter_names(void);

#endif
