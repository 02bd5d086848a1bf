/* SPDX-License-Identifier: Apache-2.0 */
/* Which bench is which, and what they share. */
#include "backend/cuda/bench.h"
#include "backend/cuda/bench_kernels.h"
#include "backend/cuda/hold.h"
#include "base/samples.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HOLD_LIMIT_NS UINT64_C(2000000000)

hr_status hr_cuda_bench_open(hr_cuda_bench_run *run, hr_bdevice *device, const hr_bench_options *options,
                             hr_error *error)
{
    *run = (hr_cuda_bench_run){.device = device, .options = options};
    run->flag_memory = (hr_bmemory){.kind = HR_MEMORY_PINNED, .bytes = 4096};
    hr_status status = hr_cuda_memory_take(device, &run->flag_memory, error);
    if (status != HR_OK) {
        return status;
    }
    run->flag = run->flag_memory.base;
    *run->flag = 0;
    for (int i = 0; i < 3 && status == HR_OK; i++) {
        status = hr_cuda_stream_open(device, HR_STREAM_ANY, &run->stream[i], error);
        if (status == HR_OK) {
            status = hr_cuda_check(device, cudaStreamCreateWithFlags(&run->raw[i], cudaStreamNonBlocking),
                                   error, "bench: creating a stream");
        }
    }
    cudaEvent_t *events[2] = {&run->begin, &run->end};
    for (int i = 0; i < 2 && status == HR_OK; i++) {
        status = hr_cuda_check(device, cudaEventCreateWithFlags(events[i], cudaEventDefault), error,
                               "bench: creating an event");
    }
    return status;
}

void hr_cuda_bench_close(hr_cuda_bench_run *run)
{
    if (run->flag != NULL) {
        hr_cuda_bench_let_go(run);
    }
    for (int i = 0; i < 3; i++) {
        if (run->stream[i] != NULL) {
            (void)hr_cuda_stream_close(run->stream[i], NULL);
        }
        if (run->raw[i] != NULL) {
            hr_cuda_ignore(run->device, cudaStreamDestroy(run->raw[i]));
        }
    }
    if (run->begin != NULL) {
        hr_cuda_ignore(run->device, cudaEventDestroy(run->begin));
    }
    if (run->end != NULL) {
        hr_cuda_ignore(run->device, cudaEventDestroy(run->end));
    }
    if (run->flag_memory.backend_data != NULL) {
        hr_cuda_memory_release(run->device, &run->flag_memory);
    }
}

void hr_cuda_bench_row(const hr_cuda_bench_run *run, const hr_cuda_figure *figure, const char *format, ...)
{
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    hr_bench_row row = HR_BENCH_ROW_INIT;
    row.name = name;
    row.bytes = figure->bytes;
    row.unit = figure->count > 0 ? figure->unit : NULL;
    row.value = hr_samples_median(figure->samples, figure->count);
    row.spread_pct = hr_samples_spread_pct(figure->samples, figure->count);
    row.verified = figure->verified;
    row.vs = figure->vs;
    row.ratio = figure->ratio;
    row.answer = figure->answer;
    row.skipped = figure->skipped;
    run->options->row(run->options->user, &row);
}

void hr_cuda_bench_pattern(void *base, uint64_t bytes, uint64_t seed)
{
    uint64_t *words = base;
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (uint64_t i = 0; i < bytes / sizeof *words; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
}

hr_status hr_cuda_bench_memory(const hr_cuda_bench_run *run, hr_memory_kind kind, uint64_t bytes,
                               uint64_t seed, hr_bmemory *memory, hr_error *error)
{
    *memory = (hr_bmemory){.kind = kind, .bytes = bytes};
    hr_status status = hr_cuda_memory_take(run->device, memory, error);
    if (status == HR_OK && kind != HR_MEMORY_DEVICE) {
        hr_cuda_bench_pattern(memory->base, bytes, seed);
    }
    return status;
}

hr_status hr_cuda_bench_hold(hr_cuda_bench_run *run, cudaStream_t stream, hr_error *error)
{
    *run->flag = 0;
    return hr_cuda_check(run->device, hr_cuda_kernel_hold(stream, run->flag, HOLD_LIMIT_NS), error,
                         "bench: holding a stream");
}

void hr_cuda_bench_let_go(hr_cuda_bench_run *run)
{
    atomic_thread_fence(memory_order_seq_cst);
    *run->flag = 1;
}

/* The kernels' bench knows nothing of devices: it runs on the current one. */
static hr_status bench_kernels(hr_cuda_bench_run *run, hr_error *error)
{
    return hr_cuda_bench_kernels(run->options, error);
}

hr_status hr_cuda_bench(hr_bdevice *device, const hr_bench_options *options, hr_error *error)
{
    static const struct {
        const char *what;
        hr_status (*measure)(hr_cuda_bench_run *run, hr_error *error);
    } benches[] = {
        {"link", hr_cuda_bench_link},
        {"calls", hr_cuda_bench_calls},
        {"sync", hr_cuda_bench_sync},
        {"scatter", hr_cuda_bench_scatter},
        {"baseline add", hr_cuda_bench_baseline_add},
        {"baseline conv2d", hr_cuda_bench_baseline_conv2d},
        {"baseline matmul", hr_cuda_bench_baseline_matmul},
        {"kernels", bench_kernels},
    };
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
        if (strcmp(benches[i].what, options->what) == 0) {
            hr_cuda_scope scope;
            hr_status status = hr_cuda_enter(device, &scope, error);
            if (status != HR_OK) {
                return status;
            }
            hr_cuda_bench_run run;
            status = hr_cuda_bench_open(&run, device, options, error);
            if (status == HR_OK) {
                status = benches[i].measure(&run, error);
            }
            hr_cuda_bench_close(&run);
            hr_cuda_leave(&scope);
            return status;
        }
    }
    return hr_fail(error, HR_E_UNSUPPORTED, "bench %s: not on this device", options->what);
}
