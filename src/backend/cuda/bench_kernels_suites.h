/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of `bench kernels`, one a kernel family. Each takes and gives back its own device memory. */
#ifndef HEADRACE_CUDA_BENCH_KERNELS_SUITES_H
#define HEADRACE_CUDA_BENCH_KERNELS_SUITES_H

#include "bench_kernels_case.h"

/* The device's own copy of as many bytes as a case has, reported and returned: what the case is compared with. */
hr_status hr_kbench_device_copy(hr_kbench *b, void *dst, const void *src, uint64_t bytes, double *gbps,
                                hr_error *error);
hr_status hr_kbench_copy(hr_kbench *b, hr_error *error);
hr_status hr_kbench_intensity(hr_kbench *b, hr_error *error);
hr_status hr_kbench_conv2d(hr_kbench *b, hr_error *error);
hr_status hr_kbench_transpose(hr_kbench *b, hr_error *error);
hr_status hr_kbench_stencil(hr_kbench *b, hr_error *error);
hr_status hr_kbench_products(hr_kbench *b, hr_error *error);
hr_status hr_kbench_gather(hr_kbench *b, hr_error *error); /* histogram, reduction */
hr_status hr_kbench_latency(hr_kbench *b, hr_error *error);

#endif
