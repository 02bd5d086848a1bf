/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes between this device and each other: through Headrace's copies, by the plain call with and without access to
 * each other's memory, and staged through the host, which is what Headrace does where access does not work.
 */
#include "backend/cuda/bench.h"
#include "base/clock.h"
#include "base/samples.h"

#include <stdio.h>
#include <string.h>

#define MIB     ((uint64_t)1 << 20)
#define SAMPLES 9

typedef struct pair {
    hr_cuda_bench_run *run;
    hr_bdevice *other;
    const hr_device_ops *ops; /* of the other */
    hr_bstream *stream;       /* of the other */
    hr_bmemory here, there;   /* device memory of each */
    hr_bmemory host, back,
        more; /* pinned: what is sent, what comes back, and for the other device at the same time */
    uint64_t bytes;
} pair;

/* One way of moving `bytes`, queued in a stream of this device or of the other. */
typedef hr_status (*way_fn)(const pair *p, uint64_t bytes, hr_error *error);

static hr_bend end_of(hr_place place, hr_bdevice *device, void *base, uint64_t bytes)
{
    return (hr_bend){.place = place,
                     .device = place == HR_PLACE_DEVICE ? device : NULL,
                     .base = base,
                     .row_pitch_bytes = bytes,
                     .slice_pitch_bytes = bytes};
}

static hr_bend here(const pair *p, uint64_t bytes)
{
    return end_of(HR_PLACE_DEVICE, p->run->device, p->here.base, bytes);
}

static hr_bend there(const pair *p, uint64_t bytes)
{
    return end_of(HR_PLACE_DEVICE, p->other, p->there.base, bytes);
}

static hr_bend host(void *base, uint64_t bytes)
{
    return end_of(HR_PLACE_HOST, NULL, base, bytes);
}

static hr_status copy(hr_bstream *stream, hr_bend dst, hr_bend src, uint64_t bytes, hr_error *error)
{
    hr_bcopy one = {.dst = dst, .src = src, .width_bytes = bytes, .height = 1, .depth = 1};
    return hr_cuda_copy(stream, &one, error);
}

static hr_status send(const pair *p, uint64_t bytes, hr_error *error)
{
    return copy(p->run->stream[0], there(p, bytes), here(p, bytes), bytes, error);
}

static hr_status fetch(const pair *p, uint64_t bytes, hr_error *error)
{
    return copy(p->run->stream[0], here(p, bytes), there(p, bytes), bytes, error);
}

static hr_status send_plain(const pair *p, uint64_t bytes, hr_error *error)
{
    hr_bdevice *device = p->run->device;
    return hr_cuda_check(device,
                         cudaMemcpyPeerAsync(p->there.base, p->other->ordinal, p->here.base, device->ordinal,
                                             (size_t)bytes, p->run->stream[0]->native),
                         error, "bench link: cudaMemcpyPeerAsync");
}

static hr_status fetch_plain(const pair *p, uint64_t bytes, hr_error *error)
{
    hr_bdevice *device = p->run->device;
    return hr_cuda_check(device,
                         cudaMemcpyPeerAsync(p->here.base, device->ordinal, p->there.base, p->other->ordinal,
                                             (size_t)bytes, p->run->stream[0]->native),
                         error, "bench link: cudaMemcpyPeerAsync");
}

static hr_status in_other(const pair *p, uint64_t bytes, hr_error *error)
{
    return copy(p->stream, there(p, bytes), host(p->host.base, bytes), bytes, error);
}

static hr_status out_other(const pair *p, uint64_t bytes, hr_error *error)
{
    return copy(p->stream, host(p->back.base, bytes), there(p, bytes), bytes, error);
}

static hr_status in_both(const pair *p, uint64_t bytes, hr_error *error)
{
    hr_status status = copy(p->run->stream[0], here(p, bytes), host(p->more.base, bytes), bytes, error);
    return status == HR_OK ? in_other(p, bytes, error) : status;
}

static hr_status wait_both(const pair *p, hr_error *error)
{
    hr_status status = hr_cuda_stream_wait(p->run->stream[0], error);
    return status == HR_OK ? hr_cuda_stream_wait(p->stream, error) : status;
}

/* GB/s of so many copies one after the other, by the host's clock. */
static hr_status time_way(const pair *p, way_fn way, uint64_t bytes, uint32_t repeats, double *gbps,
                          hr_error *error)
{
    hr_status status = HR_OK;
    uint64_t begin = hr_now_ns();
    for (uint32_t i = 0; i < repeats && status == HR_OK; i++) {
        status = way(p, bytes, error);
    }
    if (status == HR_OK) {
        status = wait_both(p, error);
    }
    *gbps = (double)bytes * repeats / (double)(hr_now_ns() - begin);
    return status;
}

/* Uploads and waits; the stream is of the device of `dst`. */
static hr_status put(hr_bstream *stream, hr_bend dst, void *base, uint64_t bytes, hr_error *error)
{
    hr_status status = copy(stream, dst, host(base, bytes), bytes, error);
    return status == HR_OK ? hr_cuda_stream_wait(stream, error) : status;
}

static hr_status get(hr_bstream *stream, void *base, hr_bend src, uint64_t bytes, hr_error *error)
{
    hr_status status = copy(stream, host(base, bytes), src, bytes, error);
    return status == HR_OK ? hr_cuda_stream_wait(stream, error) : status;
}

/* The pattern where the way begins, poison where it ends: right if the pattern is at the end afterwards. */
static hr_status verify(const pair *p, way_fn way, uint64_t bytes, int *verified, hr_error *error)
{
    bool fetches = way == fetch || way == fetch_plain;
    hr_bstream *mine = p->run->stream[0];
    memset(p->back.base, 0x5A, bytes);
    hr_status status = put(mine, here(p, bytes), fetches ? p->back.base : p->host.base, bytes, error);
    if (status == HR_OK) {
        bool full = fetches || way == out_other;
        status = put(p->stream, there(p, bytes), full ? p->host.base : p->back.base, bytes, error);
    }
    if (status == HR_OK) {
        status = way(p, bytes, error);
    }
    if (status == HR_OK) {
        status = wait_both(p, error);
    }
    if (status == HR_OK && way != out_other) {
        status = fetches ? get(mine, p->back.base, here(p, bytes), bytes, error)
                         : get(p->stream, p->back.base, there(p, bytes), bytes, error);
    }
    *verified = status == HR_OK && memcmp(p->back.base, p->host.base, bytes) == 0;
    return status;
}

/* A row of one way, beside another if there is one, in turns. `both`: twice the bytes travel. */
static hr_status measure(const pair *p, const char *name, way_fn way, way_fn beside, uint64_t bytes,
                         bool both, hr_error *error)
{
    double ours[SAMPLES], others[SAMPLES];
    size_t samples = p->run->options->quick ? 3 : SAMPLES;
    uint32_t repeats = (uint32_t)hr_max_u64(2, hr_min_u64(64, 512 * MIB / bytes));
    int verified = 0;
    hr_status status = verify(p, way, bytes, &verified, error);
    for (size_t i = 0; i < samples && status == HR_OK; i++) {
        status = time_way(p, way, bytes, repeats, &ours[i], error);
        ours[i] *= both ? 2.0 : 1.0;
        if (status == HR_OK && beside != NULL) {
            status = time_way(p, beside, bytes, repeats, &others[i], error);
        }
    }
    if (status != HR_OK) {
        return status;
    }
    double ratio =
        beside != NULL ? hr_samples_median(ours, samples) / hr_samples_median(others, samples) : 0.0;
    hr_cuda_figure figure = {.bytes = bytes,
                             .unit = "gbps",
                             .samples = ours,
                             .count = samples,
                             .verified = verified,
                             .vs = beside != NULL ? "cudaMemcpyPeerAsync" : NULL,
                             .ratio = ratio};
    hr_cuda_bench_row(p->run, &figure, "%s", name);
    return HR_OK;
}

static void set_path(const pair *p, hr_cuda_peer_path path)
{
    hr_bdevice *device = p->run->device;
    pthread_mutex_lock(&device->lock);
    device->peer[p->other->ordinal] = path;
    pthread_mutex_unlock(&device->lock);
}

/* As where access does not work: through the host. */
static hr_status measure_staged(const pair *p, uint64_t bytes, hr_cuda_peer_path path, hr_error *error)
{
    char name[96];
    snprintf(name, sizeof name, "peer, cuda:%d to cuda:%d, staged through the host", p->run->device->ordinal,
             p->other->ordinal);
    set_path(p, HR_CUDA_PEER_STAGED);
    hr_status status = measure(p, name, send, NULL, bytes, false, error);
    set_path(p, path);
    return status;
}

/* The plain call with access taken away, and given back after. */
static hr_status measure_without_access(const pair *p, uint64_t bytes, hr_error *error)
{
    char name[96];
    hr_bdevice *device = p->run->device;
    snprintf(name, sizeof name, "peer, cuda:%d to cuda:%d, cudaMemcpyPeerAsync without access",
             device->ordinal, p->other->ordinal);
    hr_status status = hr_cuda_check(device, cudaDeviceDisablePeerAccess(p->other->ordinal), error,
                                     "bench link: access off");
    if (status != HR_OK) {
        return status;
    }
    status = measure(p, name, send_plain, NULL, bytes, false, error);
    hr_error unheard = HR_ERROR_INIT;
    hr_status given = hr_cuda_check(device, cudaDeviceEnablePeerAccess(p->other->ordinal, 0),
                                    status == HR_OK ? error : &unheard, "bench link: access on");
    return status == HR_OK ? given : status;
}

static hr_status measure_between(const pair *p, uint64_t bytes, hr_error *error)
{
    char name[2][96];
    int from = p->run->device->ordinal, to = p->other->ordinal;
    hr_cuda_peer_path path = HR_CUDA_PEER_UNKNOWN;
    hr_status status = hr_cuda_peer_path_to(p->run->device, p->other, &path, error);
    if (status != HR_OK) {
        return status;
    }
    const char *how = path == HR_CUDA_PEER_DIRECT ? "direct" : "staged, since access does not work";
    snprintf(name[0], sizeof name[0], "peer, cuda:%d to cuda:%d, %s", from, to, how);
    snprintf(name[1], sizeof name[1], "peer, cuda:%d from cuda:%d, %s", from, to, how);
    status = measure(p, name[0], send, send_plain, bytes, false, error);
    if (status == HR_OK) {
        status = measure(p, name[1], fetch, fetch_plain, bytes, false, error);
    }
    if (status == HR_OK && path == HR_CUDA_PEER_DIRECT) {
        status = measure_without_access(p, bytes, error);
    }
    return status == HR_OK && path == HR_CUDA_PEER_DIRECT ? measure_staged(p, bytes, path, error) : status;
}

/* The other device's own link, and both devices' at once: do they share what leads to the host? */
static hr_status measure_links(const pair *p, uint64_t bytes, hr_error *error)
{
    char name[3][96];
    snprintf(name[0], sizeof name[0], "h2d pinned, cuda:%d", p->other->ordinal);
    snprintf(name[1], sizeof name[1], "d2h pinned, cuda:%d", p->other->ordinal);
    snprintf(name[2], sizeof name[2], "h2d pinned, cuda:%d and cuda:%d at once, sum", p->run->device->ordinal,
             p->other->ordinal);
    hr_status status = measure(p, name[0], in_other, NULL, bytes, false, error);
    if (status == HR_OK) {
        status = measure(p, name[2], in_both, NULL, bytes, true, error);
    }
    return status == HR_OK ? measure(p, name[1], out_other, NULL, bytes, false, error) : status;
}

static hr_status open_pair(pair *p, int ordinal, hr_error *error)
{
    char rest[16];
    snprintf(rest, sizeof rest, ":%d", ordinal);
    hr_status status = hr_cuda_device_open(rest, &p->other, &p->ops, error);
    if (status == HR_OK) {
        status = hr_cuda_stream_open(p->other, HR_STREAM_ANY, &p->stream, error);
    }
    hr_bmemory *pinned[3] = {&p->host, &p->back, &p->more};
    for (int i = 0; i < 3 && status == HR_OK; i++) {
        status = hr_cuda_bench_memory(p->run, HR_MEMORY_PINNED, p->bytes, (uint64_t)i + 1, pinned[i], error);
    }
    if (status == HR_OK) {
        status = hr_cuda_bench_memory(p->run, HR_MEMORY_DEVICE, p->bytes, 0, &p->here, error);
    }
    if (status == HR_OK) {
        p->there = (hr_bmemory){.kind = HR_MEMORY_DEVICE, .bytes = p->bytes};
        status = hr_cuda_memory_take(p->other, &p->there, error);
    }
    return status;
}

static hr_status close_pair(pair *p, hr_error *error)
{
    hr_status status = HR_OK;
    if (p->other != NULL && p->stream != NULL) {
        status = hr_cuda_stream_close(p->stream, error);
    }
    hr_bmemory *ours[4] = {&p->host, &p->back, &p->more, &p->here};
    for (int i = 0; i < 4; i++) {
        if (ours[i]->backend_data != NULL) {
            hr_cuda_memory_release(p->run->device, ours[i]);
        }
    }
    if (p->there.backend_data != NULL) {
        hr_cuda_memory_release(p->other, &p->there);
    }
    if (p->other != NULL) {
        p->ops->close(p->other);
    }
    return status;
}

static hr_status measure_pair(hr_cuda_bench_run *run, int ordinal, hr_error *error)
{
    static const uint64_t sizes[] = {MIB, 256 * MIB};
    pair p = {.run = run, .bytes = run->options->quick ? 64 * MIB : 256 * MIB};
    hr_status status = open_pair(&p, ordinal, error);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && status == HR_OK; i++) {
        status = measure_between(&p, hr_min_u64(sizes[i], p.bytes), error);
    }
    if (status == HR_OK) {
        status = measure_links(&p, p.bytes, error);
    }
    hr_error unheard = HR_ERROR_INIT;
    hr_status closed = close_pair(&p, status == HR_OK ? error : &unheard);
    return status == HR_OK ? closed : status;
}

hr_status hr_cuda_bench_peer(hr_cuda_bench_run *run, hr_error *error)
{
    int count = 0;
    hr_cuda_ignore(run->device, cudaGetDeviceCount(&count));
    if (count < 2) {
        hr_cuda_figure figure = {.verified = -1, .skipped = "there is one device"};
        hr_cuda_bench_row(run, &figure, "peer");
        return HR_OK;
    }
    hr_status status = HR_OK;
    for (int i = 0; i < count && status == HR_OK; i++) {
        status = i == run->device->ordinal ? HR_OK : measure_pair(run, i, error);
    }
    return status;
}
