/* SPDX-License-Identifier: Apache-2.0 */
/* `bench kernels`: stencil, histogram, reduction and the latency probes. */
#include "bench_kernels_suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hr_mechanism all[] = {HR_MECHANISM_SYNC,    HR_MECHANISM_LDGSTS, HR_MECHANISM_GROUP,
                                   HR_MECHANISM_BARRIER, HR_MECHANISM_BULK,   HR_MECHANISM_TMA,
                                   HR_MECHANISM_STAS,    HR_MECHANISM_CLUSTER};
enum { all_count = sizeof all / sizeof *all, no_cluster = all_count - 2 };

/* --- stencil
 * ------------------------------------------------------------------------------------------------- */

static hr_status launch_stencil(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_stencil3d(job, m, stream, error);
}

static double cell(const hr_kbench *b, const hr_kernel_stencil3d_args *a, int64_t x, int64_t y, int64_t z)
{
    if (x < 0 || y < 0 || z < 0 || x >= (int64_t)a->nx || y >= (int64_t)a->ny || z >= (int64_t)a->nz) {
        return 0;
    }
    return b->pattern[(((uint64_t)z * a->ny + (uint64_t)y) * a->nx + (uint64_t)x) % HR_KBENCH_PATTERN];
}

static int verify_stencil(hr_kbench *b, void *job, hr_error *error)
{
    const hr_kernel_stencil3d_args *a = job;
    const float *w = a->weights;
    float *line = malloc(a->nx * sizeof *line);
    int right = line != NULL;
    for (int i = 0; i < 48 && right == 1; i++) {
        const int64_t y = (int64_t)(i % 4 == 0 ? 0 : i % 4 == 1 ? a->ny - 1 : hr_kbench_random(b, a->ny));
        const int64_t z = (int64_t)(i % 3 == 0 ? 0 : i % 3 == 1 ? a->nz - 1 : hr_kbench_random(b, a->nz));
        const float *from = a->dst + ((uint64_t)z * a->ny + (uint64_t)y) * a->nx;
        if (hr_kbench_check(cudaMemcpy(line, from, a->nx * sizeof *line, cudaMemcpyDeviceToHost), "verify",
                            error)) {
            right = -1;
        }
        for (int64_t x = 0; x < (int64_t)a->nx && right == 1; x++) {
            const double want = w[0] * cell(b, a, x, y, z) + w[1] * cell(b, a, x - 1, y, z) +
                                w[2] * cell(b, a, x + 1, y, z) + w[3] * cell(b, a, x, y - 1, z) +
                                w[4] * cell(b, a, x, y + 1, z) + w[5] * cell(b, a, x, y, z - 1) +
                                w[6] * cell(b, a, x, y, z + 1);
            right = fabs(line[x] - want) <= 1e-6;
        }
    }
    free(line);
    return right;
}

hr_status hr_kbench_stencil(hr_kbench *b, hr_error *error)
{
    const uint64_t side = b->quick ? 512 : 1024;
    hr_kernel_stencil3d_args a = {.nx = side,
                                  .ny = side,
                                  .nz = side,
                                  .src_row_pitch_bytes = side * 4,
                                  .src_slice_pitch_bytes = side * side * 4,
                                  .dst_row_pitch_bytes = side * 4,
                                  .dst_slice_pitch_bytes = side * side * 4,
                                  .weights = {0.5F, 0.11F, 0.07F, 0.13F, 0.05F, 0.09F, 0.03F}};
    void *src = NULL, *dst = NULL;
    hr_status status = hr_kbench_take(b, &src, side * side * side * 4, true, error);
    if (status == HR_OK) {
        status = hr_kbench_take(b, &dst, side * side * side * 4, false, error);
    }
    a.src = src;
    a.dst = dst;
    double copy_gbps = 0;
    if (status == HR_OK) {
        status = hr_kbench_device_copy(b, dst, src, side * side * side * 4, &copy_gbps, error);
    }
    if (status == HR_OK) {
        char name[64];
        hr_kbench_case c = {.name = name,
                            .job = &a,
                            .launch = launch_stencil,
                            .verify = verify_stencil,
                            .out = dst,
                            .out_bytes = side * side * side * 4,
                            .bytes = 8.0 * (double)(side * side * side),
                            .launches = 3,
                            .vs = "device copy",
                            .vs_value = copy_gbps};
        snprintf(name, sizeof name, "stencil 7-point %llu^3", (unsigned long long)side);
        status = hr_kbench_every(b, &c, all, no_cluster, error);
    }
    (void)cudaFree(dst);
    (void)cudaFree(src);
    return status;
}

/* --- histogram and reduction
 * ----------------------------------------------------------------------------------- */

static const hr_mechanism gathering[] = {HR_MECHANISM_SYNC, HR_MECHANISM_STAS};

static hr_status launch_histogram(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_histogram(job, m, stream, error);
}

static int verify_histogram(hr_kbench *b, void *job, hr_error *error)
{
    const hr_kernel_histogram_args *a = job;
    const uint64_t size = hr_dtype_bytes(a->dtype), bins = size == 1 ? 256 : 65536;
    const uint64_t period = HR_KBENCH_PATTERN * sizeof(float) / size;
    uint64_t *want = calloc(bins, sizeof *want), *got = calloc(bins, sizeof *got);
    int right = want != NULL && got != NULL;
    if (right &&
        hr_kbench_check(cudaMemcpy(got, a->bins, bins * 8, cudaMemcpyDeviceToHost), "verify", error)) {
        right = -1;
    }
    for (uint64_t i = 0; i < period && i < a->elements && right == 1; i++) {
        const uint64_t times = (a->elements - i + period - 1) / period;
        want[size == 1 ? ((const unsigned char *)b->pattern)[i] : ((const uint16_t *)b->pattern)[i]] += times;
    }
    right = right == 1 ? memcmp(want, got, bins * 8) == 0 : right;
    free(got);
    free(want);
    return right;
}

static hr_status launch_reduce(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_reduce(job, m, stream, error);
}

static int verify_reduce(hr_kbench *b, void *job, hr_error *error)
{
    const hr_kernel_reduce_args *a = job;
    double got = 0, want = 0, magnitude = 0;
    if (hr_kbench_check(cudaMemcpy(&got, a->result, 8, cudaMemcpyDeviceToHost), "verify", error)) {
        return -1;
    }
    for (uint64_t i = 0; i < HR_KBENCH_PATTERN && i < a->elements; i++) {
        const double times = (double)((a->elements - i + HR_KBENCH_PATTERN - 1) / HR_KBENCH_PATTERN);
        want += times * b->pattern[i];
        magnitude += times * fabs((double)b->pattern[i]);
    }
    return fabs(got - want) <= 1e-13 * magnitude;
}

hr_status hr_kbench_gather(hr_kbench *b, hr_error *error)
{
    const uint64_t bytes = UINT64_C(1) << (b->quick ? 28 : 30);
    void *src = NULL, *out = NULL;
    hr_status status = hr_kbench_take(b, &src, bytes, true, error);
    if (status == HR_OK) {
        status = hr_kbench_take(b, &out, 65536 * 8 + HR_KERNEL_REDUCE_BYTES, false, error);
    }
    for (int wide = 0; wide < 2 && status == HR_OK; wide++) {
        hr_kernel_histogram_args a = {
            .dtype = wide ? HR_U16 : HR_U8, .src = src, .elements = bytes >> wide, .bins = out};
        hr_kbench_case c = {.name = wide ? "histogram u16" : "histogram u8",
                            .job = &a,
                            .launch = launch_histogram,
                            .verify = verify_histogram,
                            .out = out,
                            .out_bytes = 65536 * 8,
                            .bytes = (double)bytes,
                            .launches = 3};
        status = hr_kbench_every(b, &c, gathering, 2, error);
    }
    if (status == HR_OK) {
        hr_kernel_reduce_args a = {.dtype = HR_F32,
                                   .src = src,
                                   .elements = bytes / 4,
                                   .result = out,
                                   .workspace = (char *)out + 65536 * 8};
        hr_kbench_case c = {.name = "reduce f32",
                            .job = &a,
                            .launch = launch_reduce,
                            .verify = verify_reduce,
                            .out = out,
                            .out_bytes = 8,
                            .bytes = (double)bytes};
        status = hr_kbench_every(b, &c, gathering, 2, error);
    }
    (void)cudaFree(out);
    (void)cudaFree(src);
    return status;
}

/* --- latency
 * ---------------------------------------------------------------------------------------------------- */

typedef struct latency_job {
    hr_kernel_latency_args args;
} latency_job;

static hr_status launch_latency(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_latency(&((latency_job *)job)->args, m, stream, error);
}

/* One row a mechanism and place: the time of one step. */
hr_status hr_kbench_latency(hr_kbench *b, hr_error *error)
{
    enum { steps = 2000 };
    const uint64_t far = UINT64_C(1) << 30, near = UINT64_C(1) << 20;
    void *src = NULL, *sink = NULL;
    hr_status status = hr_kbench_take(b, &src, far, true, error);
    if (status == HR_OK) {
        status = hr_kbench_take(b, &sink, 4, false, error);
    }
    for (int i = 0; i < 2 && status == HR_OK; i++) {
        latency_job job = {.args = {.src = src, .bytes = i == 0 ? near : far, .steps = steps, .sink = sink}};
        hr_kbench_case c = {.name = i == 0 ? "latency of 512 bytes, L2" : "latency of 512 bytes, memory",
                            .job = &job,
                            .launch = launch_latency,
                            .launches = 1,
                            .steps = steps};
        status = hr_kbench_every(b, &c, all, i == 0 ? all_count : no_cluster, error);
    }
    (void)cudaFree(sink);
    (void)cudaFree(src);
    return status;
}
