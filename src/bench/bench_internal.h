/* SPDX-License-Identifier: Apache-2.0 */
/* The benches that any device can run, through the interface that every program has. */
#ifndef HR_BENCH_INTERNAL_H
#define HR_BENCH_INTERNAL_H

#include "core/registry.h"

#define HR_BENCH_SAMPLES 9

/* A row of the median of samples; the samples are sorted. */
void hr_bench_tell(const hr_bench_options *options, const char *name, uint64_t bytes, const char *unit,
                   double *samples, size_t count, int verified, const char *vs, double ratio);
/* Bytes that look like nothing: every 8 of them differ. */
void hr_bench_pattern(void *base, uint64_t bytes, uint64_t seed);

/* Every direction by the host's clock, for devices without a bench of their own. */
hr_status hr_bench_link(hr_device *device, const hr_bench_options *options, hr_error *error);
/* What each call costs the host. */
hr_status hr_bench_calls(hr_device *device, const hr_bench_options *options, hr_error *error);
/* Ops from host memory to host memory, beside the device's plain programs where it has some. */
hr_status hr_bench_pipeline(hr_device *device, const hr_bench_options *options, hr_error *error);

#endif
