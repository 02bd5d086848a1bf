/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times kernels. A case is launched once on poisoned output and verified, then timed in batches between two
 * events; the figure is the median batch. All data is random, from a host pattern that repeats: element i of
 * an input is pattern[i mod PATTERN], so that the reference needs no copy of the input.
 */
#include "bench_kernels.h"
#include "base/samples.h"
#include "bench_kernels_case.h"
#include "hold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hr_status hr_kbench_check(cudaError_t code, const char *what, hr_error *error)
{
    if (code == cudaSuccess) {
        return HR_OK;
    }
    (void)cudaGetLastError();
    return hr_fail(error, code == cudaErrorMemoryAllocation ? HR_E_DEVICE_MEMORY : HR_E_DEVICE,
                   "bench kernels: %s: %s", what, cudaGetErrorString(code));
}

/* One batch: the stream is held until everything is queued, so that the host's speed does not show. */
static hr_status time_batch(hr_kbench *b, const hr_kbench_case *c, hr_mechanism m, int launches, float *ms,
                            hr_error *error)
{
    const uint64_t limit_ns = 1000000000;
    hr_status status;
    *b->go = 0;
    status = hr_kbench_check(hr_cuda_kernel_hold(b->stream, b->go, limit_ns), "hold", error);
    if (status == HR_OK) {
        status = hr_kbench_check(cudaEventRecord(b->begin, b->stream), "event", error);
    }
    for (int k = 0; k < launches && status == HR_OK; k++) {
        status = c->launch(c->job, m, b->stream, error);
    }
    if (status == HR_OK) {
        status = hr_kbench_check(cudaEventRecord(b->end, b->stream), "event", error);
    }
    *b->go = 1;
    if (status == HR_OK) {
        status = hr_kbench_check(cudaEventSynchronize(b->end), c->name, error);
    }
    if (status == HR_OK) {
        status = hr_kbench_check(cudaEventElapsedTime(ms, b->begin, b->end), "event", error);
    }
    return status;
}

typedef struct timing {
    double seconds, spread_pct; /* of one launch: the median */
    double ratio;               /* beside another case: its time over ours, the median of the pairs; else 0 */
} timing;

static hr_status time_one(hr_kbench *b, const hr_kbench_case *c, hr_mechanism m, double *seconds,
                          hr_error *error)
{
    const int launches = c->launches > 0 ? c->launches : 10;
    float ms = 0;
    const hr_status status = time_batch(b, c, m, launches, &ms, error);
    *seconds = ms * 1e-3 / launches;
    return status;
}

/*
 * Timed batches after one that warms up. The other case takes turns with ours, batch by batch: the clock follows the load
 * and the temperature, and two that run one after the other do not get the same one.
 */
static hr_status time_launches(hr_kbench *b, const hr_kbench_case *c, hr_mechanism m, timing *t,
                               hr_error *error)
{
    enum { most = 15 };
    const int batches = b->quick ? 5 : most;
    double times[most] = {0}, ratios[most] = {0};
    for (int i = -1; i < batches; i++) {
        double ours = 0, theirs = 0;
        hr_status status = HR_OK;
        for (int turn = 0; turn < 2 && status == HR_OK; turn++) {
            const bool other = turn == (i & 1); /* either goes first as often */
            if (!other) {
                status = time_one(b, c, m, &ours, error);
            } else if (c->beside != NULL) {
                status = time_one(b, c->beside, m, &theirs, error);
            }
        }
        if (status != HR_OK) {
            return status;
        }
        if (i >= 0) {
            times[i] = ours;
            ratios[i] = theirs / ours;
        }
    }
    t->seconds = hr_samples_median(times, (size_t)batches);
    t->spread_pct = hr_samples_spread_pct(times, (size_t)batches);
    t->ratio = c->beside != NULL ? hr_samples_median(ratios, (size_t)batches) : 0;
    return HR_OK;
}

static hr_status run_and_verify(hr_kbench *b, const hr_kbench_case *c, hr_mechanism m, int *verified,
                                hr_error *error)
{
    hr_status status = HR_OK;
    if (c->out != NULL) {
        status = hr_kbench_check(cudaMemsetAsync(c->out, 0xff, c->out_bytes, b->stream), "poison", error);
    }
    if (status == HR_OK) {
        status = c->launch(c->job, m, b->stream, error);
    }
    if (status == HR_OK) {
        status = hr_kbench_check(cudaStreamSynchronize(b->stream), c->name, error);
    }
    if (status == HR_OK && c->verify != NULL) {
        *verified = c->verify(b, c->job, error);
        status = *verified < 0 ? HR_E_DEVICE : HR_OK;
    }
    return status;
}

hr_status hr_kbench_run(hr_kbench *b, const hr_kbench_case *c, hr_mechanism m, double *seconds,
                        hr_error *error)
{
    char name[96];
    hr_bench_row row = HR_BENCH_ROW_INIT;
    hr_error reason = HR_ERROR_INIT;
    timing t = {0};
    hr_status status;

    snprintf(name, sizeof name, c->plain ? "%s" : "%s %s", c->name, hr_mechanism_name(m));
    row.name = name;
    row.bytes = (uint64_t)c->bytes;
    status = run_and_verify(b, c, m, &row.verified, &reason);
    if (status == HR_OK) {
        status = time_launches(b, c, m, &t, &reason);
        row.spread_pct = t.spread_pct;
    }
    if (status == HR_E_UNSUPPORTED) {
        row.skipped = reason.text;
        b->options->row(b->options->user, &row);
        return HR_OK;
    }
    if (status != HR_OK) {
        return hr_fail(error, status, "%s", reason.text);
    }
    if (c->flops > 0) {
        row.unit = "tflops";
        row.value = c->flops / t.seconds * 1e-12;
    } else if (c->bytes > 0) {
        row.unit = "gbps";
        row.value = c->bytes / t.seconds * 1e-9;
    } else {
        row.unit = "us";
        row.value = t.seconds * 1e6 / (c->steps > 0 ? c->steps : 1);
    }
    if (c->vs != NULL && (c->vs_value > 0 || t.ratio > 0)) {
        row.vs = c->vs;
        row.ratio = t.ratio > 0 ? t.ratio : row.value / c->vs_value;
    }
    if (seconds != NULL) {
        *seconds = t.seconds;
    }
    b->options->row(b->options->user, &row);
    return HR_OK;
}

hr_status hr_kbench_every(hr_kbench *b, hr_kbench_case *c, const hr_mechanism *mechanisms, int count,
                          hr_error *error)
{
    hr_status status = HR_OK;
    for (int i = 0; i < count && status == HR_OK; i++) {
        status = hr_kbench_run(b, c, mechanisms[i], NULL, error);
    }
    return status;
}

void hr_kbench_fill(hr_kbench *b, void *device, uint64_t bytes, hr_status *status, hr_error *error)
{
    const uint64_t period = HR_KBENCH_PATTERN * sizeof(float);
    for (uint64_t at = 0; at < bytes && *status == HR_OK; at += period) {
        const uint64_t n = bytes - at < period ? bytes - at : period;
        *status =
            hr_kbench_check(at == 0 ? cudaMemcpy(device, b->pattern, n, cudaMemcpyHostToDevice)
                                    : cudaMemcpy((char *)device + at, device, n, cudaMemcpyDeviceToDevice),
                            "fill", error);
    }
    /* A copy from device to device returns before it is done, and the bench's stream does not wait for it. */
    if (*status == HR_OK) {
        *status = hr_kbench_check(cudaStreamSynchronize(NULL), "fill", error);
    }
}

hr_status hr_kbench_take(hr_kbench *b, void **device, uint64_t bytes, bool random, hr_error *error)
{
    void *taken = NULL;
    hr_status status = hr_kbench_check(cudaMalloc(&taken, bytes), "device memory", error);
    if (status == HR_OK && random) {
        hr_kbench_fill(b, taken, bytes, &status, error);
    }
    if (status != HR_OK) {
        (void)cudaFree(taken);
        return status;
    }
    *device = taken;
    return HR_OK;
}

/* Numbers in [−1, 1). The same every time. */
static float *make_pattern(void)
{
    float *p = malloc(HR_KBENCH_PATTERN * sizeof *p);
    uint64_t s = UINT64_C(0x9e3779b97f4a7c15);
    for (uint64_t i = 0; p != NULL && i < HR_KBENCH_PATTERN; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        p[i] = (float)(int32_t)(s >> 32) * 0x1p-31F;
    }
    return p;
}

hr_status hr_kbench_fill_halves(hr_kbench *b, void *device, uint64_t count, hr_error *error)
{
    hr_status status = HR_OK;
    if (b->halves == NULL) {
        b->halves = malloc(HR_KBENCH_PATTERN * sizeof *b->halves);
        if (b->halves == NULL) {
            return hr_fail(error, HR_E_HOST_MEMORY, "bench kernels: %zu bytes of host memory",
                           (size_t)HR_KBENCH_PATTERN * sizeof *b->halves);
        }
        for (uint64_t i = 0; i < HR_KBENCH_PATTERN; i++) {
            uint32_t bits;
            memcpy(&bits, &b->pattern[i], sizeof bits);
            b->halves[i] = (uint16_t)(bits >> 16); /* a cut, not a rounding: any bf16 will do */
        }
    }
    for (uint64_t at = 0; at < count && status == HR_OK; at += HR_KBENCH_PATTERN) {
        const uint64_t n = count - at < HR_KBENCH_PATTERN ? count - at : HR_KBENCH_PATTERN;
        status = hr_kbench_check(
            cudaMemcpy((char *)device + at * 2, b->halves, n * 2, cudaMemcpyHostToDevice), "fill", error);
    }
    return status;
}

uint64_t hr_kbench_random(hr_kbench *b, uint64_t below)
{
    b->seed = b->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return below == 0 ? 0 : (b->seed >> 20) % below;
}

hr_status hr_cuda_bench_kernels(const hr_bench_options *options, hr_error *error)
{
    hr_kbench b = {.options = options, .quick = options->quick, .seed = 1};
    hr_status status = HR_E_HOST_MEMORY;

    b.pattern = make_pattern();
    if (b.pattern == NULL) {
        return hr_fail(error, status, "bench kernels: %zu bytes of host memory",
                       (size_t)HR_KBENCH_PATTERN * sizeof(float));
    }
    status = hr_kbench_check(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "stream", error);
    if (status == HR_OK) {
        status = hr_kbench_check(cudaEventCreate(&b.begin), "event", error);
    }
    if (status == HR_OK) {
        status = hr_kbench_check(cudaEventCreate(&b.end), "event", error);
    }
    if (status == HR_OK) {
        status =
            hr_kbench_check(cudaHostAlloc((void **)&b.go, sizeof *b.go, cudaHostAllocDefault), "flag", error);
    }
    for (size_t i = 0; status == HR_OK && hr_kbench_suites[i] != NULL; i++) {
        status = hr_kbench_suites[i](&b, error);
    }
    if (b.go != NULL) {
        (void)cudaFreeHost(b.go);
    }
    if (b.end != NULL) {
        (void)cudaEventDestroy(b.end);
    }
    if (b.begin != NULL) {
        (void)cudaEventDestroy(b.begin);
    }
    if (b.stream != NULL) {
        (void)cudaStreamDestroy(b.stream);
    }
    free(b.halves);
    free(b.pattern);
    return status;
}
