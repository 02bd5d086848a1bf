/* SPDX-License-Identifier: Apache-2.0 */
/* Many small blocks between pinned memory and the device, by each method, and what Headrace chooses. */
#include "backend/cuda/bench.h"
#include "base/clock.h"
#include "base/samples.h"

#include <stdlib.h>
#include <string.h>

#define TOTAL_BYTES ((uint64_t)256 << 20)
#define MOST_BLOCKS 65536
#define SAMPLES     7

typedef struct scatter {
    hr_bmemory pinned, device;
    hr_segment *list;
    uint64_t count, block;
} scatter;

/* Block i of the dense side lies at a random place of the other, each place once. */
static void make_list(scatter *s, bool dense_is_dst)
{
    uint64_t state = 88172645463325252u;
    for (uint64_t i = 0; i < s->count; i++) {
        s->list[i] = (hr_segment){i * s->block, i * s->block, s->block};
    }
    for (uint64_t i = s->count - 1; i > 0; i--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        uint64_t k = state % (i + 1);
        uint64_t *a = dense_is_dst ? &s->list[i].src_offset_bytes : &s->list[i].dst_offset_bytes;
        uint64_t *b = dense_is_dst ? &s->list[k].src_offset_bytes : &s->list[k].dst_offset_bytes;
        uint64_t kept = *a;
        *a = *b;
        *b = kept;
    }
}

static hr_status time_one(hr_cuda_bench_run *run, const hr_bcopy *copy, const hr_cuda_segment_method *method,
                          double *gbps, uint64_t bytes, hr_error *error)
{
    cudaStream_t native = run->stream[0]->native;
    uint64_t begin = hr_now_ns();
    hr_status status = method != NULL ? hr_cuda_segments_by(run->device, native, copy, *method, error)
                                      : hr_cuda_copy(run->stream[0], copy, error);
    if (status == HR_OK) {
        status = hr_cuda_stream_wait(run->stream[0], error);
    }
    *gbps = (double)bytes / (double)(hr_now_ns() - begin);
    return status;
}

/* The scattered side against the dense one, whichever is on the host now. */
static int verify(hr_cuda_bench_run *run, const scatter *s, const hr_bcopy *copy)
{
    uint64_t bytes = s->count * s->block;
    char *device_side = malloc(bytes);
    if (device_side == NULL ||
        cudaMemcpyAsync(device_side, s->device.base, bytes, cudaMemcpyDeviceToHost, run->raw[0]) !=
            cudaSuccess ||
        cudaStreamSynchronize(run->raw[0]) != cudaSuccess) {
        free(device_side);
        return 0;
    }
    bool in = copy->src.place == HR_PLACE_HOST;
    const char *dst = in ? device_side : s->pinned.base;
    const char *src = in ? s->pinned.base : device_side;
    int right = 1;
    for (uint64_t i = 0; i < s->count && right == 1; i++) {
        right = memcmp(dst + s->list[i].dst_offset_bytes, src + s->list[i].src_offset_bytes, s->block) == 0;
    }
    free(device_side);
    return right;
}

static hr_status poison(hr_cuda_bench_run *run, const scatter *s, const hr_bcopy *copy, hr_error *error)
{
    if (copy->dst.place == HR_PLACE_HOST) {
        hr_cuda_bench_pattern(s->pinned.base, s->count * s->block, 77);
        return HR_OK;
    }
    hr_status status =
        hr_cuda_check(run->device, cudaMemsetAsync(s->device.base, 0x5A, s->count * s->block, run->raw[0]),
                      error, "bench scatter: poison");
    return status == HR_OK ? hr_cuda_check(run->device, cudaStreamSynchronize(run->raw[0]), error,
                                           "bench scatter: poison")
                           : status;
}

static hr_status measure(hr_cuda_bench_run *run, scatter *s, bool in, hr_error *error)
{
    static const struct {
        const char *name;
        hr_cuda_segment_method method;
        bool chosen;
    } methods[] = {{"a call each", HR_CUDA_SEGMENTS_CALLS, false},
                   {"batched calls", HR_CUDA_SEGMENTS_BATCH, false},
                   {"a kernel", HR_CUDA_SEGMENTS_KERNEL, false},
                   {"Headrace's choice", HR_CUDA_SEGMENTS_KERNEL, true}};
    hr_bend host = {.place = HR_PLACE_HOST, .base = s->pinned.base};
    hr_bend device = {.place = HR_PLACE_DEVICE, .device = run->device, .base = s->device.base};
    hr_bcopy copy = {
        .dst = in ? device : host, .src = in ? host : device, .segments = s->list, .segment_count = s->count};
    uint64_t bytes = s->count * s->block;
    uint32_t samples = run->options->quick ? 3 : SAMPLES;
    double best = 0.0;
    make_list(s, in);
    hr_status status = HR_OK;
    for (size_t m = 0; m < sizeof methods / sizeof methods[0] && status == HR_OK; m++) {
        const hr_cuda_segment_method *method = methods[m].chosen ? NULL : &methods[m].method;
        double gbps[SAMPLES];
        status = poison(run, s, &copy, error);
        if (status == HR_OK) {
            status = time_one(run, &copy, method, &gbps[0], bytes, error);
        }
        int verified = status == HR_OK ? verify(run, s, &copy) : 0;
        for (uint32_t i = 0; i < samples && status == HR_OK; i++) {
            status = time_one(run, &copy, method, &gbps[i], bytes, error);
        }
        if (status == HR_OK) {
            double median = hr_samples_median(gbps, samples);
            hr_cuda_figure figure = {
                .bytes = bytes, .unit = "gbps", .samples = gbps, .count = samples, .verified = verified};
            if (methods[m].chosen) {
                figure.vs = "the better of the calls";
                figure.ratio = median / best;
            } else if (methods[m].method != HR_CUDA_SEGMENTS_KERNEL && median > best) {
                best = median;
            }
            hr_cuda_bench_row(run, &figure, "%s, blocks of %llu B: %s", in ? "h2d" : "d2h",
                              (unsigned long long)s->block, methods[m].name);
        }
    }
    return status;
}

hr_status hr_cuda_bench_scatter(hr_cuda_bench_run *run, hr_error *error)
{
    static const uint64_t all[] = {512, 4096, 65536, 262144, (uint64_t)2 << 20};
    static const uint64_t some[] = {512, 4096, 65536};
    const uint64_t *blocks = run->options->quick ? some : all;
    size_t sizes = run->options->quick ? sizeof some / sizeof some[0] : sizeof all / sizeof all[0];
    scatter s = {0};
    hr_status status = hr_cuda_bench_memory(run, HR_MEMORY_PINNED, TOTAL_BYTES, 5, &s.pinned, error);
    if (status == HR_OK) {
        status = hr_cuda_bench_memory(run, HR_MEMORY_DEVICE, TOTAL_BYTES, 0, &s.device, error);
    }
    s.list = malloc(MOST_BLOCKS * sizeof *s.list);
    if (status == HR_OK && s.list == NULL) {
        status = hr_fail(error, HR_E_HOST_MEMORY, "bench scatter: the list could not be had");
    }
    for (size_t i = 0; i < sizes && status == HR_OK; i++) {
        s.block = blocks[i];
        s.count = hr_min_u64(MOST_BLOCKS, TOTAL_BYTES / s.block);
        status = measure(run, &s, true, error);
        if (status == HR_OK) {
            status = measure(run, &s, false, error);
        }
    }
    free(s.list);
    hr_bmemory *both[2] = {&s.pinned, &s.device};
    for (int i = 0; i < 2; i++) {
        if (both[i]->backend_data != NULL) {
            hr_cuda_memory_release(run->device, both[i]);
        }
    }
    return status;
}
