/* SPDX-License-Identifier: Apache-2.0 */
/* `bench kernels`: matrix products, against cuBLAS in the same run where its library is found. Nothing links
 * it. */
#include "bench_kernels_suites.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of cuBLAS's interface; the numbers are part of its ABI. */
enum {
    blas_no_transpose = 0,
    blas_f32 = 0,
    blas_bf16 = 14,
    blas_compute_f32 = 68,
    blas_compute_tf32 = 77,
    blas_algo = -1
};

typedef struct blas {
    void *library;
    void *handle;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t stream);
    int (*gemm)(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
                int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c,
                int c_type, int ldc, int compute, int algo);
} blas;

static void blas_close(blas *l)
{
    if (l->handle != NULL) {
        (void)l->destroy(l->handle);
    }
    if (l->library != NULL) {
        (void)dlclose(l->library);
    }
    *l = (blas){0};
}

static void *symbol(blas *l, const char *name)
{
    return dlsym(l->library, name);
}

static bool blas_open(blas *l, cudaStream_t stream)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    *l = (blas){0};
    for (size_t i = 0; i < sizeof names / sizeof *names && l->library == NULL; i++) {
        l->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (l->library == NULL) {
        return false;
    }
    *(void **)&l->create = symbol(l, "cublasCreate_v2");
    *(void **)&l->destroy = symbol(l, "cublasDestroy_v2");
    *(void **)&l->set_stream = symbol(l, "cublasSetStream_v2");
    *(void **)&l->gemm = symbol(l, "cublasGemmEx");
    if (!l->create || !l->destroy || !l->set_stream || !l->gemm || l->create(&l->handle) != 0) {
        l->handle = NULL;
        blas_close(l);
        return false;
    }
    if (l->set_stream(l->handle, stream) != 0) {
        blas_close(l);
        return false;
    }
    return true;
}

typedef struct product_job {
    hr_kernel_matmul_args a;
    blas *cublas;
} product_job;

static hr_status launch_matmul(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    return hr_kernel_matmul(&((product_job *)job)->a, m, stream, error);
}

/* cuBLAS counts columns first, so that it is asked for Cᵀ = Bᵀ·Aᵀ. */
static hr_status launch_blas(void *job, hr_mechanism m, cudaStream_t stream, hr_error *error)
{
    const product_job *j = job;
    const float one = 1, zero = 0;
    const int type = j->a.dtype == HR_BF16 ? blas_bf16 : blas_f32;
    const int side_m = (int)j->a.m, side_n = (int)j->a.n, side_k = (int)j->a.k;
    (void)m;
    (void)stream;
    const int code =
        j->cublas->gemm(j->cublas->handle, blas_no_transpose, blas_no_transpose, side_n, side_m, side_k, &one,
                        j->a.b, type, side_n, j->a.a, type, side_k, &zero, j->a.c, type, side_n,
                        j->a.tf32 ? blas_compute_tf32 : blas_compute_f32, blas_algo);
    return code == 0 ? HR_OK : hr_fail(error, HR_E_DEVICE, "bench kernels: cublasGemmEx answers %d", code);
}

static float value_at(const hr_kbench *b, const hr_kernel_matmul_args *a, uint64_t i)
{
    if (a->dtype == HR_F32) {
        return b->pattern[i % HR_KBENCH_PATTERN];
    }
    const uint32_t wide = (uint32_t)((const uint16_t *)b->halves)[i % HR_KBENCH_PATTERN] << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

static int verify_matmul(hr_kbench *b, void *job, hr_error *error)
{
    const hr_kernel_matmul_args *a = &((product_job *)job)->a;
    const uint64_t size = hr_dtype_bytes(a->c_dtype);
    const double bound = a->tf32 ? 1.5e-3 : 1e-5;
    for (int i = 0; i < 600; i++) {
        const uint64_t row = i % 5 == 0 ? a->m - 1 : hr_kbench_random(b, a->m);
        const uint64_t column = i % 7 == 0 ? a->n - 1 : hr_kbench_random(b, a->n);
        double want = 0, magnitude = 0;
        uint32_t bits = 0;
        float got;
        for (uint64_t k = 0; k < a->k; k++) {
            const double v = (double)value_at(b, a, row * a->k + k) * value_at(b, a, k * a->n + column);
            want += v;
            magnitude += fabs(v);
        }
        if (hr_kbench_check(cudaMemcpy(&bits, (const char *)a->c + row * a->c_pitch_bytes + column * size,
                                       size, cudaMemcpyDeviceToHost),
                            "verify", error)) {
            return -1;
        }
        bits <<= size == 2 ? 16 : 0;
        memcpy(&got, &bits, sizeof got);
        if (!(fabs(got - want) <= bound * magnitude + (size == 2 ? 0.004 * fabs(want) : 0))) {
            return 0;
        }
    }
    return 1;
}

static hr_status products(hr_kbench *b, product_job *j, const char *name, hr_error *error)
{
    static const hr_mechanism mechanisms[] = {HR_MECHANISM_SYNC, HR_MECHANISM_LDGSTS, HR_MECHANISM_BULK,
                                              HR_MECHANISM_TMA};
    char theirs[64], ours[64];
    const hr_kbench_case ours_case = {.name = ours,
                                      .job = j,
                                      .launch = launch_matmul,
                                      .verify = verify_matmul,
                                      .out = j->a.c,
                                      .out_bytes = j->a.m * j->a.c_pitch_bytes,
                                      .flops = 2.0 * (double)j->a.m * (double)j->a.n * (double)j->a.k,
                                      .launches = 3,
                                      .vs = "cuBLAS"};
    hr_kbench_case theirs_case = ours_case, c = ours_case;
    hr_status status = HR_OK;
    theirs_case.name = theirs;
    theirs_case.launch = launch_blas;
    theirs_case.plain = true;
    theirs_case.vs = NULL;
    snprintf(theirs, sizeof theirs, "cuBLAS %s", name);
    snprintf(ours, sizeof ours, "matmul %s", name);
    if (j->cublas->library != NULL) {
        status = hr_kbench_run(b, &theirs_case, HR_MECHANISM_SYNC, NULL, error);
        c.beside = &theirs_case;
    }
    return status == HR_OK ? hr_kbench_every(b, &c, mechanisms, sizeof mechanisms / sizeof *mechanisms, error)
                           : status;
}

hr_status hr_kbench_products(hr_kbench *b, hr_error *error)
{
    const uint64_t side = b->quick ? 4096 : 8192, matrix = side * side * 4;
    blas library;
    void *x = NULL, *y = NULL;
    product_job j = {.a = {.dtype = HR_F32, .c_dtype = HR_F32, .m = side, .n = side, .k = side},
                     .cublas = &library};
    hr_status status;
    if (!blas_open(&library, b->stream) && b->options->note != NULL) {
        b->options->note(b->options->user, "cuBLAS was not found: products are not compared with it");
    }
    status = hr_kbench_take(b, &x, matrix, true, error);
    if (status == HR_OK) {
        status = hr_kbench_take(b, &y, matrix, true, error);
    }
    if (status == HR_OK) {
        status = hr_kbench_take(b, &j.a.c, matrix, false, error);
    }
    j.a.a = x;
    j.a.b = y;
    j.a.a_pitch_bytes = j.a.b_pitch_bytes = j.a.c_pitch_bytes = side * 4;
    if (status == HR_OK) {
        status = products(b, &j, "f32", error);
    }
    j.a.tf32 = 1;
    if (status == HR_OK) {
        status = products(b, &j, "tf32", error);
    }
    j.a.tf32 = 0;
    j.a.dtype = j.a.c_dtype = HR_BF16;
    j.a.a_pitch_bytes = j.a.b_pitch_bytes = j.a.c_pitch_bytes = side * 2;
    if (status == HR_OK) {
        status = hr_kbench_fill_halves(b, x, side * side, error);
    }
    if (status == HR_OK) {
        status = hr_kbench_fill_halves(b, y, side * side, error);
    }
    if (status == HR_OK) {
        status = products(b, &j, "bf16", error);
    }
    (void)cudaFree(j.a.c);
    (void)cudaFree(y);
    (void)cudaFree(x);
    blas_close(&library);
    return status;
}
