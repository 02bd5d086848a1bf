/* SPDX-License-Identifier: Apache-2.0 */
/* The ops' way to the kernels that copy while they compute. */
#ifndef HR_CUDA_KERNEL_OP_FAST_H
#define HR_CUDA_KERNEL_OP_FAST_H

#include <headrace/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * True when one of those kernels fits and gives what the op promises: *status is then the launch's. False: nothing was launched, and the op's
 * plain kernel is to be used.
 */
bool hr_cuda_fast_conv2d(const hr_launch *launch, hr_status *status, hr_error *error);
bool hr_cuda_fast_matmul(const hr_launch *launch, hr_status *status, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
