/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines on the double: after the start nothing is taken, released, waited for as a whole, or put on the default
 * stream; and what a lost device means for a run. */
#include "cuda/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct add_work {
    const float *a, *b;
    float *c;
    uint64_t count;
} add_work;

static void add(void *argument)
{
    const add_work *w = argument;
    for (uint64_t i = 0; i < w->count; i++) {
        w->c[i] = w->a[i] + w->b[i];
    }
}

/* A user's launcher: a kernel of the double's in the stream that it is given. */
static hr_status launch_add(const hr_launch *launch, hr_error *error)
{
    add_work w = {launch->in[0].data, launch->in[1].data, launch->out[0].data, launch->in[0].shape.extent[0]};
    cudaError_t code = hr_double_launch(launch->native_stream, add, &w, sizeof w);
    return code == cudaSuccess ? HR_OK : hr_fail(error, HR_E_DEVICE, "add: code %d", (int)code);
}

static hr_op add_op(void)
{
    hr_op op = HR_OP_INIT;
    op.name = "add of a test";
    op.inputs = 2;
    op.cuda = launch_add;
    return op;
}

typedef struct run {
    hr_op op;
    hr_source in[2];
    hr_sink out;
    float *a, *b, *c;
    uint64_t count;
    hr_pipeline *pipeline;
} run;

static void open_watched_run(fixture *f, run *r, uint64_t count, float *a, float *b, float *c,
                             const hr_observer *observer)
{
    *r = (run){.op = add_op(), .a = a, .b = b, .c = c, .count = count};
    uint64_t bytes = count * sizeof(float);
    for (uint64_t i = 0; i < count; i++) {
        a[i] = (float)(i % 1000);
        b[i] = (float)(i % 777) * 0.5f;
        c[i] = -1.0f;
    }
    r->in[0] = hr_source_from_memory(a, bytes);
    r->in[1] = hr_source_from_memory(b, bytes);
    r->out = hr_sink_to_memory(c, bytes);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = &r->op;
    options.devices = &f->device;
    options.device_count = 1;
    options.chunk_bytes = 64 * KIB;
    options.depth = 4;
    options.cost_file = "";
    options.observer = observer;
    for (int i = 0; i < 2; i++) {
        options.in[i].source = &r->in[i];
        options.in[i].dtype = HR_F32;
        options.in[i].shape = (hr_shape){.rank = 1, .extent = {count}};
    }
    options.out[0].sink = &r->out;
    assert_ok(hr_pipeline_open(&options, &r->pipeline, problem));
}

static void open_run(fixture *f, run *r, uint64_t count, float *a, float *b, float *c)
{
    open_watched_run(f, r, count, a, b, c, NULL);
}

static void assert_sums(const run *r)
{
    for (uint64_t i = 0; i < r->count; i++) {
        if (r->c[i] != r->a[i] + r->b[i]) {
            fail_msg("element %llu is %g", (unsigned long long)i, (double)r->c[i]);
        }
    }
}

static void assert_nothing_taken_or_stopped(void)
{
    static const char *const forbidden[] = {
        "cudaMalloc",        "cudaFree",         "cudaHostAlloc",
        "cudaFreeHost",      "cudaHostRegister", "cudaHostUnregister",
        "cudaMalloc3DArray", "cudaFreeArray",    "cudaStreamCreateWithFlags",
        "cudaStreamDestroy"};
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        if (hr_double_calls(forbidden[i]) != 0) {
            fail_msg("%s was called %llu times during the run", forbidden[i],
                     (unsigned long long)hr_double_calls(forbidden[i]));
        }
    }
    /* Each of the three streams is waited for once, at the end. */
    assert_true(hr_double_calls("cudaStreamSynchronize") <= 3);
    assert_int_equal(hr_double_default_stream_calls(), 0);
    assert_int_equal(hr_double_pageable_calls(), 0);
    assert_int_equal(hr_double_device_waits(), 0);
}

static void check_steady_state(fixture *f, float *memory)
{
    run r;
    uint64_t count = 600000;
    open_run(f, &r, count, memory, memory + count, memory + 2 * count);
    hr_report report = HR_REPORT_INIT;
    hr_double_mark();
    assert_ok(hr_pipeline_run(r.pipeline, &report, problem));
    assert_nothing_taken_or_stopped();
    assert_true(hr_double_calls("cudaMemcpyAsync") >= 3 * report.chunks);
    assert_true(report.chunks >= 30);
    assert_sums(&r);
    assert_ok(hr_pipeline_close(&r.pipeline, problem));
}

static void test_steady_state_from_pageable_memory(void **state)
{
    fixture *f = *state;
    float *memory = malloc(3 * 600000 * sizeof(float));
    check_steady_state(f, memory);
    free(memory);
}

static void test_steady_state_from_pinned_memory(void **state)
{
    check_steady_state(*state, (float *)(void *)((fixture *)*state)->host);
}

static const char *const counted[] = {
    "cudaMemcpyAsync",      "cudaEventRecord", "cudaStreamWaitEvent",   "cudaEventSynchronize",
    "cudaEventElapsedTime", "cudaEventQuery",  "cudaStreamSynchronize", NULL};
enum { COUNTED = sizeof counted / sizeof counted[0] };

/* Calls of each function, and of all together, in a run of so many chunks from pinned memory. */
static void count_calls(fixture *f, uint64_t chunks, const hr_observer *observer, uint64_t calls[COUNTED])
{
    run r;
    float *memory = (float *)(void *)f->host;
    uint64_t count = chunks * 64 * KIB / sizeof(float);
    open_watched_run(f, &r, count, memory, memory + count, memory + 2 * count, observer);
    hr_report report = HR_REPORT_INIT;
    hr_double_mark();
    assert_ok(hr_pipeline_run(r.pipeline, &report, problem));
    for (size_t i = 0; i < COUNTED; i++) {
        calls[i] = hr_double_calls(counted[i]);
    }
    assert_int_equal(report.chunks, chunks);
    assert_sums(&r);
    assert_ok(hr_pipeline_close(&r.pipeline, problem));
}

static void assert_calls_a_chunk(fixture *f, const hr_observer *observer, const uint64_t expected[COUNTED])
{
    uint64_t few[COUNTED], many[COUNTED];
    count_calls(f, 10, observer, few);
    count_calls(f, 25, observer, many);
    for (size_t i = 0; i < COUNTED; i++) {
        if (many[i] - few[i] != 15 * expected[i]) {
            fail_msg("%s: 15 chunks more make %llu calls more, not 15 times %llu",
                     counted[i] != NULL ? counted[i] : "all", (unsigned long long)(many[i] - few[i]),
                     (unsigned long long)expected[i]);
        }
    }
}

/* What a chunk of two inputs and an output costs in calls: three copies, a wait between stages, an event and a time for
 * each stage, one wait of the host's, the three times are read, and the launcher is asked for its error. The launch is
 * the double's own. */
static void test_calls_of_a_chunk(void **state)
{
    assert_calls_a_chunk(*state, NULL, (const uint64_t[]){3, 6, 2, 1, 3, 0, 0, 16});
}

static void hear_span(void *self, const hr_span *span)
{
    (void)self;
    (void)span;
}

/* With a listener there is a time at both ends of each copy and kernel. */
static void test_calls_of_a_watched_chunk(void **state)
{
    hr_observer observer = HR_OBSERVER_INIT;
    observer.span = hear_span;
    assert_calls_a_chunk(*state, &observer, (const uint64_t[]){3, 10, 2, 1, 8, 0, 0, 25});
}

/* The device dies under the run: it ends, names a chunk, and everything closes. */
static void test_lost_device_names_the_first_chunk(void **state)
{
    fixture *f = *state;
    float *memory = malloc(3 * 600000 * sizeof(float));
    run r;
    uint64_t count = 600000;
    open_run(f, &r, count, memory, memory + count, memory + 2 * count);
    /* Four operations a chunk: the 23rd belongs to one of the first seven chunks, whatever the order. */
    hr_double_fail_work(23, cudaErrorIllegalAddress);
    hr_report report = HR_REPORT_INIT;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_pipeline_run(r.pipeline, &report, &error), HR_E_DEVICE_LOST);
    assert_true(error.chunk != HR_NO_CHUNK);
    assert_true(error.chunk <= 12);
    assert_non_null(strstr(error.text, "cudaErrorIllegalAddress"));
    assert_ok(hr_pipeline_close(&r.pipeline, problem));
    free(memory);
}

/* A call that fails once in the run, and does not stick: the run fails, the device goes on. */
static void test_failed_call_ends_the_run_only(void **state)
{
    fixture *f = *state;
    float *memory = malloc(3 * 600000 * sizeof(float));
    run r;
    uint64_t count = 600000;
    open_run(f, &r, count, memory, memory + count, memory + 2 * count);
    hr_double_fail("cudaMemcpyAsync", 11, cudaErrorInvalidValue);
    hr_report report = HR_REPORT_INIT;
    hr_error error = HR_ERROR_INIT;
    assert_true(hr_pipeline_run(r.pipeline, &report, &error) < 0);
    assert_non_null(strstr(error.text, "cudaErrorInvalidValue"));
    assert_true(error.chunk != HR_NO_CHUNK);
    assert_ok(hr_pipeline_close(&r.pipeline, problem));
    check_steady_state(f, memory);
    free(memory);
}

/* Costs for the plan to be made from, so that it does not depend on how fast this machine happens to be: 20 GB/s each way. */
static void keep_costs(fixture *f, const char *path)
{
    hr_device_info info = HR_DEVICE_INFO_INIT;
    assert_ok(hr_device_get_info(f->device, &info, problem));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "headrace-costs 1\ndevice %s | %s | %s\n", info.name, info.driver, info.spec);
    fputs("h2d 4096 0.00001\nh2d 16777216 0.0008\nd2h 4096 0.00001\nd2h 16777216 0.0008\n"
          "duplex 2e10 2e10\nrate flops.matmul.f32 5e13\n",
          file);
    assert_int_equal(fclose(file), 0);
}

/* Cuts a product as the device's own launcher works, whose blocks are odd ones here: multiples of them fill its multiprocessors. */
static void test_tiles_are_whole_blocks_of_the_devices_own_product(void **state)
{
    fixture *f = *state;
    enum { M = 3000, N = 2900, K = 8 };
    char costs[] = "/tmp/headrace-test-costs-XXXXXX";
    int made = mkstemp(costs);
    assert_true(made >= 0);
    assert_int_equal(close(made), 0);
    keep_costs(f, costs);
    float *a = malloc(M * K * sizeof *a), *b = malloc(K * N * sizeof *b),
          *c = malloc((size_t)M * N * sizeof *c);
    for (int i = 0; i < M * K; i++) {
        a[i] = (float)(i % 13 - 6);
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = (float)(i % 11 - 5);
    }
    hr_source in[2] = {hr_source_from_memory(a, M * K * sizeof *a),
                       hr_source_from_memory(b, K * N * sizeof *b)};
    hr_sink out = hr_sink_to_memory(c, (uint64_t)M * N * sizeof *c);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = hr_op_find("matmul");
    options.devices = &f->device;
    options.device_count = 1;
    options.device_bytes = 20 * MIB; /* less than C */
    options.cost_file = costs;
    for (int i = 0; i < 2; i++) {
        options.in[i].source = &in[i];
        options.in[i].dtype = HR_F32;
    }
    options.in[0].shape = (hr_shape){.rank = 2, .extent = {M, K}};
    options.in[1].shape = (hr_shape){.rank = 2, .extent = {K, N}};
    options.out[0].sink = &out;
    hr_pipeline *pipeline;
    hr_report report = HR_REPORT_INIT;
    assert_ok(hr_pipeline_open(&options, &pipeline, problem));
    assert_ok(hr_pipeline_run(pipeline, &report, problem));
    assert_ok(hr_pipeline_close(&pipeline, problem));
    uint64_t rows = 0, columns = 0;
    hr_double_largest_product(&rows, &columns);
    print_message("tiles of %llu × %llu\n", (unsigned long long)rows, (unsigned long long)columns);
    assert_true(rows < M || columns < N);
    assert_true(rows == M || rows % HR_DOUBLE_PRODUCT_ROWS == 0);
    assert_true(columns == N || columns % HR_DOUBLE_PRODUCT_COLUMNS == 0);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            float sum = 0.0f; /* of small integers: exact */
            for (int p = 0; p < K; p++) {
                sum += a[i * K + p] * b[p * N + j];
            }
            if (c[(size_t)i * N + j] != sum) {
                fail_msg("element %d, %d is %g instead of %g", i, j, (double)c[(size_t)i * N + j],
                         (double)sum);
            }
        }
    }
    assert_int_equal(unlink(costs), 0);
    free(a);
    free(b);
    free(c);
}

/* The module has a launcher for the built-in matmul. An op of one's own may be called that too, and is not it. */
static void test_an_op_of_ones_own_is_not_the_built_in_one_of_its_name(void **state)
{
    fixture *f = *state;
    enum { COUNT = 1000 };
    float a[COUNT] = {0}, b[COUNT] = {0}, c[COUNT] = {0};
    hr_op op = add_op();
    op.name = "matmul";
    hr_source in[2] = {hr_source_from_memory(a, sizeof a), hr_source_from_memory(b, sizeof b)};
    hr_sink out = hr_sink_to_memory(c, sizeof c);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = &op;
    options.devices = &f->device;
    options.device_count = 1;
    options.cost_file = "";
    for (int i = 0; i < 2; i++) {
        options.in[i] = (hr_port){.source = &in[i], .dtype = HR_F32, .shape = {2, {10, COUNT / 10}}};
    }
    options.out[0].sink = &out;
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)i;
        b[i] = 0.5f;
    }
    hr_pipeline *pipeline = NULL;
    assert_ok(hr_pipeline_open(&options, &pipeline, problem));
    assert_ok(hr_pipeline_run(pipeline, NULL, problem));
    assert_ok(hr_pipeline_close(&pipeline, problem));
    for (int i = 0; i < COUNT; i++) {
        assert_true(c[i] == (float)i + 0.5f);
    }
    op.cpu = op.cuda;
    op.cuda = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_pipeline_open(&options, &pipeline, &error), HR_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "not the built-in op of that name"));
    assert_null(pipeline);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {
        T(test_steady_state_from_pageable_memory),
        T(test_steady_state_from_pinned_memory),
        T(test_calls_of_a_chunk),
        T(test_calls_of_a_watched_chunk),
        T(test_lost_device_names_the_first_chunk),
        T(test_tiles_are_whole_blocks_of_the_devices_own_product),
        T(test_failed_call_ends_the_run_only),
        T(test_an_op_of_ones_own_is_not_the_built_in_one_of_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
