/* SPDX-License-Identifier: Apache-2.0 */
/* stencil3d against plain loops. */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct stencil_case {
    hr_kernel_stencil3d_args a;
    const float *src, *got;
    _Bool bad;
} stencil_case;

static double cell(const stencil_case *c, int64_t x, int64_t y, int64_t z)
{
    if (x < 0 || y < 0 || z < 0 || x >= (int64_t)c->a.nx || y >= (int64_t)c->a.ny || z >= (int64_t)c->a.nz) {
        return 0;
    }
    return c->src[((uint64_t)z * c->a.src_slice_pitch_bytes + (uint64_t)y * c->a.src_row_pitch_bytes) / 4 +
                  (uint64_t)x];
}

static void check_plane(void *user, uint64_t plane)
{
    stencil_case *c = user;
    const int64_t z = (int64_t)plane;
    const float *w = c->a.weights;
    for (int64_t y = 0; y < (int64_t)c->a.ny && !c->bad; y++) {
        for (int64_t x = 0; x < (int64_t)c->a.nx; x++) {
            const double want = w[0] * cell(c, x, y, z) + w[1] * cell(c, x - 1, y, z) +
                                w[2] * cell(c, x + 1, y, z) + w[3] * cell(c, x, y - 1, z) +
                                w[4] * cell(c, x, y + 1, z) + w[5] * cell(c, x, y, z - 1) +
                                w[6] * cell(c, x, y, z + 1);
            const float got =
                c->got[(plane * c->a.dst_slice_pitch_bytes + (uint64_t)y * c->a.dst_row_pitch_bytes) / 4 +
                       (uint64_t)x];
            c->bad |= !(fabs(got - want) <= 3e-6);
        }
    }
}

static void one(harness *h, const uint64_t *n, uint64_t pad, uint64_t offset)
{
    char name[96];
    const uint64_t row = n[0] * 4 + pad, slice = row * n[1];
    stencil_case c = {.a = {.nx = n[0],
                            .ny = n[1],
                            .nz = n[2],
                            .src_row_pitch_bytes = row,
                            .src_slice_pitch_bytes = slice,
                            .dst_row_pitch_bytes = row,
                            .dst_slice_pitch_bytes = slice}};
    float *src = malloc(slice * n[2]), *got = malloc(slice * n[2]);
    random_floats(h, src, slice * n[2] / 4);
    random_floats(h, c.a.weights, 7);
    guarded from = guarded_take(slice * n[2], offset), to = guarded_take(slice * n[2], offset);
    must(cudaMemcpy(from.data, src, slice * n[2], cudaMemcpyHostToDevice), "upload");
    c.a.src = (const float *)from.data;
    c.a.dst = (float *)to.data;
    c.src = src;
    c.got = got;
    snprintf(name, sizeof name, "stencil3d of %llu × %llu × %llu, pad %llu, offset %llu",
             (unsigned long long)n[0], (unsigned long long)n[1], (unsigned long long)n[2],
             (unsigned long long)pad, (unsigned long long)offset);
    for (hr_mechanism m = HR_MECHANISM_AUTO; m <= HR_MECHANISM_TMA; m++) {
        hr_error error = HR_ERROR_INIT;
        c.bad = false;
        guarded_poison(&to);
        hr_status status = hr_kernel_stencil3d(&c.a, m, NULL, &error);
        if (status == HR_OK) {
            must(cudaDeviceSynchronize(), name);
            must(cudaMemcpy(got, to.data, slice * n[2], cudaMemcpyDeviceToHost), name);
            parallel(n[2], check_plane, &c);
        }
        verdict(h, name, m, status, &error, !c.bad && guarded_intact(&to));
    }
    guarded_release(&to);
    guarded_release(&from);
    free(got);
    free(src);
}

void check_stencil(harness *h)
{
    static const uint64_t sizes[][3] = {{1, 1, 1},    {4, 1, 3},      {3, 5, 2},
                                        {128, 16, 4}, {129, 17, 65},  {131, 33, 7},
                                        {256, 1, 70}, {260, 67, 131}, {512, 300, 130}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (h->small && sizes[i][0] * sizes[i][1] * sizes[i][2] > 40000) {
            continue;
        }
        one(h, sizes[i], (16 - sizes[i][0] * 4 % 16) % 16, 0);
        one(h, sizes[i], 4, 4);
        one(h, sizes[i], (16 - sizes[i][0] * 4 % 16) % 16 + 16, 16);
    }
}
