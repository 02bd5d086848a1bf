/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product in the plain shape: copy A and B, multiply with Headrace's own kernel, copy C, in one stream; and cuBLASXt,
 * which copies for itself, where the system has it. It is found at run time: nothing links it.
 */
#include "backend/cuda/bench.h"
#include "backend/cuda/op_launchers.h"
#include "base/clock.h"
#include "base/known_data.h"
#include "base/samples.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES 5

typedef struct product {
    hr_cuda_bench_run *run;
    uint64_t edge;
    hr_bmemory a, b, c; /* pinned */
} product;

/* What is used of cuBLASXt: the names and numbers of its documentation. */
enum { XT_NOT_TRANSPOSED = 0, XT_SUCCESS = 0 };
typedef struct xt {
    void *library;
    void *handle;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*select)(void *handle, int count, int *devices);
    int (*set_block)(void *handle, int edge);
    int (*sgemm)(void *handle, int transposed_a, int transposed_b, size_t m, size_t n, size_t k,
                 const float *alpha, const float *a, size_t lda, const float *b, size_t ldb,
                 const float *beta, float *c, size_t ldc);
} xt;

static void tell(const product *p, double *ms, size_t samples, const char *name)
{
    hr_cuda_figure figure = {.bytes = p->edge * p->edge * sizeof(float),
                             .unit = "ms",
                             .samples = ms,
                             .count = samples,
                             .verified = hr_known_product(p->a.base, p->b.base, p->c.base, p->edge)};
    hr_cuda_bench_row(p->run, &figure, "%s", name);
}

static void skip(const product *p, const char *name, const char *why)
{
    hr_cuda_figure figure = {.verified = -1, .skipped = why};
    hr_cuda_bench_row(p->run, &figure, "%s", name);
}

static hr_launch launch_of(const product *p, float *a, float *b, float *c)
{
    float *data[3] = {a, b, c};
    hr_view views[3];
    for (int i = 0; i < 3; i++) {
        hr_shape square = {.rank = 2, .extent = {p->edge, p->edge}};
        views[i] = (hr_view){.data = data[i],
                             .dtype = HR_F32,
                             .shape = square,
                             .whole = square,
                             .row_pitch_bytes = p->edge * sizeof(float)};
    }
    return (hr_launch){.size = sizeof(hr_launch),
                       .inputs = 2,
                       .outputs = 1,
                       .in = {views[0], views[1]},
                       .out = {views[2]},
                       .last = true,
                       .native_stream = p->run->raw[0]};
}

static hr_status multiply_in_turn(const product *p, float *device, double *ms, hr_error *error)
{
    uint64_t count = p->edge * p->edge;
    size_t bytes = count * sizeof(float);
    cudaStream_t stream = p->run->raw[0];
    hr_launch launch = launch_of(p, device, device + count, device + 2 * count);
    uint64_t begin = hr_now_ns();
    hr_status status = hr_cuda_check(
        p->run->device, cudaMemcpyAsync(device, p->a.base, bytes, cudaMemcpyHostToDevice, stream), error,
        "bench baseline: matmul");
    if (status == HR_OK) {
        status = hr_cuda_check(
            p->run->device, cudaMemcpyAsync(device + count, p->b.base, bytes, cudaMemcpyHostToDevice, stream),
            error, "bench baseline: matmul");
    }
    if (status == HR_OK) {
        status = hr_cuda_op_launcher("matmul")(&launch, error);
    }
    if (status == HR_OK) {
        status = hr_cuda_check(
            p->run->device,
            cudaMemcpyAsync(p->c.base, device + 2 * count, bytes, cudaMemcpyDeviceToHost, stream), error,
            "bench baseline: matmul");
    }
    if (status == HR_OK) {
        status =
            hr_cuda_check(p->run->device, cudaStreamSynchronize(stream), error, "bench baseline: matmul");
    }
    *ms = (double)(hr_now_ns() - begin) / 1e6;
    return status;
}

static hr_status in_turn(const product *p, hr_error *error)
{
    uint64_t bytes = p->edge * p->edge * sizeof(float);
    hr_bmemory device = {.kind = HR_MEMORY_DEVICE, .bytes = 3 * bytes};
    hr_status status = hr_cuda_memory_take(p->run->device, &device, error);
    if (status != HR_OK) {
        return status;
    }
    double ms[SAMPLES];
    memset(p->c.base, 0xFF, bytes);
    for (int i = -1; i < SAMPLES && status == HR_OK; i++) {
        status = multiply_in_turn(p, device.base, &ms[i < 0 ? 0 : i], error);
    }
    if (status == HR_OK) {
        tell(p, ms, SAMPLES, "matmul: one stream by hand, pinned, in turn, Headrace's kernel");
    }
    hr_cuda_memory_release(p->run->device, &device);
    return status;
}

static void close_xt(xt *x)
{
    if (x->handle != NULL) {
        (void)x->destroy(x->handle);
    }
    if (x->library != NULL) {
        (void)dlclose(x->library);
    }
}

/* Null, or why there is none. */
static const char *open_xt(xt *x, int ordinal)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                        "libcublas.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names && x->library == NULL; i++) {
        x->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (x->library == NULL) {
        return "there is no libcublas";
    }
    struct {
        const char *name;
        void *to;
    } functions[] = {{"cublasXtCreate", &x->create},
                     {"cublasXtDestroy", &x->destroy},
                     {"cublasXtDeviceSelect", &x->select},
                     {"cublasXtSetBlockDim", &x->set_block},
                     {"cublasXtSgemm", &x->sgemm}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(x->library, functions[i].name);
        if (found == NULL) {
            return "this libcublas has no cuBLASXt";
        }
        memcpy(functions[i].to, &found, sizeof found);
    }
    if (x->create(&x->handle) != XT_SUCCESS) {
        x->handle = NULL;
        return "cuBLASXt does not start";
    }
    return x->select(x->handle, 1, &ordinal) == XT_SUCCESS ? NULL : "cuBLASXt does not take the device";
}

/* Row by row, C = A·B; column by column, as it counts, that is C' = B'·A'. It comes back when C is there. */
static bool multiply_xt(const product *p, xt *x, double *ms)
{
    const float one = 1.0f, none = 0.0f;
    size_t edge = p->edge;
    uint64_t begin = hr_now_ns();
    int code = x->sgemm(x->handle, XT_NOT_TRANSPOSED, XT_NOT_TRANSPOSED, edge, edge, edge, &one, p->b.base,
                        edge, p->a.base, edge, &none, p->c.base, edge);
    *ms = (double)(hr_now_ns() - begin) / 1e6;
    return code == XT_SUCCESS;
}

static bool with_block(const product *p, xt *x, int block, double ms[SAMPLES])
{
    bool good = x->set_block(x->handle, block) == XT_SUCCESS;
    for (int i = -1; i < SAMPLES && good; i++) {
        good = multiply_xt(p, x, &ms[i < 0 ? 0 : i]);
    }
    return good;
}

static void with_xt(const product *p)
{
    static const int blocks[] = {2048, 4096, 8192};
    const char *name = "matmul: cublasXt, pinned, the best block of three";
    xt x = {0};
    const char *why = open_xt(&x, p->run->device->ordinal);
    double best[SAMPLES], ms[SAMPLES];
    int best_block = 0;
    memset(p->c.base, 0xFF, p->edge * p->edge * sizeof(float));
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && why == NULL; i++) {
        if (!with_block(p, &x, blocks[i], ms)) {
            why = "cuBLASXt failed";
        } else if (best_block == 0 || hr_samples_median(ms, SAMPLES) < hr_samples_median(best, SAMPLES)) {
            memcpy(best, ms, sizeof best);
            best_block = blocks[i];
        }
    }
    if (why != NULL) {
        skip(p, name, why);
    } else {
        char with_size[96];
        snprintf(with_size, sizeof with_size, "%s (%d)", name, best_block);
        tell(p, best, SAMPLES, with_size);
    }
    close_xt(&x);
}

hr_status hr_cuda_bench_baseline_matmul(hr_cuda_bench_run *run, hr_error *error)
{
    product p = {.run = run, .edge = run->options->quick ? 4096 : 16384};
    hr_bmemory *all[3] = {&p.a, &p.b, &p.c};
    hr_status status = HR_OK;
    for (int i = 0; i < 3 && status == HR_OK; i++) {
        *all[i] = (hr_bmemory){.kind = HR_MEMORY_PINNED, .bytes = p.edge * p.edge * sizeof(float)};
        status = hr_cuda_memory_take(run->device, all[i], error);
    }
    if (status == HR_OK) {
        hr_known_fill(p.a.base, p.edge * p.edge, 3, 4, 8.0f);
        hr_known_fill(p.b.base, p.edge * p.edge, 4, 4, 8.0f);
        status = in_turn(&p, error);
    }
    if (status == HR_OK) {
        with_xt(&p);
    }
    for (int i = 0; i < 3; i++) {
        if (all[i]->backend_data != NULL) {
            hr_cuda_memory_release(run->device, all[i]);
        }
    }
    return status;
}
