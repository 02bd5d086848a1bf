/* SPDX-License-Identifier: Apache-2.0 */
#include "op/kernels.h"

#include <pthread.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

hr_pivot hr_pivot_of(hr_dtype dtype)
{
    switch (dtype) {
    case HR_F16:
    case HR_BF16:
    case HR_F32:
        return HR_PIVOT_F32;
    case HR_F64:
        return HR_PIVOT_F64;
    case HR_U32:
    case HR_I64:
        return HR_PIVOT_I64;
    case HR_U64:
        return HR_PIVOT_U64;
    default:
        return HR_PIVOT_I32;
    }
}

size_t hr_pivot_bytes(hr_pivot pivot)
{
    return pivot == HR_PIVOT_F32 || pivot == HR_PIVOT_I32 ? 4 : 8;
}

#if defined(__x86_64__)
/* Not all compilers' __builtin_cpu_supports() knows this one. */
static bool has_f16c(void)
{
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("sse4.2") && has_f16c();
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool always(void)
{
    return true;
}

/* Best first. */
static const struct {
    const hr_kernels *kernels;
    bool (*runs_here)(void);
} levels[] = {
#if defined(__x86_64__)
    {&hr_kernels_avx512, has_avx512},
    {&hr_kernels_avx2, has_avx2},
#endif
    {&hr_kernels_baseline, always},
};

const hr_kernels *hr_kernels_named(const char *name)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(levels[i].kernels->name, name) == 0 && levels[i].runs_here()) {
            return levels[i].kernels;
        }
    }
    return NULL;
}

static const hr_kernels *chosen;
static pthread_once_t choose_once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    const char *name = getenv("HEADRACE_SIMD");
    chosen = name != NULL ? hr_kernels_named(name) : NULL;
    for (size_t i = 0; chosen == NULL; i++) {
        chosen = levels[i].runs_here() ? levels[i].kernels : NULL;
    }
}

const hr_kernels *hr_kernels_here(void)
{
    pthread_once(&choose_once, choose);
    return chosen;
}
