/* SPDX-License-Identifier: Apache-2.0 */
/* `bench kernels`: copy, the sweep of arithmetic intensity, conv2d and transpose. */
#include "bench_kernels_case.h"
#include "bench_kernels_suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hr_mechanism all[] = {HR_MECHANISM_SYNC,    HR_MECHANISM_LDGSTS, HR_MECHANISM_GROUP,
                                   HR_MECHANISM_BARRIER, HR_MECHANISM_BULK,   HR_MECHANISM_TMA};
enum { all_count = sizeof all / sizeof *all };

/* --- copy -------------------------------------------------------------------------------------------------
 */

static hr_status launch_device_copy(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    const hr_kernel_copy_args *a = job;
    (void)m;
    return hr_kbench_check(cudaMemcpyAsync(a->dst, a->src, a->bytes, cudaMemcpyDeviceToDevice, stream),
                           "copy", error);
}

static hr_status launch_copy(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_copy(job, m, stream, error);
}

/* Windows of the output against the pattern, among them the first and the last bytes. */
static int verify_copy(hr_kbench *b, void *job, hr_error *error)
{
    enum { window = 65536, windows = 64 };
    const hr_kernel_copy_args *a = job;
    const uint64_t period = HR_KBENCH_PATTERN * sizeof(float);
    unsigned char *got = malloc(window);
    int right = got != NULL;
    for (int i = 0; i < windows && right == 1; i++) {
        const uint64_t at = i == 0 ? 0 : i == 1 ? a->bytes - window : hr_kbench_random(b, a->bytes - window);
        if (hr_kbench_check(cudaMemcpy(got, (char *)a->dst + at, window, cudaMemcpyDeviceToHost), "verify",
                            error)) {
            right = -1;
        }
        for (int k = 0; k < window && right == 1; k++) {
            right = got[k] == ((const unsigned char *)b->pattern)[(at + (uint64_t)k) % period];
        }
    }
    free(got);
    return right;
}

hr_status hr_kbench_device_copy(hr_kbench *b, void *dst, const void *src, uint64_t bytes, double *gbps,
                                hr_error *error)
{
    char name[64];
    double seconds = 0;
    hr_kernel_copy_args a = {.dst = dst, .src = src, .bytes = bytes};
    const hr_kbench_case c = {.name = name,
                              .job = &a,
                              .launch = launch_device_copy,
                              .verify = verify_copy,
                              .out = dst,
                              .out_bytes = bytes,
                              .bytes = 2.0 * (double)bytes,
                              .plain = true};
    snprintf(name, sizeof name, "device copy of %llu MiB", (unsigned long long)(bytes >> 20));
    const hr_status status = hr_kbench_run(b, &c, HR_MECHANISM_SYNC, &seconds, error);
    if (status == HR_OK) {
        *gbps = c.bytes / seconds * 1e-9;
    }
    return status;
}

hr_status hr_kbench_copy(hr_kbench *b, hr_error *error)
{
    hr_kernel_copy_args a = {.bytes = b->quick ? UINT64_C(1) << 28 : UINT64_C(1) << 30};
    void *src = NULL;
    double copy_gbps = 0;
    hr_status status = hr_kbench_take(b, &src, a.bytes, true, error);
    a.src = src;
    if (status == HR_OK) {
        status = hr_kbench_take(b, &a.dst, a.bytes, false, error);
    }
    if (status == HR_OK) {
        status = hr_kbench_device_copy(b, a.dst, src, a.bytes, &copy_gbps, error);
    }
    if (status == HR_OK) {
        hr_kbench_case c = {.name = "copy",
                            .job = &a,
                            .launch = launch_copy,
                            .verify = verify_copy,
                            .out = a.dst,
                            .out_bytes = a.bytes,
                            .bytes = 2.0 * (double)a.bytes,
                            .vs = "device copy",
                            .vs_value = copy_gbps};
        status = hr_kbench_every(b, &c, all, all_count, error);
    }
    (void)cudaFree(a.dst);
    (void)cudaFree(src);
    return status;
}

/* --- arithmetic intensity
 * ----------------------------------------------------------------------------------- */

static hr_status launch_scale(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_scale(job, m, stream, error);
}

static int verify_scale(hr_kbench *b, void *job, hr_error *error)
{
    enum { window = 4096, windows = 32 };
    const hr_kernel_scale_args *a = job;
    float got[window];
    int right = 1;
    for (int i = 0; i < windows && right == 1; i++) {
        const uint64_t at = i == 0   ? 0
                            : i == 1 ? a->elements - window
                                     : hr_kbench_random(b, a->elements - window);
        if (hr_kbench_check(cudaMemcpy(got, a->dst + at, sizeof got, cudaMemcpyDeviceToHost), "verify",
                            error)) {
            right = -1;
        }
        for (int k = 0; k < window && right == 1; k++) {
            float x = b->pattern[(at + (uint64_t)k) % HR_KBENCH_PATTERN];
            for (uint32_t s = 0; s < a->steps; s++) {
                x = fmaf(x, a->by, a->plus);
            }
            right = memcmp(&x, &got[k], sizeof x) == 0;
        }
    }
    return right;
}

hr_status hr_kbench_intensity(hr_kbench *b, hr_error *error)
{
    static const uint32_t sweep[] = {1, 8, 32, 64, 128, 256, 1024};
    hr_kernel_scale_args a = {.elements = UINT64_C(1) << (b->quick ? 26 : 27), .by = 0.999F, .plus = 0.001F};
    const uint64_t bytes = a.elements * sizeof(float);
    void *src = NULL, *dst = NULL;
    hr_status status = hr_kbench_take(b, &src, bytes, true, error);
    if (status == HR_OK) {
        status = hr_kbench_take(b, &dst, bytes, false, error);
    }
    a.src = src;
    a.dst = dst;
    double copy_gbps = 0;
    if (status == HR_OK) {
        status = hr_kbench_device_copy(b, dst, src, bytes, &copy_gbps, error);
    }
    for (size_t i = 0; i < sizeof sweep / sizeof *sweep && status == HR_OK; i++) {
        char name[64];
        hr_kbench_case c = {.name = name,
                            .job = &a,
                            .launch = launch_scale,
                            .verify = verify_scale,
                            .out = dst,
                            .out_bytes = bytes,
                            .bytes = 2.0 * (double)bytes,
                            .launches = 5};
        a.steps = sweep[i];
        snprintf(name, sizeof name, "scale %u fma", sweep[i]);
        /* Each mechanism against plain loads at the same intensity. */
        double seconds = 0;
        c.vs = "device copy";
        c.vs_value = copy_gbps;
        status = hr_kbench_run(b, &c, HR_MECHANISM_SYNC, &seconds, error);
        c.vs = "sync";
        c.vs_value = seconds > 0 ? c.bytes / seconds * 1e-9 : 0;
        if (status == HR_OK) {
            status = hr_kbench_every(b, &c, all + 1, all_count - 1, error);
        }
    }
    (void)cudaFree(dst);
    (void)cudaFree(src);
    return status;
}

/* --- conv2d
 * ------------------------------------------------------------------------------------------------- */

static hr_status launch_conv2d(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_conv2d(job, m, stream, error);
}

static uint64_t reach(int64_t i, int64_t n)
{
    i = i < 0 ? -i : i;
    return (uint64_t)(i < n ? i : 2 * (n - 1) - i);
}

static double conv2d_at(const hr_kbench *b, const hr_kernel_conv2d_args *a, int64_t row, int64_t column,
                        double *magnitude)
{
    const int e = (int)a->edge;
    double sum = 0;
    *magnitude = 0;
    for (int y = 0; y < e; y++) {
        for (int x = 0; x < e; x++) {
            const uint64_t i = reach(row + y - e / 2, (int64_t)a->image_rows) * a->columns +
                               reach(column + x - e / 2, (int64_t)a->columns);
            const double w = a->separable ? (double)a->weights[y] * a->weights[e + x] : a->weights[y * e + x];
            const double v = a->dtype == HR_U8
                                 ? ((const unsigned char *)b->pattern)[i % (HR_KBENCH_PATTERN * 4)]
                                 : b->pattern[i % HR_KBENCH_PATTERN];
            sum += w * v;
            *magnitude += fabs(w * v);
        }
    }
    return sum;
}

static int verify_conv2d(hr_kbench *b, void *job, hr_error *error)
{
    const hr_kernel_conv2d_args *a = job;
    const uint64_t size = hr_dtype_bytes(a->dtype);
    unsigned char *line = malloc(a->columns * size);
    int right = line != NULL;
    for (int i = 0; i < 24 && right == 1; i++) {
        const uint64_t row = i < 4   ? (uint64_t)i
                             : i < 8 ? a->image_rows - 1 - (uint64_t)(i - 4)
                                     : hr_kbench_random(b, a->image_rows);
        if (hr_kbench_check(cudaMemcpy(line, (char *)a->dst + row * a->dst_pitch_bytes, a->columns * size,
                                       cudaMemcpyDeviceToHost),
                            "verify", error)) {
            right = -1;
        }
        for (uint64_t x = 0; x < a->columns && right == 1; x++) {
            double magnitude = 0;
            const double want = conv2d_at(b, a, (int64_t)row, (int64_t)x, &magnitude);
            if (a->dtype == HR_U8) {
                const double cut = want < 0 ? 0 : want > 255 ? 255 : want;
                right = fabs((double)line[x] - cut) <= 0.5 + 1e-5 * magnitude;
            } else {
                right = fabs((double)((const float *)line)[x] - want) <= 4e-6 * magnitude + 1e-30;
            }
        }
    }
    free(line);
    return right;
}

static hr_status conv2d_case(hr_kbench *b, hr_kernel_conv2d_args *a, const char *name, double copy_gbps,
                             hr_error *error)
{
    hr_kbench_case c = {.name = name,
                        .job = a,
                        .launch = launch_conv2d,
                        .verify = verify_conv2d,
                        .out = a->dst,
                        .out_bytes = a->dst_pitch_bytes * a->dst_rows,
                        .vs = "device copy",
                        .vs_value = copy_gbps};
    c.bytes = 2.0 * (double)c.out_bytes;
    static const hr_mechanism clusters[] = {HR_MECHANISM_STAS, HR_MECHANISM_CLUSTER};
    hr_status status = hr_kbench_every(b, &c, all, all_count, error);
    return status != HR_OK || a->dtype != HR_F32 || a->separable ? status
                                                                 : hr_kbench_every(b, &c, clusters, 2, error);
}

/* Weights as those of the usual filters: integers over a power of two. */
static const float gauss3[9] = {0.0625F, 0.125F, 0.0625F, 0.125F, 0.25F, 0.125F, 0.0625F, 0.125F, 0.0625F};

hr_status hr_kbench_conv2d(hr_kbench *b, hr_error *error)
{
    const uint64_t side = 8192;
    float weights[49];
    char name[64];
    hr_kernel_conv2d_args a = {.image_rows = side, .columns = side, .src_rows = side, .dst_rows = side};
    void *src = NULL;
    hr_status status = hr_kbench_take(b, &src, side * side * 4, true, error);
    if (status == HR_OK) {
        status = hr_kbench_take(b, &a.dst, side * side * 4, false, error);
    }
    a.src = src;
    a.weights = weights;
    for (int i = 0; i < 49; i++) {
        weights[i] = 0.01F * (float)(i % 11) - 0.02F;
    }
    double copy_gbps[2] = {0};
    for (int i = 0; i < 2 && status == HR_OK; i++) {
        status = hr_kbench_device_copy(b, a.dst, src, side * side * (i == 0 ? 4 : 1), &copy_gbps[i], error);
    }
    for (int pass = 0; pass < 12 && status == HR_OK; pass++) {
        a.edge = 3 + 2 * (uint32_t)(pass % 3);
        a.dtype = pass / 3 % 2 ? HR_U8 : HR_F32;
        a.separable = pass >= 6;
        a.src_pitch_bytes = a.dst_pitch_bytes = side * hr_dtype_bytes(a.dtype);
        snprintf(name, sizeof name, "conv2d %s %ux%u%s", hr_dtype_name(a.dtype), a.edge, a.edge,
                 a.separable ? " separable" : "");
        status = conv2d_case(b, &a, name, copy_gbps[a.dtype == HR_U8], error);
    }
    if (status == HR_OK) {
        a.edge = 3;
        a.dtype = HR_U8;
        a.separable = 0;
        a.weights = gauss3;
        a.src_pitch_bytes = a.dst_pitch_bytes = side;
        status = conv2d_case(b, &a, "conv2d u8 3x3 gauss", copy_gbps[1], error);
    }
    (void)cudaFree(a.dst);
    (void)cudaFree(src);
    return status;
}

/* --- transpose
 * ---------------------------------------------------------------------------------------------- */

static hr_status launch_transpose(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_transpose(job, m, stream, error);
}

static int verify_transpose(hr_kbench *b, void *job, hr_error *error)
{
    const hr_kernel_transpose_args *a = job;
    uint32_t *line = malloc(a->rows * 4);
    int right = line != NULL;
    for (int i = 0; i < 24 && right == 1; i++) {
        const uint64_t row = i < 2   ? (uint64_t)i
                             : i < 4 ? a->columns - 1 - (uint64_t)(i - 2)
                                     : hr_kbench_random(b, a->columns);
        if (hr_kbench_check(cudaMemcpy(line, (char *)a->dst + row * a->dst_pitch_bytes, a->rows * 4,
                                       cudaMemcpyDeviceToHost),
                            "verify", error)) {
            right = -1;
        }
        for (uint64_t x = 0; x < a->rows && right == 1; x++) {
            right = memcmp(&line[x], &b->pattern[(x * a->columns + row) % HR_KBENCH_PATTERN], 4) == 0;
        }
    }
    free(line);
    return right;
}

hr_status hr_kbench_transpose(hr_kbench *b, hr_error *error)
{
    const uint64_t side = b->quick ? 8192 : 16384;
    hr_kernel_transpose_args a = {
        .rows = side, .columns = side, .src_pitch_bytes = side * 4, .dst_pitch_bytes = side * 4};
    void *src = NULL;
    hr_status status = hr_kbench_take(b, &src, side * side * 4, true, error);
    if (status == HR_OK) {
        status = hr_kbench_take(b, &a.dst, side * side * 4, false, error);
    }
    a.src = src;
    double copy_gbps = 0;
    if (status == HR_OK) {
        status = hr_kbench_device_copy(b, a.dst, src, side * side * 4, &copy_gbps, error);
    }
    if (status == HR_OK) {
        hr_kbench_case c = {.name = "transpose f32",
                            .job = &a,
                            .launch = launch_transpose,
                            .verify = verify_transpose,
                            .out = a.dst,
                            .out_bytes = side * side * 4,
                            .bytes = 8.0 * (double)(side * side),
                            .vs = "device copy",
                            .vs_value = copy_gbps};
        status = hr_kbench_every(b, &c, all, all_count, error);
    }
    (void)cudaFree(a.dst);
    (void)cudaFree(src);
    return status;
}
