/* SPDX-License-Identifier: Apache-2.0 */
/* What NumPy writes is read, whole and in pieces; what is written NumPy loads. NumPy itself is the oracle. */
#include "unit/io/oracle.h"

#include <inttypes.h>

static hr_input *open_entry(scratch *s, const entry *e, const unsigned char *expected, size_t bytes)
{
    hr_error error = HR_ERROR_INIT;
    hr_input *input = NULL;
    if (hr_input_open(scratch_path(s, e->npy), NULL, &input, &error) != HR_OK) {
        fail_msg("%s", error.text);
    }
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_input_info(input, &info);
    assert_int_equal(info.format, HR_FORMAT_NPY);
    assert_int_equal(info.dtype, e->dtype);
    assert_int_equal(info.shape.rank, e->shape.rank);
    assert_memory_equal(info.shape.extent, e->shape.extent, e->shape.rank * sizeof(uint64_t));
    assert_int_equal(info.bytes, bytes);
    unsigned char *all = malloc(bytes + 1);
    assert_int_equal(hr_input_read_all(input, all, &error), HR_OK);
    assert_memory_equal(all, expected, bytes);
    free(all);
    return input;
}

/* Any offset and any length, also inside an element, with guarded edges. */
static void read_pieces(hr_input *input, const unsigned char *expected, size_t bytes, unsigned *seed)
{
    hr_source *source = hr_input_source(input);
    hr_error error = HR_ERROR_INIT;
    unsigned char *buffer = malloc(bytes + 2);
    int rounds = bytes > 100000 ? 5 : 20;
    for (int round = 0; round < rounds && bytes > 0; round++) {
        uint64_t offset = (uint64_t)rand_r(seed) % bytes;
        uint64_t length = (uint64_t)rand_r(seed) % (bytes - offset + 1);
        memset(buffer, 0xa5, length + 2);
        uint64_t got = 0;
        assert_int_equal(source->read(source->self, offset, buffer + 1, length, &got, &error), HR_OK);
        assert_int_equal(got, length);
        assert_memory_equal(buffer + 1, expected + offset, length);
        assert_int_equal(buffer[0], 0xa5);
        assert_int_equal(buffer[length + 1], 0xa5);
    }
    free(buffer);
}

/* A tile of a matrix: some columns of some rows, into a wider buffer. */
static void read_tile(hr_input *input, const entry *e, const unsigned char *expected, unsigned *seed)
{
    if (e->shape.rank != 2 || e->shape.extent[0] == 0 || e->shape.extent[1] == 0) {
        return;
    }
    uint64_t width = hr_dtype_bytes(e->dtype);
    uint64_t pitch = e->shape.extent[1] * width;
    uint64_t row = (uint64_t)rand_r(seed) % e->shape.extent[0];
    uint64_t rows = 1 + (uint64_t)rand_r(seed) % (e->shape.extent[0] - row);
    uint64_t column = (uint64_t)rand_r(seed) % e->shape.extent[1];
    uint64_t row_bytes = (1 + (uint64_t)rand_r(seed) % (e->shape.extent[1] - column)) * width;
    uint64_t wide = row_bytes + 5;
    uint64_t offset = row * pitch + column * width;
    unsigned char *tile = malloc(rows * wide);
    memset(tile, 0xa5, rows * wide);
    hr_source *source = hr_input_source(input);
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(source->read_rows(source->self, offset, row_bytes, rows, pitch, tile, wide, &error),
                     HR_OK);
    for (uint64_t i = 0; i < rows; i++) {
        assert_memory_equal(tile + i * wide, expected + offset + i * pitch, row_bytes);
        assert_int_equal(tile[i * wide + row_bytes], 0xa5);
    }
    free(tile);
}

static void what_numpy_writes_is_read_whole_in_pieces_and_in_tiles(void **state)
{
    scratch *s = *state;
    int result = 1;
    if (!run_oracle("oracle.py", "make", s->folder, &result)) {
        skip();
    }
    assert_int_equal(result, 0);
    FILE *list = fopen(scratch_path(s, "list.txt"), "r");
    assert_non_null(list);
    unsigned seed = 1;
    int count = 0;
    for (entry e; next_entry(list, &e); count++) {
        size_t bytes = 0;
        unsigned char *expected = scratch_read(s, e.raw, &bytes);
        hr_input *input = open_entry(s, &e, expected, bytes);
        read_pieces(input, expected, bytes, &seed);
        read_tile(input, &e, expected, &seed);
        hr_input_close(&input);
        free(expected);
    }
    fclose(list);
    assert_true(count > 600);
}

static void write_entry(scratch *s, FILE *list, int number, hr_dtype dtype, const hr_shape *shape, bool grow)
{
    uint64_t bytes = 0;
    assert_int_equal(hr_shape_bytes(shape, dtype, &bytes), HR_OK);
    unsigned char *data = malloc(bytes + 1);
    for (uint64_t i = 0; i < bytes; i++) {
        data[i] = (unsigned char)(i * 131 + (unsigned)number);
    }
    char name[32];
    snprintf(name, sizeof name, "%d.raw", number);
    scratch_write(s, name, data, bytes);
    snprintf(name, sizeof name, "%d.npy", number);
    fprintf(list, "%d.npy %d.raw %s", number, number, hr_dtype_name(dtype));
    for (uint32_t i = 0; i < shape->rank; i++) {
        fprintf(list, " %" PRIu64, shape->extent[i]);
    }
    fprintf(list, "\n");

    hr_shape told = *shape;
    if (grow) {
        told.extent[0] = HR_LENGTH_UNKNOWN;
    }
    hr_error error = HR_ERROR_INIT;
    hr_output *output = NULL;
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    options.no_sync = true; /* two hundred files */
    assert_int_equal(hr_output_create(scratch_path(s, name), dtype, &told, &options, &output, &error), HR_OK);
    hr_sink *sink = hr_output_sink(output);
    /* The second half first: any order is fine. */
    uint64_t half = bytes / 2;
    assert_int_equal(sink->write(sink->self, half, data + half, bytes - half, &error), HR_OK);
    assert_int_equal(sink->write(sink->self, 0, data, half, &error), HR_OK);
    assert_int_equal(sink->finish(sink->self, bytes, &error), HR_OK);
    assert_int_equal(hr_output_commit(output, &error), HR_OK);
    hr_output_close(&output);
    free(data);
}

static void what_is_written_numpy_loads(void **state)
{
    scratch *s = *state;
    static const hr_shape shapes[] = {
        {0, {0}},       {1, {1}},       {1, {0}},         {1, {12345}},
        {2, {3, 4}},    {3, {2, 0, 5}}, {3, {20, 30, 3}}, {8, {1, 2, 1, 2, 1, 2, 1, 2}},
        {2, {1000, 1}},
    };
    FILE *list = fopen(scratch_path(s, "list.txt"), "w");
    assert_non_null(list);
    int number = 0;
    for (int dtype = HR_DTYPE_NONE + 1; dtype < HR_DTYPE_COUNT; dtype++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            write_entry(s, list, number++, (hr_dtype)dtype, &shapes[i], false);
            bool rows = shapes[i].rank > 0 && shapes[i].extent[shapes[i].rank - 1] != 0;
            if (rows && shapes[i].extent[1] != 0) {
                write_entry(s, list, number++, (hr_dtype)dtype, &shapes[i], true);
            }
        }
    }
    assert_int_equal(fclose(list), 0);
    int result = 1;
    if (!run_oracle("oracle.py", "check", s->folder, &result)) {
        skip();
    }
    assert_int_equal(result, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_numpy_writes_is_read_whole_in_pieces_and_in_tiles, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(what_is_written_numpy_loads, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
