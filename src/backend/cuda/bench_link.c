/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the link does, through Headrace's copies and through the plain calls, in turns. Streams are held until
 * a whole series is queued, so that what is measured is the link and not the calls; events at both ends tell
 * the time.
 */
#include "backend/cuda/bench.h"
#include "base/clock.h"
#include "base/samples.h"

#include <stdlib.h>
#include <string.h>

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

/* A place that a copy goes from or to, and how often it is repeated for one sample. */
typedef struct link_case {
    const char *name;
    hr_bcopy copy;
    uint64_t bytes; /* of one copy */
    hr_status (*plain)(const struct link_case *one, cudaStream_t stream, hr_bdevice *device, hr_error *error);
} link_case;

typedef struct link_memory {
    hr_bmemory pinned_in, pinned_out, pageable, device_in, device_out;
    hr_barray *array2, *array3;
    uint64_t bytes;
} link_memory;

static enum cudaMemcpyKind kind_of(const hr_bcopy *copy)
{
    bool from_host = copy->src.place == HR_PLACE_HOST;
    bool to_host = copy->dst.place == HR_PLACE_HOST;
    return from_host ? cudaMemcpyHostToDevice : to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

static hr_status plain_1d(const link_case *one, cudaStream_t stream, hr_bdevice *device, hr_error *error)
{
    return hr_cuda_check(device,
                         cudaMemcpyAsync(one->copy.dst.base, one->copy.src.base,
                                         (size_t)one->copy.width_bytes, kind_of(&one->copy), stream),
                         error, "bench link: cudaMemcpyAsync");
}

static hr_status plain_2d(const link_case *one, cudaStream_t stream, hr_bdevice *device, hr_error *error)
{
    const hr_bcopy *c = &one->copy;
    return hr_cuda_check(device,
                         cudaMemcpy2DAsync(c->dst.base, c->dst.row_pitch_bytes, c->src.base,
                                           c->src.row_pitch_bytes, c->width_bytes, c->height, kind_of(c),
                                           stream),
                         error, "bench link: cudaMemcpy2DAsync");
}

static hr_status plain_3d(const link_case *one, cudaStream_t stream, hr_bdevice *device, hr_error *error)
{
    const hr_bcopy *c = &one->copy;
    struct cudaMemcpy3DParms parms = {0};
    uint64_t element = 1;
    if (c->dst.place == HR_PLACE_ARRAY) {
        parms.dstArray = c->dst.array->native;
        element = c->dst.array->element_bytes;
    } else {
        parms.dstPtr = (struct cudaPitchedPtr){c->dst.base, c->dst.row_pitch_bytes, c->width_bytes,
                                               c->dst.slice_pitch_bytes / c->dst.row_pitch_bytes};
    }
    if (c->src.place == HR_PLACE_ARRAY) {
        parms.srcArray = c->src.array->native;
        element = c->src.array->element_bytes;
    } else {
        parms.srcPtr = (struct cudaPitchedPtr){c->src.base, c->src.row_pitch_bytes, c->width_bytes,
                                               c->src.slice_pitch_bytes / c->src.row_pitch_bytes};
    }
    parms.extent = (struct cudaExtent){c->width_bytes / element, c->height, c->depth};
    parms.kind = kind_of(c);
    return hr_cuda_check(device, cudaMemcpy3DAsync(&parms, stream), error, "bench link: cudaMemcpy3DAsync");
}

/* One series of copies in a held stream: GB/s between its first and its last event. */
static hr_status time_held(hr_cuda_bench_run *run, const link_case *one, bool ours, uint32_t repeats,
                           double *gbps, hr_error *error)
{
    cudaStream_t native = ours ? run->stream[0]->native : run->raw[0];
    hr_status status = hr_cuda_bench_hold(run, native, error);
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaEventRecord(run->begin, native), error, "bench link: begin");
    }
    for (uint32_t i = 0; i < repeats && status == HR_OK; i++) {
        status = ours ? hr_cuda_copy(run->stream[0], &one->copy, error)
                      : one->plain(one, native, run->device, error);
    }
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaEventRecord(run->end, native), error, "bench link: end");
    }
    hr_cuda_bench_let_go(run);
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaStreamSynchronize(native), error, "bench link: waiting");
    }
    float ms = 0.0f;
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaEventElapsedTime(&ms, run->begin, run->end), error,
                               "bench link: time");
    }
    *gbps = (double)one->bytes * repeats / (double)ms / 1e6;
    return status;
}

/* One copy by the host's clock, for pageable ends, which no plain call leaves to the stream. */
static hr_status time_wall(hr_cuda_bench_run *run, const link_case *one, bool ours, double *gbps,
                           hr_error *error)
{
    uint64_t begin = hr_now_ns();
    hr_status status = ours ? hr_cuda_copy(run->stream[0], &one->copy, error)
                            : one->plain(one, run->raw[0], run->device, error);
    if (status == HR_OK) {
        status = ours ? hr_cuda_stream_wait(run->stream[0], error)
                      : hr_cuda_check(run->device, cudaStreamSynchronize(run->raw[0]), error,
                                      "bench link: waiting");
    }
    *gbps = (double)one->bytes / (double)(hr_now_ns() - begin);
    return status;
}

/* Does the destination hold what the source held? Compared on the host, row by row where there are pitches.
 */
static int verify(hr_cuda_bench_run *run, const link_case *one, const void *expected)
{
    const hr_bcopy *c = &one->copy;
    if (c->dst.place == HR_PLACE_ARRAY) {
        return -1; /* a case that copies back tells */
    }
    uint64_t span =
        (c->depth - 1) * c->dst.slice_pitch_bytes + (c->height - 1) * c->dst.row_pitch_bytes + c->width_bytes;
    char *got = c->dst.base;
    char *copied = NULL;
    if (c->dst.place == HR_PLACE_DEVICE) {
        copied = malloc(span);
        if (copied == NULL ||
            cudaMemcpyAsync(copied, got, span, cudaMemcpyDeviceToHost, run->raw[1]) != cudaSuccess ||
            cudaStreamSynchronize(run->raw[1]) != cudaSuccess) {
            free(copied);
            return 0;
        }
        got = copied;
    }
    int right = 1;
    for (uint64_t z = 0; z < c->depth && right == 1; z++) {
        for (uint64_t y = 0; y < c->height && right == 1; y++) {
            right = memcmp(got + z * c->dst.slice_pitch_bytes + y * c->dst.row_pitch_bytes,
                           (const char *)expected + z * c->src.slice_pitch_bytes + y * c->src.row_pitch_bytes,
                           c->width_bytes) == 0;
        }
    }
    free(copied);
    return right;
}

/* Poisons where a copy goes, so that bytes that it leaves out show. */
static hr_status poison(hr_cuda_bench_run *run, const link_case *one, hr_error *error)
{
    const hr_bcopy *c = &one->copy;
    uint64_t span =
        (c->depth - 1) * c->dst.slice_pitch_bytes + (c->height - 1) * c->dst.row_pitch_bytes + c->width_bytes;
    if (c->dst.place == HR_PLACE_HOST) {
        memset(c->dst.base, 0x5A, span);
        return HR_OK;
    }
    if (c->dst.place == HR_PLACE_ARRAY) {
        return HR_OK;
    }
    hr_status status = hr_cuda_check(run->device, cudaMemsetAsync(c->dst.base, 0x5A, span, run->raw[1]),
                                     error, "bench link: poison");
    return status == HR_OK
               ? hr_cuda_check(run->device, cudaStreamSynchronize(run->raw[1]), error, "bench link: poison")
               : status;
}

static uint32_t samples_for(const hr_cuda_bench_run *run, uint64_t bytes, bool wall)
{
    uint32_t few = bytes >= 256 * MIB ? 5 : bytes >= 16 * MIB ? 9 : 15;
    if (wall && bytes >= 64 * MIB) {
        few = 5;
    }
    return run->options->quick ? (few + 1) / 2 : few;
}

static uint32_t repeats_for(const hr_cuda_bench_run *run, uint64_t bytes)
{
    uint64_t series = run->options->quick ? 128 * MIB : 512 * MIB;
    return (uint32_t)hr_max_u64(2, hr_min_u64(200, series / bytes));
}

static hr_status measure(hr_cuda_bench_run *run, const link_case *one, bool wall, const void *expected,
                         hr_error *error)
{
    double ours[HR_BENCH_MAX_SAMPLES];
    double plain[HR_BENCH_MAX_SAMPLES];
    uint32_t samples = samples_for(run, one->bytes, wall);
    uint32_t repeats = wall ? 1 : repeats_for(run, one->bytes);
    double warm;
    hr_status status = poison(run, one, error);
    if (status == HR_OK) {
        status =
            wall ? time_wall(run, one, true, &warm, error) : time_held(run, one, true, repeats, &warm, error);
    }
    if (status != HR_OK) {
        return status;
    }
    int verified = verify(run, one, expected);
    status =
        wall ? time_wall(run, one, false, &warm, error) : time_held(run, one, false, repeats, &warm, error);
    for (uint32_t i = 0; i < samples && status == HR_OK; i++) {
        /* Which comes first changes, so that neither has the warmer clock. */
        for (int turn = 0; turn < 2 && status == HR_OK; turn++) {
            bool mine = (turn + i) % 2 == 0;
            double *to = mine ? &ours[i] : &plain[i];
            status =
                wall ? time_wall(run, one, mine, to, error) : time_held(run, one, mine, repeats, to, error);
        }
    }
    if (status == HR_OK) {
        double ratio = hr_samples_median(ours, samples) / hr_samples_median(plain, samples);
        hr_cuda_figure figure = {.bytes = one->bytes,
                                 .unit = "gbps",
                                 .samples = ours,
                                 .count = samples,
                                 .verified = verified,
                                 .vs = "the plain call",
                                 .ratio = ratio};
        hr_cuda_bench_row(run, &figure, "%s", one->name);
    }
    return status;
}

static hr_bend host_end(void *base)
{
    return (hr_bend){.place = HR_PLACE_HOST, .base = base};
}

static hr_bend device_end(const hr_cuda_bench_run *run, void *base)
{
    return (hr_bend){.place = HR_PLACE_DEVICE, .device = run->device, .base = base};
}

static link_case flat(const char *name, hr_bend dst, hr_bend src, uint64_t bytes)
{
    dst.row_pitch_bytes = dst.slice_pitch_bytes = bytes;
    src.row_pitch_bytes = src.slice_pitch_bytes = bytes;
    return (link_case){
        name, {.dst = dst, .src = src, .width_bytes = bytes, .height = 1, .depth = 1}, bytes, plain_1d};
}

static hr_status measure_flat(hr_cuda_bench_run *run, link_memory *m, uint64_t bytes, hr_error *error)
{
    /* What comes back is what went out, so the pattern is known everywhere. */
    link_case in = flat("h2d pinned", device_end(run, m->device_in.base), host_end(m->pinned_in.base), bytes);
    link_case within =
        flat("d2d", device_end(run, m->device_out.base), device_end(run, m->device_in.base), bytes);
    link_case out =
        flat("d2h pinned", host_end(m->pinned_out.base), device_end(run, m->device_out.base), bytes);
    const link_case *cases[] = {&in, &within, &out};
    hr_status status = HR_OK;
    for (int i = 0; i < 3 && status == HR_OK; i++) {
        status = measure(run, cases[i], false, m->pinned_in.base, error);
    }
    return status;
}

static hr_status measure_pageable(hr_cuda_bench_run *run, link_memory *m, uint64_t bytes, hr_error *error)
{
    hr_cuda_bench_pattern(m->pageable.base, bytes, 3);
    memcpy(m->pinned_in.base, m->pageable.base, bytes);
    link_case in =
        flat("h2d pageable", device_end(run, m->device_in.base), host_end(m->pageable.base), bytes);
    link_case out =
        flat("d2h pageable", host_end(m->pageable.base), device_end(run, m->device_in.base), bytes);
    hr_status status = measure(run, &in, true, m->pinned_in.base, error);
    return status == HR_OK ? measure(run, &out, true, m->pinned_in.base, error) : status;
}

/* Both directions at once: GB/s of both together, by the events of the one that ends last. */
static hr_status time_both(hr_cuda_bench_run *run, const link_case *in, const link_case *out, bool ours,
                           uint32_t repeats, double *gbps, hr_error *error)
{
    cudaStream_t a = ours ? run->stream[0]->native : run->raw[0];
    cudaStream_t b = ours ? run->stream[1]->native : run->raw[1];
    hr_status status = hr_cuda_bench_hold(run, a, error);
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaEventRecord(run->begin, a), error, "bench link: begin");
    }
    if (status == HR_OK) {
        status =
            hr_cuda_check(run->device, cudaStreamWaitEvent(b, run->begin, 0), error, "bench link: begin");
    }
    for (uint32_t i = 0; i < repeats && status == HR_OK; i++) {
        status = ours ? hr_cuda_copy(run->stream[0], &in->copy, error) : in->plain(in, a, run->device, error);
        if (status == HR_OK) {
            status = ours ? hr_cuda_copy(run->stream[1], &out->copy, error)
                          : out->plain(out, b, run->device, error);
        }
    }
    cudaEvent_t joined = NULL;
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaEventCreateWithFlags(&joined, cudaEventDisableTiming), error,
                               "bench link: join");
    }
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaEventRecord(joined, b), error, "bench link: join");
    }
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaStreamWaitEvent(a, joined, 0), error, "bench link: join");
    }
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaEventRecord(run->end, a), error, "bench link: end");
    }
    hr_cuda_bench_let_go(run);
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaStreamSynchronize(a), error, "bench link: waiting");
    }
    float ms = 0.0f;
    if (status == HR_OK) {
        status = hr_cuda_check(run->device, cudaEventElapsedTime(&ms, run->begin, run->end), error,
                               "bench link: time");
    }
    if (joined != NULL) {
        hr_cuda_ignore(run->device, cudaEventDestroy(joined));
    }
    *gbps = (double)(in->bytes + out->bytes) * repeats / (double)ms / 1e6;
    return status;
}

static hr_status measure_both(hr_cuda_bench_run *run, link_memory *m, uint64_t bytes, hr_error *error)
{
    link_case in = flat("both", device_end(run, m->device_in.base), host_end(m->pinned_in.base), bytes);
    link_case out = flat("both", host_end(m->pinned_out.base), device_end(run, m->device_out.base), bytes);
    double ours[HR_BENCH_MAX_SAMPLES];
    double plain[HR_BENCH_MAX_SAMPLES];
    uint32_t samples = samples_for(run, bytes, false);
    uint32_t repeats = hr_max_u64(2, repeats_for(run, bytes) / 2);
    double warm;
    hr_status status = time_both(run, &in, &out, true, repeats, &warm, error);
    for (uint32_t i = 0; i < samples && status == HR_OK; i++) {
        for (int turn = 0; turn < 2 && status == HR_OK; turn++) {
            bool mine = (turn + i) % 2 == 0;
            status = time_both(run, &in, &out, mine, repeats, mine ? &ours[i] : &plain[i], error);
        }
    }
    if (status == HR_OK) {
        hr_cuda_figure figure = {.bytes = bytes,
                                 .unit = "gbps",
                                 .samples = ours,
                                 .count = samples,
                                 .verified = verify(run, &in, m->pinned_in.base),
                                 .vs = "the plain calls",
                                 .ratio =
                                     hr_samples_median(ours, samples) / hr_samples_median(plain, samples)};
        hr_cuda_bench_row(run, &figure, "h2d and d2h at once, sum");
    }
    return status;
}

/* Shapes of about 64 MiB. */
static hr_status measure_shapes(hr_cuda_bench_run *run, link_memory *m, hr_error *error)
{
    const struct {
        const char *name;
        uint64_t width, pitch, height, depth;
    } shapes[] = {{"h2d pinned, 2-D, rows of 1000 B, pitch 1024", 1000, 1024, 65536, 1},
                  {"h2d pinned, 2-D, rows of 64 B, pitch 128", 64, 128, 524288, 1},
                  {"h2d pinned, 3-D, 1000 B × 256 × 256, pitch 1024", 1000, 1024, 256, 256}};
    hr_status status = HR_OK;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && status == HR_OK; i++) {
        if (shapes[i].pitch * shapes[i].height * shapes[i].depth > m->bytes) {
            continue;
        }
        link_case one = flat(shapes[i].name, device_end(run, m->device_in.base), host_end(m->pinned_in.base),
                             shapes[i].width);
        one.copy.height = shapes[i].height;
        one.copy.depth = shapes[i].depth;
        one.bytes = shapes[i].width * shapes[i].height * shapes[i].depth;
        hr_bend *ends[2] = {&one.copy.dst, &one.copy.src};
        for (int e = 0; e < 2; e++) {
            ends[e]->row_pitch_bytes = shapes[i].pitch;
            /* One row more than there is, so that slices do not join to one 2-D copy. */
            ends[e]->slice_pitch_bytes =
                shapes[i].pitch * (shapes[i].height + (shapes[i].depth > 1 && e == 0));
        }
        if ((shapes[i].height + 1) * shapes[i].pitch * shapes[i].depth > m->bytes) {
            continue;
        }
        one.plain = shapes[i].depth > 1 ? plain_3d : plain_2d;
        status = measure(run, &one, false, m->pinned_in.base, error);
    }
    return status;
}

static hr_status measure_array(hr_cuda_bench_run *run, link_memory *m, const hr_array_options *options,
                               const char *in_name, const char *out_name, hr_error *error)
{
    hr_barray *array = NULL;
    hr_status status = hr_cuda_array_open(run->device, options, &array, error);
    if (status != HR_OK) {
        return status;
    }
    uint64_t width = options->width * array->element_bytes;
    uint64_t depth = hr_max_u64(1, options->depth);
    hr_bend there = {.place = HR_PLACE_ARRAY, .array = array};
    link_case in = flat(in_name, there, host_end(m->pinned_in.base), width);
    link_case out = flat(out_name, host_end(m->pinned_out.base), there, width);
    link_case *both[2] = {&in, &out};
    for (int i = 0; i < 2 && status == HR_OK; i++) {
        both[i]->copy.height = options->height;
        both[i]->copy.depth = depth;
        both[i]->bytes = width * options->height * depth;
        both[i]->copy.src.slice_pitch_bytes = width * options->height;
        both[i]->copy.dst.slice_pitch_bytes = width * options->height;
        both[i]->plain = plain_3d;
        status = measure(run, both[i], false, m->pinned_in.base, error);
    }
    hr_cuda_array_close(run->device, array);
    return status;
}

static hr_status measure_arrays(hr_cuda_bench_run *run, link_memory *m, hr_error *error)
{
    hr_array_options flat_array = HR_ARRAY_OPTIONS_INIT;
    flat_array.width = 2048;
    flat_array.height = 2048;
    hr_array_options deep_array = HR_ARRAY_OPTIONS_INIT;
    deep_array.width = 256;
    deep_array.height = 256;
    deep_array.depth = 64;
    hr_status status =
        measure_array(run, m, &flat_array, "h2d pinned to a 2-D array", "d2h pinned from a 2-D array", error);
    return status == HR_OK ? measure_array(run, m, &deep_array, "h2d pinned to a 3-D array",
                                           "d2h pinned from a 3-D array", error)
                           : status;
}

/* The pool against the call that it replaces; once each, for that is how often a program pays it. */
static hr_status measure_pools(hr_cuda_bench_run *run, uint64_t bytes, hr_error *error)
{
    double ours[5];
    double plain[2];
    hr_status status = HR_OK;
    for (int i = 0; i < 5 && status == HR_OK; i++) {
        hr_bmemory memory = {.kind = HR_MEMORY_PINNED, .bytes = bytes};
        uint64_t begin = hr_now_ns();
        status = hr_cuda_memory_take(run->device, &memory, error);
        ours[i] = (double)(hr_now_ns() - begin) / 1e6;
        if (status == HR_OK) {
            hr_cuda_memory_release(run->device, &memory);
        }
    }
    for (int i = 0; i < 2 && status == HR_OK; i++) {
        void *base = NULL;
        uint64_t begin = hr_now_ns();
        status = hr_cuda_check_about(run->device, cudaHostAlloc(&base, bytes, cudaHostAllocPortable),
                                     HR_CUDA_ABOUT_PINNED, error, "bench link: cudaHostAlloc");
        plain[i] = (double)(hr_now_ns() - begin) / 1e6;
        hr_cuda_ignore(run->device, cudaFreeHost(base));
    }
    if (status == HR_OK) {
        hr_cuda_figure figure = {.bytes = bytes,
                                 .unit = "ms",
                                 .samples = ours,
                                 .count = 5,
                                 .verified = -1,
                                 .vs = "cudaHostAlloc",
                                 .ratio = hr_samples_median(plain, 2) / hr_samples_median(ours, 5)};
        hr_cuda_bench_row(run, &figure, "taking a pinned pool");
    }
    return status;
}

static void release(hr_cuda_bench_run *run, hr_bmemory *memory)
{
    if (memory->backend_data != NULL) {
        hr_cuda_memory_release(run->device, memory);
    }
}

static hr_status take_all(hr_cuda_bench_run *run, link_memory *m, hr_error *error)
{
    hr_status status = hr_cuda_bench_memory(run, HR_MEMORY_PINNED, m->bytes, 1, &m->pinned_in, error);
    if (status == HR_OK) {
        status = hr_cuda_bench_memory(run, HR_MEMORY_PINNED, m->bytes, 2, &m->pinned_out, error);
    }
    if (status == HR_OK) {
        status = hr_cuda_bench_memory(run, HR_MEMORY_PAGEABLE, m->bytes, 3, &m->pageable, error);
    }
    if (status == HR_OK) {
        status = hr_cuda_bench_memory(run, HR_MEMORY_DEVICE, m->bytes, 0, &m->device_in, error);
    }
    return status == HR_OK ? hr_cuda_bench_memory(run, HR_MEMORY_DEVICE, m->bytes, 0, &m->device_out, error)
                           : status;
}

hr_status hr_cuda_bench_link(hr_cuda_bench_run *run, hr_error *error)
{
    const uint64_t all[] = {4096, 65536, MIB, 16 * MIB, 256 * MIB, GIB};
    const uint64_t some[] = {65536, MIB, 64 * MIB};
    const uint64_t *sizes = run->options->quick ? some : all;
    size_t count = run->options->quick ? sizeof some / sizeof some[0] : sizeof all / sizeof all[0];
    link_memory m = {.bytes = hr_max_u64(sizes[count - 1], 128 * MIB)};
    hr_status status = measure_pools(run, run->options->quick ? 256 * MIB : GIB, error);
    if (status == HR_OK) {
        status = take_all(run, &m, error);
    }
    for (size_t i = 0; i < count && status == HR_OK; i++) {
        status = measure_flat(run, &m, sizes[i], error);
        if (status == HR_OK && sizes[i] >= MIB) {
            status = measure_both(run, &m, sizes[i], error);
        }
        if (status == HR_OK) {
            status = measure_pageable(run, &m, sizes[i], error);
        }
    }
    if (status == HR_OK) {
        status = measure_shapes(run, &m, error);
    }
    if (status == HR_OK) {
        status = measure_arrays(run, &m, error);
    }
    release(run, &m.pinned_in);
    release(run, &m.pinned_out);
    release(run, &m.pageable);
    release(run, &m.device_in);
    release(run, &m.device_out);
    return status == HR_OK ? hr_cuda_bench_peer(run, error) : status;
}
