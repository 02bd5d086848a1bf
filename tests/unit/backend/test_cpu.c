/* SPDX-License-Identifier: Apache-2.0 */
/* What is the CPU devices' own: their options, the speed of their links, their memory's limit, who may touch
 * what. */
#include "support/unit.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/internal.h"
#include "base/clock.h"

#include <headrace/copy.h>

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static hr_cpu_options parse(const char *rest)
{
    hr_cpu_options options;
    hr_error error = HR_ERROR_INIT;
    if (hr_cpu_parse(rest, &options, &error) != HR_OK) {
        fail_msg("%s", error.text);
    }
    return options;
}

static void options_are_read(void **state)
{
    (void)state;
    assert_false(parse("").discrete);
    assert_int_equal(parse(",threads=3").threads, 3);
    hr_cpu_options options = parse(":discrete,h2d=50G,d2h=1.5M,latency=2u,memory=1G,threads=2");
    assert_true(options.discrete);
    assert_true(options.h2d_bytes_per_s == 50e9);
    assert_true(options.d2h_bytes_per_s == 1.5e6);
    assert_int_equal(options.latency_ns, 2000);
    assert_int_equal(options.memory_bytes, UINT64_C(1) << 30);
    assert_int_equal(parse(":discrete,latency=7n").latency_ns, 7);
    assert_int_equal(parse(":discrete,latency=7").latency_ns, 7);
    assert_int_equal(parse(":discrete,latency=3m").latency_ns, 3000000);
}

static void wrong_options_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const wrong[] = {":discreet",           ":discrete:",
                                        ":discrete,h2d",       ":discrete,h2d=",
                                        ":discrete,h2d=0",     ":discrete,h2d=-1G",
                                        ":discrete,h2d=5X",    ":discrete,h2d=5GG",
                                        ":discrete,h2d=nan",   ":discrete,memory=1e40",
                                        ":discrete,speed=4",   ",h2d=5G",
                                        ":discrete,threads=0", ":discrete,threads=1.5",
                                        ":discrete,",          ":1"};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hr_cpu_options options = {.threads = 77};
        hr_error error = HR_ERROR_INIT;
        hr_status status = hr_cpu_parse(wrong[i], &options, &error);
        assert_true(status == HR_E_INVALID || status == HR_E_NOT_FOUND);
        assert_non_null(strstr(error.text, wrong[i]));
        assert_int_equal(options.threads, 77);
    }
}

typedef struct test_rig {
    hr_runtime *runtime;
    hr_device *device;
    hr_pool *on_device, *pinned;
    hr_stream *in, *out;
    char *device_block, *host_block;
} test_rig;

#define ROOM (UINT64_C(16) << 20)

static void ok(hr_status status, const hr_error *error)
{
    if (status != HR_OK) {
        fail_msg("%s", error->text);
    }
}

static test_rig open_rig(const char *spec)
{
    test_rig rig;
    hr_error error = HR_ERROR_INIT;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    ok(hr_runtime_open(NULL, &rig.runtime, &error), &error);
    ok(hr_device_open(rig.runtime, spec, &rig.device, &error), &error);
    options.bytes = ROOM;
    options.name = "pinned";
    ok(hr_pool_open(rig.device, &options, &rig.pinned, &error), &error);
    options.kind = HR_MEMORY_DEVICE;
    options.name = "device";
    ok(hr_pool_open(rig.device, &options, &rig.on_device, &error), &error);
    ok(hr_stream_open(rig.device, HR_STREAM_IN, &rig.in, &error), &error);
    ok(hr_stream_open(rig.device, HR_STREAM_OUT, &rig.out, &error), &error);
    ok(hr_pool_take(rig.on_device, ROOM, 0, "block", (void **)&rig.device_block), &error);
    ok(hr_pool_take(rig.pinned, ROOM, 0, "block", (void **)&rig.host_block), &error);
    return rig;
}

static void close_rig(test_rig *rig)
{
    hr_error error = HR_ERROR_INIT;
    ok(hr_stream_close(&rig->in, &error), &error);
    ok(hr_stream_close(&rig->out, &error), &error);
    ok(hr_pool_give(rig->on_device, rig->device_block), &error);
    ok(hr_pool_give(rig->pinned, rig->host_block), &error);
    ok(hr_pool_close(&rig->on_device, &error), &error);
    ok(hr_pool_close(&rig->pinned, &error), &error);
    ok(hr_device_close(&rig->device, &error), &error);
    ok(hr_runtime_close(&rig->runtime, &error), &error);
}

/* Seconds for `count` uploads of `bytes`. */
static double upload_seconds(test_rig *rig, uint64_t bytes, int count)
{
    hr_error error = HR_ERROR_INIT;
    uint64_t begin = hr_now_ns();
    for (int i = 0; i < count; i++) {
        ok(hr_copy_to_device(rig->in, rig->device_block, rig->host_block, bytes, &error), &error);
    }
    ok(hr_stream_wait(rig->in, &error), &error);
    return (double)(hr_now_ns() - begin) / 1e9;
}

/* Sanitizers slow the moving of bytes down, so that it, not the link, sets the pace. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWEST 100.0
#else
#define SLOWEST 1.25
#endif

/* Seconds for `count` copies of `bytes` in each direction, both directions at once. */
static double both_ways_seconds(test_rig *rig, uint64_t bytes, int count)
{
    hr_error error = HR_ERROR_INIT;
    uint64_t begin = hr_now_ns();
    for (int i = 0; i < count; i++) {
        ok(hr_copy_to_device(rig->in, rig->device_block, rig->host_block, bytes, &error), &error);
        ok(hr_copy_to_host(rig->out, rig->host_block + bytes, rig->device_block + bytes, bytes, &error),
           &error);
    }
    ok(hr_stream_wait(rig->in, &error), &error);
    ok(hr_stream_wait(rig->out, &error), &error);
    return (double)(hr_now_ns() - begin) / 1e9;
}

/*
 * Time over arithmetic is never below 1: no copy is faster than its link. It is above 1 by what a busy
 * machine takes away, which may be any amount at any moment; so it is tried until it comes near once, and a
 * link that is really slower than it was given never does.
 */
static void assert_takes(double (*seconds)(test_rig *, uint64_t, int), test_rig *rig, uint64_t bytes,
                         int count, double arithmetic_s)
{
    double best = 1e9;
    uint64_t until = hr_now_ns() + UINT64_C(30000000000);
    do {
        double ratio = seconds(rig, bytes, count) / arithmetic_s;
        assert_true(ratio >= 0.999);
        best = ratio < best ? ratio : best;
    } while (best >= SLOWEST && hr_now_ns() < until);
    print_message("%d copies of %" PRIu64 " bytes: %.4f of the arithmetic's time\n", count, bytes, best);
    assert_true(best < SLOWEST);
}

static void a_link_has_the_speed_it_was_given(void **state)
{
    (void)state;
    test_rig rig = open_rig("cpu:discrete,h2d=400M,d2h=400M");
    memset(rig.host_block, 1, ROOM);
    assert_takes(upload_seconds, &rig, ROOM, 1, (double)ROOM / 400e6);
    assert_takes(upload_seconds, &rig, 4000, 2000, 4000.0 * 2000 / 400e6);
    close_rig(&rig);
}

static void latency_counts_once_a_copy(void **state)
{
    (void)state;
    test_rig rig = open_rig("cpu:discrete,latency=100u");
    assert_takes(upload_seconds, &rig, 8, 200, 200 * 100e-6);
    close_rig(&rig);
}

/* Both directions at once take as long as one alone. */
static void the_two_directions_run_at_once(void **state)
{
    (void)state;
    test_rig rig = open_rig("cpu:discrete,h2d=200M,d2h=200M");
    memset(rig.host_block, 1, ROOM);
    assert_takes(both_ways_seconds, &rig, ROOM / 2, 1, (double)ROOM / 2 / 200e6);
    close_rig(&rig);
}

/* What works on `cpu` by accident and not on a card is found out here. */
static void the_two_memories_are_not_mixed_up(void **state)
{
    (void)state;
    test_rig rig = open_rig("cpu:discrete");
    hr_error error = HR_ERROR_INIT;
    char pageable[64] = {0};
    assert_int_equal(hr_copy_to_device(rig.in, rig.host_block, pageable, 64, &error), HR_E_INVALID);
    assert_int_equal(hr_copy_to_host(rig.in, pageable, rig.host_block, 64, &error), HR_E_INVALID);
    assert_int_equal(hr_copy_to_host(rig.in, rig.device_block, rig.device_block + 64, 64, &error),
                     HR_E_INVALID);
    assert_int_equal(hr_copy_to_device(rig.in, rig.device_block, pageable, ROOM + 1, &error), HR_E_INVALID);
    hr_fill fill = HR_FILL_INIT;
    fill.dst.base = pageable;
    fill.width_bytes = 64;
    assert_int_equal(hr_fill_async(rig.in, &fill, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "not memory of device cpu:discrete"));
    ok(hr_stream_wait(rig.in, &error), &error);
    close_rig(&rig);
}

static hr_memory_kind kind_of(const test_rig *rig, const void *base, uint64_t bytes)
{
    hr_memory_kind kind = HR_MEMORY_UNKNOWN;
    assert_int_equal(hr_memory_kind_of(rig->device, base, bytes, &kind), HR_OK);
    return kind;
}

static void memory_is_known_by_its_address(void **state)
{
    (void)state;
    test_rig rig = open_rig("cpu:discrete");
    char pageable[8];
    assert_int_equal(kind_of(&rig, rig.device_block, ROOM), HR_MEMORY_DEVICE);
    assert_int_equal(kind_of(&rig, rig.host_block + 5, 100), HR_MEMORY_PINNED);
    assert_int_equal(kind_of(&rig, pageable, 8), HR_MEMORY_PAGEABLE);
    assert_int_equal(kind_of(&rig, rig.host_block - 1, 100), HR_MEMORY_MIXED);
    close_rig(&rig);
}

static void copies_from_pageable_memory_are_counted(void **state)
{
    (void)state;
    test_rig rig = open_rig("cpu:discrete");
    hr_error error = HR_ERROR_INIT;
    char pageable[64] = {0};
    hr_counter counter = {NULL, 99, NULL};
    ok(hr_copy_to_device(rig.in, rig.device_block, pageable, 64, &error), &error);
    ok(hr_copy_to_device(rig.in, rig.device_block, rig.host_block, 64, &error), &error);
    ok(hr_stream_wait(rig.in, &error), &error);
    assert_int_equal(hr_device_counters(rig.device, &counter, 1), 1);
    assert_string_equal(counter.name, "pageable ends staged");
    assert_int_equal(counter.count, 1);
    close_rig(&rig);
}

static void device_memory_has_a_limit(void **state)
{
    (void)state;
    hr_runtime *runtime;
    hr_device *device;
    hr_pool *pool = NULL, *rest = NULL;
    hr_array *array = NULL;
    hr_error error = HR_ERROR_INIT;
    ok(hr_runtime_open(NULL, &runtime, &error), &error);
    ok(hr_device_open(runtime, "cpu:discrete,memory=4M", &device, &error), &error);
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.kind = HR_MEMORY_DEVICE;
    options.name = "limited";
    options.bytes = UINT64_C(5) << 20;
    assert_int_equal(hr_pool_open(device, &options, &pool, &error), HR_E_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "pool limited: needs 5242880 bytes of device memory"));
    options.bytes = UINT64_C(3) << 20;
    ok(hr_pool_open(device, &options, &pool, &error), &error);
    hr_device_info info = HR_DEVICE_INFO_INIT;
    ok(hr_device_get_info(device, &info, &error), &error);
    assert_int_equal(info.memory_free_bytes, UINT64_C(1) << 20);
    hr_array_options shape = HR_ARRAY_OPTIONS_INIT;
    shape.width = UINT64_C(1) << 19;
    assert_int_equal(hr_array_open(device, &shape, &array, &error), HR_E_DEVICE_MEMORY);
    /* Less than asked for, at least the minimum, and the reason. */
    options.minimum_bytes = 4096;
    ok(hr_pool_open(device, &options, &rest, &error), &error);
    hr_pool_stats stats = HR_POOL_STATS_INIT;
    ok(hr_pool_get_stats(rest, &stats), &error);
    assert_int_equal(stats.bytes, UINT64_C(1) << 20);
    assert_non_null(strstr(stats.fallback, "instead of 3145728"));
    /* Pinned memory is the host's. */
    options.kind = HR_MEMORY_PINNED;
    hr_pool *pinned = NULL;
    ok(hr_pool_open(device, &options, &pinned, &error), &error);
    ok(hr_pool_close(&pinned, &error), &error);
    ok(hr_pool_close(&pool, &error), &error);
    ok(hr_pool_close(&rest, &error), &error);
    ok(hr_device_get_info(device, &info, &error), &error);
    assert_int_equal(info.memory_free_bytes, UINT64_C(4) << 20);
    ok(hr_device_close(&device, &error), &error);
    ok(hr_runtime_close(&runtime, &error), &error);
}

static void symbols_have_names(void **state)
{
    (void)state;
    test_rig rig = open_rig("cpu:discrete");
    hr_error error = HR_ERROR_INIT;
    hr_symbol *symbol, *found = NULL, *again = NULL;
    ok(hr_symbol_define(rig.device, "gains", NULL, 100, &symbol, &error), &error);
    assert_int_equal(hr_symbol_define(rig.device, "gains", NULL, 5, &again, &error), HR_E_INVALID);
    assert_int_equal(hr_symbol_find(rig.device, "losses", &found, &error), HR_E_NOT_FOUND);
    ok(hr_symbol_find(rig.device, "gains", &found, &error), &error);
    assert_ptr_equal(found, symbol);
    assert_int_equal(hr_symbol_bytes(found), 100);
    hr_copy copy = HR_COPY_INIT;
    copy.src.base = rig.host_block;
    copy.dst.place = HR_PLACE_SYMBOL;
    copy.dst.symbol = symbol;
    copy.dst.offset_bytes = 90;
    copy.width_bytes = 11;
    assert_int_equal(hr_copy_async(rig.in, &copy, &error), HR_E_RANGE);
    assert_non_null(strstr(error.text, "symbol gains, which has 100"));
    ok(hr_symbol_close(&symbol, &error), &error);
    assert_int_equal(hr_symbol_find(rig.device, "gains", &found, &error), HR_E_NOT_FOUND);
    ok(hr_symbol_define(rig.device, "left behind", NULL, 8, &symbol, &error),
       &error); /* goes with the device */
    close_rig(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(wrong_options_are_refused_by_name),
        cmocka_unit_test(a_link_has_the_speed_it_was_given),
        cmocka_unit_test(latency_counts_once_a_copy),
        cmocka_unit_test(the_two_directions_run_at_once),
        cmocka_unit_test(the_two_memories_are_not_mixed_up),
        cmocka_unit_test(memory_is_known_by_its_address),
        cmocka_unit_test(copies_from_pageable_memory_are_counted),
        cmocka_unit_test(device_memory_has_a_limit),
        cmocka_unit_test(symbols_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
