/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call costs the host. The stream is held meanwhile, so that nothing of the work itself is in the
 * figure; a series stays well under the thousand operations that a stream takes before its calls wait for
 * room.
 */
#include "backend/cuda/bench.h"
#include "backend/cuda/hold.h"
#include "base/clock.h"
#include "base/samples.h"

#include <string.h>

#define SERIES  200
#define BATCH   64
#define SAMPLES 15

typedef struct calls {
    hr_cuda_bench_run *run;
    hr_bmemory pinned, device, pageable;
    uint64_t bytes;
    hr_bcopy copy;
    hr_bevent *event;
    cudaEvent_t plain_event;
    cudaGraphExec_t graph;
} calls;

typedef cudaError_t (*plain_call)(calls *c);
typedef hr_status (*own_call)(calls *c, hr_error *error);

static cudaError_t plain_copy(calls *c)
{
    return cudaMemcpyAsync(c->device.base, c->pinned.base, c->bytes, cudaMemcpyHostToDevice, c->run->raw[0]);
}

static hr_status own_copy(calls *c, hr_error *error)
{
    return hr_cuda_copy(c->run->stream[0], &c->copy, error);
}

static cudaError_t plain_copy_2d(calls *c)
{
    return cudaMemcpy2DAsync(c->device.base, 512, c->pinned.base, 512, 256, c->bytes / 512,
                             cudaMemcpyHostToDevice, c->run->raw[0]);
}

static hr_status own_copy_2d(calls *c, hr_error *error)
{
    hr_bcopy copy = c->copy;
    copy.width_bytes = 256;
    copy.height = c->bytes / 512;
    copy.src.row_pitch_bytes = copy.dst.row_pitch_bytes = 512;
    return hr_cuda_copy(c->run->stream[0], &copy, error);
}

static cudaError_t plain_pageable(calls *c)
{
    return cudaMemcpyAsync(c->device.base, c->pageable.base, c->bytes, cudaMemcpyHostToDevice,
                           c->run->raw[0]);
}

static hr_status own_pageable(calls *c, hr_error *error)
{
    hr_bcopy copy = c->copy;
    copy.src.base = c->pageable.base;
    return hr_cuda_copy(c->run->stream[0], &copy, error);
}

static cudaError_t plain_set(calls *c)
{
    return cudaMemsetAsync(c->device.base, 0, c->bytes, c->run->raw[0]);
}

static hr_status own_set(calls *c, hr_error *error)
{
    hr_bfill fill = {.dst = c->copy.dst, .width_bytes = c->bytes, .height = 1, .depth = 1, .value_bytes = 1};
    return hr_cuda_fill(c->run->stream[0], &fill, error);
}

static cudaError_t plain_launch(calls *c)
{
    return hr_cuda_kernel_cold(c->run->raw[0], 2);
}

static hr_status launcher(const hr_launch *launch, hr_error *error)
{
    return hr_cuda_check(NULL, hr_cuda_kernel_cold(launch->native_stream, 2), error, "bench calls: a kernel");
}

static hr_status own_launch(calls *c, hr_error *error)
{
    hr_launch launch = {.size = sizeof launch};
    return hr_cuda_launch(c->run->stream[0], launcher, &launch, error);
}

static cudaError_t plain_record(calls *c)
{
    return cudaEventRecord(c->plain_event, c->run->raw[0]);
}

static hr_status own_record(calls *c, hr_error *error)
{
    return hr_cuda_event_record(c->event, c->run->stream[0], error);
}

static cudaError_t plain_wait(calls *c)
{
    return cudaStreamWaitEvent(c->run->raw[1], c->plain_event, 0);
}

static hr_status own_wait(calls *c, hr_error *error)
{
    return hr_cuda_stream_wait_event(c->run->stream[1], c->event, error);
}

static cudaError_t plain_query(calls *c)
{
    cudaError_t code = cudaEventQuery(c->plain_event);
    return code == cudaErrorNotReady ? cudaSuccess : code;
}

static hr_status own_query(calls *c, hr_error *error)
{
    hr_status status = hr_cuda_event_query(c->event, error);
    return status == HR_PENDING ? HR_OK : status;
}

static cudaError_t plain_batch(calls *c)
{
#if CUDART_VERSION >= 13000
    void *to[BATCH];
    const void *from[BATCH];
    size_t bytes[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        to[i] = (char *)c->device.base + i * 4096;
        from[i] = (const char *)c->pinned.base + i * 8192;
        bytes[i] = 4096;
    }
    struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    size_t first = 0;
    return cudaMemcpyBatchAsync(to, from, bytes, BATCH, &how, &first, 1, c->run->raw[0]);
#else
    (void)c;
    return cudaErrorNotSupported;
#endif
}

static hr_status own_list(calls *c, hr_error *error)
{
    hr_segment list[BATCH];
    for (uint64_t i = 0; i < BATCH; i++) {
        list[i] = (hr_segment){i * 4096, i * 8192, 4096};
    }
    hr_bcopy copy = c->copy;
    copy.segments = list;
    copy.segment_count = BATCH;
    return hr_cuda_copy(c->run->stream[0], &copy, error);
}

static cudaError_t plain_graph(calls *c)
{
    return cudaGraphLaunch(c->graph, c->run->raw[0]);
}

static cudaError_t plain_attributes(calls *c)
{
    struct cudaPointerAttributes seen;
    return cudaPointerGetAttributes(&seen, c->pinned.base);
}

static hr_status own_kind(calls *c, hr_error *error)
{
    hr_memory_kind kind;
    (void)error;
    return hr_cuda_memory_kind(c->run->device, c->pinned.base, 4096, &kind);
}

static hr_status settle(hr_cuda_bench_run *run, hr_error *error)
{
    hr_cuda_bench_let_go(run);
    hr_status status = HR_OK;
    for (int i = 0; i < 2 && status == HR_OK; i++) {
        status = hr_cuda_stream_wait(run->stream[i], error);
        if (status == HR_OK) {
            status =
                hr_cuda_check(run->device, cudaStreamSynchronize(run->raw[i]), error, "bench calls: waiting");
        }
    }
    return status;
}

/* µs a call, of a series in a held stream. */
static hr_status time_series(calls *c, plain_call plain, own_call own, uint32_t series, double *us,
                             hr_error *error)
{
    cudaStream_t native = own != NULL ? c->run->stream[0]->native : c->run->raw[0];
    hr_status status = hr_cuda_bench_hold(c->run, native, error);
    uint64_t begin = hr_now_ns();
    for (uint32_t i = 0; i < series && status == HR_OK; i++) {
        status = own != NULL ? own(c, error)
                             : hr_cuda_check(c->run->device, plain(c), error, "bench calls: a call");
    }
    *us = (double)(hr_now_ns() - begin) / 1e3 / series;
    hr_error ignored;
    hr_status settled = settle(c->run, status == HR_OK ? error : &ignored);
    return status == HR_OK ? settled : status;
}

static hr_status measure(calls *c, const char *name, uint64_t bytes, plain_call plain, own_call own,
                         uint32_t series, double *overhead_us, hr_error *error)
{
    double plain_us[SAMPLES];
    double own_us[SAMPLES];
    double apart[SAMPLES];
    uint32_t samples = c->run->options->quick ? 5 : SAMPLES;
    double warm;
    hr_status status = HR_OK;
    c->bytes = bytes;
    c->copy.width_bytes = bytes;
    c->copy.src.row_pitch_bytes = c->copy.src.slice_pitch_bytes = bytes;
    c->copy.dst.row_pitch_bytes = c->copy.dst.slice_pitch_bytes = bytes;
    if (plain != NULL) {
        status = time_series(c, plain, NULL, series, &warm, error);
    }
    if (status == HR_OK && own != NULL) {
        status = time_series(c, NULL, own, series, &warm, error);
    }
    for (uint32_t i = 0; i < samples && status == HR_OK; i++) {
        status = time_series(c, plain, NULL, series, &plain_us[i], error);
        if (status == HR_OK && own != NULL) {
            status = time_series(c, NULL, own, series, &own_us[i], error);
            apart[i] = own_us[i] - plain_us[i];
        }
    }
    if (status != HR_OK) {
        return status;
    }
    hr_cuda_figure figure = {
        .bytes = bytes, .unit = "us", .samples = plain_us, .count = samples, .verified = -1};
    hr_cuda_bench_row(c->run, &figure, "%s", name);
    if (own != NULL) {
        figure.samples = own_us;
        figure.vs = name;
        figure.ratio = hr_samples_median(plain_us, samples) / hr_samples_median(own_us, samples);
        hr_cuda_bench_row(c->run, &figure, "Headrace's: %s", name);
        if (overhead_us != NULL) {
            *overhead_us = hr_samples_median(apart, samples);
        }
    }
    return HR_OK;
}

static hr_status make_graph(calls *c, hr_error *error)
{
    cudaGraph_t graph = NULL;
    hr_status status = hr_cuda_check(c->run->device,
                                     cudaStreamBeginCapture(c->run->raw[0], cudaStreamCaptureModeThreadLocal),
                                     error, "bench calls: capturing");
    for (int i = 0; i < BATCH && status == HR_OK; i++) {
        status = hr_cuda_check(c->run->device,
                               cudaMemcpyAsync((char *)c->device.base + i * 4096, c->pinned.base, 4096,
                                               cudaMemcpyHostToDevice, c->run->raw[0]),
                               error, "bench calls: capturing");
    }
    hr_status ended = hr_cuda_check(c->run->device, cudaStreamEndCapture(c->run->raw[0], &graph),
                                    status == HR_OK ? error : NULL, "bench calls: capturing");
    status = status == HR_OK ? ended : status;
    if (status == HR_OK) {
        status = hr_cuda_check(c->run->device, cudaGraphInstantiate(&c->graph, graph, 0), error,
                               "bench calls: making a graph");
    }
    if (graph != NULL) {
        hr_cuda_ignore(c->run->device, cudaGraphDestroy(graph));
    }
    return status;
}

static hr_status furnish(calls *c, hr_error *error)
{
    uint64_t most = (uint64_t)8 << 20;
    hr_status status = hr_cuda_bench_memory(c->run, HR_MEMORY_PINNED, most, 1, &c->pinned, error);
    if (status == HR_OK) {
        status = hr_cuda_bench_memory(c->run, HR_MEMORY_PAGEABLE, most, 2, &c->pageable, error);
    }
    if (status == HR_OK) {
        status = hr_cuda_bench_memory(c->run, HR_MEMORY_DEVICE, most, 0, &c->device, error);
    }
    if (status == HR_OK) {
        status = hr_cuda_event_open(c->run->device, &c->event, error);
    }
    if (status == HR_OK) {
        status =
            hr_cuda_check(c->run->device, cudaEventCreateWithFlags(&c->plain_event, cudaEventDisableTiming),
                          error, "bench calls: creating an event");
    }
    if (status == HR_OK) {
        status = make_graph(c, error);
    }
    c->copy = (hr_bcopy){
        .dst = {.place = HR_PLACE_DEVICE, .device = c->run->device, .base = c->device.base},
        .src = {.place = HR_PLACE_HOST, .base = c->pinned.base},
        .height = 1,
        .depth = 1,
    };
    return status;
}

static void unfurnish(calls *c)
{
    if (c->graph != NULL) {
        hr_cuda_ignore(c->run->device, cudaGraphExecDestroy(c->graph));
    }
    if (c->plain_event != NULL) {
        hr_cuda_ignore(c->run->device, cudaEventDestroy(c->plain_event));
    }
    if (c->event != NULL) {
        hr_cuda_event_close(c->event);
    }
    hr_bmemory *all[3] = {&c->pinned, &c->pageable, &c->device};
    for (int i = 0; i < 3; i++) {
        if (all[i]->backend_data != NULL) {
            hr_cuda_memory_release(c->run->device, all[i]);
        }
    }
}

hr_status hr_cuda_bench_calls(hr_cuda_bench_run *run, hr_error *error)
{
    calls c = {.run = run};
    double overhead = 0.0;
    static const struct {
        const char *name;
        uint64_t bytes;
        plain_call plain;
        own_call own;
        uint32_t series;
        bool is_copy;
    } rows[] = {
        {"cudaMemcpyAsync, pinned", 4096, plain_copy, own_copy, SERIES, true},
        {"cudaMemcpyAsync, pinned", (uint64_t)8 << 20, plain_copy, own_copy, SERIES / 4, false},
        {"cudaMemcpy2DAsync, pinned", 65536, plain_copy_2d, own_copy_2d, SERIES, false},
        {"cudaMemsetAsync", 65536, plain_set, own_set, SERIES, false},
        {"kernel launch", 0, plain_launch, own_launch, SERIES, false},
        {"cudaEventRecord", 0, plain_record, own_record, SERIES, false},
        {"cudaStreamWaitEvent", 0, plain_wait, own_wait, SERIES, false},
        {"cudaEventQuery", 0, plain_query, own_query, SERIES, false},
        {"cudaPointerGetAttributes", 0, plain_attributes, own_kind, SERIES, false},
        {"64 blocks of 4 KiB: cudaMemcpyBatchAsync", 0, plain_batch, own_list, 4, false},
        {"64 blocks of 4 KiB: cudaGraphLaunch", 0, plain_graph, NULL, 4, false},
    };
    hr_status status = furnish(&c, error);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == HR_OK; i++) {
        status = measure(&c, rows[i].name, rows[i].bytes, rows[i].plain, rows[i].own, rows[i].series,
                         rows[i].is_copy ? &overhead : NULL, error);
    }
    if (status == HR_OK) {
        hr_cuda_figure figure = {
            .bytes = 4096, .unit = "us", .samples = &overhead, .count = 1, .verified = -1};
        hr_cuda_bench_row(run, &figure, "cost of Headrace's copy call over the plain one");
        /* Pageable calls block in a held stream, or worse: they are timed in an idle one. */
        const uint64_t sizes[] = {4096, (uint64_t)8 << 20};
        for (int i = 0; i < 2 && status == HR_OK; i++) {
            double plain_us[SAMPLES];
            double own_us[SAMPLES];
            c.bytes = c.copy.width_bytes = sizes[i];
            for (int k = 0; k < SAMPLES && status == HR_OK; k++) {
                uint64_t begin = hr_now_ns();
                status = hr_cuda_check(run->device, plain_pageable(&c), error, "bench calls: a call");
                plain_us[k] = (double)(hr_now_ns() - begin) / 1e3;
                status = status == HR_OK ? settle(run, error) : status;
                begin = hr_now_ns();
                status = status == HR_OK ? own_pageable(&c, error) : status;
                own_us[k] = (double)(hr_now_ns() - begin) / 1e3;
                status = status == HR_OK ? settle(run, error) : status;
            }
            if (status == HR_OK) {
                hr_cuda_figure plain = {
                    .bytes = sizes[i], .unit = "us", .samples = plain_us, .count = SAMPLES, .verified = -1};
                hr_cuda_bench_row(run, &plain, "cudaMemcpyAsync, pageable");
                plain.samples = own_us;
                plain.vs = "cudaMemcpyAsync, pageable";
                plain.ratio = hr_samples_median(plain_us, SAMPLES) / hr_samples_median(own_us, SAMPLES);
                hr_cuda_bench_row(run, &plain, "Headrace's: cudaMemcpyAsync, pageable");
            }
        }
    }
    unfurnish(&c);
    return status;
}
