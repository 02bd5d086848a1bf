/* SPDX-License-Identifier: Apache-2.0 */
/* Pageable ends: staged, in order, never handed to a call that blocks. */
#include "cuda/fixture.h"

#include "backend/cuda/stage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void test_round_trip_of_pageable_memory(void **state)
{
    fixture *f = *state;
    assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable, f->bytes, problem));
    assert_ok(hr_copy_to_host(f->stream, f->pageable_back, f->there, f->bytes, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(f->pageable, f->pageable_back, f->bytes);
    assert_int_equal(hr_double_pageable_calls(), 0);
    assert_int_equal(hr_double_default_stream_calls(), 0);
    assert_int_equal(counter_of(f->device, "copies from pageable memory, staged"), 1);
    assert_int_equal(counter_of(f->device, "copies to pageable memory, staged"), 1);
}

/* While the double is held: however fast the host is, the last of these copies stays deferred. */
static void queue_more_than_the_ring_holds(fixture *f)
{
    for (uint64_t queued = 0; queued <= HR_STAGE_SLOTS * HR_STAGE_SLOT_BYTES; queued += f->bytes) {
        assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable, f->bytes, problem));
    }
}

/* What follows a staged copy in its stream sees its data, whatever it is. */
static void test_what_follows_comes_after(void **state)
{
    fixture *f = *state;
    hr_event *event;
    assert_ok(hr_event_open(f->device, &event, problem));
    hr_double_hold();
    queue_more_than_the_ring_holds(f);
    /* Pinned: by itself it would be submitted at once, and read what was there before. */
    assert_ok(hr_copy_to_host(f->stream, f->host_back, f->there, f->bytes, problem));
    assert_ok(hr_event_record(event, f->stream, problem));
    assert_int_equal(hr_event_query(event, NULL), HR_PENDING);
    hr_double_let_go();
    assert_ok(hr_event_wait(event, problem));
    assert_memory_equal(f->pageable, f->host_back, f->bytes);
    assert_true(counter_of(f->device, "operations submitted later, behind a staged copy") >= 1);
    assert_ok(hr_event_close(&event, problem));
}

/* An event behind a copy to pageable memory is done when the data is there, not when it has left the device.
 */
static void test_event_behind_a_copy_out_means_the_data_is_there(void **state)
{
    fixture *f = *state;
    hr_event *event;
    assert_ok(hr_event_open(f->device, &event, problem));
    assert_ok(hr_copy_to_device(f->stream, f->there, f->host, f->bytes, problem));
    for (int round = 0; round < 20; round++) {
        memset(f->pageable_back, 0, f->bytes);
        assert_ok(hr_copy_to_host(f->stream, f->pageable_back, f->there, f->bytes, problem));
        assert_ok(hr_event_record(event, f->stream, problem));
        while (hr_event_query(event, NULL) == HR_PENDING) {
        }
        assert_memory_equal(f->host, f->pageable_back, f->bytes);
    }
    assert_ok(hr_event_close(&event, problem));
}

/* Another stream that waits for the event is held back too, without the host. */
static void test_other_stream_waits_for_staged_data(void **state)
{
    fixture *f = *state;
    hr_stream *other;
    hr_event *event;
    assert_ok(hr_stream_open(f->device, HR_STREAM_OUT, &other, problem));
    assert_ok(hr_event_open(f->device, &event, problem));
    hr_double_hold();
    queue_more_than_the_ring_holds(f);
    assert_ok(hr_event_record(event, f->stream, problem));
    assert_ok(hr_stream_wait_event(other, event, problem));
    assert_ok(hr_copy_to_host(other, f->host_back, f->there, f->bytes, problem));
    /* A record that is pending may be closed; who waits keeps its answer. */
    assert_ok(hr_event_close(&event, problem));
    hr_double_let_go();
    assert_ok(hr_stream_wait(other, problem));
    assert_memory_equal(f->pageable, f->host_back, f->bytes);
    assert_ok(hr_stream_close(&other, problem));
}

/* Recording again: who waited before is not sent to the new point. */
static void test_recording_again_while_deferred(void **state)
{
    fixture *f = *state;
    hr_event *event;
    hr_stream *other;
    assert_ok(hr_event_open(f->device, &event, problem));
    assert_ok(hr_stream_open(f->device, HR_STREAM_ANY, &other, problem));
    for (int i = 0; i < 50; i++) {
        assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable, 64 * KIB, problem));
        assert_ok(hr_event_record(event, f->stream, problem));
        assert_ok(hr_stream_wait_event(other, event, problem));
        assert_ok(hr_event_record(event, other, problem));
        assert_ok(hr_stream_wait_event(f->stream, event, problem));
    }
    assert_ok(hr_event_wait(event, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_ok(hr_stream_close(&other, problem));
    assert_ok(hr_event_close(&event, problem));
}

/* Two copies through the same pageable memory in one stream: the second reads what the first wrote. */
static void test_pageable_memory_there_and_back_again(void **state)
{
    fixture *f = *state;
    hr_double_set_delay_us(200);
    assert_ok(hr_copy_to_device(f->stream, f->there, f->host, f->bytes, problem));
    assert_ok(hr_copy_to_host(f->stream, f->pageable_back, f->there, f->bytes, problem));
    hr_fill fill = HR_FILL_INIT;
    fill.dst.base = f->there;
    fill.width_bytes = f->bytes;
    fill.value = 0x77;
    assert_ok(hr_fill_async(f->stream, &fill, problem));
    assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable_back, f->bytes, problem));
    assert_ok(hr_copy_to_host(f->stream, f->host_back, f->there, f->bytes, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(f->host, f->host_back, f->bytes);
}

static void test_host_to_host_is_not_cudas_business(void **state)
{
    fixture *f = *state;
    hr_copy copy = HR_COPY_INIT;
    copy.dst.base = f->pageable_back;
    copy.src.base = f->host;
    copy.width_bytes = f->bytes;
    assert_ok(hr_copy_async(f->stream, &copy, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(f->host, f->pageable_back, f->bytes);
    assert_int_equal(hr_double_pageable_calls(), 0);
    assert_int_equal(counter_of(f->device, "copies from host to host, by threads"), 1);
}

/* A buffer of which the middle is registered: seen as mixed, and copied right. */
static void test_partly_registered_memory(void **state)
{
    fixture *f = *state;
    uint64_t bytes = 4 * MIB;
    unsigned char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mapped != MAP_FAILED);
    fill_pattern(mapped, bytes, 9);
    assert_int_equal(cudaHostRegister(mapped + MIB, MIB, cudaHostRegisterPortable), cudaSuccess);
    hr_memory_kind kind;
    assert_int_equal(hr_memory_kind_of(f->device, mapped, bytes, &kind), HR_OK);
    assert_int_equal(kind, HR_MEMORY_MIXED);
    assert_int_equal(hr_memory_kind_of(f->device, mapped + MIB, MIB, &kind), HR_OK);
    assert_int_equal(kind, HR_MEMORY_PINNED);
    assert_int_equal(hr_memory_kind_of(f->device, mapped + MIB, MIB + 1, &kind), HR_OK);
    assert_int_equal(kind, HR_MEMORY_MIXED);
    assert_int_equal(hr_memory_kind_of(f->device, mapped, MIB, &kind), HR_OK);
    assert_int_equal(kind, HR_MEMORY_PAGEABLE);
    assert_int_equal(hr_memory_kind_of(f->device, f->there, 10, &kind), HR_OK);
    assert_int_equal(kind, HR_MEMORY_DEVICE);
    hr_double_mark();
    assert_ok(hr_copy_to_device(f->stream, f->there, mapped, bytes, problem));
    assert_ok(hr_copy_to_host(f->stream, f->host_back, f->there, bytes, problem));
    /* Wholly inside what is registered: no staging. */
    assert_ok(hr_copy_to_device(f->stream, f->there, mapped + MIB, MIB, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(mapped, f->host_back, bytes);
    assert_int_equal(counter_of(f->device, "copies from pageable memory, staged"), 1);
    assert_int_equal(hr_double_pageable_calls(), 0);
    assert_int_equal(cudaHostUnregister(mapped + MIB), cudaSuccess);
    munmap(mapped, bytes);
}

/* The stream's own handle is given out once nothing is deferred, so that what goes in directly is in order.
 */
static void test_native_handle_comes_after_deferred_work(void **state)
{
    fixture *f = *state;
    hr_double_set_delay_us(500);
    assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable, f->bytes, problem));
    cudaStream_t native = hr_stream_native(f->stream);
    assert_int_equal(cudaMemcpyAsync(f->host_back, f->there, f->bytes, cudaMemcpyDeviceToHost, native),
                     cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(native), cudaSuccess);
    assert_memory_equal(f->pageable, f->host_back, f->bytes);
}

/* Where kernels can read ordinary memory, a staged copy reads it in the stream's order. */
static void test_device_that_reads_pageable_memory(void **state)
{
    fixture *f = *state;
    hr_double_set_reads_pageable(true);
    hr_device *device;
    hr_stream *stream;
    assert_ok(hr_device_open(f->runtime, "cuda:0", &device, problem));
    assert_ok(hr_stream_open(device, HR_STREAM_ANY, &stream, problem));
    assert_ok(hr_copy_to_device(stream, f->there, f->pageable, f->bytes, problem));
    assert_ok(hr_copy_to_host(stream, f->pageable_back, f->there, f->bytes, problem));
    assert_ok(hr_stream_wait(stream, problem));
    assert_memory_equal(f->pageable, f->pageable_back, f->bytes);
    assert_ok(hr_stream_close(&stream, problem));
    assert_ok(hr_device_close(&device, problem));
}

/* Cancelling drops what is deferred: records fail, nothing hangs, nothing comes later. */
static void test_cancel_drops_deferred_work(void **state)
{
    fixture *f = *state;
    hr_event *event;
    assert_ok(hr_event_open(f->device, &event, problem));
    hr_double_hold();
    queue_more_than_the_ring_holds(f);
    assert_ok(hr_event_record(event, f->stream, problem));
    assert_int_equal(hr_stream_cancel(f->stream), HR_OK);
    hr_double_let_go();
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_event_wait(event, &error), HR_E_CANCELLED);
    assert_int_equal(hr_stream_wait(f->stream, &error), HR_E_CANCELLED);
    assert_int_equal(hr_copy_to_device(f->stream, f->there, f->host, 10, &error), HR_E_CANCELLED);
    assert_ok(hr_event_close(&event, problem));
}

/* A ring that could not be had in full is smaller, and says so. */
static void test_small_ring_under_a_low_limit(void **state)
{
    fixture *f = *state;
    hr_double_set_pinned_limit(2 * f->bytes + 6 * MIB);
    assert_ok(hr_copy_to_device(f->stream, f->there, f->pageable, f->bytes, problem));
    assert_ok(hr_copy_to_host(f->stream, f->pageable_back, f->there, f->bytes, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(f->pageable, f->pageable_back, f->bytes);
    assert_int_equal(counter_of(f->device, "pools smaller than asked for"), 1);
    assert_non_null(strstr(reason_of(f->device, "pools smaller than asked for"), "host pinned memory"));
}

static void test_no_ring_at_all_is_an_error_of_the_call(void **state)
{
    fixture *f = *state;
    hr_double_set_pinned_limit(1);
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_copy_to_device(f->stream, f->there, f->pageable, f->bytes, &error),
                     HR_E_PINNED_MEMORY);
    assert_non_null(strstr(error.text, "host pinned memory"));
    /* Nothing was queued, and the stream goes on. */
    assert_ok(hr_copy_to_device(f->stream, f->there, f->host, f->bytes, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {
        T(test_round_trip_of_pageable_memory),
        T(test_what_follows_comes_after),
        T(test_event_behind_a_copy_out_means_the_data_is_there),
        T(test_other_stream_waits_for_staged_data),
        T(test_recording_again_while_deferred),
        T(test_pageable_memory_there_and_back_again),
        T(test_host_to_host_is_not_cudas_business),
        T(test_partly_registered_memory),
        T(test_native_handle_comes_after_deferred_work),
        T(test_device_that_reads_pageable_memory),
        T(test_cancel_drops_deferred_work),
        T(test_small_ring_under_a_low_limit),
        T(test_no_ring_at_all_is_an_error_of_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
