/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEADRACE_CUDA_BENCH_KERNELS_H
#define HEADRACE_CUDA_BENCH_KERNELS_H

#include <headrace/bench.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * `headrace bench kernels` on the current device: every kernel with every mechanism that the device has,
 * against this device's own copy speed or cuBLAS (where its library is found) in the same run, verified
 * against plain loops on random data. Blocks for up to a minute; takes up to 10 GiB of device memory, less
 * where less is free.
 */
hr_status hr_cuda_bench_kernels(const hr_bench_options *options, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
