/* SPDX-License-Identifier: Apache-2.0 */
/* What this link, driver and device really do, measured. */
#ifndef HEADRACE_BENCH_H
#define HEADRACE_BENCH_H

#include <headrace/device.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One measured figure: a median, and how far the runs were apart. Strings live during the call that hands the
 * row over. */
typedef struct hr_bench_row {
    size_t size;
    const char *name;
    uint64_t bytes;   /* 0 where the notion does not apply */
    const char *unit; /* "gbps", "us", "ms", "tflops", or null for a row of text */
    double value;
    double spread_pct;   /* (90th − 10th percentile) / median */
    int verified;        /* 1: the data was checked and right; 0: wrong; -1: nothing to check */
    const char *vs;      /* what it is compared with, or null */
    double ratio;        /* ours over the other's, above 1 is better */
    const char *answer;  /* bench sync: "waits for the device", "does not wait", …; or null */
    const char *skipped; /* null, or why the case could not be measured */
} hr_bench_row;
#define HR_BENCH_ROW_INIT                                         \
    {                                                             \
        sizeof(hr_bench_row), 0, 0, 0, 0.0, 0.0, -1, 0, 0.0, 0, 0 \
    }

typedef struct hr_bench_options {
    size_t size;
    const char *what; /* "link", "calls", "sync", "pipeline", "scatter", "kernels" */
    bool quick;       /* fewer sizes and repetitions */
    void *user;
    void (*row)(void *user, const hr_bench_row *row);
    void (*note)(void *user, const char *text); /* may be null */
} hr_bench_options;
#define HR_BENCH_OPTIONS_INIT                       \
    {                                               \
        sizeof(hr_bench_options), 0, false, 0, 0, 0 \
    }

/* Measures on `device` and hands over rows as they come. Blocks for seconds to minutes. HR_E_NOT_FOUND: no
 * such bench; HR_E_UNSUPPORTED: not on this device. */
HR_API HR_CHECKED hr_status hr_bench_run(hr_device *device, const hr_bench_options *options, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
