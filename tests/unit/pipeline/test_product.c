/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products through pipelines: in place, and in tiles through devices that are too small. */
#include "support/pipes.h"
#include "support/unit.h"

static hr_runtime *runtime;

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

/* A product on u32, which is exact whatever the order; the accumulator is u64 to see that it is used right.
 */
static hr_status multiply(const hr_launch *launch, hr_error *error)
{
    const hr_view *a = &launch->in[0], *b = &launch->in[1], *c = &launch->out[0];
    uint64_t m = c->shape.extent[0], n = c->shape.extent[1], k = a->shape.extent[1];
    if (a->shape.extent[0] != m || b->shape.extent[0] != k || b->shape.extent[1] != n) {
        return hr_fail(error, HR_E_INTERNAL, "test: tiles that do not fit together");
    }
    uint64_t *sums = launch->accumulator;
    for (uint64_t i = 0; i < m; i++) {
        for (uint64_t j = 0; j < n; j++) {
            uint32_t *out = (uint32_t *)((char *)c->data + i * c->row_pitch_bytes) + j;
            uint64_t sum = !launch->accumulate ? 0 : sums != NULL ? sums[i * n + j] : *out;
            for (uint64_t x = 0; x < k; x++) {
                sum += (uint64_t)((const uint32_t *)((char *)a->data + i * a->row_pitch_bytes))[x] *
                       ((const uint32_t *)((char *)b->data + x * b->row_pitch_bytes))[j];
            }
            if (sums != NULL) {
                sums[i * n + j] = sum;
            }
            if (sums == NULL || launch->last) {
                *out = (uint32_t)(sums != NULL ? sum >> 32 ^ sum : sum);
            }
        }
    }
    return HR_OK;
}

static hr_status plan_product(const hr_op *op, const void *params, const hr_dtype *dtypes,
                              const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    (void)op;
    (void)error;
    plan->outputs = 1;
    plan->dtype[0] = dtypes[0];
    plan->shape[0] = (hr_shape){2, {shapes[0].extent[0], shapes[1].extent[1]}};
    plan->accumulator_bytes = params != NULL ? sizeof(uint64_t) : 0;
    return HR_OK;
}

static const hr_op product_op = {.size = sizeof(hr_op),
                                 .name = "product",
                                 .inputs = 2,
                                 .rule = HR_CHUNK_TILES,
                                 .plan = plan_product,
                                 .cpu = multiply};

typedef struct shape3 {
    uint64_t m, n, k;
} shape3;

typedef struct way {
    const char *spec;
    bool in_memory, sink_in_order;
    uint64_t device_bytes;
    uint32_t devices;
} way;

static void product_once(const way *w, shape3 s, bool accumulator)
{
    uint32_t *a = pipes_numbers(s.m * s.k, 5), *b = pipes_numbers(s.k * s.n, 6);
    uint32_t *c = calloc(s.m * s.n + 1, sizeof *c);
    c[s.m * s.n] = 0xdeadbeef;
    pipes_source a_self, b_self;
    pipes_sink c_self;
    hr_source a_source = pipes_make_source(&a_self, a, 4 * s.m * s.k);
    hr_source b_source = pipes_make_source(&b_self, b, 4 * s.k * s.n);
    hr_sink c_sink = pipes_make_sink(&c_self, c, 4 * s.m * s.n);
    c_self.ordered = c_sink.sequential = w->sink_in_order;
    if (w->in_memory) {
        a_source = hr_source_from_memory(a, 4 * s.m * s.k);
        b_source = hr_source_from_memory(b, 4 * s.k * s.n);
        c_sink = hr_sink_to_memory(c, 4 * s.m * s.n);
    }
    hr_device *devices[2] = {NULL, NULL};
    hr_error error = HR_ERROR_INIT;
    for (uint32_t i = 0; i < w->devices; i++) {
        assert_int_equal(hr_device_open(runtime, w->spec, &devices[i], &error), HR_OK);
    }
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = &product_op;
    options.params = accumulator ? &options : NULL;
    options.devices = devices;
    options.device_count = w->devices;
    options.in[0] = (hr_port){.source = &a_source, .dtype = HR_U32, .shape = {2, {s.m, s.k}}};
    options.in[1] = (hr_port){.source = &b_source, .dtype = HR_U32, .shape = {2, {s.k, s.n}}};
    options.out[0].sink = &c_sink;
    options.device_bytes = w->device_bytes;
    options.cost_file = pipes_cost_file();
    hr_pipeline *pipeline = NULL;
    hr_status status = hr_pipeline_open(&options, &pipeline, &error);
    hr_report report = HR_REPORT_INIT;
    if (status == HR_OK) {
        status = hr_pipeline_run(pipeline, &report, &error);
    }
    if (status != HR_OK) {
        fail_msg("%s, %u bytes, %u × %u × %u: %s", w->spec, (unsigned)w->device_bytes, (unsigned)s.m,
                 (unsigned)s.n, (unsigned)s.k, error.text);
    }
    assert_int_equal(hr_pipeline_close(&pipeline, &error), HR_OK);
    for (uint32_t i = 0; i < w->devices; i++) {
        assert_int_equal(hr_device_close(&devices[i], &error), HR_OK);
    }
    assert_int_equal(report.done_bytes, 4 * s.k * (s.m + s.n)); /* also where nothing had to be read */
    bool tiled = report.device_bytes > 0;
    for (uint64_t i = 0; i < s.m; i++) {
        for (uint64_t j = 0; j < s.n; j++) {
            uint64_t sum = 0;
            for (uint64_t x = 0; x < s.k; x++) {
                sum += (uint64_t)a[i * s.k + x] * b[x * s.n + j];
            }
            uint32_t got = c[i * s.n + j];
            bool right = got == (uint32_t)sum || (accumulator && tiled && got == (uint32_t)(sum >> 32 ^ sum));
            if (!right) {
                fail_msg("%s: element (%u, %u) is wrong", w->spec, (unsigned)i, (unsigned)j);
            }
        }
    }
    assert_int_equal(c[s.m * s.n], 0xdeadbeef);
    if (!w->in_memory) {
        assert_int_equal(c_self.finished, 1);
        assert_int_equal(c_self.finished_bytes, 4 * s.m * s.n);
    }
    free(a);
    free(b);
    free(c);
}

static const shape3 shapes[] = {{1, 1, 1}, {37, 53, 71}, {64, 64, 64}, {5, 200, 3},   {130, 1, 90},
                                {0, 5, 5}, {5, 0, 5},    {9, 7, 0},    {100, 90, 150}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void run_ways(const way *ways, size_t count)
{
    for (size_t w = 0; w < count; w++) {
        for (int s = 0; s < SHAPES; s++) {
            product_once(&ways[w], shapes[s], false);
            product_once(&ways[w], shapes[s], true);
        }
    }
}

static void a_product_in_memory_is_computed_in_place(void **state)
{
    (void)state;
    static const way ways[] = {{"cpu", true, false, 0, 1}};
    run_ways(ways, 1);
}

static void a_product_goes_through_a_device_of_any_size(void **state)
{
    (void)state;
    static const way ways[] = {{"cpu:discrete,threads=2", true, false, 0, 1},
                               {"cpu:discrete,threads=2", false, false, 40000, 1},
                               {"cpu:discrete,threads=2", true, false, 12000, 1},
                               {"cpu", false, false, 30000, 1}};
    run_ways(ways, sizeof ways / sizeof ways[0]);
}

static void a_sink_that_must_be_written_in_order_is(void **state)
{
    (void)state;
    static const way ways[] = {{"cpu:discrete,threads=2", false, true, 30000, 1}, {"cpu", false, true, 0, 1}};
    run_ways(ways, sizeof ways / sizeof ways[0]);
}

static void two_devices_share_the_rows(void **state)
{
    (void)state;
    static const way ways[] = {{"cpu:discrete,threads=2", false, false, 30000, 2}};
    run_ways(ways, 1);
}

/* Cancelled before anything was computed, and nothing is said to be done. */
static void a_cancelled_product_is_not_done(void **state)
{
    (void)state;
    static const char *const specs[] = {"cpu", "cpu:discrete,threads=1"};
    static uint32_t a[64], b[64], c[64];
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        hr_source a_source = hr_source_from_memory(a, sizeof a),
                  b_source = hr_source_from_memory(b, sizeof b);
        hr_sink c_sink = hr_sink_to_memory(c, sizeof c);
        hr_device *device = NULL;
        hr_error error = HR_ERROR_INIT;
        assert_int_equal(hr_device_open(runtime, specs[i], &device, &error), HR_OK);
        hr_pipeline_options options;
        hr_pipeline_options_init(&options);
        options.op = &product_op;
        options.devices = &device;
        options.device_count = 1;
        options.in[0] = (hr_port){.source = &a_source, .dtype = HR_U32, .shape = {2, {8, 8}}};
        options.in[1] = (hr_port){.source = &b_source, .dtype = HR_U32, .shape = {2, {8, 8}}};
        options.out[0].sink = &c_sink;
        options.cost_file = pipes_cost_file();
        hr_pipeline *pipeline = NULL;
        hr_report report = HR_REPORT_INIT;
        assert_int_equal(hr_pipeline_open(&options, &pipeline, &error), HR_OK);
        hr_pipeline_cancel(pipeline);
        assert_int_equal(hr_pipeline_run(pipeline, &report, &error), HR_E_CANCELLED);
        assert_int_equal(report.done_bytes, 0);
        assert_int_equal(hr_pipeline_close(&pipeline, &error), HR_OK);
        assert_int_equal(hr_device_close(&device, &error), HR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_product_is_not_done),
        cmocka_unit_test(a_product_in_memory_is_computed_in_place),
        cmocka_unit_test(a_product_goes_through_a_device_of_any_size),
        cmocka_unit_test(a_sink_that_must_be_written_in_order_is),
        cmocka_unit_test(two_devices_share_the_rows),
    };
    return cmocka_run_group_tests(tests, open_runtime, close_runtime);
}
