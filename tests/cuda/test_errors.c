/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's failures: translated in one place, cleared where they arose, fatal to the context where they stay.
 */
#include "cuda/fixture.h"

#include <stdlib.h>
#include <string.h>

static void test_an_error_that_does_not_stick_is_cleared(void **state)
{
    fixture *f = *state;
    hr_error error = HR_ERROR_INIT;
    hr_double_fail("cudaMemcpyAsync", 1, cudaErrorInvalidValue);
    assert_int_equal(hr_copy_to_device(f->stream, f->there, f->host, 100, &error), HR_E_INVALID);
    assert_int_equal(error.code, cudaErrorInvalidValue);
    assert_non_null(strstr(error.text, "copy of 100 bytes: cudaErrorInvalidValue (1)"));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    /* The next call neither reports it nor fails by it. */
    assert_ok(hr_copy_to_device(f->stream, f->there, f->host, f->bytes, problem));
    assert_ok(hr_copy_to_host(f->stream, f->host_back, f->there, f->bytes, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(f->host, f->host_back, f->bytes);
}

static void test_kinds_of_memory_are_kept_apart(void **state)
{
    fixture *f = *state;
    hr_error error = HR_ERROR_INIT;
    hr_pool *pool = NULL;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.bytes = MIB;
    options.kind = HR_MEMORY_DEVICE;
    hr_double_fail("cudaMalloc", 1, cudaErrorMemoryAllocation);
    assert_int_equal(hr_pool_open(f->device, &options, &pool, &error), HR_E_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "device memory"));
    options.kind = HR_MEMORY_PINNED;
    hr_double_fail("cudaHostRegister", 1, cudaErrorMemoryAllocation);
    hr_double_fail("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
    assert_int_equal(hr_pool_open(f->device, &options, &pool, &error), HR_E_PINNED_MEMORY);
    assert_non_null(strstr(error.text, "host pinned memory"));
    assert_null(pool);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void test_refused_registration_falls_back_to_allocation(void **state)
{
    fixture *f = *state;
    hr_pool *pool;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.bytes = MIB;
    hr_double_fail("cudaHostRegister", 1, cudaErrorNotSupported);
    assert_ok(hr_pool_open(f->device, &options, &pool, problem));
    hr_pool_stats stats = HR_POOL_STATS_INIT;
    assert_int_equal(hr_pool_get_stats(pool, &stats), HR_OK);
    assert_int_equal(stats.bytes, MIB);
    assert_non_null(stats.fallback);
    assert_non_null(strstr(stats.fallback, "cudaHostAlloc"));
    assert_int_equal(counter_of(f->device, "host pools taken with cudaHostAlloc"), 1);
    assert_non_null(
        strstr(reason_of(f->device, "host pools taken with cudaHostAlloc"), "cudaErrorNotSupported"));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_ok(hr_pool_close(&pool, problem));
}

static void test_low_pinned_limit_gives_a_smaller_pool_or_none(void **state)
{
    fixture *f = *state;
    hr_pool *pool;
    hr_error error = HR_ERROR_INIT;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.bytes = 16 * MIB;
    hr_double_set_pinned_limit(2 * f->bytes + MIB + 5 * MIB);
    assert_int_equal(hr_pool_open(f->device, &options, &pool, &error), HR_E_PINNED_MEMORY);
    options.minimum_bytes = MIB;
    assert_ok(hr_pool_open(f->device, &options, &pool, problem));
    hr_pool_stats stats = HR_POOL_STATS_INIT;
    assert_int_equal(hr_pool_get_stats(pool, &stats), HR_OK);
    assert_true(stats.bytes < 16 * MIB && stats.bytes >= MIB);
    assert_non_null(strstr(stats.fallback, "of 16777216 bytes"));
    assert_ok(hr_pool_close(&pool, problem));
}

static void test_low_device_limit_gives_a_smaller_pool(void **state)
{
    fixture *f = *state;
    hr_pool *pool;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.kind = HR_MEMORY_DEVICE;
    options.bytes = 16 * MIB;
    options.minimum_bytes = MIB;
    hr_double_set_device_limit(f->bytes + 8 * MIB);
    assert_ok(hr_pool_open(f->device, &options, &pool, problem));
    hr_pool_stats stats = HR_POOL_STATS_INIT;
    assert_int_equal(hr_pool_get_stats(pool, &stats), HR_OK);
    assert_int_equal(stats.bytes, 4 * MIB);
    assert_ok(hr_pool_close(&pool, problem));
}

/* After an error that stays: every waiter hears of it, with what was lost it, and everything can still be
 * closed. */
static void test_lost_device_reaches_every_waiter(void **state)
{
    fixture *f = *state;
    hr_error error = HR_ERROR_INIT;
    hr_event *event;
    hr_stream *other;
    assert_ok(hr_stream_open(f->device, HR_STREAM_ANY, &other, problem));
    assert_ok(hr_event_open(f->device, &event, problem));
    hr_double_fail_work(1, cudaErrorIllegalAddress);
    assert_ok(hr_copy_to_device(f->stream, f->there, f->host, f->bytes, problem));
    assert_int_equal(hr_stream_wait(f->stream, &error), HR_E_DEVICE_LOST);
    assert_int_equal(error.code, cudaErrorIllegalAddress);
    assert_non_null(strstr(error.text, "cudaErrorIllegalAddress"));
    assert_int_equal(hr_copy_to_device(other, f->there, f->host, 10, &error), HR_E_DEVICE_LOST);
    assert_non_null(
        strstr(error.text, "the device was lost: stream: waiting for its work: cudaErrorIllegalAddress"));
    assert_int_equal(hr_stream_query(other, &error), HR_E_DEVICE_LOST);
    assert_int_equal(hr_event_record(event, other, &error), HR_E_DEVICE_LOST);
    assert_int_equal(hr_event_wait(event, &error), HR_E_DEVICE_LOST);
    hr_device_info info = HR_DEVICE_INFO_INIT;
    assert_int_equal(hr_device_get_info(f->device, &info, &error), HR_E_DEVICE_LOST);
    assert_int_equal(hr_stream_close(&other, &error), HR_E_DEVICE_LOST);
    assert_null(other);
    assert_ok(hr_event_close(&event, problem));
}

static void test_device_lost_while_work_is_deferred(void **state)
{
    fixture *f = *state;
    hr_error error = HR_ERROR_INIT;
    hr_event *event;
    assert_ok(hr_event_open(f->device, &event, problem));
    hr_double_hold();
    hr_double_fail_work(7, cudaErrorLaunchFailure);
    for (int i = 0; i < 8; i++) {
        assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable, f->bytes, problem));
        assert_ok(hr_copy_to_host(f->stream, f->pageable_back, f->there, f->bytes, problem));
        assert_ok(hr_event_record(event, f->stream, problem));
    }
    hr_double_let_go();
    assert_int_equal(hr_event_wait(event, &error), HR_E_DEVICE_LOST);
    assert_int_equal(hr_stream_wait(f->stream, &error), HR_E_DEVICE_LOST);
    assert_ok(hr_event_close(&event, problem));
}

/* What lies in a slot of the staging when its device is lost is no result. */
static void test_a_lost_device_leaves_the_destination_alone(void **state)
{
    fixture *f = *state;
    hr_error error = HR_ERROR_INIT;
    /* The slots have been used: they hold what the destination must not get. */
    assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable, f->bytes, problem));
    assert_ok(hr_copy_to_host(f->stream, f->pageable_back, f->there, f->bytes, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    memset(f->pageable_back, 0xEE, f->bytes);
    hr_double_hold();
    hr_double_fail_work(1, cudaErrorIllegalAddress);
    assert_ok(hr_copy_to_host(f->stream, f->pageable_back, f->there, f->bytes, problem));
    hr_double_let_go();
    assert_int_equal(hr_stream_wait(f->stream, &error), HR_E_DEVICE_LOST);
    for (uint64_t i = 0; i < f->bytes; i++) {
        assert_int_equal(f->pageable_back[i], 0xEE);
    }
}

/* A failure behind the caller's back that does not stick: the stream has failed, the device lives. */
static void test_failed_staging_fails_its_stream_only(void **state)
{
    fixture *f = *state;
    hr_error error = HR_ERROR_INIT;
    hr_event *event;
    hr_stream *other;
    assert_ok(hr_stream_open(f->device, HR_STREAM_ANY, &other, problem));
    assert_ok(hr_event_open(f->device, &event, problem));
    hr_double_fail("cudaMemcpyAsync", 2, cudaErrorInvalidValue);
    assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable, f->bytes, problem));
    hr_status recorded = hr_event_record(event, f->stream, &error);
    assert_true(recorded == HR_OK || recorded == HR_E_INVALID);
    assert_int_equal(hr_event_wait(event, &error), HR_E_INVALID);
    assert_int_equal(hr_stream_wait(f->stream, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "cudaErrorInvalidValue"));
    assert_int_equal(hr_copy_to_device(f->stream, f->there, f->host, 10, &error), HR_E_INVALID);
    /* Who waits for the event has failed too. */
    hr_stream *third;
    assert_ok(hr_stream_open(f->device, HR_STREAM_ANY, &third, problem));
    assert_ok(hr_stream_wait_event(third, event, problem));
    assert_int_equal(hr_stream_wait(third, &error), HR_E_INVALID);
    assert_int_equal(hr_stream_close(&third, &error), HR_E_INVALID);
    /* And who does not, has not. */
    assert_ok(hr_copy_to_device(other, f->there, f->host, f->bytes, problem));
    assert_ok(hr_copy_to_host(other, f->pageable_back, f->there, f->bytes, problem));
    assert_ok(hr_stream_wait(other, problem));
    assert_memory_equal(f->host, f->pageable_back, f->bytes);
    assert_ok(hr_stream_close(&other, problem));
    assert_ok(hr_event_close(&event, problem));
}

/* Everything that a program does with a device, in short; the first failure ends it, all is closed in any
 * case. */
static hr_status whole_life(const unsigned char *pageable, unsigned char *back, uint64_t bytes,
                            hr_error *error)
{
    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_stream *stream = NULL;
    hr_event *event = NULL;
    hr_pool *pinned = NULL;
    hr_pool *on_device = NULL;
    hr_array *array = NULL;
    void *host = NULL;
    void *there = NULL;
    hr_runtime_options runtime_options = HR_RUNTIME_OPTIONS_INIT;
    runtime_options.module_path = HR_DOUBLE_MODULES;
    hr_status status = hr_runtime_open(&runtime_options, &runtime, error);
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.bytes = bytes;
#define STEP(call) status = status == HR_OK ? (call) : status
    STEP(hr_device_open(runtime, "cuda:0", &device, error));
    STEP(hr_stream_open(device, HR_STREAM_ANY, &stream, error));
    STEP(hr_event_open(device, &event, error));
    STEP(hr_pool_open(device, &options, &pinned, error));
    options.kind = HR_MEMORY_DEVICE;
    STEP(hr_pool_open(device, &options, &on_device, error));
    STEP(hr_pool_take(pinned, bytes, 0, "host", &host));
    STEP(hr_pool_take(on_device, bytes, 0, "there", &there));
    hr_array_options array_options = HR_ARRAY_OPTIONS_INIT;
    array_options.width = 64;
    array_options.height = 64;
    STEP(hr_array_open(device, &array_options, &array, error));
    hr_copy to_array = HR_COPY_INIT;
    to_array.dst = (hr_end){.place = HR_PLACE_ARRAY, .array = array};
    to_array.src.base = host;
    to_array.width_bytes = 256;
    to_array.height = 64;
    STEP(hr_copy_async(stream, &to_array, error));
    STEP(hr_copy_to_device(stream, there, pageable, bytes, error));
    STEP(hr_copy_to_host(stream, back, there, bytes, error));
    STEP(hr_event_record(event, stream, error));
    STEP(hr_event_wait(event, error));
    STEP(hr_stream_wait(stream, error));
    hr_error ignored = HR_ERROR_INIT;
    /* The call that fails may be the one that closes. */
    hr_status closed = hr_stream_close(&stream, &ignored);
    assert_true(closed <= HR_OK);
    assert_null(stream);
    assert_int_equal(hr_event_close(&event, &ignored), HR_OK);
    assert_int_equal(hr_array_close(&array, &ignored), HR_OK);
    if (host != NULL) {
        assert_int_equal(hr_pool_give(pinned, host), HR_OK);
    }
    if (there != NULL) {
        assert_int_equal(hr_pool_give(on_device, there), HR_OK);
    }
    assert_int_equal(hr_pool_close(&pinned, &ignored), HR_OK);
    assert_int_equal(hr_pool_close(&on_device, &ignored), HR_OK);
    assert_int_equal(hr_device_close(&device, &ignored), HR_OK);
    assert_int_equal(hr_runtime_close(&runtime, &ignored), HR_OK);
    return status;
}

/* Each call of CUDA's fails in turn, in a way that passes and in one that stays. Nothing hangs, nothing is
 * left, and what fails says so. */
#define QUERIES 4
static void fail_each_call(int code)
{
    uint64_t bytes = 600 * KIB;
    unsigned char *pageable = malloc(bytes);
    unsigned char *back = malloc(bytes);
    fill_pattern(pageable, bytes, 3);
    assert_int_equal(hr_double_reset(), 0);
    hr_error error = HR_ERROR_INIT;
    hr_double_mark();
    assert_int_equal(whole_life(pageable, back, bytes, &error), HR_OK);
    unsigned calls = (unsigned)(hr_double_calls(NULL) - hr_double_calls("cudaEventQuery"));
    unsigned failed = 0;
    assert_true(calls > 50);
    for (unsigned n = 1; n <= calls + 5 + QUERIES; n++) {
        assert_int_equal(hr_double_reset(), 0);
        memset(back, 0, bytes);
        error = (hr_error)HR_ERROR_INIT;
        if (n <= QUERIES) {
            hr_double_fail("cudaEventQuery", n, code);
        } else {
            hr_double_fail("*", n - QUERIES, code);
        }
        hr_status status = whole_life(pageable, back, bytes, &error);
        if (status == HR_OK) {
            /* The call was one that can be done without, or came in the clean-up: the data is right. */
            assert_memory_equal(pageable, back, bytes);
        } else {
            failed++;
            assert_true(status < 0);
            assert_true(strlen(error.text) > 10);
        }
        unsigned left = hr_double_reset();
        if (left != 0) {
            fail_msg("call %u failed with %d: %u things were left", n, code, left);
        }
    }
    assert_true(failed > 15);
    free(pageable);
    free(back);
}

static void test_each_call_fails_once(void **state)
{
    (void)state;
    fail_each_call(cudaErrorNotSupported);
    fail_each_call(cudaErrorMemoryAllocation);
}

static void test_each_call_loses_the_device(void **state)
{
    (void)state;
    fail_each_call(cudaErrorIllegalAddress);
}

static void test_absent_devices_say_why(void **state)
{
    (void)state;
    assert_int_equal(hr_double_reset(), 0);
    hr_runtime *runtime;
    hr_runtime_options options = HR_RUNTIME_OPTIONS_INIT;
    options.module_path = HR_DOUBLE_MODULES;
    const struct {
        int code;
        const char *text;
    } cases[] = {{cudaErrorInsufficientDriver, "driver"}, {cudaErrorNoDevice, "cudaErrorNoDevice"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(hr_runtime_open(&options, &runtime, problem));
        hr_double_fail("cudaGetDeviceCount", 1, cases[i].code);
        hr_device *device = NULL;
        hr_error error = HR_ERROR_INIT;
        assert_true(hr_device_open(runtime, "cuda", &device, &error) < 0);
        assert_null(device);
        assert_true(strlen(error.text) > 10);
        assert_ok(hr_runtime_close(&runtime, problem));
        hr_double_reset();
    }
    assert_ok(hr_runtime_open(&options, &runtime, problem));
    hr_device *device = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_device_open(runtime, "cuda:7", &device, &error), HR_E_NOT_FOUND);
    assert_int_equal(hr_device_open(runtime, "cuda:x", &device, &error), HR_E_INVALID);
    assert_ok(hr_runtime_close(&runtime, problem));
}

static void test_old_devices_are_refused(void **state)
{
    (void)state;
    assert_int_equal(hr_double_reset(), 0);
    hr_runtime *runtime;
    hr_runtime_options options = HR_RUNTIME_OPTIONS_INIT;
    options.module_path = HR_DOUBLE_MODULES;
    assert_ok(hr_runtime_open(&options, &runtime, problem));
    hr_device *device = NULL;
    hr_error error = HR_ERROR_INIT;
    hr_double_set_capability(75);
    assert_int_equal(hr_device_open(runtime, "cuda:0", &device, &error), HR_E_UNSUPPORTED);
    assert_null(device);
    assert_non_null(strstr(error.text, "7.5"));
    assert_non_null(strstr(error.text, "8.0"));
    hr_double_set_capability(80);
    assert_ok(hr_device_open(runtime, "cuda:0", &device, problem));
    assert_ok(hr_device_close(&device, problem));
    assert_ok(hr_runtime_close(&runtime, problem));
    assert_int_equal(hr_double_reset(), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {
        T(test_an_error_that_does_not_stick_is_cleared),
        T(test_kinds_of_memory_are_kept_apart),
        T(test_refused_registration_falls_back_to_allocation),
        T(test_low_pinned_limit_gives_a_smaller_pool_or_none),
        T(test_low_device_limit_gives_a_smaller_pool),
        T(test_lost_device_reaches_every_waiter),
        T(test_device_lost_while_work_is_deferred),
        T(test_a_lost_device_leaves_the_destination_alone),
        T(test_failed_staging_fails_its_stream_only),
        cmocka_unit_test(test_each_call_fails_once),
        cmocka_unit_test(test_each_call_loses_the_device),
        cmocka_unit_test(test_absent_devices_say_why),
        cmocka_unit_test(test_old_devices_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
