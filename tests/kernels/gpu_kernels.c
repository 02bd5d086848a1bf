/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel × mechanism × size against the CPU, on a GPU:
 *     gpu_kernels check [FAMILY]     everything
 *     gpu_kernels small [FAMILY]     few and small cases, to be run under compute-sanitizer
 *     gpu_kernels bench [quick]      the figures of `headrace bench kernels`
 */
#include "backend/cuda/bench_kernels.h"
#include "harness.h"

#include <stdio.h>
#include <string.h>

typedef struct family {
    const char *name;
    void (*check)(harness *h);
} family;

static const family families[] = {
    {"copy", check_copy},           {"scale", check_scale},     {"conv2d", check_conv2d},
    {"transpose", check_transpose}, {"stencil", check_stencil}, {"matmul", check_matmul},
    {"histogram", check_histogram}, {"reduce", check_reduce},   {"repeat", check_repeat}};

static void print_row(void *user, const hr_bench_row *row)
{
    (void)user;
    if (row->skipped) {
        printf("%-34s skipped: %s\n", row->name, row->skipped);
    } else {
        printf("%-34s %9.3f %-6s ±%4.1f%% %s", row->name, row->value, row->unit, row->spread_pct,
               row->verified == 1   ? "verified"
               : row->verified == 0 ? "WRONG"
                                    : "-");
        if (row->vs) {
            printf("  %5.1f %% of %s", 100 * row->ratio, row->vs);
        }
        printf("\n");
    }
    fflush(stdout);
}

static int bench(bool quick)
{
    hr_error error = HR_ERROR_INIT;
    hr_bench_options options = HR_BENCH_OPTIONS_INIT;
    options.what = "kernels";
    options.quick = quick;
    options.row = print_row;
    if (hr_cuda_bench_kernels(&options, &error) != HR_OK) {
        printf("FAILED %s\n", error.text);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "check";
    const char *only = argc > 2 ? argv[2] : NULL;
    harness h = {.small = strcmp(what, "small") == 0, .seed = UINT64_C(88172645463325252)};
    if (strcmp(what, "bench") == 0) {
        return bench(only != NULL);
    }
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const int failed = h.failed, cases = h.cases, refused = h.refused;
        if (only != NULL && strcmp(only, families[i].name) != 0) {
            continue;
        }
        families[i].check(&h);
        printf("%-12s %5d cases, %5d refused, %d failed\n", families[i].name, h.cases - cases,
               h.refused - refused, h.failed - failed);
        fflush(stdout);
    }
    return h.failed > 0 || h.cases == 0;
}
