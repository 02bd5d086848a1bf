/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HR_BACKEND_CUDA_OP_LAUNCHERS_H
#define HR_BACKEND_CUDA_OP_LAUNCHERS_H

#include <headrace/op.h>

/* The launcher of a built-in op on this device, or null. */
hr_launch_fn hr_cuda_op_launcher(const char *name);

#endif
