/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <headrace/headrace.h>
#include <headrace/span_log.h>

#include <stdlib.h>
#include <string.h>

typedef struct place {
    hr_runtime *runtime;
    hr_device *device;
} place;

static int open_place(void **state)
{
    static place opened;
    assert_int_equal(hr_runtime_open(NULL, &opened.runtime, NULL), HR_OK);
    assert_int_equal(hr_device_open(opened.runtime, "cpu:discrete", &opened.device, NULL), HR_OK);
    *state = &opened;
    return 0;
}

static int close_place(void **state)
{
    place *opened = *state;
    assert_int_equal(hr_device_close(&opened->device, NULL), HR_OK);
    assert_null(opened->device);
    assert_int_equal(hr_runtime_close(&opened->runtime, NULL), HR_OK);
    assert_null(opened->runtime);
    return 0;
}

/* The answer is this failure, and its text speaks of `word`. */
static void refused(hr_status status, hr_status expected, const hr_error *error, const char *word)
{
    if (status != expected || error->status != expected || !strstr(error->text, word))
        fail_msg("answered %d (%s), expected %d with a word about \"%s\"", status, error->text, expected,
                 word);
}

static void a_runtime_does_not_close_under_its_devices(void **state)
{
    place *here = *state;
    hr_error error = HR_ERROR_INIT;
    hr_runtime *runtime = here->runtime;
    refused(hr_runtime_close(&runtime, &error), HR_E_BUSY, &error, "1 device is still open");
    assert_ptr_equal(runtime, here->runtime);
}

static void a_device_does_not_close_under_its_streams(void **state)
{
    place *here = *state;
    hr_error error = HR_ERROR_INIT;
    hr_stream *stream = NULL;
    hr_device *device = here->device;
    assert_int_equal(hr_stream_open(here->device, HR_STREAM_ANY, &stream, NULL), HR_OK);
    refused(hr_device_close(&device, &error), HR_E_BUSY, &error, "stream");
    assert_ptr_equal(device, here->device);
    assert_int_equal(hr_stream_close(&stream, NULL), HR_OK);
}

static hr_pool *open_pool(place *here, hr_memory_kind kind)
{
    hr_pool *pool = NULL;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "trough";
    options.kind = kind;
    options.bytes = 1 << 20;
    assert_int_equal(hr_pool_open(here->device, &options, &pool, NULL), HR_OK);
    return pool;
}

static void a_pool_names_the_blocks_that_are_out(void **state)
{
    hr_error error = HR_ERROR_INIT;
    hr_pool *pool = open_pool(*state, HR_MEMORY_PINNED);
    void *block = NULL;
    assert_int_equal(hr_pool_take(pool, 1000, 0, "bucket", &block), HR_OK);
    hr_pool *same = pool;
    refused(hr_pool_close(&same, &error), HR_E_BUSY, &error, "bucket");
    assert_non_null(strstr(error.text, "1000"));
    assert_ptr_equal(same, pool);
    assert_int_equal(hr_pool_give(pool, block), HR_OK);
    assert_int_equal(hr_pool_close(&pool, NULL), HR_OK);
}

static void a_block_is_given_back_once_and_where_it_came_from(void **state)
{
    hr_pool *pool = open_pool(*state, HR_MEMORY_PINNED);
    void *block = NULL;
    int mine;
    assert_int_equal(hr_pool_take(pool, 64, 0, "bucket", &block), HR_OK);
    assert_int_equal(hr_pool_give(pool, &mine), HR_E_INVALID);
    assert_int_equal(hr_pool_give(pool, (char *)block + 1), HR_E_INVALID);
    assert_int_equal(hr_pool_give(pool, block), HR_OK);
    assert_int_equal(hr_pool_give(pool, block), HR_E_INVALID);
    assert_int_equal(hr_pool_close(&pool, NULL), HR_OK);
}

static void a_pool_of_nothing_or_of_the_impossible_is_refused(void **state)
{
    place *here = *state;
    hr_error error = HR_ERROR_INIT;
    hr_pool *pool = (hr_pool *)&error;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "trough";
    assert_int_equal(hr_pool_open(here->device, &options, &pool, &error), HR_E_INVALID);
    options.bytes = 1 << 20;
    options.kind = HR_MEMORY_MANAGED;
    assert_int_equal(hr_pool_open(here->device, &options, &pool, &error), HR_E_INVALID);
    options.kind = HR_MEMORY_PINNED;
    options.bytes = UINT64_MAX - 5;
    assert_true(hr_pool_open(here->device, &options, &pool, &error) < HR_OK);
    assert_ptr_equal(pool, &error); /* outputs are set on success only */
}

static void a_copy_says_what_is_wrong_with_it(void **state)
{
    place *here = *state;
    hr_error error = HR_ERROR_INIT;
    hr_stream *stream = NULL;
    hr_pool *host = open_pool(here, HR_MEMORY_PINNED), *device = open_pool(here, HR_MEMORY_DEVICE);
    void *from = NULL, *to = NULL;
    assert_int_equal(hr_stream_open(here->device, HR_STREAM_ANY, &stream, NULL), HR_OK);
    assert_int_equal(hr_pool_take(host, 4096, 0, "from", &from), HR_OK);
    assert_int_equal(hr_pool_take(device, 4096, 0, "to", &to), HR_OK);
    memset(from, 7, 4096);

    hr_copy copy = HR_COPY_INIT;
    copy.src.base = from;
    copy.dst.place = HR_PLACE_DEVICE;
    copy.dst.base = to;
    copy.width_bytes = 64;
    copy.height = 2;
    copy.src.row_pitch_bytes = 32;
    refused(hr_copy_async(stream, &copy, &error), HR_E_INVALID, &error, "pitch");
    copy.src.row_pitch_bytes = 64;
    copy.height = UINT64_MAX / 2;
    assert_int_equal(hr_copy_async(stream, &copy, &error), HR_E_RANGE);
    copy.height = 1;
    copy.src.base = NULL;
    assert_int_equal(hr_copy_async(stream, &copy, &error), HR_E_INVALID);
    copy.src.base = from;
    copy.size = 1;
    assert_int_equal(hr_copy_async(stream, &copy, &error), HR_E_INVALID);
    copy.size = sizeof copy;
    copy.dst.place = (hr_place)99;
    assert_int_equal(hr_copy_async(stream, &copy, &error), HR_E_INVALID);
    copy.dst.place = HR_PLACE_DEVICE;

    /* Nothing of that was queued, and the stream is as good as new. */
    assert_int_equal(hr_copy_async(stream, &copy, &error), HR_OK);
    assert_int_equal(hr_stream_close(&stream, NULL), HR_OK);
    assert_int_equal(hr_pool_give(host, from), HR_OK);
    assert_int_equal(hr_pool_give(device, to), HR_OK);
    assert_int_equal(hr_pool_close(&host, NULL), HR_OK);
    assert_int_equal(hr_pool_close(&device, NULL), HR_OK);
}

static void a_null_handle_is_refused_and_a_null_error_is_fine(void **state)
{
    place *here = *state;
    hr_device *device = NULL;
    hr_stream *stream = NULL;
    assert_int_equal(hr_device_open(NULL, "cpu", &device, NULL), HR_E_INVALID);
    assert_int_equal(hr_device_open(here->runtime, NULL, &device, NULL), HR_E_INVALID);
    assert_int_equal(hr_stream_open(NULL, HR_STREAM_ANY, &stream, NULL), HR_E_INVALID);
    assert_int_equal(hr_device_open(here->runtime, "tpu", &device, NULL), HR_E_NOT_FOUND);
    assert_null(device);
    /* Closing nothing is fine. */
    assert_int_equal(hr_device_close(&device, NULL), HR_OK);
    assert_int_equal(hr_stream_close(&stream, NULL), HR_OK);
    hr_pipeline *pipeline = NULL;
    assert_int_equal(hr_pipeline_close(&pipeline, NULL), HR_OK);
}

static void fill_pipeline(place *here, hr_pipeline_options *options, hr_source *source, hr_sink *sink)
{
    hr_pipeline_options_init(options);
    options->op = hr_op_find("copy");
    options->devices = &here->device;
    options->device_count = 1;
    options->in[0].source = source;
    options->in[0].dtype = HR_U8;
    options->in[0].shape.rank = 1;
    options->in[0].shape.extent[0] = source->bytes;
    options->out[0].sink = sink;
    options->cost_file = "";
}

static void a_pipeline_without_its_parts_is_refused(void **state)
{
    place *here = *state;
    static char from[4096], to[4096];
    hr_error error = HR_ERROR_INIT;
    hr_source source = hr_source_from_memory(from, sizeof from);
    hr_sink sink = hr_sink_to_memory(to, sizeof to);
    hr_pipeline_options options;
    hr_pipeline *pipeline = NULL;

    fill_pipeline(here, &options, &source, &sink);
    options.op = NULL;
    assert_int_equal(hr_pipeline_open(&options, &pipeline, &error), HR_E_INVALID);
    fill_pipeline(here, &options, &source, &sink);
    options.device_count = 0;
    assert_int_equal(hr_pipeline_open(&options, &pipeline, &error), HR_E_INVALID);
    fill_pipeline(here, &options, &source, &sink);
    options.in[0].source = NULL;
    assert_int_equal(hr_pipeline_open(&options, &pipeline, &error), HR_E_INVALID);
    fill_pipeline(here, &options, &source, &sink);
    options.out[0].sink = NULL;
    assert_int_equal(hr_pipeline_open(&options, &pipeline, &error), HR_E_INVALID);
    fill_pipeline(here, &options, &source, &sink);
    options.size = 0;
    assert_int_equal(hr_pipeline_open(&options, &pipeline, &error), HR_E_INVALID);
    assert_null(pipeline);
}

static void a_pipeline_runs_once(void **state)
{
    place *here = *state;
    static char from[4096], to[4096];
    hr_error error = HR_ERROR_INIT;
    hr_source source = hr_source_from_memory(from, sizeof from);
    hr_sink sink = hr_sink_to_memory(to, sizeof to);
    hr_pipeline_options options;
    hr_pipeline *pipeline = NULL;
    hr_report report = HR_REPORT_INIT;
    memset(from, 5, sizeof from);
    fill_pipeline(here, &options, &source, &sink);
    assert_int_equal(hr_pipeline_open(&options, &pipeline, &error), HR_OK);
    assert_int_equal(hr_pipeline_run(pipeline, &report, &error), HR_OK);
    assert_memory_equal(from, to, sizeof to);
    assert_int_equal(hr_pipeline_run(pipeline, &report, &error), HR_E_INVALID);
    assert_int_equal(hr_pipeline_close(&pipeline, &error), HR_OK);
    assert_null(pipeline);
}

static void a_log_that_cannot_be_written_says_where(void **state)
{
    (void)state;
    hr_error error = HR_ERROR_INIT;
    hr_span_log *log = NULL;
    assert_int_equal(hr_span_log_open(&log, &error), HR_OK);
    refused(hr_span_log_write(log, "/nowhere/at/all.json", NULL, &error), HR_E_IO, &error,
            "/nowhere/at/all.json");
    hr_span_log_close(&log);
    assert_null(log);
    hr_span_log_close(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_runtime_does_not_close_under_its_devices),
        cmocka_unit_test(a_device_does_not_close_under_its_streams),
        cmocka_unit_test(a_pool_names_the_blocks_that_are_out),
        cmocka_unit_test(a_block_is_given_back_once_and_where_it_came_from),
        cmocka_unit_test(a_pool_of_nothing_or_of_the_impossible_is_refused),
        cmocka_unit_test(a_copy_says_what_is_wrong_with_it),
        cmocka_unit_test(a_null_handle_is_refused_and_a_null_error_is_fine),
        cmocka_unit_test(a_pipeline_without_its_parts_is_refused),
        cmocka_unit_test(a_pipeline_runs_once),
        cmocka_unit_test(a_log_that_cannot_be_written_says_where),
    };
    return cmocka_run_group_tests(tests, open_place, close_place);
}
