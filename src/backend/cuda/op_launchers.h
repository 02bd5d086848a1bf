/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in ops on the device: kernel/op_*.cu has them, one family a file. */
#ifndef HR_BACKEND_CUDA_OP_LAUNCHERS_H
#define HR_BACKEND_CUDA_OP_LAUNCHERS_H

#include <headrace/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The launcher of a built-in op on this device, or null. */
hr_launch_fn hr_cuda_op_launcher(const char *name);

hr_status hr_cuda_op_add(const hr_launch *launch, hr_error *error);
hr_status hr_cuda_op_scale(const hr_launch *launch, hr_error *error);
hr_status hr_cuda_op_normalize(const hr_launch *launch, hr_error *error);
hr_status hr_cuda_op_convert(const hr_launch *launch, hr_error *error);
hr_status hr_cuda_op_conv2d(const hr_launch *launch, hr_error *error);
hr_status hr_cuda_op_matmul(const hr_launch *launch, hr_error *error);
hr_status hr_cuda_op_sum(const hr_launch *launch, hr_error *error);
hr_status hr_cuda_op_checksum(const hr_launch *launch, hr_error *error);
hr_status hr_cuda_op_copy(const hr_launch *launch, hr_error *error);

/* matmul of bf16: rounds the launch's accumulator into its output. */
hr_status hr_cuda_op_round_bf16(const hr_launch *launch, hr_error *error);

/* What one multiprocessor of the current device makes of a product of operands of the dtype at a time. */
void hr_cuda_op_product_block(hr_dtype dtype, uint32_t *rows, uint32_t *columns);

/* What came of the launches since the last call of it in this thread. */
hr_status hr_cuda_op_launched(const char *op, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
