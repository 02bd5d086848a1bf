/* SPDX-License-Identifier: Apache-2.0 */
/* Copy, scale and transpose against plain loops. */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t lengths[] = {1,    2,    3,     31,    255,    256,     257,     1021,    4095,
                                   4096, 4099, 16411, 65536, 262147, 1048583, 4194301, 33554467};

static bool copy_once(harness *h, const unsigned char *src, guarded *from, guarded *to, unsigned char *got,
                      hr_mechanism m, const char *name)
{
    hr_error error = HR_ERROR_INIT;
    hr_mechanism used = HR_MECHANISM_AUTO;
    const hr_kernel_copy_args a = {.dst = to->data, .src = from->data, .bytes = to->bytes, .used = &used};
    guarded_poison(to);
    hr_status status = hr_kernel_copy(&a, m, NULL, &error);
    bool right = false;
    if (status == HR_OK) {
        must(cudaDeviceSynchronize(), name);
        must(cudaMemcpy(got, to->data, to->bytes, cudaMemcpyDeviceToHost), name);
        right =
            memcmp(got, src, to->bytes) == 0 && guarded_intact(to) && (m == HR_MECHANISM_AUTO || used == m);
    }
    verdict(h, name, m, status, &error, right);
    return status == HR_OK;
}

void check_copy(harness *h)
{
    static const uint64_t offsets[][2] = {{0, 0}, {16, 48}, {4, 4}, {8, 0}, {2, 6}, {1, 3}};
    const uint64_t most = 4 * lengths[sizeof lengths / sizeof *lengths - 1] + 3;
    unsigned char *src = malloc(most), *got = malloc(most);
    random_bytes(h, src, most);
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++) {
            const uint64_t bytes = 4 * lengths[n] + n % 4;
            char name[96];
            if ((h->small && lengths[n] > 70000) || (o > 3 && bytes > 2000000)) {
                continue;
            }
            guarded from = guarded_take(bytes, offsets[o][0]), to = guarded_take(bytes, offsets[o][1]);
            must(cudaMemcpy(from.data, src, bytes, cudaMemcpyHostToDevice), "upload");
            snprintf(name, sizeof name, "copy of %llu bytes, offsets %llu %llu", (unsigned long long)bytes,
                     (unsigned long long)offsets[o][0], (unsigned long long)offsets[o][1]);
            for (hr_mechanism m = HR_MECHANISM_AUTO; m <= HR_MECHANISM_TMA; m++) {
                copy_once(h, src, &from, &to, got, m, name);
            }
            guarded_release(&to);
            guarded_release(&from);
        }
    }
    free(got);
    free(src);
}

void check_scale(harness *h)
{
    const uint64_t most = lengths[sizeof lengths / sizeof *lengths - 1];
    float *src = malloc(most * 4), *got = malloc(most * 4);
    random_floats(h, src, most);
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        for (uint64_t offset = 0; offset < 32; offset += 4 + 12 * (offset > 0)) {
            const uint64_t count = lengths[n];
            char name[96];
            if (h->small && count > 70000) {
                continue;
            }
            guarded from = guarded_take(count * 4, offset), to = guarded_take(count * 4, offset);
            must(cudaMemcpy(from.data, src, count * 4, cudaMemcpyHostToDevice), "upload");
            snprintf(name, sizeof name, "scale of %llu, offset %llu", (unsigned long long)count,
                     (unsigned long long)offset);
            for (hr_mechanism m = HR_MECHANISM_AUTO; m <= HR_MECHANISM_TMA; m++) {
                hr_error error = HR_ERROR_INIT;
                const hr_kernel_scale_args a = {.dst = (float *)to.data,
                                                .src = (const float *)from.data,
                                                .elements = count,
                                                .by = 1.5F,
                                                .plus = -0.25F,
                                                .steps = 3};
                guarded_poison(&to);
                hr_status status = hr_kernel_scale(&a, m, NULL, &error);
                bool right = true;
                if (status == HR_OK) {
                    must(cudaDeviceSynchronize(), name);
                    must(cudaMemcpy(got, to.data, count * 4, cudaMemcpyDeviceToHost), name);
                    for (uint64_t i = 0; i < count && right; i++) {
                        float x = src[i];
                        for (int s = 0; s < 3; s++) {
                            x = fmaf(x, 1.5F, -0.25F);
                        }
                        right = memcmp(&x, &got[i], 4) == 0;
                    }
                    right = right && guarded_intact(&to);
                }
                verdict(h, name, m, status, &error, right);
            }
            guarded_release(&to);
            guarded_release(&from);
        }
    }
    free(got);
    free(src);
}

static void transpose_case(harness *h, uint64_t rows, uint64_t columns, uint64_t src_pad, uint64_t dst_pad,
                           uint64_t offset)
{
    const uint64_t src_pitch = columns + src_pad, dst_pitch = rows + dst_pad;
    uint32_t *src = malloc(rows * src_pitch * 4), *got = malloc(columns * dst_pitch * 4);
    char name[96];
    random_bytes(h, src, rows * src_pitch * 4);
    guarded from = guarded_take(rows * src_pitch * 4, offset),
            to = guarded_take(columns * dst_pitch * 4, offset);
    must(cudaMemcpy(from.data, src, rows * src_pitch * 4, cudaMemcpyHostToDevice), "upload");
    snprintf(name, sizeof name, "transpose of %llu × %llu, pitches %llu %llu, offset %llu",
             (unsigned long long)rows, (unsigned long long)columns, (unsigned long long)src_pitch,
             (unsigned long long)dst_pitch, (unsigned long long)offset);
    for (hr_mechanism m = HR_MECHANISM_AUTO; m <= HR_MECHANISM_TMA; m++) {
        hr_error error = HR_ERROR_INIT;
        const hr_kernel_transpose_args a = {.src = from.data,
                                            .dst = to.data,
                                            .src_pitch_bytes = src_pitch * 4,
                                            .dst_pitch_bytes = dst_pitch * 4,
                                            .rows = rows,
                                            .columns = columns};
        guarded_poison(&to);
        hr_status status = hr_kernel_transpose(&a, m, NULL, &error);
        bool right = true;
        if (status == HR_OK) {
            must(cudaDeviceSynchronize(), name);
            must(cudaMemcpy(got, to.data, columns * dst_pitch * 4, cudaMemcpyDeviceToHost), name);
            for (uint64_t y = 0; y < columns && right; y++) {
                for (uint64_t x = 0; x < dst_pitch && right; x++) {
                    right = got[y * dst_pitch + x] == (x < rows ? src[x * src_pitch + y] : UINT32_MAX);
                }
            }
            right = right && guarded_intact(&to);
        }
        verdict(h, name, m, status, &error, right);
    }
    guarded_release(&to);
    guarded_release(&from);
    free(got);
    free(src);
}

void check_transpose(harness *h)
{
    static const uint64_t edges[] = {1, 2, 31, 32, 33, 64, 127, 130, 257, 1024, 1031};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        for (size_t k = 0; k < sizeof edges / sizeof *edges; k++) {
            if (h->small && edges[i] * edges[k] > 40000) {
                continue;
            }
            const uint64_t r = edges[i], c = edges[k];
            transpose_case(h, r, c, (4 - c % 4) % 4, (4 - r % 4) % 4, 0); /* aligned rows */
            transpose_case(h, r, c, 0, 3, 4);
            transpose_case(h, r, c, (4 - c % 4) % 4 + 4, 1, 16);
        }
    }
    if (!h->small) {
        transpose_case(h, 4099, 4100, 0, 1, 0);
    }
}
