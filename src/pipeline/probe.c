/* SPDX-License-Identifier: Apache-2.0 */
/* A short look at a device's link: a few sizes, each direction and both at once, on small pinned blocks. */
#include "pipeline/costs.h"

#include "base/checked.h"
#include "base/clock.h"

#include "core/registry.h"

#include <headrace/copy.h>
#include <headrace/memory.h>
#include <headrace/stream.h>

#include <math.h>

#define PROBE_MOST_BYTES (UINT64_C(16) << 20)
#define PROBE_ALIGN      UINT64_C(4096)
#define PROBE_REPEAT     3
/* A size that would take longer than this is left out: what was seen so far says enough. */
#define PROBE_MOST_S 0.02
/* Both directions at once: so many copies each, so often. The best counts, so that a floor made from it is low. */
#define PROBE_BOTH_COPIES 8
#define PROBE_BOTH_REPEAT 5

static const uint64_t sizes[] = {4096, 65536, 1u << 20, 4u << 20, PROBE_MOST_BYTES};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

typedef struct probe {
    hr_device *device;
    uint64_t bytes; /* of each block */
    hr_pool *pinned, *memory;
    void *host, *there;
    void *host_back, *there_back; /* for the way back while both are busy */
    hr_stream *stream, *back;
    hr_timer *time[4]; /* begin and end in `stream`, begin and end in `back` */
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

/* Queues both directions in turns, with a time before and after each. */
static hr_status queue_both(const probe *p, uint64_t bytes, uint32_t count, hr_error *error)
{
    hr_status status = hr_timer_record(p->time[0], p->stream, error);
    if (status == HR_OK) {
        status = hr_timer_record(p->time[2], p->back, error);
    }
    for (uint32_t i = 0; i < count && status == HR_OK; i++) {
        status = hr_copy_to_device(p->stream, p->there, p->host, bytes, error);
        if (status == HR_OK) {
            status = hr_copy_to_host(p->back, p->host_back, p->there_back, bytes, error);
        }
    }
    if (status == HR_OK) {
        status = hr_timer_record(p->time[1], p->stream, error);
    }
    return status == HR_OK ? hr_timer_record(p->time[3], p->back, error) : status;
}

/* Bytes per second of each direction. What the slower one moves when the faster has ended makes it look faster than it
 * is with company: an error that lowers the floor. */
static hr_status time_both(const probe *p, uint64_t bytes, uint32_t count, double rates[2], hr_error *error)
{
    hr_status status = queue_both(p, bytes, count, error);
    if (status == HR_OK) {
        status = hr_stream_wait(p->stream, error);
    }
    if (status == HR_OK) {
        status = hr_stream_wait(p->back, error);
    }
    uint64_t at[4] = {0};
    for (int i = 0; i < 4 && status == HR_OK; i++) {
        status = hr_timer_read(p->time[i], &at[i], error);
    }
    for (int i = 0; i < 2 && status == HR_OK; i++) {
        double ns = at[2 * i + 1] > at[2 * i] ? (double)(at[2 * i + 1] - at[2 * i]) : 0.0;
        rates[i] = ns > 0.0 ? (double)bytes * count * (double)HR_NS_PER_S / ns : 0.0;
    }
    return status;
}

static hr_status measure_both(const probe *p, hr_costs *made, hr_error *error)
{
    /* The largest size that each direction alone was tried with, as often as the time allows. */
    size_t in = made->h2d.count - 1, out = made->d2h.count - 1;
    uint64_t bytes = (uint64_t)fmin(made->h2d.bytes[in], made->d2h.bytes[out]);
    double one_s = hr_cost_link_s(&made->h2d, (double)bytes) + hr_cost_link_s(&made->d2h, (double)bytes);
    uint32_t count = (uint32_t)fmax(1.0, fmin(PROBE_BOTH_COPIES, PROBE_MOST_S / one_s));
    for (int repeat = 0; repeat < PROBE_BOTH_REPEAT; repeat++) {
        double rates[2];
        hr_status status = time_both(p, bytes, count, rates, error);
        if (status != HR_OK) {
            return status;
        }
        made->h2d_with_d2h = fmax(made->h2d_with_d2h, rates[0]);
        made->d2h_with_h2d = fmax(made->d2h_with_h2d, rates[1]);
    }
    return HR_OK;
}

static hr_status open_pool(const probe *p, hr_memory_kind kind, hr_pool **pool, void **block, void **other,
                           hr_error *error)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "probe";
    options.kind = kind;
    options.bytes = 2 * hr_round_up(p->bytes, PROBE_ALIGN);
    hr_status status = hr_pool_open(p->device, &options, pool, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_pool_take(*pool, p->bytes, PROBE_ALIGN, "probe", block);
    if (status == HR_OK) {
        status = hr_pool_take(*pool, p->bytes, PROBE_ALIGN, "probe", other);
    }
    return status == HR_OK ? HR_OK : hr_fail(error, HR_E_INTERNAL, "probe: its pool has no room");
}

static hr_status close_pool(hr_pool **pool, void *block, void *other)
{
    hr_status given = block != NULL ? hr_pool_give(*pool, block) : HR_OK;
    hr_status also = other != NULL ? hr_pool_give(*pool, other) : HR_OK;
    hr_status closed = hr_pool_close(pool, NULL);
    return given != HR_OK ? given : also != HR_OK ? also : closed;
}

static hr_status open_probe(probe *p, hr_error *error)
{
    hr_device_info info = HR_DEVICE_INFO_INIT;
    hr_status status = hr_device_get_info(p->device, &info, error);
    if (status != HR_OK) {
        return status;
    }
    /* A small device is asked for a small part of what it has. */
    uint64_t room = info.memory_free_bytes > 0 ? info.memory_free_bytes / 8 : PROBE_MOST_BYTES;
    p->bytes = hr_max_u64(sizes[0], hr_min_u64(PROBE_MOST_BYTES, room));
    status = open_pool(p, HR_MEMORY_PINNED, &p->pinned, &p->host, &p->host_back, error);
    if (status == HR_OK) {
        status = open_pool(p, HR_MEMORY_DEVICE, &p->memory, &p->there, &p->there_back, error);
    }
    if (status == HR_OK) {
        status = hr_stream_open(p->device, HR_STREAM_IN, &p->stream, error);
    }
    if (status == HR_OK) {
        status = hr_stream_open(p->device, HR_STREAM_OUT, &p->back, error);
    }
    for (int i = 0; i < 4 && status == HR_OK; i++) {
        status = hr_timer_open(p->device, &p->time[i], error);
    }
    return status;
}

static bool close_probe(probe *p)
{
    for (int i = 0; i < 4; i++) {
        hr_timer_close(&p->time[i]);
    }
    hr_status closed = hr_stream_close(&p->stream, NULL), back = hr_stream_close(&p->back, NULL);
    hr_status pinned = close_pool(&p->pinned, p->host, p->host_back);
    hr_status memory = close_pool(&p->memory, p->there, p->there_back);
    return closed == HR_OK && back == HR_OK && pinned == HR_OK && memory == HR_OK;
}

hr_status hr_costs_probe(hr_device *device, hr_costs *costs, hr_error *error)
{
    probe p = {.device = device};
    hr_costs made = {.path = ""};
    hr_status status = open_probe(&p, error);
    if (status == HR_OK) {
        status = measure_direction(&p, true, &made.h2d, error);
    }
    if (status == HR_OK) {
        status = measure_direction(&p, false, &made.d2h, error);
    }
    if (status == HR_OK) {
        status = measure_both(&p, &made, error);
    }
    if (!close_probe(&p) && status == HR_OK) {
        status = hr_fail(error, HR_E_INTERNAL, "probe: its memory could not be given back");
    }
    if (status == HR_OK) {
        costs->h2d = made.h2d;
        costs->d2h = made.d2h;
        costs->h2d_with_d2h = made.h2d_with_d2h;
        costs->d2h_with_h2d = made.d2h_with_h2d;
        costs->changed = true;
    }
    return status;
}
