/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call waits for what, tried. A kernel keeps one stream busy for a while; the call is made; then a
 * kernel goes into a third stream. If the call took as long as the first kernel, the host waited; if it
 * returned at once and the third stream's kernel came after the first, later work waits. On streams of both
 * kinds, because the answers differ.
 */
#include "backend/cuda/bench.h"
#include "backend/cuda/hold.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_NS UINT64_C(40000000)
#define SMALL   ((size_t)4096)
#define MIDDLE  ((size_t)1 << 20)
#define LARGE   ((size_t)64 << 20)

/* What calls work on; made anew for those that use something up. */
typedef struct trial {
    hr_bdevice *device;
    bool blocking;
    cudaStream_t busy, other, third; /* other: idle, for calls that take a stream */
    char *pageable, *pinned;
    void *device_memory, *device_other;
    /* Used up by a call. */
    void *spare;
    cudaStream_t spare_stream;
    cudaEvent_t spare_event;
} trial;

typedef struct sync_case {
    const char *name;
    cudaError_t (*prepare)(trial *t);
    cudaError_t (*call)(trial *t);
    cudaError_t (*after)(trial *t);
    bool takes_long; /* the call itself costs milliseconds: "slow" is no "waits" */
} sync_case;

static cudaError_t take_small(trial *t)
{
    return cudaMalloc(&t->spare, SMALL);
}
static cudaError_t take_large(trial *t)
{
    return cudaMalloc(&t->spare, LARGE);
}
static cudaError_t free_device(trial *t)
{
    void *base = t->spare;
    t->spare = NULL;
    return cudaFree(base);
}
static cudaError_t take_pinned(trial *t)
{
    return cudaHostAlloc(&t->spare, LARGE, cudaHostAllocPortable);
}
static cudaError_t free_pinned(trial *t)
{
    void *base = t->spare;
    t->spare = NULL;
    return cudaFreeHost(base);
}
static cudaError_t take_plain(trial *t)
{
    t->spare = aligned_alloc(4096, LARGE);
    if (t->spare == NULL) {
        return cudaErrorMemoryAllocation;
    }
    memset(t->spare, 1, LARGE);
    return cudaSuccess;
}
static cudaError_t register_spare(trial *t)
{
    return cudaHostRegister(t->spare, LARGE, cudaHostRegisterDefault);
}
static cudaError_t take_registered(trial *t)
{
    cudaError_t code = take_plain(t);
    return code == cudaSuccess ? register_spare(t) : code;
}
static cudaError_t unregister_spare(trial *t)
{
    return cudaHostUnregister(t->spare);
}
static cudaError_t free_plain(trial *t)
{
    free(t->spare);
    t->spare = NULL;
    return cudaSuccess;
}
static cudaError_t unregister_and_free(trial *t)
{
    cudaError_t code = unregister_spare(t);
    (void)free_plain(t);
    return code;
}
static cudaError_t take_async(trial *t)
{
    return cudaMallocAsync(&t->spare, SMALL, t->other);
}
static cudaError_t free_async(trial *t)
{
    void *base = t->spare;
    t->spare = NULL;
    return cudaFreeAsync(base, t->other);
}
static cudaError_t take_async_done(trial *t)
{
    cudaError_t code = take_async(t);
    return code == cudaSuccess ? cudaStreamSynchronize(t->other) : code;
}
static cudaError_t make_stream(trial *t)
{
    return cudaStreamCreateWithFlags(&t->spare_stream, cudaStreamNonBlocking);
}
static cudaError_t destroy_stream(trial *t)
{
    return cudaStreamDestroy(t->spare_stream);
}
static cudaError_t make_event(trial *t)
{
    return cudaEventCreateWithFlags(&t->spare_event, cudaEventDisableTiming);
}
static cudaError_t destroy_event(trial *t)
{
    return cudaEventDestroy(t->spare_event);
}
static cudaError_t memory_info(trial *t)
{
    size_t a;
    size_t b;
    (void)t;
    return cudaMemGetInfo(&a, &b);
}
static cudaError_t function_attributes(trial *t)
{
    struct cudaFuncAttributes attributes;
    return hr_cuda_kernel_cold_attributes(t->blocking ? 1 : 0, &attributes);
}
static cudaError_t cold_kernel(trial *t)
{
    return hr_cuda_kernel_cold(t->other, t->blocking ? 1 : 0);
}
static cudaError_t warm_default_kernel(trial *t)
{
    (void)t;
    return hr_cuda_kernel_delay(NULL, 1000);
}
static cudaError_t set_device(trial *t)
{
    return cudaMemset(t->device_memory, 1, MIDDLE);
}
static cudaError_t set_device_2d(trial *t)
{
    return cudaMemset2D(t->device_memory, 1024, 1, 1000, 64);
}
static cudaError_t set_pinned(trial *t)
{
    return cudaMemset(t->pinned, 1, MIDDLE);
}
static cudaError_t set_async(trial *t)
{
    return cudaMemsetAsync(t->device_memory, 1, MIDDLE, t->other);
}
static cudaError_t in_pageable(trial *t)
{
    return cudaMemcpy(t->device_memory, t->pageable, SMALL, cudaMemcpyHostToDevice);
}
static cudaError_t in_pageable_large(trial *t)
{
    return cudaMemcpy(t->device_memory, t->pageable, LARGE, cudaMemcpyHostToDevice);
}
static cudaError_t in_pinned(trial *t)
{
    return cudaMemcpy(t->device_memory, t->pinned, SMALL, cudaMemcpyHostToDevice);
}
static cudaError_t out_pageable(trial *t)
{
    return cudaMemcpy(t->pageable, t->device_memory, SMALL, cudaMemcpyDeviceToHost);
}
static cudaError_t within(trial *t)
{
    return cudaMemcpy(t->device_other, t->device_memory, MIDDLE, cudaMemcpyDeviceToDevice);
}
static cudaError_t in_2d(trial *t)
{
    return cudaMemcpy2D(t->device_memory, 1024, t->pageable, 1000, 1000, 64, cudaMemcpyHostToDevice);
}
static cudaError_t to_symbol(trial *t)
{
    return hr_cuda_copy_to_bench_symbol(t->pageable, SMALL);
}
static cudaError_t async_pinned(trial *t)
{
    return cudaMemcpyAsync(t->device_memory, t->pinned, LARGE, cudaMemcpyHostToDevice, t->other);
}
static cudaError_t async_in_same_small(trial *t)
{
    return cudaMemcpyAsync(t->device_memory, t->pageable, SMALL, cudaMemcpyHostToDevice, t->busy);
}
static cudaError_t async_in_same_middle(trial *t)
{
    return cudaMemcpyAsync(t->device_memory, t->pageable, MIDDLE, cudaMemcpyHostToDevice, t->busy);
}
static cudaError_t async_in_same_large(trial *t)
{
    return cudaMemcpyAsync(t->device_memory, t->pageable, LARGE, cudaMemcpyHostToDevice, t->busy);
}
static cudaError_t async_in_idle_large(trial *t)
{
    return cudaMemcpyAsync(t->device_memory, t->pageable, LARGE, cudaMemcpyHostToDevice, t->other);
}
static cudaError_t async_out_same_small(trial *t)
{
    return cudaMemcpyAsync(t->pageable, t->device_memory, SMALL, cudaMemcpyDeviceToHost, t->busy);
}
static cudaError_t async_out_idle_small(trial *t)
{
    return cudaMemcpyAsync(t->pageable, t->device_memory, SMALL, cudaMemcpyDeviceToHost, t->other);
}
static cudaError_t async_host_to_host(trial *t)
{
    return cudaMemcpyAsync(t->pageable, t->pinned, MIDDLE, cudaMemcpyHostToHost, t->other);
}
static cudaError_t query_busy(trial *t)
{
    cudaError_t code = cudaStreamQuery(t->busy);
    return code == cudaErrorNotReady ? cudaSuccess : code;
}
static cudaError_t synchronize_other(trial *t)
{
    return cudaStreamSynchronize(t->other);
}

static const sync_case cases[] = {
    {"cudaMalloc 4 KiB", NULL, take_small, free_device, false},
    {"cudaMalloc 64 MiB", NULL, take_large, free_device, false},
    {"cudaFree 4 KiB", take_small, free_device, NULL, false},
    {"cudaFree 64 MiB", take_large, free_device, NULL, false},
    {"cudaMallocAsync 4 KiB", NULL, take_async, free_async, false},
    {"cudaFreeAsync 4 KiB", take_async_done, free_async, NULL, false},
    {"cudaHostAlloc 64 MiB", NULL, take_pinned, free_pinned, true},
    {"cudaFreeHost 64 MiB", take_pinned, free_pinned, NULL, true},
    {"cudaHostRegister 64 MiB", take_plain, register_spare, unregister_and_free, true},
    {"cudaHostUnregister 64 MiB", take_registered, unregister_spare, free_plain, true},
    {"cudaStreamCreateWithFlags", NULL, make_stream, destroy_stream, false},
    {"cudaStreamDestroy", make_stream, destroy_stream, NULL, false},
    {"cudaEventCreateWithFlags", NULL, make_event, destroy_event, false},
    {"cudaEventDestroy", make_event, destroy_event, NULL, false},
    {"cudaMemGetInfo", NULL, memory_info, NULL, false},
    {"cudaFuncGetAttributes, function not loaded", NULL, function_attributes, NULL, false},
    {"first launch of a kernel", NULL, cold_kernel, NULL, false},
    {"kernel on the default stream", NULL, warm_default_kernel, NULL, false},
    {"cudaMemset, device memory", NULL, set_device, NULL, false},
    {"cudaMemset2D, device memory", NULL, set_device_2d, NULL, false},
    {"cudaMemset, pinned memory", NULL, set_pinned, NULL, false},
    {"cudaMemsetAsync", NULL, set_async, NULL, false},
    {"cudaMemcpy h2d pageable 4 KiB", NULL, in_pageable, NULL, false},
    {"cudaMemcpy h2d pageable 64 MiB", NULL, in_pageable_large, NULL, true},
    {"cudaMemcpy h2d pinned 4 KiB", NULL, in_pinned, NULL, false},
    {"cudaMemcpy d2h pageable 4 KiB", NULL, out_pageable, NULL, false},
    {"cudaMemcpy d2d 1 MiB", NULL, within, NULL, false},
    {"cudaMemcpy2D h2d pageable", NULL, in_2d, NULL, false},
    {"cudaMemcpyToSymbol 4 KiB", NULL, to_symbol, NULL, false},
    {"cudaMemcpyAsync h2d pinned 64 MiB, idle stream", NULL, async_pinned, NULL, false},
    {"cudaMemcpyAsync h2d pageable 4 KiB, busy stream", NULL, async_in_same_small, NULL, false},
    {"cudaMemcpyAsync h2d pageable 1 MiB, busy stream", NULL, async_in_same_middle, NULL, false},
    {"cudaMemcpyAsync h2d pageable 64 MiB, busy stream", NULL, async_in_same_large, NULL, true},
    {"cudaMemcpyAsync h2d pageable 64 MiB, idle stream", NULL, async_in_idle_large, NULL, true},
    {"cudaMemcpyAsync d2h pageable 4 KiB, busy stream", NULL, async_out_same_small, NULL, false},
    {"cudaMemcpyAsync d2h pageable 4 KiB, idle stream", NULL, async_out_idle_small, NULL, false},
    {"cudaMemcpyAsync h2h 1 MiB, idle stream", NULL, async_host_to_host, NULL, false},
    {"cudaStreamQuery, busy stream", NULL, query_busy, NULL, false},
    {"cudaStreamSynchronize, idle stream", NULL, synchronize_other, NULL, false},
};

/* What was seen of one case. */
typedef struct seen {
    uint64_t call_ns;
    bool host_waited, later_waited;
} seen;

static cudaError_t open_trial(trial *t, hr_bdevice *device, bool blocking)
{
    *t = (trial){.device = device, .blocking = blocking};
    unsigned flags = blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    cudaError_t code = cudaStreamCreateWithFlags(&t->busy, flags);
    code = code == cudaSuccess ? cudaStreamCreateWithFlags(&t->other, flags) : code;
    code = code == cudaSuccess ? cudaStreamCreateWithFlags(&t->third, flags) : code;
    code = code == cudaSuccess ? cudaHostAlloc((void **)&t->pinned, LARGE, cudaHostAllocPortable) : code;
    code = code == cudaSuccess ? cudaMalloc(&t->device_memory, LARGE) : code;
    code = code == cudaSuccess ? cudaMalloc(&t->device_other, LARGE) : code;
    t->pageable = malloc(LARGE);
    if (t->pageable == NULL) {
        return cudaErrorMemoryAllocation;
    }
    memset(t->pageable, 1, LARGE);
    /* Everything that is first used here would be loaded here. */
    code = code == cudaSuccess ? hr_cuda_kernel_delay(t->busy, 1000) : code;
    code = code == cudaSuccess ? hr_cuda_kernel_delay(t->third, 1000) : code;
    code = code == cudaSuccess ? hr_cuda_copy_to_bench_symbol(t->pageable, SMALL) : code;
    code = code == cudaSuccess ? cudaMemset(t->device_memory, 0, SMALL) : code;
    return code == cudaSuccess ? cudaDeviceSynchronize() : code;
}

static void close_trial(trial *t)
{
    (void)cudaDeviceSynchronize();
    (void)cudaFree(t->device_memory);
    (void)cudaFree(t->device_other);
    (void)cudaFreeHost(t->pinned);
    free(t->pageable);
    cudaStream_t streams[3] = {t->busy, t->other, t->third};
    for (int i = 0; i < 3; i++) {
        if (streams[i] != NULL) {
            (void)cudaStreamDestroy(streams[i]);
        }
    }
    (void)cudaGetLastError();
}

static cudaError_t try_case(trial *t, const sync_case *one, seen *what)
{
    cudaError_t code = one->prepare != NULL ? one->prepare(t) : cudaSuccess;
    cudaEvent_t busy_done = NULL;
    cudaEvent_t later_done = NULL;
    code = code == cudaSuccess ? cudaEventCreateWithFlags(&busy_done, cudaEventDefault) : code;
    code = code == cudaSuccess ? cudaEventCreateWithFlags(&later_done, cudaEventDefault) : code;
    code = code == cudaSuccess ? cudaDeviceSynchronize() : code;
    code = code == cudaSuccess ? hr_cuda_kernel_delay(t->busy, BUSY_NS) : code;
    code = code == cudaSuccess ? cudaEventRecord(busy_done, t->busy) : code;
    if (code != cudaSuccess) {
        return code;
    }
    uint64_t begin = hr_now_ns();
    code = one->call(t);
    what->call_ns = hr_now_ns() - begin;
    bool busy_over = cudaEventQuery(busy_done) == cudaSuccess;
    (void)cudaGetLastError();
    code = code == cudaSuccess ? hr_cuda_kernel_delay(t->third, 1000) : code;
    code = code == cudaSuccess ? cudaEventRecord(later_done, t->third) : code;
    code = code == cudaSuccess ? cudaEventSynchronize(later_done) : code;
    float apart_ms = 0.0f;
    code = code == cudaSuccess ? cudaEventSynchronize(busy_done) : code;
    code = code == cudaSuccess ? cudaEventElapsedTime(&apart_ms, busy_done, later_done) : code;
    what->host_waited = busy_over && what->call_ns > BUSY_NS / 2;
    what->later_waited = !busy_over && apart_ms > -1.0f;
    code = code == cudaSuccess ? cudaDeviceSynchronize() : code;
    cudaError_t after = one->after != NULL ? one->after(t) : cudaSuccess;
    (void)cudaEventDestroy(busy_done);
    (void)cudaEventDestroy(later_done);
    return code == cudaSuccess ? after : code;
}

static const char *answer_of(const seen *what)
{
    if (what->host_waited) {
        return "the host waits for the kernel";
    }
    return what->later_waited ? "later work in other streams waits" : "nothing waits";
}

hr_status hr_cuda_bench_sync(hr_cuda_bench_run *run, hr_error *error)
{
    int driver = 0;
    hr_cuda_ignore(run->device, cudaDriverGetVersion(&driver));
    if (run->options->note != NULL) {
        char text[160];
        snprintf(text, sizeof text,
                 "driver for CUDA %d.%d; a kernel of %d ms runs in another stream meanwhile", driver / 1000,
                 driver % 1000 / 10, (int)(BUSY_NS / 1000000));
        run->options->note(run->options->user, text);
    }
    hr_status status = HR_OK;
    for (int blocking = 0; blocking < 2 && status == HR_OK; blocking++) {
        trial t;
        status = hr_cuda_check(run->device, open_trial(&t, run->device, blocking != 0), error,
                               "bench sync: making streams and memory");
        for (size_t i = 0; i < sizeof cases / sizeof cases[0] && status == HR_OK; i++) {
            seen what = {0};
            cudaError_t code = try_case(&t, &cases[i], &what);
            double us = (double)what.call_ns / 1e3;
            hr_cuda_figure figure = {.unit = "us", .samples = &us, .count = 1, .verified = -1};
            if (code != cudaSuccess) {
                status = hr_cuda_check(run->device, code, error, "bench sync: %s", cases[i].name);
                figure.skipped = cudaGetErrorName(code);
                status = status == HR_E_DEVICE_LOST ? status : HR_OK;
            } else {
                figure.answer = answer_of(&what);
            }
            hr_cuda_bench_row(run, &figure, "%s; %s streams", cases[i].name,
                              blocking ? "blocking" : "non-blocking");
        }
        close_trial(&t);
    }
    return status;
}
