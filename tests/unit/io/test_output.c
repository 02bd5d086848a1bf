/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs are whole or absent, under every ending. */
#include "unit/io/scratch.h"

static hr_output *create(const char *path, const hr_shape *shape, hr_error *error)
{
    hr_output *output = NULL;
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    hr_status status = hr_output_create(path, HR_F32, shape, &options, &output, error);
    if (status != HR_OK) {
        print_error("%s\n", error->text);
    }
    assert_int_equal(status, HR_OK);
    return output;
}

static void write_whole(hr_output *output, const void *data, uint64_t bytes)
{
    hr_error error = HR_ERROR_INIT;
    hr_sink *sink = hr_output_sink(output);
    assert_int_equal(sink->write(sink->self, 0, data, bytes, &error), HR_OK);
}

static void what_is_written_reads_back(void **state)
{
    scratch *s = *state;
    const float values[6] = {1, -2, 3.5f, 0, 1e30f, -0.0f};
    hr_shape shape = {2, {2, 3}};
    hr_error error = HR_ERROR_INIT;
    hr_output *output = create(scratch_path(s, "a.npy"), &shape, &error);
    write_whole(output, values, sizeof values);
    assert_int_equal(hr_output_commit(output, &error), HR_OK);
    hr_output_close(&output);
    assert_null(output);

    hr_input *input = NULL;
    assert_int_equal(hr_input_open(scratch_path(s, "a.npy"), NULL, &input, &error), HR_OK);
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_input_info(input, &info);
    assert_int_equal(info.dtype, HR_F32);
    assert_int_equal(info.shape.rank, 2);
    assert_int_equal(info.shape.extent[0], 2);
    assert_int_equal(info.shape.extent[1], 3);
    float back[6] = {0};
    assert_int_equal(hr_input_read_all(input, back, &error), HR_OK);
    assert_memory_equal(back, values, sizeof values);
    hr_input_close(&input);
    assert_null(input);
}

static void nothing_is_seen_before_the_commit_and_nothing_left_without_one(void **state)
{
    scratch *s = *state;
    hr_shape shape = {1, {4}};
    const float values[4] = {1, 2, 3, 4};
    hr_error error = HR_ERROR_INIT;
    scratch_write(s, "old.npy", "old", 3);
    hr_output *output = create(scratch_path(s, "old.npy"), &shape, &error);
    write_whole(output, values, sizeof values);
    size_t bytes = 0;
    unsigned char *old = scratch_read(s, "old.npy", &bytes);
    assert_int_equal(bytes, 3);
    assert_memory_equal(old, "old", 3);
    free(old);
    hr_output_close(&output);
    assert_int_equal(scratch_count(s), 1);
    old = scratch_read(s, "old.npy", &bytes);
    assert_int_equal(bytes, 3);
    free(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_reads_back, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(nothing_is_seen_before_the_commit_and_nothing_left_without_one,
                                        scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
