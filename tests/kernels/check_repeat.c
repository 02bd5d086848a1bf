/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races come and go: each pipelined kernel many times, with other data each time, and every result compared
 * to the bit with that of the plain mechanism on the same data (or, where the order of additions differs,
 * with itself).
 */
#include "harness.h"

#include <stdio.h>
#include <string.h>

typedef struct workload {
    const char *name;
    hr_status (*launch)(const struct workload *w, void *out, hr_mechanism m, hr_error *error);
    hr_mechanism reference;
    uint64_t out_bytes;
    const void *src;
} workload;

enum { rows = 257, columns = 524, depth = 9 };

static hr_status launch_scale(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    const hr_kernel_scale_args a = {
        .dst = out, .src = w->src, .elements = w->out_bytes / 4, .by = 0.5F, .plus = 1, .steps = 2};
    return hr_kernel_scale(&a, m, NULL, error);
}

static hr_status launch_copy(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    const hr_kernel_copy_args a = {.dst = out, .src = w->src, .bytes = w->out_bytes};
    return hr_kernel_copy(&a, m, NULL, error);
}

static hr_status launch_conv2d(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    float weights[25];
    for (int i = 0; i < 25; i++) {
        weights[i] = 0.1F * (float)i - 1;
    }
    const hr_kernel_conv2d_args a = {.dtype = HR_F32,
                                     .src = w->src,
                                     .dst = out,
                                     .src_pitch_bytes = columns * 4,
                                     .dst_pitch_bytes = columns * 4,
                                     .image_rows = rows,
                                     .columns = columns,
                                     .src_rows = rows,
                                     .dst_rows = rows,
                                     .edge = 5,
                                     .weights = weights};
    return hr_kernel_conv2d(&a, m, NULL, error);
}

static hr_status launch_transpose(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    const hr_kernel_transpose_args a = {.src = w->src,
                                        .dst = out,
                                        .src_pitch_bytes = columns * 4,
                                        .dst_pitch_bytes = rows * 4,
                                        .rows = rows,
                                        .columns = columns};
    return hr_kernel_transpose(&a, m, NULL, error);
}

static hr_status launch_stencil(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    const hr_kernel_stencil3d_args a = {.src = w->src,
                                        .dst = out,
                                        .nx = columns,
                                        .ny = 28,
                                        .nz = depth,
                                        .src_row_pitch_bytes = columns * 4,
                                        .src_slice_pitch_bytes = columns * 4 * 28,
                                        .dst_row_pitch_bytes = columns * 4,
                                        .dst_slice_pitch_bytes = columns * 4 * 28,
                                        .weights = {0.4F, 0.1F, 0.2F, 0.3F, 0.1F, 0.2F, 0.3F}};
    return hr_kernel_stencil3d(&a, m, NULL, error);
}

static hr_status launch_product(const workload *w, void *out, hr_mechanism m, uint32_t plain, int tf32,
                                hr_error *error)
{
    const hr_kernel_tuning tuning = {.plain = plain};
    const hr_kernel_matmul_args a = {.tuning = &tuning,
                                     .tf32 = tf32,
                                     .dtype = HR_F32,
                                     .c_dtype = HR_F32,
                                     .a = w->src,
                                     .b = (const float *)w->src + 256 * 256,
                                     .c = out,
                                     .m = 256,
                                     .n = 256,
                                     .k = 256,
                                     .a_pitch_bytes = 1024,
                                     .b_pitch_bytes = 1024,
                                     .c_pitch_bytes = 1024};
    return hr_kernel_matmul(&a, m, NULL, error);
}

/* Adds in another order than the plain mechanism, always the same. */
static hr_status launch_split_matmul(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    return m == HR_MECHANISM_TMA ? launch_product(w, out, m, 0, 0, error)
                                 : hr_fail(error, HR_E_UNSUPPORTED, "matmul: checked with its like");
}

static hr_status launch_tf32_matmul(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    return m == HR_MECHANISM_TMA ? launch_product(w, out, m, 0, 1, error)
                                 : hr_fail(error, HR_E_UNSUPPORTED, "matmul: checked with its like");
}

static hr_status launch_plain_matmul(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    return launch_product(w, out, m, 1, 0, error);
}

static hr_status launch_histogram(const workload *w, void *out, hr_mechanism m, hr_error *error)
{
    const hr_kernel_histogram_args a = {
        .dtype = HR_U16, .src = w->src, .elements = rows * columns * 2, .bins = out};
    return hr_kernel_histogram(&a, m, NULL, error);
}

static void repeat(harness *h, const workload *w, hr_mechanism m, float *host, unsigned char *want,
                   unsigned char *got, void *out, int times)
{
    hr_error error = HR_ERROR_INIT;
    hr_status status = HR_OK;
    bool right = true;
    for (int i = 0; i < times && status == HR_OK && right; i++) {
        host[random_bits(h) % (rows * columns)] = (float)i;
        host[i % (rows * columns)] = (float)(random_bits(h) % 1000) * 0.001F;
        must(cudaMemcpy((void *)(uintptr_t)w->src, host, rows * columns * 4, cudaMemcpyHostToDevice),
             "upload");
        must(cudaMemset(out, 0xff, w->out_bytes), "poison");
        status = w->launch(w, out, w->reference, &error);
        must(cudaMemcpy(want, out, w->out_bytes, cudaMemcpyDeviceToHost), w->name);
        must(cudaMemset(out, 0xff, w->out_bytes), "poison");
        if (status == HR_OK) {
            status = w->launch(w, out, m, &error);
        }
        must(cudaMemcpy(got, out, w->out_bytes, cudaMemcpyDeviceToHost), w->name);
        right = status != HR_OK || memcmp(want, got, w->out_bytes) == 0;
    }
    verdict(h, w->name, m, status, &error, right);
}

void check_repeat(harness *h)
{
    static float host[rows * columns];
    static unsigned char want[rows * columns * 4], got[rows * columns * 4];
    const uint64_t all = sizeof want;
    void *src = NULL, *out = NULL;
    must(cudaMalloc(&src, all), "source");
    must(cudaMalloc(&out, all), "output");
    const workload loads[] = {
        {"copy, repeated", launch_copy, HR_MECHANISM_SYNC, all - 1, src},
        {"scale, repeated", launch_scale, HR_MECHANISM_SYNC, all, src},
        {"conv2d, repeated", launch_conv2d, HR_MECHANISM_SYNC, all, src},
        {"transpose, repeated", launch_transpose, HR_MECHANISM_SYNC, all, src},
        {"stencil3d, repeated", launch_stencil, HR_MECHANISM_SYNC, columns * 28 * depth * 4, src},
        {"matmul, repeated", launch_plain_matmul, HR_MECHANISM_SYNC, 256 * 1024, src},
        {"matmul of split operands, repeated", launch_split_matmul, HR_MECHANISM_TMA, 256 * 1024, src},
        {"matmul in TF32, repeated", launch_tf32_matmul, HR_MECHANISM_TMA, 256 * 1024, src},
        {"histogram, repeated", launch_histogram, HR_MECHANISM_SYNC, 65536 * 8, src}};
    random_floats(h, host, rows * columns);
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        for (hr_mechanism m = HR_MECHANISM_LDGSTS; m < HR_MECHANISM_COUNT; m++) {
            repeat(h, &loads[i], m, host, want, got, out, h->small ? 3 : 1000);
        }
    }
    must(cudaFree(out), "free");
    must(cudaFree(src), "free");
}
