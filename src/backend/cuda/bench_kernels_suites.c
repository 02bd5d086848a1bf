/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_kernels_suites.h"

#include <stddef.h>

hr_status (*const hr_kbench_suites[])(hr_kbench *b, hr_error *error) = {
    hr_kbench_copy,      hr_kbench_intensity, hr_kbench_conv2d,
    hr_kbench_transpose, hr_kbench_stencil,   hr_kbench_products,
    hr_kbench_gather,    hr_kbench_latency,   NULL};
