/* SPDX-License-Identifier: Apache-2.0 */
/* What copies take on a device that has no bench of its own: through Headrace, by the host's clock. */
#include "base/clock.h"
#include "base/samples.h"
#include "bench/bench_internal.h"

#include <headrace/copy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB UINT64_C(0x100000)

typedef struct ends {
    hr_device *device;
    hr_stream *stream, *other;
    hr_pool *host, *on_device;
    char *in, *out, *here, *there; /* host, host, device, device */
    char *plain;                   /* for the plain memcpy */
} ends;

static hr_status take(hr_device *device, hr_memory_kind kind, uint64_t bytes, hr_pool **pool, char **first,
                      char **second, hr_error *error)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "bench link";
    options.kind = kind;
    options.bytes = 2 * bytes + 4096;
    hr_status status = hr_pool_open(device, &options, pool, error);
    if (status == HR_OK) {
        status = hr_pool_take(*pool, bytes, 0, "first", (void **)first);
    }
    return status == HR_OK ? hr_pool_take(*pool, bytes, 0, "second", (void **)second) : status;
}

static hr_status open_ends(hr_device *device, uint64_t bytes, ends *e, hr_error *error)
{
    *e = (ends){.device = device};
    hr_status status = hr_stream_open(device, HR_STREAM_IN, &e->stream, error);
    if (status == HR_OK) {
        status = hr_stream_open(device, HR_STREAM_OUT, &e->other, error);
    }
    if (status == HR_OK) {
        status = take(device, HR_MEMORY_PINNED, bytes, &e->host, &e->in, &e->out, error);
    }
    if (status == HR_OK) {
        status = take(device, HR_MEMORY_DEVICE, bytes, &e->on_device, &e->here, &e->there, error);
    }
    if (status == HR_OK) {
        e->plain = malloc(bytes);
        if (e->plain == NULL) {
            return hr_fail(error, HR_E_HOST_MEMORY, "bench link: %llu bytes could not be had",
                           (unsigned long long)bytes);
        }
        hr_bench_pattern(e->in, bytes, 1);
        hr_bench_pattern(e->out, bytes, 2);
        memset(e->plain, 1, bytes);
    }
    return status;
}

static hr_status close_ends(ends *e, hr_error *error)
{
    hr_status status = hr_stream_close(&e->stream, error);
    hr_status other = hr_stream_close(&e->other, error);
    status = status == HR_OK ? other : status;
    char *blocks[4] = {e->in, e->out, e->here, e->there};
    for (int i = 0; i < 4; i++) {
        if (blocks[i] != NULL) {
            other = hr_pool_give(i < 2 ? e->host : e->on_device, blocks[i]);
            status = status == HR_OK ? other : status;
        }
    }
    hr_pool **pools[2] = {&e->host, &e->on_device};
    for (int i = 0; i < 2; i++) {
        other = hr_pool_close(pools[i], error);
        status = status == HR_OK ? other : status;
    }
    free(e->plain);
    return status;
}

typedef enum direction { TO_DEVICE, WITHIN, TO_HOST, BOTH, DIRECTIONS } direction;

static hr_status queue(const ends *e, direction way, uint64_t bytes, hr_error *error)
{
    hr_copy copy = HR_COPY_INIT;
    switch (way) {
    case TO_DEVICE:
        return hr_copy_to_device(e->stream, e->here, e->in, bytes, error);
    case TO_HOST:
        return hr_copy_to_host(e->stream, e->out, e->there, bytes, error);
    case WITHIN:
        copy.dst.place = copy.src.place = HR_PLACE_DEVICE;
        copy.dst.base = e->there;
        copy.src.base = e->here;
        copy.width_bytes = bytes;
        return hr_copy_async(e->stream, &copy, error);
    default: {
        hr_status status = hr_copy_to_device(e->stream, e->here, e->in, bytes, error);
        return status == HR_OK ? hr_copy_to_host(e->other, e->out, e->there, bytes, error) : status;
    }
    }
}

static hr_status time_copies(const ends *e, direction way, uint64_t bytes, uint64_t repeats, double *gbps,
                             hr_error *error)
{
    uint64_t begin = hr_now_ns();
    hr_status status = HR_OK;
    for (uint64_t i = 0; i < repeats && status == HR_OK; i++) {
        status = queue(e, way, bytes, error);
    }
    if (status == HR_OK) {
        status = hr_stream_wait(e->stream, error);
    }
    if (status == HR_OK) {
        status = hr_stream_wait(e->other, error);
    }
    *gbps = (double)(bytes * repeats * (way == BOTH ? 2 : 1)) / (double)(hr_now_ns() - begin);
    return status;
}

static double time_memcpy(const ends *e, uint64_t bytes, uint64_t repeats)
{
    uint64_t begin = hr_now_ns();
    for (uint64_t i = 0; i < repeats; i++) {
        memcpy(e->plain, e->in, bytes);
        /* Or the compiler would do it once. */
        __asm__ volatile("" : : "r"(e->plain) : "memory");
    }
    return (double)(bytes * repeats) / (double)(hr_now_ns() - begin);
}

static hr_status wait_for(hr_status status, const ends *e, hr_error *error)
{
    return status == HR_OK ? hr_stream_wait(e->stream, error) : status;
}

/* One copy over data that it must replace. What ends on the device is fetched from there. The directions are measured in
 * the order in which the data travels. */
static hr_status verify(const ends *e, direction way, uint64_t bytes, bool *same, hr_error *error)
{
    char *on_device = way == TO_DEVICE ? e->here : way == WITHIN ? e->there : NULL;
    double unused;
    memset(e->out, 0x5A, bytes);
    hr_status status = HR_OK;
    if (on_device != NULL) {
        status = wait_for(hr_copy_to_device(e->stream, on_device, e->out, bytes, error), e, error);
        memset(e->out, 0xA5, bytes);
    }
    if (status == HR_OK) {
        status = time_copies(e, way, bytes, 1, &unused, error);
    }
    if (status == HR_OK && on_device != NULL) {
        status = wait_for(hr_copy_to_host(e->stream, e->out, on_device, bytes, error), e, error);
    }
    *same = status == HR_OK && memcmp(e->in, e->out, bytes) == 0;
    return status;
}

static hr_status measure(const ends *e, const hr_bench_options *options, direction way, uint64_t bytes,
                         hr_error *error)
{
    static const char *const names[DIRECTIONS] = {"h2d pinned", "d2d", "d2h pinned",
                                                  "h2d and d2h at once, sum"};
    double gbps[HR_BENCH_SAMPLES];
    double plain[HR_BENCH_SAMPLES];
    size_t samples = options->quick ? 3 : HR_BENCH_SAMPLES;
    uint64_t repeats = bytes >= 16 * MIB ? 1 : 16 * MIB / bytes;
    bool same;
    hr_status status = verify(e, way, bytes, &same, error);
    for (size_t i = 0; i < samples && status == HR_OK; i++) {
        status = time_copies(e, way, bytes, repeats, &gbps[i], error);
        plain[i] = time_memcpy(e, bytes, repeats);
    }
    if (status == HR_OK) {
        double ratio = hr_samples_median(gbps, samples) / hr_samples_median(plain, samples);
        hr_bench_tell(options, names[way], bytes, "gbps", gbps, samples, same, "memcpy on one thread", ratio);
    }
    return status;
}

hr_status hr_bench_link(hr_device *device, const hr_bench_options *options, hr_error *error)
{
    static const uint64_t all[] = {4096, 65536, MIB, 16 * MIB, 256 * MIB};
    static const uint64_t some[] = {65536, MIB, 16 * MIB};
    const uint64_t *sizes = options->quick ? some : all;
    size_t count = options->quick ? sizeof some / sizeof *some : sizeof all / sizeof *all;
    ends e;
    hr_status status = open_ends(device, sizes[count - 1], &e, error);
    for (size_t i = 0; i < count && status == HR_OK; i++) {
        for (int way = 0; way < DIRECTIONS && status == HR_OK; way++) {
            status = measure(&e, options, (direction)way, sizes[i], error);
        }
    }
    hr_error ignored = HR_ERROR_INIT;
    hr_status closed = close_ends(&e, status == HR_OK ? error : &ignored);
    return status == HR_OK ? closed : status;
}
