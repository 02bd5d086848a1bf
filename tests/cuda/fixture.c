/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/fixture.h"

#include <stdlib.h>
#include <string.h>

#define BYTES (8 * MIB)

void fill_pattern(void *base, uint64_t bytes, uint64_t seed)
{
    unsigned char *at = base;
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (uint64_t i = 0; i < bytes; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        at[i] = (unsigned char)(state >> 32);
    }
}

static const hr_counter *find_counter(hr_device *device, const char *name)
{
    static hr_counter counters[64];
    size_t count = hr_device_counters(device, counters, 64);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(counters[i].name, name) == 0) {
            return &counters[i];
        }
    }
    fail_msg("there is no counter \"%s\"", name);
    return NULL;
}

uint64_t counter_of(hr_device *device, const char *name)
{
    return find_counter(device, name)->count;
}

const char *reason_of(hr_device *device, const char *name)
{
    return find_counter(device, name)->reason;
}

static void open_pool(hr_device *device, hr_memory_kind kind, uint64_t bytes, hr_pool **pool)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "test";
    options.kind = kind;
    options.bytes = bytes;
    assert_ok(hr_pool_open(device, &options, pool, problem));
}

int fixture_open(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_int_equal(hr_double_reset(), 0);
    hr_runtime_options options = HR_RUNTIME_OPTIONS_INIT;
    options.module_path = HR_DOUBLE_MODULES;
    assert_ok(hr_runtime_open(&options, &f->runtime, problem));
    assert_ok(hr_device_open(f->runtime, "cuda:0", &f->device, problem));
    assert_ok(hr_stream_open(f->device, HR_STREAM_ANY, &f->stream, problem));
    f->bytes = BYTES;
    open_pool(f->device, HR_MEMORY_PINNED, 2 * BYTES, &f->pinned);
    open_pool(f->device, HR_MEMORY_DEVICE, BYTES, &f->on_device);
    assert_int_equal(hr_pool_take(f->pinned, BYTES, 0, "host", (void **)&f->host), HR_OK);
    assert_int_equal(hr_pool_take(f->pinned, BYTES, 0, "host back", (void **)&f->host_back), HR_OK);
    assert_int_equal(hr_pool_take(f->on_device, BYTES, 0, "there", (void **)&f->there), HR_OK);
    f->pageable = malloc(BYTES);
    f->pageable_back = malloc(BYTES);
    fill_pattern(f->host, BYTES, 1);
    fill_pattern(f->pageable, BYTES, 2);
    memset(f->host_back, 0, BYTES);
    memset(f->pageable_back, 0, BYTES);
    hr_double_mark();
    *state = f;
    return 0;
}

int fixture_close(void **state)
{
    fixture *f = *state;
    hr_error error = HR_ERROR_INIT;
    /* The stream may have failed; that is the test's business, closing it all the same is this function's. */
    hr_status closed = hr_stream_close(&f->stream, &error);
    (void)closed;
    assert_int_equal(hr_pool_give(f->pinned, f->host), HR_OK);
    assert_int_equal(hr_pool_give(f->pinned, f->host_back), HR_OK);
    assert_int_equal(hr_pool_give(f->on_device, f->there), HR_OK);
    assert_ok(hr_pool_close(&f->pinned, problem));
    assert_ok(hr_pool_close(&f->on_device, problem));
    assert_ok(hr_device_close(&f->device, problem));
    assert_ok(hr_runtime_close(&f->runtime, problem));
    free(f->pageable);
    free(f->pageable_back);
    free(f);
    assert_int_equal(hr_double_reset(), 0);
    return 0;
}
