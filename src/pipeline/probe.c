/* SPDX-License-Identifier: Apache-2.0 */
/* A short look at a device's link: a few sizes, both directions, on a small pinned block. */
#include "pipeline/costs.h"

#include "base/checked.h"
#include "base/clock.h"

#include <headrace/copy.h>
#include <headrace/memory.h>
#include <headrace/stream.h>

#define PROBE_MOST_BYTES (UINT64_C(16) << 20)
#define PROBE_REPEAT     3
/* A size that would take longer than this is left out: what was seen so far says enough. */
#define PROBE_MOST_S 0.02

static const uint64_t sizes[] = {4096, 65536, 1u << 20, 4u << 20, PROBE_MOST_BYTES};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

typedef struct probe {
    hr_device *device;
    uint64_t bytes; /* of each block */
    hr_pool *pinned, *memory;
    void *host, *there;
    hr_stream *stream;
} probe;

/* Seconds for one of `count` copies of a size, queued together, as they follow each other in a pipeline. */
static hr_status time_copies(const probe *p, bool in, uint64_t bytes, uint32_t count, double *seconds,
                             hr_error *error)
{
    uint64_t begin = hr_now_ns();
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < count && status == HR_OK; i++) {
        status = in ? hr_copy_to_device(p->stream, p->there, p->host, bytes, error)
                    : hr_copy_to_host(p->stream, p->host, p->there, bytes, error);
    }
    if (status == HR_OK) {
        status = hr_stream_wait(p->stream, error);
    }
    *seconds = (double)(hr_now_ns() - begin) / (double)HR_NS_PER_S / count;
    return status;
}

static hr_status measure_direction(const probe *p, bool in, hr_cost_link *link, hr_error *error)
{
    double bytes[SIZES], seconds[SIZES];
    size_t points = 0;
    for (size_t i = 0; i < SIZES && sizes[i] <= p->bytes; i++) {
        uint32_t count = (uint32_t)hr_max_u64(2, hr_min_u64(16, PROBE_MOST_BYTES / sizes[i]));
        if (points > 0 && seconds[points - 1] / bytes[points - 1] * (double)sizes[i] * count > PROBE_MOST_S) {
            count = 1;
            if (seconds[points - 1] / bytes[points - 1] * (double)sizes[i] > PROBE_MOST_S) {
                break;
            }
        }
        double best = 0.0;
        for (int repeat = 0; repeat < PROBE_REPEAT; repeat++) {
            double once;
            hr_status status = time_copies(p, in, sizes[i], count, &once, error);
            if (status != HR_OK) {
                return status;
            }
            best = repeat == 0 || once < best ? once : best;
        }
        bytes[points] = (double)sizes[i];
        seconds[points++] = best;
    }
    hr_status status = hr_cost_link_make(bytes, seconds, points, link);
    return status == HR_OK ? HR_OK
                           : hr_fail(error, status, "probe: the link took no time that can be measured");
}

static hr_status open_pool(const probe *p, hr_memory_kind kind, hr_pool **pool, void **block, hr_error *error)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "probe";
    options.kind = kind;
    options.bytes = p->bytes;
    hr_status status = hr_pool_open(p->device, &options, pool, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_pool_take(*pool, p->bytes, 0, "probe", block);
    return status == HR_OK ? HR_OK : hr_fail(error, HR_E_INTERNAL, "probe: its pool has no room");
}

static hr_status close_pool(hr_pool **pool, void *block)
{
    hr_status given = block != NULL ? hr_pool_give(*pool, block) : HR_OK;
    hr_status closed = hr_pool_close(pool, NULL);
    return given != HR_OK ? given : closed;
}

hr_status hr_costs_probe(hr_device *device, hr_costs *costs, hr_error *error)
{
    probe p = {.device = device};
    hr_cost_link h2d = {0}, d2h = {0};
    hr_device_info info = HR_DEVICE_INFO_INIT;
    hr_status status = hr_device_get_info(device, &info, error);
    if (status == HR_OK) {
        /* A small device is asked for a small part of what it has. */
        uint64_t room = info.memory_free_bytes > 0 ? info.memory_free_bytes / 4 : PROBE_MOST_BYTES;
        p.bytes = hr_max_u64(sizes[0], hr_min_u64(PROBE_MOST_BYTES, room));
        status = open_pool(&p, HR_MEMORY_PINNED, &p.pinned, &p.host, error);
    }
    if (status == HR_OK) {
        status = open_pool(&p, HR_MEMORY_DEVICE, &p.memory, &p.there, error);
    }
    if (status == HR_OK) {
        status = hr_stream_open(device, HR_STREAM_IN, &p.stream, error);
    }
    if (status == HR_OK) {
        status = measure_direction(&p, true, &h2d, error);
    }
    if (status == HR_OK) {
        status = measure_direction(&p, false, &d2h, error);
    }
    hr_status closed = hr_stream_close(&p.stream, NULL);
    hr_status pinned = close_pool(&p.pinned, p.host), memory = close_pool(&p.memory, p.there);
    if (status == HR_OK && (closed != HR_OK || pinned != HR_OK || memory != HR_OK)) {
        status = hr_fail(error, HR_E_INTERNAL, "probe: its memory could not be given back");
    }
    if (status == HR_OK) {
        costs->h2d = h2d;
        costs->d2h = d2h;
        costs->changed = true;
    }
    return status;
}
