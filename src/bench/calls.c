/* SPDX-License-Identifier: Apache-2.0 */
/* What a call costs the host, on a device that has no bench of its own. */
#include "base/clock.h"
#include "bench/bench_internal.h"

#include <headrace/copy.h>

#include <string.h>

#define BYTES  UINT64_C(4096)
#define SERIES 500

typedef struct calls {
    hr_device *device;
    hr_stream *stream;
    hr_event *event, *done;
    hr_pool *pinned, *on_device;
    char *host, *there;
} calls;

static hr_status nothing(const hr_launch *launch, hr_error *error)
{
    (void)launch;
    (void)error;
    return HR_OK;
}

static hr_status do_launch(calls *c, hr_error *error)
{
    hr_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.size = sizeof launch;
    return hr_stream_launch(c->stream, nothing, &launch, error);
}

static hr_status do_record(calls *c, hr_error *error)
{
    return hr_event_record(c->event, c->stream, error);
}

static hr_status do_query(calls *c, hr_error *error)
{
    hr_status status = hr_event_query(c->event, error);
    return status == HR_PENDING ? HR_OK : status;
}

static hr_status do_wait_event(calls *c, hr_error *error)
{
    return hr_stream_wait_event(c->stream, c->done, error);
}

static hr_status do_copy(calls *c, hr_error *error)
{
    return hr_copy_to_device(c->stream, c->there, c->host, BYTES, error);
}

static hr_status do_fill(calls *c, hr_error *error)
{
    hr_fill fill = HR_FILL_INIT;
    fill.dst.base = c->there;
    fill.width_bytes = BYTES;
    fill.value = 7;
    return hr_fill_async(c->stream, &fill, error);
}

static hr_status do_round(calls *c, hr_error *error)
{
    hr_status status = do_launch(c, error);
    return status == HR_OK ? hr_stream_wait(c->stream, error) : status;
}

static hr_status do_take_and_give(calls *c, hr_error *error)
{
    void *block;
    hr_status status = hr_pool_take(c->pinned, BYTES, 0, "bench", &block);
    (void)error;
    return status == HR_OK ? hr_pool_give(c->pinned, block) : status;
}

static const struct {
    const char *name;
    uint64_t bytes;
    hr_status (*call)(calls *c, hr_error *error);
} rows[] = {
    {"event record", 0, do_record},
    {"event query", 0, do_query},
    {"stream wait event", 0, do_wait_event},
    {"copy to device", BYTES, do_copy},
    {"fill", BYTES, do_fill},
    {"launch", 0, do_launch},
    {"launch and wait", 0, do_round},
    {"pool take and give", BYTES, do_take_and_give},
};

/* Microseconds a call, over a series that is queued at once; the work itself is waited for outside of it. */
static hr_status time_series(calls *c, hr_status (*call)(calls *, hr_error *), double *us, hr_error *error)
{
    hr_status status = HR_OK;
    uint64_t begin = hr_now_ns();
    for (int i = 0; i < SERIES && status == HR_OK; i++) {
        status = call(c, error);
    }
    *us = (double)(hr_now_ns() - begin) / SERIES / 1e3;
    return status == HR_OK ? hr_stream_wait(c->stream, error) : status;
}

static hr_status open_pools(calls *c, hr_error *error)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "bench calls";
    options.bytes = 16 * BYTES;
    hr_status status = hr_pool_open(c->device, &options, &c->pinned, error);
    options.kind = HR_MEMORY_DEVICE;
    if (status == HR_OK) {
        status = hr_pool_open(c->device, &options, &c->on_device, error);
    }
    if (status == HR_OK) {
        status = hr_pool_take(c->pinned, BYTES, 0, "host", (void **)&c->host);
    }
    return status == HR_OK ? hr_pool_take(c->on_device, BYTES, 0, "device", (void **)&c->there) : status;
}

static hr_status open_calls(hr_device *device, calls *c, hr_error *error)
{
    *c = (calls){.device = device};
    hr_status status = hr_stream_open(device, HR_STREAM_ANY, &c->stream, error);
    if (status == HR_OK) {
        status = hr_event_open(device, &c->event, error);
    }
    if (status == HR_OK) {
        status = hr_event_open(device, &c->done, error);
    }
    return status == HR_OK ? open_pools(c, error) : status;
}

/* The first failure of closing, if any. */
static hr_status close_calls(calls *c, hr_error *error)
{
    hr_status given = c->host != NULL ? hr_pool_give(c->pinned, c->host) : HR_OK;
    if (c->there != NULL && given == HR_OK) {
        given = hr_pool_give(c->on_device, c->there);
    }
    hr_status closed[] = {given,
                          hr_stream_close(&c->stream, error),
                          hr_event_close(&c->event, error),
                          hr_event_close(&c->done, error),
                          hr_pool_close(&c->pinned, error),
                          hr_pool_close(&c->on_device, error)};
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        if (closed[i] != HR_OK) {
            return closed[i];
        }
    }
    return HR_OK;
}

hr_status hr_bench_calls(hr_device *device, const hr_bench_options *options, hr_error *error)
{
    calls c;
    double us[HR_BENCH_SAMPLES];
    size_t samples = options->quick ? 3 : HR_BENCH_SAMPLES;
    hr_status status = open_calls(device, &c, error);
    for (size_t row = 0; row < sizeof rows / sizeof *rows && status == HR_OK; row++) {
        status = time_series(&c, rows[row].call, &us[0], error); /* warms up */
        for (size_t i = 0; i < samples && status == HR_OK; i++) {
            status = time_series(&c, rows[row].call, &us[i], error);
        }
        if (status == HR_OK) {
            hr_bench_tell(options, rows[row].name, rows[row].bytes, "us", us, samples, -1, NULL, 0);
        }
    }
    hr_error ignored = HR_ERROR_INIT;
    hr_status closed = close_calls(&c, status == HR_OK ? error : &ignored);
    return status == HR_OK ? closed : status;
}
