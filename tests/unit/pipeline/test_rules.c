/* SPDX-License-Identifier: Apache-2.0 */
/* Each chunk rule end to end, on the device that shares the host's memory and on the one that does not,
 * against plain loops. */
#include "pipeline/costs.h"
#include "support/pipes.h"
#include "support/unit.h"

#include <unistd.h>

static hr_runtime *runtime;
static const char *costs_to_use; /* null: those of all tests */
static const char *const specs[] = {"cpu", "cpu:discrete,threads=2"};
enum { SPECS = sizeof specs / sizeof specs[0] };

static int open_runtime(void **state)
{
    (void)state;
    return hr_runtime_open(NULL, &runtime, NULL) == HR_OK ? 0 : -1;
}

static int close_runtime(void **state)
{
    (void)state;
    return hr_runtime_close(&runtime, NULL) == HR_OK ? 0 : -1;
}

/* Runs the options on a fresh device; the device closes only if the pipeline has left nothing behind. */
static hr_status run_on(const char *spec, hr_pipeline_options *options, hr_report *report, hr_error *error)
{
    hr_device *device = NULL;
    assert_int_equal(hr_device_open(runtime, spec, &device, error), HR_OK);
    options->devices = &device;
    options->device_count = 1;
    options->cost_file = costs_to_use != NULL ? costs_to_use : pipes_cost_file();
    hr_pipeline *pipeline = NULL;
    hr_status status = hr_pipeline_open(options, &pipeline, error);
    if (status == HR_OK) {
        status = hr_pipeline_run(pipeline, report, error);
        assert_int_equal(hr_pipeline_close(&pipeline, NULL), HR_OK);
    }
    assert_null(pipeline);
    hr_error closing = HR_ERROR_INIT;
    assert_int_equal(hr_device_close(&device, &closing), HR_OK);
    return status;
}

static void expect_ok(hr_status status, const hr_error *error)
{
    if (status != HR_OK) {
        fail_msg("%s: %s", hr_status_text(status), error->text);
    }
}

/* How the ports of a run are made: the same data must come out whichever way it went. */
typedef enum port_kind { IN_MEMORY, ANYWHERE, IN_ORDER, PORT_KINDS } port_kind;

typedef struct ports {
    pipes_source a_self, b_self;
    pipes_sink c_self;
    hr_source a, b;
    hr_sink c;
} ports;

static void make_source(port_kind kind, pipes_source *self, hr_source *source, const void *data,
                        uint64_t bytes)
{
    *source = pipes_make_source(self, data, bytes);
    if (kind == IN_MEMORY) {
        *source = hr_source_from_memory(data, bytes);
    } else if (kind == IN_ORDER) {
        self->ordered = source->sequential = true;
    }
}

static void make_sink(port_kind kind, pipes_sink *self, hr_sink *sink, void *data, uint64_t bytes)
{
    *sink = pipes_make_sink(self, data, bytes);
    if (kind == IN_MEMORY) {
        *sink = hr_sink_to_memory(data, bytes);
    } else if (kind == IN_ORDER) {
        self->ordered = sink->sequential = true;
    }
}

static hr_report mix_once(const char *spec, port_kind kind, uint64_t count, uint64_t chunk_bytes,
                          uint32_t depth)
{
    uint32_t *a = pipes_numbers(count, 1), *b = pipes_numbers(count, 2);
    uint32_t *c = calloc(count + 1, sizeof *c);
    c[count] = 0xdeadbeef;
    ports p;
    make_source(kind, &p.a_self, &p.a, a, 4 * count);
    make_source(kind, &p.b_self, &p.b, b, 4 * count);
    make_sink(kind, &p.c_self, &p.c, c, 4 * count);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = &pipes_mix_op;
    options.in[0] = (hr_port){.source = &p.a, .dtype = HR_U32, .shape = {1, {count}}};
    options.in[1] = (hr_port){.source = &p.b, .dtype = HR_U32, .shape = {1, {count}}};
    options.out[0].sink = &p.c;
    options.chunk_bytes = chunk_bytes;
    options.depth = depth;
    hr_report report = HR_REPORT_INIT;
    hr_error error = HR_ERROR_INIT;
    expect_ok(run_on(spec, &options, &report, &error), &error);
    for (uint64_t i = 0; i < count; i++) {
        if (c[i] != 3 * a[i] + b[i]) {
            fail_msg("%s kind %d count %llu: element %llu is wrong", spec, (int)kind,
                     (unsigned long long)count, (unsigned long long)i);
        }
    }
    assert_int_equal(c[count], 0xdeadbeef);
    assert_int_equal(report.done_bytes, 8 * count);
    uint64_t per_chunk = report.chunk_bytes / 4, alike = (count + per_chunk - 1) / per_chunk;
    /* Chunks that are planned may be smaller at the ends. */
    assert_true(chunk_bytes > 0 ? report.chunks == alike : report.chunks >= alike);
    if (kind != IN_MEMORY) {
        assert_int_equal(p.c_self.finished, 1);
        assert_int_equal(p.c_self.discarded, 0);
        assert_int_equal(p.c_self.finished_bytes, 4 * count);
    }
    free(a);
    free(b);
    free(c);
    return report;
}

static void elements_come_out_whichever_way_they_go(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 63, 64, 65, 1000, 4097};
    for (int s = 0; s < SPECS; s++) {
        for (int kind = 0; kind < PORT_KINDS; kind++) {
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                mix_once(specs[s], (port_kind)kind, counts[i], 256, 3);
            }
            mix_once(specs[s], (port_kind)kind, 1000, 4, 1);
            mix_once(specs[s], (port_kind)kind, 700001, 0, 0);
        }
    }
}

static void chunks_of_several_pieces_are_put_together_right(void **state)
{
    (void)state;
    for (int kind = 0; kind < PORT_KINDS; kind++) {
        mix_once("cpu:discrete,threads=2", (port_kind)kind, 1500003, UINT64_C(5) << 19, 2);
    }
}

static hr_report rows_once(const char *spec, port_kind kind, uint64_t rows, uint64_t reach,
                           uint64_t chunk_rows)
{
    const uint64_t columns = 5;
    uint32_t *a = pipes_numbers(rows * columns, 3);
    uint32_t *c = calloc(rows * columns + 1, sizeof *c);
    ports p;
    make_source(kind, &p.a_self, &p.a, a, 4 * rows * columns);
    make_sink(kind, &p.c_self, &p.c, c, 4 * rows * columns);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = &pipes_rows_op;
    options.params = &reach;
    options.in[0] = (hr_port){.source = &p.a, .dtype = HR_U32, .shape = {2, {rows, columns}}};
    options.out[0].sink = &p.c;
    options.chunk_bytes = chunk_rows * columns * 4;
    hr_report report = HR_REPORT_INIT;
    hr_error error = HR_ERROR_INIT;
    expect_ok(run_on(spec, &options, &report, &error), &error);
    /* Rows that two chunks read count once. */
    assert_int_equal(report.done_bytes, 4 * rows * columns);
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t column = 0; column < columns; column++) {
            uint32_t sum = 0;
            for (uint64_t y = r > reach ? r - reach : 0; y <= r + reach && y < rows; y++) {
                sum += a[y * columns + column];
            }
            assert_int_equal(c[r * columns + column], sum);
        }
    }
    free(a);
    free(c);
    return report;
}

static void rows_see_their_neighbours_across_chunks(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        for (int kind = 0; kind < PORT_KINDS; kind++) {
            for (uint64_t reach = 0; reach <= 5; reach++) {
                rows_once(specs[s], (port_kind)kind, 37, reach, 1);
                rows_once(specs[s], (port_kind)kind, 37, reach, 4);
                rows_once(specs[s], (port_kind)kind, 3, reach, 2);
                rows_once(specs[s], (port_kind)kind, 1, reach, 1);
                rows_once(specs[s], (port_kind)kind, 40, reach, 0);
            }
        }
    }
}

/* A link at which the copy in is what takes time, and copying out the last chunk would be seen. */
static void keep_costs_of_a_slow_link(const char *spec)
{
    hr_device *device = NULL;
    hr_device_info info = HR_DEVICE_INFO_INIT;
    hr_costs costs;
    const double bytes[] = {4096.0, 16777216.0}, in_s[] = {9e-6, 16777216.0 / 1e9},
                 out_s[] = {7e-6, 16777216.0 / 2e9};
    assert_int_equal(hr_device_open(runtime, spec, &device, NULL), HR_OK);
    assert_int_equal(hr_device_get_info(device, &info, NULL), HR_OK);
    unlink(costs_to_use); /* what an earlier run has learned is not to count */
    hr_costs_load(&info, costs_to_use, &costs);
    assert_int_equal(hr_cost_link_make(bytes, in_s, 2, &costs.h2d), HR_OK);
    assert_int_equal(hr_cost_link_make(bytes, out_s, 2, &costs.d2h), HR_OK);
    costs.h2d_with_d2h = 1e9;
    costs.d2h_with_h2d = 2e9;
    costs.changed = true;
    assert_int_equal(hr_costs_save(&costs, NULL), HR_OK);
    assert_int_equal(hr_device_close(&device, NULL), HR_OK);
}

static void assert_tapered(const hr_report *report, uint64_t bytes)
{
    assert_true(report->chunks > (bytes + report->chunk_bytes - 1) / report->chunk_bytes + 1);
}

static void planned_chunks_taper_and_leave_nothing_out(void **state)
{
    (void)state;
    static const char spec[] = "cpu:discrete,threads=2";
    char path[64];
    snprintf(path, sizeof path, "/tmp/headrace-test-slow-%ld", (long)getpid());
    costs_to_use = path;
    for (int kind = 0; kind < PORT_KINDS; kind++) {
        keep_costs_of_a_slow_link(spec);
        hr_report report = mix_once(spec, (port_kind)kind, 4000001, 0, 0);
        assert_tapered(&report, 16000004);
        for (uint64_t reach = 0; reach <= 3; reach += 3) {
            keep_costs_of_a_slow_link(spec);
            report = rows_once(spec, (port_kind)kind, 400003, reach, 0);
            assert_tapered(&report, UINT64_C(20) * 400003);
        }
    }
    costs_to_use = NULL;
    unlink(path);
}

static uint64_t fold(const uint32_t *a, uint64_t count)
{
    uint64_t h = 0;
    for (uint64_t i = 0; i < count; i++) {
        h = h * 31 + a[i];
    }
    return h;
}

static void reductions_combine_in_order_of_chunks(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 999, 100000};
    for (int s = 0; s < SPECS; s++) {
        for (int kind = 0; kind < PORT_KINDS; kind++) {
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                uint64_t count = counts[i];
                uint32_t *a = pipes_numbers(count, 4);
                ports p;
                make_source((port_kind)kind, &p.a_self, &p.a, a, 4 * count);
                hr_pipeline_options options;
                hr_pipeline_options_init(&options);
                options.op = &pipes_fold_op;
                options.in[0] = (hr_port){.source = &p.a, .dtype = HR_U32, .shape = {1, {count}}};
                options.chunk_bytes = 1024;
                hr_report report = HR_REPORT_INIT;
                hr_error error = HR_ERROR_INIT;
                expect_ok(run_on(specs[s], &options, &report, &error), &error);
                assert_int_equal(report.result.kind, HR_RESULT_U64);
                assert_true(report.result.as.u64 == fold(a, count));
                free(a);
            }
        }
    }
}

/* Sources that do not say how long they are, and hand out odd amounts. */
static hr_status open_ended(const char *spec, uint64_t count_a, uint64_t count_b, uint64_t extra_bytes,
                            uint64_t *written, hr_error *error)
{
    uint32_t *a = pipes_numbers(count_a + 1, 1), *b = pipes_numbers(count_b + 1, 2);
    uint64_t most = count_a > count_b ? count_a : count_b;
    uint32_t *c = calloc(most + 1, sizeof *c);
    ports p;
    make_source(IN_ORDER, &p.a_self, &p.a, a, 4 * count_a + extra_bytes);
    make_source(IN_ORDER, &p.b_self, &p.b, b, 4 * count_b + extra_bytes);
    make_sink(IN_ORDER, &p.c_self, &p.c, c, 4 * most + 4);
    p.a.bytes = p.b.bytes = HR_LENGTH_UNKNOWN;
    p.a_self.most_a_read = 77;
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = &pipes_mix_op;
    options.in[0] = (hr_port){.source = &p.a, .dtype = HR_U32, .shape = {1, {HR_LENGTH_UNKNOWN}}};
    options.in[1] = (hr_port){.source = &p.b, .dtype = HR_U32, .shape = {1, {HR_LENGTH_UNKNOWN}}};
    options.out[0].sink = &p.c;
    options.chunk_bytes = 256;
    hr_report report = HR_REPORT_INIT;
    hr_status status = run_on(spec, &options, &report, error);
    if (status == HR_OK) {
        for (uint64_t i = 0; i < count_a; i++) {
            assert_int_equal(c[i], 3 * a[i] + b[i]);
        }
        assert_int_equal(report.chunks, (count_a + 63) / 64);
        assert_int_equal(p.c_self.finished, 1);
        *written = p.c_self.finished_bytes;
    } else {
        assert_int_equal(p.c_self.finished, 0);
        assert_int_equal(p.c_self.discarded, 1);
    }
    free(a);
    free(b);
    free(c);
    return status;
}

static void data_of_unknown_length_ends_where_it_ends(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 63, 64, 65, 128, 1000};
    for (int s = 0; s < SPECS; s++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            uint64_t written = 99;
            hr_error error = HR_ERROR_INIT;
            expect_ok(open_ended(specs[s], counts[i], counts[i], 0, &written, &error), &error);
            assert_int_equal(written, 4 * counts[i]);
        }
    }
}

static void memory_beside_a_stream_of_unknown_length_is_not_read_past_its_end(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        for (uint64_t count = 63; count < 66; count++) {
            uint32_t *a = pipes_numbers(count, 1), *b = pipes_numbers(count, 2),
                     *c = calloc(count, sizeof *c);
            ports p;
            make_source(IN_ORDER, &p.a_self, &p.a, a, 4 * count);
            p.a.bytes = HR_LENGTH_UNKNOWN;
            make_source(IN_MEMORY, &p.b_self, &p.b, b, 4 * count);
            p.b.read = NULL;
            make_sink(IN_MEMORY, &p.c_self, &p.c, c, 4 * count);
            hr_pipeline_options options;
            hr_pipeline_options_init(&options);
            options.op = &pipes_mix_op;
            options.in[0] = (hr_port){.source = &p.a, .dtype = HR_U32, .shape = {1, {HR_LENGTH_UNKNOWN}}};
            options.in[1] = (hr_port){.source = &p.b, .dtype = HR_U32, .shape = {1, {HR_LENGTH_UNKNOWN}}};
            options.out[0].sink = &p.c;
            options.chunk_bytes = 256;
            hr_error error = HR_ERROR_INIT;
            expect_ok(run_on(specs[s], &options, NULL, &error), &error);
            for (uint64_t i = 0; i < count; i++) {
                assert_int_equal(c[i], 3 * a[i] + b[i]);
            }
            hr_sink small = hr_sink_to_memory(c, 4 * count - 4);
            options.out[0].sink = &small;
            p.a_self.at = 0;
            assert_int_equal(run_on(specs[s], &options, NULL, &error), HR_E_RANGE);
            free(a);
            free(b);
            free(c);
        }
    }
}

static void inputs_of_unlike_length_are_told(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        hr_error error = HR_ERROR_INIT;
        assert_int_equal(open_ended(specs[s], 1000, 900, 0, NULL, &error), HR_E_FORMAT);
        assert_int_equal(error.chunk, 14);
        assert_int_equal(open_ended(specs[s], 64, 128, 0, NULL, &error), HR_E_FORMAT);
        assert_int_equal(error.chunk, 1);
        assert_int_equal(open_ended(specs[s], 100, 100, 3, NULL, &error), HR_E_FORMAT);
        assert_non_null(strstr(error.text, "middle of an element"));
    }
}

/* Chunks go to several devices in turn; results come together in order of chunks. */
static void several_devices_share_the_chunks(void **state)
{
    (void)state;
    const uint64_t count = 10007;
    uint32_t *a = pipes_numbers(count, 1), *b = pipes_numbers(count, 2);
    uint32_t *c = calloc(count, sizeof *c);
    hr_error error = HR_ERROR_INIT;
    hr_device *devices[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hr_device_open(runtime, "cpu:discrete,threads=1", &devices[i], &error), HR_OK);
    }
    for (int reduce = 0; reduce < 2; reduce++) {
        ports p;
        make_source(ANYWHERE, &p.a_self, &p.a, a, 4 * count);
        make_source(IN_ORDER, &p.b_self, &p.b, b, 4 * count);
        make_sink(IN_ORDER, &p.c_self, &p.c, c, 4 * count);
        hr_pipeline_options options;
        hr_pipeline_options_init(&options);
        options.op = reduce ? &pipes_fold_op : &pipes_mix_op;
        options.devices = devices;
        options.device_count = 3;
        options.in[0] = (hr_port){.source = &p.a, .dtype = HR_U32, .shape = {1, {count}}};
        options.in[1] = (hr_port){.source = &p.b, .dtype = HR_U32, .shape = {1, {count}}};
        options.out[0].sink = &p.c;
        options.chunk_bytes = 512;
        options.depth = 2;
        options.cost_file = pipes_cost_file();
        hr_pipeline *pipeline = NULL;
        hr_report report = HR_REPORT_INIT;
        expect_ok(hr_pipeline_open(&options, &pipeline, &error), &error);
        expect_ok(hr_pipeline_run(pipeline, &report, &error), &error);
        assert_int_equal(hr_pipeline_close(&pipeline, &error), HR_OK);
        if (reduce) {
            assert_true(report.result.as.u64 == fold(a, count));
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(c[i], 3 * a[i] + b[i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hr_device_close(&devices[i], &error), HR_OK);
    }
    free(a);
    free(b);
    free(c);
}

static void what_does_not_fit_is_refused_when_opening(void **state)
{
    (void)state;
    uint32_t data[100] = {0}, result[100];
    for (int s = 0; s < SPECS; s++) {
        hr_source a = hr_source_from_memory(data, sizeof data);
        hr_sink c = hr_sink_to_memory(result, sizeof result);
        hr_pipeline_options options;
        hr_pipeline_options_init(&options);
        options.op = &pipes_mix_op;
        options.in[0] = options.in[1] = (hr_port){.source = &a, .dtype = HR_U32, .shape = {1, {100}}};
        options.out[0].sink = &c;
        hr_error error = HR_ERROR_INIT;
        expect_ok(run_on(specs[s], &options, NULL, &error), &error);

        hr_pipeline_options bad = options;
        bad.in[0].shape.extent[0] = 101;
        assert_int_equal(run_on(specs[s], &bad, NULL, &error), HR_E_INVALID);
        assert_non_null(strstr(error.text, "404"));
        bad = options;
        bad.out[0].dtype = HR_F32;
        assert_int_equal(run_on(specs[s], &bad, NULL, &error), HR_E_INVALID);
        bad = options;
        bad.out[0].sink = NULL;
        assert_int_equal(run_on(specs[s], &bad, NULL, &error), HR_E_INVALID);
        bad = options;
        hr_sink small = hr_sink_to_memory(result, 396);
        bad.out[0].sink = &small;
        assert_int_equal(run_on(specs[s], &bad, NULL, &error), HR_E_RANGE);
        bad = options;
        bad.chunk_bytes = 3;
        assert_int_equal(run_on(specs[s], &bad, NULL, &error), HR_E_RANGE);
        bad = options;
        bad.op = NULL;
        assert_int_equal(run_on(specs[s], &bad, NULL, &error), HR_E_INVALID);

        pipes_source through;
        hr_source reading = pipes_make_source(&through, data, sizeof data);
        bad = options;
        bad.in[0].source = &reading;
        bad.chunk_bytes = sizeof data;
        bad.pinned_bytes = 256;
        assert_int_equal(run_on(specs[s], &bad, NULL, &error), HR_E_RANGE);
        assert_non_null(strstr(error.text, "256"));
        /* More than there is memory for, although the array would fit. */
        bad.chunk_bytes = UINT64_C(1) << 40;
        bad.pinned_bytes = 0;
        assert_int_equal(run_on(specs[s], &bad, NULL, &error), HR_E_RANGE);
    }
}

static hr_op_plan wanted_plan;

static hr_status plan_as_wanted(const hr_op *op, const void *params, const hr_dtype *dtypes,
                                const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    (void)op;
    (void)params;
    (void)error;
    *plan = wanted_plan;
    plan->outputs = 1;
    plan->dtype[0] = dtypes[0];
    plan->shape[0] = shapes[0];
    return HR_OK;
}

/* Sizes that would wrap where slots are counted, and what an op must have. */
static void an_op_that_no_memory_could_hold_is_refused(void **state)
{
    (void)state;
    static uint32_t data[100], result[100];
    hr_source a = hr_source_from_memory(data, sizeof data);
    hr_sink c = hr_sink_to_memory(result, sizeof result);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.in[0] = options.in[1] = (hr_port){.source = &a, .dtype = HR_U32, .shape = {1, {100}}};
    options.out[0].sink = &c;
    for (int s = 0; s < SPECS; s++) {
        hr_error error = HR_ERROR_INIT;
        hr_op op = pipes_mix_op;
        options.op = &op;
        op.plan = plan_as_wanted;
        wanted_plan = (hr_op_plan){.state_bytes = UINT64_MAX};
        assert_int_equal(run_on(specs[s], &options, NULL, &error), HR_E_RANGE);
        wanted_plan = (hr_op_plan){.partial_bytes = UINT64_MAX - 255};
        assert_int_equal(run_on(specs[s], &options, NULL, &error), HR_E_RANGE);
        wanted_plan = (hr_op_plan){.accumulator_bytes = UINT64_C(1) << 63};
        assert_int_equal(run_on(specs[s], &options, NULL, &error), HR_E_RANGE);
        wanted_plan = (hr_op_plan){0};
        expect_ok(run_on(specs[s], &options, NULL, &error), &error);
        op.name = NULL;
        assert_int_equal(run_on(specs[s], &options, NULL, &error), HR_E_INVALID);
        op.name = "mix";
        op.rule = (hr_chunk_rule)0;
        assert_int_equal(run_on(specs[s], &options, NULL, &error), HR_E_INVALID);
    }
}

static hr_status double_rows(const hr_launch *launch, hr_error *error)
{
    (void)error;
    uint64_t elements = launch->out[0].shape.extent[0] * launch->out[0].row_pitch_bytes / 4;
    for (uint64_t i = 0; i < elements; i++) {
        ((uint32_t *)launch->out[0].data)[i] = 2 * ((const uint32_t *)launch->in[0].data)[i];
    }
    return HR_OK;
}

/* Elements may go where they came from; whatever else lies in the memory of an input would be read as its data. */
static void results_over_data_that_is_still_read_are_refused(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    hr_op op = {
        .size = sizeof op, .name = "double", .inputs = 1, .rule = HR_CHUNK_ELEMENTS, .cpu = double_rows};
    for (int s = 0; s < SPECS; s++) {
        uint32_t *data = pipes_numbers(2 * COUNT, 5), *before = pipes_numbers(2 * COUNT, 5);
        hr_source a = hr_source_from_memory(data, 4 * COUNT);
        hr_sink c = hr_sink_to_memory(data, 8 * COUNT);
        hr_pipeline_options options;
        hr_pipeline_options_init(&options);
        options.op = &op;
        options.in[0] = (hr_port){.source = &a, .dtype = HR_U32, .shape = {2, {COUNT / 10, 10}}};
        options.out[0].sink = &c;
        options.chunk_bytes = 80;
        hr_error error = HR_ERROR_INIT;
        expect_ok(run_on(specs[s], &options, NULL, &error), &error);
        for (int i = 0; i < 2 * COUNT; i++) {
            assert_int_equal(data[i], i < COUNT ? 2 * before[i] : before[i]);
        }
        op.rule = HR_CHUNK_ROWS;
        assert_int_equal(run_on(specs[s], &options, NULL, &error), HR_E_INVALID);
        assert_non_null(strstr(error.text, "output 1: its memory overlaps that of input 1"));
        op.rule = HR_CHUNK_ELEMENTS;
        c = hr_sink_to_memory(data + COUNT - 1, 4 * COUNT);
        assert_int_equal(run_on(specs[s], &options, NULL, &error), HR_E_INVALID);
        /* Side by side is no overlap. */
        c = hr_sink_to_memory(data + COUNT, 4 * COUNT);
        expect_ok(run_on(specs[s], &options, NULL, &error), &error);
        assert_int_equal(data[COUNT], 4 * before[0]);
        free(data);
        free(before);
    }
}

static hr_status end_by_rows(const char *spec, port_kind kind, uint64_t bytes, uint64_t chunk_bytes,
                             hr_error *error)
{
    static unsigned char data[1002], result[1002];
    ports p;
    make_source(kind, &p.a_self, &p.a, data, bytes);
    make_sink(IN_MEMORY, &p.c_self, &p.c, result, bytes);
    if (kind != IN_MEMORY) {
        p.a.bytes = HR_LENGTH_UNKNOWN;
    }
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = hr_op_find("copy");
    options.in[0] = (hr_port){.source = &p.a, .dtype = HR_U8, .shape = {2, {HR_LENGTH_UNKNOWN, 3}}};
    options.out[0].sink = &p.c;
    options.chunk_bytes = chunk_bytes;
    return run_on(spec, &options, NULL, error);
}

static void data_of_unknown_length_ends_with_a_row(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        for (int kind = 0; kind < PORT_KINDS; kind++) {
            hr_error error = HR_ERROR_INIT;
            /* Also where the data ends with a chunk, and only the next one finds out. */
            assert_int_equal(end_by_rows(specs[s], (port_kind)kind, 1000, 8, &error), HR_E_FORMAT);
            assert_int_equal(error.chunk, 124);
            assert_non_null(strstr(error.text, "chunk 124: the data ends in the middle of a row: 1 of 3"));
            assert_int_equal(end_by_rows(specs[s], (port_kind)kind, 1001, 77, &error), HR_E_FORMAT);
            for (int again = 0; again < 20; again++) { /* chunks behind the end are begun or not */
                uint64_t chunk_bytes = 77 + (uint64_t)again;
                expect_ok(end_by_rows(specs[s], (port_kind)kind, 1002, chunk_bytes, &error), &error);
                expect_ok(end_by_rows(specs[s], (port_kind)kind, 0, chunk_bytes, &error), &error);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_come_out_whichever_way_they_go),
        cmocka_unit_test(chunks_of_several_pieces_are_put_together_right),
        cmocka_unit_test(rows_see_their_neighbours_across_chunks),
        cmocka_unit_test(planned_chunks_taper_and_leave_nothing_out),
        cmocka_unit_test(reductions_combine_in_order_of_chunks),
        cmocka_unit_test(data_of_unknown_length_ends_where_it_ends),
        cmocka_unit_test(memory_beside_a_stream_of_unknown_length_is_not_read_past_its_end),
        cmocka_unit_test(inputs_of_unlike_length_are_told),
        cmocka_unit_test(several_devices_share_the_chunks),
        cmocka_unit_test(what_does_not_fit_is_refused_when_opening),
        cmocka_unit_test(an_op_that_no_memory_could_hold_is_refused),
        cmocka_unit_test(results_over_data_that_is_still_read_are_refused),
        cmocka_unit_test(data_of_unknown_length_ends_with_a_row),
    };
    return cmocka_run_group_tests(tests, open_runtime, close_runtime);
}
