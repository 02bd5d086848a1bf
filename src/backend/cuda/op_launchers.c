/* SPDX-License-Identifier: Apache-2.0 */
/* The launchers of the built-in ops, by name. */
#include "backend/cuda/op_launchers.h"
#include "backend/cuda/cuda_backend.h"

#include <string.h>

static const struct {
    const char *name;
    hr_launch_fn launcher;
} launchers[] = {
    {"add", hr_cuda_op_add},         {"scale", hr_cuda_op_scale},       {"normalize", hr_cuda_op_normalize},
    {"convert", hr_cuda_op_convert}, {"conv2d", hr_cuda_op_conv2d},     {"matmul", hr_cuda_op_matmul},
    {"sum", hr_cuda_op_sum},         {"checksum", hr_cuda_op_checksum}, {"copy", hr_cuda_op_copy},
};

hr_launch_fn hr_cuda_op_launcher(const char *name)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (strcmp(launchers[i].name, name) == 0) {
            return launchers[i].launcher;
        }
    }
    return NULL;
}

hr_status hr_cuda_op_launched(const char *op, hr_error *error)
{
    return hr_cuda_check(NULL, cudaGetLastError(), error, "%s: its kernel could not be launched", op);
}
