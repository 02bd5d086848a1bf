/* SPDX-License-Identifier: Apache-2.0 */
/* What is CUDA's own among copies: peers, capture, symbols, lists, the caller's other device. */
#include "cuda/fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A second device with a stream and device memory. */
typedef struct far_side {
    hr_device *device;
    hr_pool *pool;
    unsigned char *there;
} far_side;

static void open_far(fixture *f, far_side *far)
{
    assert_ok(hr_device_open(f->runtime, "cuda:1", &far->device, problem));
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.kind = HR_MEMORY_DEVICE;
    options.bytes = f->bytes;
    assert_ok(hr_pool_open(far->device, &options, &far->pool, problem));
    assert_int_equal(hr_pool_take(far->pool, f->bytes, 0, "far", (void **)&far->there), HR_OK);
}

static void close_far(far_side *far)
{
    assert_int_equal(hr_pool_give(far->pool, far->there), HR_OK);
    assert_ok(hr_pool_close(&far->pool, problem));
    assert_ok(hr_device_close(&far->device, problem));
}

/* Out to the other device and back, in one stream; what comes back is what went out. */
static void peer_round_trip(fixture *f, far_side *far, uint64_t staged)
{
    hr_copy away = HR_COPY_INIT;
    away.dst = (hr_end){.place = HR_PLACE_DEVICE, .device = far->device, .base = far->there};
    away.src = (hr_end){.place = HR_PLACE_DEVICE, .base = f->there};
    away.width_bytes = f->bytes;
    hr_copy home = HR_COPY_INIT;
    home.dst = away.src;
    home.src = away.dst;
    home.width_bytes = f->bytes;
    hr_fill wipe = HR_FILL_INIT;
    wipe.dst.base = f->there;
    wipe.width_bytes = f->bytes;
    wipe.value = 0x11;
    assert_ok(hr_copy_to_device(f->stream, f->there, f->host, f->bytes, problem));
    assert_ok(hr_copy_async(f->stream, &away, problem));
    assert_ok(hr_fill_async(f->stream, &wipe, problem));
    assert_ok(hr_copy_async(f->stream, &home, problem));
    assert_ok(hr_copy_to_host(f->stream, f->host_back, f->there, f->bytes, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(f->host, f->host_back, f->bytes);
    assert_int_equal(counter_of(f->device, "copies between devices, staged through host memory"), staged);
    assert_int_equal(hr_double_pageable_calls(), 0);
}

static void test_peers_that_reach_each_other(void **state)
{
    fixture *f = *state;
    far_side far;
    open_far(f, &far);
    peer_round_trip(f, &far, 0);
    close_far(&far);
}

static void test_peers_without_access_are_staged(void **state)
{
    fixture *f = *state;
    far_side far;
    hr_double_set_peer(HR_DOUBLE_PEER_NONE);
    open_far(f, &far);
    peer_round_trip(f, &far, 2);
    assert_non_null(strstr(reason_of(f->device, "copies between devices, staged through host memory"),
                           "cuda:0 cannot access cuda:1"));
    close_far(&far);
}

/* Access is reported, and what is written is lost: the pattern finds out. */
static void test_peers_that_lie_are_staged(void **state)
{
    fixture *f = *state;
    far_side far;
    hr_double_set_peer(HR_DOUBLE_PEER_DROPS);
    open_far(f, &far);
    peer_round_trip(f, &far, 2);
    assert_non_null(strstr(reason_of(f->device, "copies between devices, staged through host memory"),
                           "did not come back as it was sent"));
    close_far(&far);
}

static cudaGraphExec_t capture_and_instantiate(cudaStream_t native)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    assert_int_equal(cudaStreamEndCapture(native, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
}

/* Copies of every direct kind become part of a graph; what cannot is refused by name, and the capture goes
 * on. */
static void test_capture(void **state)
{
    fixture *f = *state;
    cudaStream_t native = hr_stream_native(f->stream);
    hr_segment list[3000];
    for (uint64_t i = 0; i < 3000; i++) {
        list[i] = (hr_segment){i * 64, (2999 - i) * 64, 64};
    }
    hr_copy scattered = HR_COPY_INIT;
    scattered.dst = (hr_end){.place = HR_PLACE_DEVICE, .base = f->there + MIB};
    scattered.src.base = f->host + MIB;
    scattered.segments = list;
    scattered.segment_count = 3000;
    hr_fill fill = HR_FILL_INIT;
    fill.dst.base = f->there + 4 * MIB;
    fill.width_bytes = MIB;
    fill.value = 0x01020304;
    fill.value_bytes = 4;

    assert_int_equal(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    assert_ok(hr_copy_to_device(f->stream, f->there, f->host, MIB, problem));
    assert_ok(hr_copy_async(f->stream, &scattered, problem));
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_copy_to_device(f->stream, f->there, f->pageable, 4096, &error), HR_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "copy from pageable memory: the stream is being captured"));
    assert_int_equal(hr_copy_to_host(f->stream, f->pageable_back, f->there, 4096, &error), HR_E_UNSUPPORTED);
    assert_ok(hr_fill_async(f->stream, &fill, problem));
    assert_ok(hr_copy_to_host(f->stream, f->host_back, f->there, 5 * MIB, problem));
    cudaGraphExec_t exec = capture_and_instantiate(native);
    for (uint64_t i = 0; i < f->bytes; i++) {
        assert_int_equal(f->host_back[i], 0); /* nothing ran */
    }
    assert_int_equal(cudaGraphLaunch(exec, native), cudaSuccess);
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(f->host, f->host_back, MIB);
    for (uint64_t i = 0; i < 3000; i++) {
        assert_memory_equal(f->host_back + MIB + i * 64, f->host + MIB + (2999 - i) * 64, 64);
    }
    assert_int_equal(f->host_back[4 * MIB], 4);
    assert_int_equal(f->host_back[5 * MIB - 1], 1);
    assert_int_equal(cudaGraphExecDestroy(exec), cudaSuccess);
}

/* The caller's current device is its own business, before and after each call. */
static void test_callers_other_current_device(void **state)
{
    fixture *f = *state;
    int current = -1;
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    hr_stream *stream;
    hr_event *event;
    assert_ok(hr_stream_open(f->device, HR_STREAM_ANY, &stream, problem));
    assert_ok(hr_event_open(f->device, &event, problem));
    hr_segment list[20];
    for (uint64_t i = 0; i < 20; i++) {
        list[i] = (hr_segment){i * 100, i * 200, 100};
    }
    hr_copy scattered = HR_COPY_INIT;
    scattered.dst = (hr_end){.place = HR_PLACE_DEVICE, .base = f->there};
    scattered.src.base = f->host;
    scattered.segments = list;
    scattered.segment_count = 20;
    /* By a kernel, which would be refused under another device. */
    assert_ok(hr_copy_async(stream, &scattered, problem));
    assert_ok(hr_event_record(event, stream, problem));
    assert_ok(hr_event_wait(event, problem));
    assert_ok(hr_copy_to_host(stream, f->host_back, f->there, 2000, problem));
    assert_ok(hr_stream_wait(stream, problem));
    for (uint64_t i = 0; i < 20; i++) {
        assert_memory_equal(f->host_back + i * 100, f->host + i * 200, 100);
    }
    assert_ok(hr_event_close(&event, problem));
    assert_ok(hr_stream_close(&stream, problem));
    assert_int_equal(cudaGetDevice(&current), cudaSuccess);
    assert_int_equal(current, 1);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
}

/* A variable by its shadow, by its address on the device, and not at all. */
static void test_symbols(void **state)
{
    fixture *f = *state;
    static char shadow;
    hr_double_add_symbol(&shadow, 256);
    hr_symbol *symbol;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_symbol_define(f->device, "too long", &shadow, 257, &symbol, &error), HR_E_RANGE);
    assert_int_equal(hr_symbol_define(f->device, "unknown", &error, 4, &symbol, &error), HR_E_INVALID);
    assert_ok(hr_symbol_define(f->device, "coefficients", &shadow, 256, &symbol, problem));
    hr_copy copy = HR_COPY_INIT;
    copy.dst = (hr_end){.place = HR_PLACE_SYMBOL, .symbol = symbol, .offset_bytes = 56};
    copy.src.base = f->host;
    copy.width_bytes = 200;
    assert_ok(hr_copy_async(f->stream, &copy, problem));
    void *address;
    assert_int_equal(cudaGetSymbolAddress(&address, &shadow), cudaSuccess);
    hr_symbol *same;
    assert_ok(hr_symbol_define(f->device, "by address", address, 256, &same, problem));
    hr_copy back = HR_COPY_INIT;
    back.dst.base = f->host_back;
    back.src = (hr_end){.place = HR_PLACE_SYMBOL, .symbol = same, .offset_bytes = 56};
    back.width_bytes = 200;
    assert_ok(hr_copy_async(f->stream, &back, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    assert_memory_equal(f->host, f->host_back, 200);
    assert_ok(hr_symbol_close(&symbol, problem));
    assert_ok(hr_symbol_close(&same, problem));
}

static void copy_list(fixture *f, uint64_t count, uint64_t block)
{
    hr_segment *list = malloc(count * sizeof *list);
    for (uint64_t i = 0; i < count; i++) {
        list[i] = (hr_segment){i * block, (i * 7 % count) * block, block};
    }
    hr_copy in = HR_COPY_INIT;
    in.dst = (hr_end){.place = HR_PLACE_DEVICE, .base = f->there};
    in.src.base = f->host;
    in.segments = list;
    in.segment_count = count;
    memset(f->host_back, 0, f->bytes);
    assert_ok(hr_copy_async(f->stream, &in, problem));
    assert_ok(hr_copy_to_host(f->stream, f->host_back, f->there, count * block, problem));
    assert_ok(hr_stream_wait(f->stream, problem));
    for (uint64_t i = 0; i < count; i++) {
        assert_memory_equal(f->host_back + i * block, f->host + (i * 7 % count) * block, block);
    }
    free(list);
}

/* Which way a list goes: calls for few or long segments, a kernel for many short ones, batches where the
 * kernel cannot reach the memory. */
static void test_lists_choose_their_way(void **state)
{
    fixture *f = *state;
    copy_list(f, 3, MIB);
    assert_int_equal(counter_of(f->device, "segment lists copied by a call for each segment"), 1);
    copy_list(f, 7, MIB);
    assert_int_equal(counter_of(f->device, "segment lists copied by batched calls"), 1);
    hr_double_mark();
    copy_list(f, 100000, 64);
    assert_int_equal(counter_of(f->device, "segment lists copied by a kernel"), 1);
    /* Long lists go through the blocks, in few launches. */
    assert_true(hr_double_calls("cudaLaunchKernel") <= 30);
    copy_list(f, 100, 1000);
    assert_int_equal(counter_of(f->device, "segment lists copied by a kernel"), 2);

    hr_double_set_host_pointers(false);
    hr_device *device;
    hr_stream *stream;
    assert_ok(hr_device_open(f->runtime, "cuda:0", &device, problem));
    assert_ok(hr_stream_open(device, HR_STREAM_ANY, &stream, problem));
    fixture g = *f;
    g.device = device;
    g.stream = stream;
    copy_list(&g, 5000, 100);
    assert_int_equal(counter_of(device, "segment lists copied by batched calls"), 1);
    assert_ok(hr_stream_close(&stream, problem));
    assert_ok(hr_device_close(&device, problem));
}

/* Streams of many threads, pinned and pageable, small and large, at once. */
typedef struct worker {
    fixture *f;
    pthread_t thread;
    unsigned number;
    int good;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    fixture *f = w->f;
    uint64_t share = 256 * KIB;
    uint64_t at = w->number * share;
    hr_stream *stream = NULL;
    hr_status status = hr_stream_open(f->device, HR_STREAM_ANY, &stream, NULL);
    w->good = status == HR_OK;
    for (int round = 0; round < 30 && w->good; round++) {
        const unsigned char *from = round % 2 == 0 ? f->host + at : f->pageable + at;
        unsigned char *to = round % 3 == 0 ? f->host_back + at : f->pageable_back + at;
        w->good = hr_copy_to_device(stream, f->there + at, from, share, NULL) == HR_OK &&
                  hr_copy_to_host(stream, to, f->there + at, share, NULL) == HR_OK &&
                  hr_stream_wait(stream, NULL) == HR_OK && memcmp(from, to, share) == 0;
    }
    w->good = hr_stream_close(&stream, NULL) == HR_OK && w->good;
    return NULL;
}

static void test_many_threads(void **state)
{
    fixture *f = *state;
    worker workers[16];
    for (unsigned i = 0; i < 16; i++) {
        workers[i] = (worker){.f = f, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 16; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_true(workers[i].good);
    }
    assert_int_equal(hr_double_default_stream_calls(), 0);
    assert_int_equal(hr_double_pageable_calls(), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {
        T(test_peers_that_reach_each_other),  T(test_peers_without_access_are_staged),
        T(test_peers_that_lie_are_staged),    T(test_capture),
        T(test_callers_other_current_device), T(test_symbols),
        T(test_lists_choose_their_way),       T(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
