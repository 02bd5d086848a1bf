/* SPDX-License-Identifier: Apache-2.0 */
/* What `bench pipeline` runs: an op on f32 arrays that are all alike, with data whose right answer is known. */
#ifndef HR_BENCH_JOBS_H
#define HR_BENCH_JOBS_H

#include "bench/bench_internal.h"

#include <headrace/op.h>

#define HR_BENCH_MOST_INPUTS 2

typedef struct hr_bench_job {
    const char *op;
    uint32_t inputs;
    hr_shape shape; /* of each input and of the output */
    hr_op_params params;
    void (*fill)(const struct hr_bench_job *job, uint32_t input, float *values);
    bool (*is_right)(const struct hr_bench_job *job, const float *const *in, const float *out);
} hr_bench_job;

uint64_t hr_bench_job_bytes(const hr_bench_job *job);

hr_bench_job hr_bench_add(bool quick);
/* A filter of 5 × 5. `fast`: sizes for a GPU, which a CPU would work at for minutes. */
hr_bench_job hr_bench_conv2d(bool quick, bool fast);
hr_bench_job hr_bench_matmul(bool quick, bool fast);

#endif
