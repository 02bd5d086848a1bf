/* SPDX-License-Identifier: Apache-2.0 */
/* Histogram and reduction against plain loops. */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t counts[] = {0, 1, 2, 3, 7, 15, 16, 17, 255, 1000, 4099, 65537, 1048583, 20000003};

void check_histogram(harness *h)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int k = 0; k < 8; k++) { /* dtype, spread, offset */
            const hr_dtype dtype = k % 2 ? HR_U16 : HR_U8;
            const uint64_t size = hr_dtype_bytes(dtype), n = counts[i], bins = dtype == HR_U8 ? 256 : 65536;
            const bool skewed = k / 2 % 2;
            char name[96];
            if (h->small && n > 70000) {
                continue;
            }
            unsigned char *src = malloc(n * size + 1);
            uint64_t *want = calloc(bins, 8), *got = malloc(bins * 8);
            random_bytes(h, src, n * size);
            for (uint64_t e = 0; e < n; e++) {
                if (skewed && e % 8) { /* most elements alike: the worst case of atomics */
                    memset(src + e * size, 3, size);
                }
                want[dtype == HR_U8 ? src[e] : ((const uint16_t *)src)[e]]++;
            }
            guarded from = guarded_take(n * size, k / 4 * size), to = guarded_take(bins * 8, 0);
            must(cudaMemcpy(from.data, src, n * size, cudaMemcpyHostToDevice), "upload");
            snprintf(name, sizeof name, "histogram of %llu %s%s, offset %llu", (unsigned long long)n,
                     /* NOLINTNEXTLINE(bugprone-misplaced-widening-cast) */
                     hr_dtype_name(dtype), skewed ? ", skewed" : "", (unsigned long long)(k / 4 * size));
            for (hr_mechanism m = HR_MECHANISM_AUTO; m < HR_MECHANISM_COUNT; m++) {
                hr_error error = HR_ERROR_INIT;
                const hr_kernel_histogram_args a = {
                    .dtype = dtype, .src = from.data, .elements = n, .bins = (uint64_t *)to.data};
                guarded_poison(&to);
                hr_status status = hr_kernel_histogram(&a, m, NULL, &error);
                must(cudaDeviceSynchronize(), name);
                must(cudaMemcpy(got, to.data, bins * 8, cudaMemcpyDeviceToHost), name);
                verdict(h, name, m, status, &error, memcmp(got, want, bins * 8) == 0 && guarded_intact(&to));
            }
            guarded_release(&to);
            guarded_release(&from);
            free(got);
            free(want);
            free(src);
        }
    }
}

void check_reduce(harness *h)
{
    void *workspace = NULL;
    must(cudaMalloc(&workspace, HR_KERNEL_REDUCE_BYTES), "workspace");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int k = 0; k < 4; k++) {
            const hr_dtype dtype = k % 2 ? HR_U32 : HR_F32;
            const uint64_t n = counts[i];
            char name[96];
            if (h->small && n > 70000) {
                continue;
            }
            uint32_t *src = malloc(n * 4 + 4);
            double sum = 0, magnitude = 0;
            uint64_t whole = 0, bits[HR_MECHANISM_COUNT] = {0};
            if (dtype == HR_U32) {
                random_bytes(h, src, n * 4);
            } else {
                random_floats(h, (float *)src, n);
            }
            for (uint64_t e = 0; e < n; e++) {
                whole += src[e];
                sum += ((const float *)src)[e];
                magnitude += fabs((double)((const float *)src)[e]);
            }
            guarded from = guarded_take(n * 4, k / 2 * 4), to = guarded_take(8, 0);
            must(cudaMemcpy(from.data, src, n * 4, cudaMemcpyHostToDevice), "upload");
            snprintf(name, sizeof name, "reduce of %llu %s, offset %d", (unsigned long long)n,
                     hr_dtype_name(dtype), k / 2 * 4);
            for (hr_mechanism m = HR_MECHANISM_AUTO; m < HR_MECHANISM_COUNT; m++) {
                hr_error error = HR_ERROR_INIT;
                const hr_kernel_reduce_args a = {.dtype = dtype,
                                                 .src = from.data,
                                                 .elements = n,
                                                 .result = to.data,
                                                 .workspace = workspace};
                double value;
                guarded_poison(&to);
                hr_status status = hr_kernel_reduce(&a, m, NULL, &error);
                must(cudaDeviceSynchronize(), name);
                must(cudaMemcpy(&bits[m], to.data, 8, cudaMemcpyDeviceToHost), name);
                memcpy(&value, &bits[m], sizeof value);
                const bool right =
                    dtype == HR_U32 ? bits[m] == whole : fabs(value - sum) <= 1e-14 * magnitude;
                /* Whatever the mechanism, the same bits. */
                verdict(h, name, m, status, &error,
                        right && bits[m] == bits[HR_MECHANISM_AUTO] && guarded_intact(&to));
            }
            guarded_release(&to);
            guarded_release(&from);
            free(src);
        }
    }
    must(cudaFree(workspace), "free");
}
