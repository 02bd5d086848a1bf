/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_scenario SPEC ROUNDS: opens a device and one of everything, moves data through, and closes it all,
 * with the public interface alone. Made for calls that fail: whatever fails, the rest is closed, nothing is
 * leaked, and the reason is one line on standard error. Exit status 0 or 1; 3 if data was wrong or something
 * did not close.
 */
#include <headrace/headrace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES UINT64_C(100000)

typedef struct scenario {
    hr_runtime *runtime;
    hr_device *device;
    hr_pool *on_device, *pinned, *plain;
    hr_stream *in, *out;
    hr_event *up, *down;
    hr_array *array;
    hr_symbol *symbol;
    char *device_block, *host_block;
} scenario;

static hr_status open_pools(scenario *s, hr_error *error)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.bytes = UINT64_C(4) << 20;
    options.name = "pinned";
    hr_status status = hr_pool_open(s->device, &options, &s->pinned, error);
    options.kind = HR_MEMORY_DEVICE;
    options.name = "device";
    if (status == HR_OK) {
        status = hr_pool_open(s->device, &options, &s->on_device, error);
    }
    options.kind = HR_MEMORY_PAGEABLE;
    options.name = "plain";
    options.minimum_bytes = 4096; /* a smaller one will do */
    if (status == HR_OK) {
        status = hr_pool_open(NULL, &options, &s->plain, error);
    }
    if (status == HR_OK) {
        status = hr_pool_take(s->on_device, BYTES, 0, "block", (void **)&s->device_block);
    }
    return status == HR_OK ? hr_pool_take(s->pinned, 2 * BYTES, 0, "block", (void **)&s->host_block) : status;
}

static hr_status open_rest(scenario *s, hr_error *error)
{
    hr_array_options shape = HR_ARRAY_OPTIONS_INIT;
    shape.width = 50;
    shape.height = 20;
    hr_status status = hr_stream_open(s->device, HR_STREAM_IN, &s->in, error);
    if (status == HR_OK) {
        status = hr_stream_open(s->device, HR_STREAM_OUT, &s->out, error);
    }
    if (status == HR_OK) {
        status = hr_event_open(s->device, &s->up, error);
    }
    if (status == HR_OK) {
        status = hr_event_open(s->device, &s->down, error);
    }
    if (status == HR_OK) {
        status = hr_array_open(s->device, &shape, &s->array, error);
    }
    return status == HR_OK ? hr_symbol_define(s->device, "factors", NULL, 64, &s->symbol, error) : status;
}

static hr_status open_all(scenario *s, const char *spec, hr_error *error)
{
    hr_status status = hr_runtime_open(NULL, &s->runtime, error);
    if (status == HR_OK) {
        status = hr_device_open(s->runtime, spec, &s->device, error);
    }
    if (status == HR_OK) {
        status = open_pools(s, error);
    }
    return status == HR_OK ? open_rest(s, error) : status;
}

/* Up, wait by event, down in two segments; into the array and the symbol. */
static hr_status go_round(scenario *s, int round, hr_error *error)
{
    const hr_segment segments[] = {{0, 0, BYTES / 2}, {BYTES / 2, BYTES / 2, BYTES - BYTES / 2}};
    memset(s->host_block, round, BYTES);
    hr_status status = hr_copy_to_device(s->in, s->device_block, s->host_block, BYTES, error);
    if (status == HR_OK) {
        status = hr_event_record(s->up, s->in, error);
    }
    if (status == HR_OK) {
        status = hr_stream_wait_event(s->out, s->up, error);
    }
    hr_copy copy = HR_COPY_INIT;
    copy.src.place = HR_PLACE_DEVICE;
    copy.src.base = s->device_block;
    copy.dst.base = s->host_block + BYTES;
    copy.segments = segments;
    copy.segment_count = 2;
    if (status == HR_OK) {
        status = hr_copy_async(s->out, &copy, error);
    }
    copy = (hr_copy)HR_COPY_INIT;
    copy.src.base = s->host_block;
    copy.dst.place = HR_PLACE_ARRAY;
    copy.dst.array = s->array;
    copy.width_bytes = 200;
    copy.height = 20;
    if (status == HR_OK) {
        status = hr_copy_async(s->in, &copy, error);
    }
    copy.dst.place = HR_PLACE_SYMBOL;
    copy.dst.symbol = s->symbol;
    copy.width_bytes = 64;
    copy.height = 1;
    if (status == HR_OK) {
        status = hr_copy_async(s->in, &copy, error);
    }
    if (status == HR_OK) {
        status = hr_event_record(s->down, s->out, error);
    }
    if (status == HR_OK) {
        status = hr_event_wait(s->down, error);
    }
    return status == HR_OK ? hr_stream_wait(s->in, error) : status;
}

/* True if everything closes that was opened, whatever came before. */
static bool close_all(scenario *s)
{
    hr_error error = HR_ERROR_INIT;
    bool good = true;
    /* A stream may answer with its failure and is closed all the same. */
    (void)!hr_stream_close(&s->in, NULL);
    (void)!hr_stream_close(&s->out, NULL);
    good = hr_event_close(&s->up, &error) == HR_OK && good;
    good = hr_event_close(&s->down, &error) == HR_OK && good;
    good = hr_array_close(&s->array, &error) == HR_OK && good;
    good = hr_symbol_close(&s->symbol, &error) == HR_OK && good;
    good = (s->device_block == NULL || hr_pool_give(s->on_device, s->device_block) == HR_OK) && good;
    good = (s->host_block == NULL || hr_pool_give(s->pinned, s->host_block) == HR_OK) && good;
    good = hr_pool_close(&s->on_device, &error) == HR_OK && good;
    good = hr_pool_close(&s->pinned, &error) == HR_OK && good;
    good = hr_pool_close(&s->plain, &error) == HR_OK && good;
    good = hr_device_close(&s->device, &error) == HR_OK && good;
    good = hr_runtime_close(&s->runtime, &error) == HR_OK && good;
    good = good && s->in == NULL && s->out == NULL && s->device == NULL && s->runtime == NULL;
    if (!good) {
        fprintf(stderr, "core_scenario: did not close: %s\n", error.text);
    }
    return good;
}

int main(int argc, char **argv)
{
    scenario s = {0};
    hr_error error = HR_ERROR_INIT;
    const char *spec = argc > 1 ? argv[1] : "cpu";
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 3;
    bool right = true;
    hr_status status = open_all(&s, spec, &error);
    for (int round = 1; round <= rounds && status == HR_OK; round++) {
        status = go_round(&s, round % 100, &error);
        right = right && (status != HR_OK || memcmp(s.host_block, s.host_block + BYTES, BYTES) == 0);
    }
    if (!close_all(&s) || !right) {
        return 3;
    }
    if (status != HR_OK) {
        fprintf(stderr, "core_scenario: %s\n", error.text[0] != '\0' ? error.text : hr_status_text(status));
        /* A failure without a reason, or with somebody else's, is one, too. */
        return error.status == status ? 1 : 3;
    }
    return 0;
}
