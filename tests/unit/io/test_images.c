/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures in and out: every kind of PNG against files made from zlib alone, PNM against bytes, JPEG within
 * its loss. */
#include "unit/io/oracle.h"

#include <math.h>

static hr_status open_named(scratch *s, const char *name, hr_input **input, hr_array_info *info,
                            hr_error *error)
{
    *error = HR_ERROR_INIT;
    hr_status status = hr_input_open(scratch_path(s, name), NULL, input, error);
    if (status == HR_OK) {
        hr_input_info(*input, info);
    }
    return status;
}

static void expect_pixels(scratch *s, const char *name, hr_dtype dtype, const hr_shape *shape,
                          const void *expected, uint64_t bytes)
{
    hr_error error;
    hr_input *input = NULL;
    hr_array_info info = HR_ARRAY_INFO_INIT;
    if (open_named(s, name, &input, &info, &error) != HR_OK) {
        fail_msg("%s", error.text);
    }
    assert_string_equal(info.method, "image");
    assert_int_equal(info.dtype, dtype);
    assert_int_equal(info.shape.rank, shape->rank);
    assert_memory_equal(info.shape.extent, shape->extent, shape->rank * sizeof(uint64_t));
    assert_int_equal(info.bytes, bytes);
    assert_memory_equal(hr_input_source(input)->data, expected, bytes);
    hr_input_close(&input);
}

static void expect_refused(scratch *s, const char *name, hr_status status, const char *word)
{
    hr_error error;
    hr_input *input = NULL;
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_status found = open_named(s, name, &input, &info, &error);
    if (found != status || strstr(error.text, word) == NULL || strstr(error.text, name) == NULL) {
        print_error("%s: status %d, text: %s\n", name, found, error.text);
    }
    assert_int_equal(found, status);
    assert_null(input);
    assert_non_null(strstr(error.text, word));
    assert_non_null(strstr(error.text, name));
}

/* Was the library for this ending built in? */
static bool built_with(scratch *s, const char *name)
{
    hr_error error = HR_ERROR_INIT;
    hr_input *input = NULL;
    scratch_write(s, name, "x", 1);
    hr_status status = hr_input_open(scratch_path(s, name), NULL, &input, &error);
    assert_null(input);
    assert_int_equal(unlink(scratch_path(s, name)), 0);
    return status != HR_E_UNSUPPORTED || strstr(error.text, "built without") == NULL;
}

static void write_picture(scratch *s, const char *name, hr_dtype dtype, const hr_shape *shape,
                          const void *pixels, uint64_t bytes, uint32_t quality)
{
    hr_error error = HR_ERROR_INIT;
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    options.quality = quality;
    hr_output *output = NULL;
    assert_int_equal(hr_output_create(scratch_path(s, name), dtype, shape, &options, &output, &error), HR_OK);
    hr_sink *sink = hr_output_sink(output);
    assert_int_equal(sink->write(sink->self, 0, pixels, bytes, &error), HR_OK);
    assert_int_equal(hr_output_commit(output, &error), HR_OK);
    hr_output_close(&output);
}

static void every_kind_of_png_is_read_as_its_pixels(void **state)
{
    scratch *s = *state;
    int result = 1;
    if (!built_with(s, "a.png") || !run_oracle("images.py", "make", s->folder, &result)) {
        skip();
    }
    assert_int_equal(result, 0);
    FILE *list = fopen(scratch_path(s, "list.txt"), "r");
    assert_non_null(list);
    int count = 0;
    for (entry e; next_entry(list, &e); count++) {
        size_t bytes = 0;
        unsigned char *expected = scratch_read(s, e.raw, &bytes);
        expect_pixels(s, e.npy, e.dtype, &e.shape, expected, bytes);
        free(expected);
    }
    fclose(list);
    assert_true(count > 100);
    expect_refused(s, "bad_cut.png", HR_E_FORMAT, "PNG");
    expect_refused(s, "bad_bomb.png", HR_E_RANGE, "too few");
    expect_refused(s, "bad_edge.png", HR_E_FORMAT, "PNG");
    expect_refused(s, "bad_zero.png", HR_E_FORMAT, "PNG");
    expect_refused(s, "bad_few.png", HR_E_FORMAT, "PNG");
    expect_refused(s, "bad_crc.png", HR_E_FORMAT, "PNG");
}

static void pngs_that_are_written_hold_the_pixels(void **state)
{
    scratch *s = *state;
    if (!built_with(s, "a.png")) {
        skip();
    }
    FILE *list = fopen(scratch_path(s, "list.txt"), "w");
    assert_non_null(list);
    unsigned seed = 3;
    for (unsigned channels = 0; channels <= 4; channels++) {
        for (unsigned width = 1; width <= 2; width++) {
            hr_shape shape = {channels == 0 ? 2 : 3, {11, 17, channels}};
            unsigned char pixels[11 * 17 * 4 * 2];
            for (size_t i = 0; i < sizeof pixels; i++) {
                pixels[i] = (unsigned char)(rand_r(&seed) >> 8);
            }
            uint64_t bytes = UINT64_C(11) * 17 * (channels == 0 ? 1 : channels) * width;
            char name[32];
            snprintf(name, sizeof name, "c%u_%u.raw", channels, width);
            scratch_write(s, name, pixels, bytes);
            fprintf(list, "c%u_%u.png %s %s 11 17", channels, width, name, width == 1 ? "u8" : "u16");
            fprintf(list, channels == 0 ? "\n" : " %u\n", channels);
            snprintf(name, sizeof name, "c%u_%u.png", channels, width);
            write_picture(s, name, width == 1 ? HR_U8 : HR_U16, &shape, pixels, bytes, 0);
        }
    }
    /* Large enough to be compressed in several strips. */
    hr_shape large = {3, {600, 500, 3}};
    enum { LARGE = 600 * 500 * 3 };
    unsigned char *many = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++) {
        many[i] = (unsigned char)(i / 7 + (size_t)(rand_r(&seed) >> 14));
    }
    scratch_write(s, "large.raw", many, LARGE);
    fprintf(list, "large.png large.raw u8 600 500 3\n");
    write_picture(s, "large.png", HR_U8, &large, many, LARGE, 0);
    expect_pixels(s, "large.png", HR_U8, &large, many, LARGE);
    free(many);
    assert_int_equal(fclose(list), 0);
    int result = 1;
    if (!run_oracle("images.py", "check", s->folder, &result)) {
        skip();
    }
    assert_int_equal(result, 0);
}

static void pgm_and_ppm_binary_and_plain(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *file;
        size_t bytes;
        hr_dtype dtype;
        hr_shape shape;
        uint16_t values[8];
    } cases[] = {
        {"P5\n3 2\n255\n\x00\x01\x02\xff\xfe\xfd", 17, HR_U8, {2, {2, 3}}, {0, 1, 2, 255, 254, 253}},
        {"P6 1 2 255 abcdef", 17, HR_U8, {3, {2, 1, 3}}, {'a', 'b', 'c', 'd', 'e', 'f'}},
        {"P5 # two\n2 1 # wide\n65535\n\x01\x02\xff\xfe", 30, HR_U16, {2, {1, 2}}, {0x102, 0xfffe}},
        {"P2 3 1 15 0 1\n# and\n15", 22, HR_U8, {2, {1, 3}}, {0, 17, 255}},
        {"P3\n1 1\n1000\n1000 500 0\n", 23, HR_U16, {3, {1, 1, 3}}, {65535, 32768, 0}},
        {"P5 2 1 1\n\x00\x01", 11, HR_U8, {2, {1, 2}}, {0, 255}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scratch_write(s, "a.pnm", cases[i].file, cases[i].bytes);
        uint64_t count = 0;
        assert_int_equal(hr_shape_elements(&cases[i].shape, &count), HR_OK);
        uint8_t narrow[8];
        for (int k = 0; k < 8; k++) {
            narrow[k] = (uint8_t)cases[i].values[k];
        }
        const void *expected = cases[i].dtype == HR_U8 ? (const void *)narrow : (const void *)cases[i].values;
        expect_pixels(s, "a.pnm", cases[i].dtype, &cases[i].shape, expected,
                      count * hr_dtype_bytes(cases[i].dtype));
    }
}

static void pnms_that_are_not_right(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *file;
        hr_status status;
        const char *word;
    } cases[] = {
        {"P5 3 2 255 12345", HR_E_FORMAT, "6 bytes, the file has 5"},
        {"P5 3 2 255 1234567", HR_E_FORMAT, "1 more bytes"},
        {"P5 3 2", HR_E_FORMAT, "ends where the largest value"},
        {"P5 3 -2 255 123456", HR_E_FORMAT, "the height"},
        {"P5 0 2 255 ", HR_E_FORMAT, "pixels"},
        {"P5 3 2 0 123456", HR_E_FORMAT, "must be 1 to 65535"},
        {"P5 3 2 65536 123456", HR_E_FORMAT, "must be 1 to 65535"},
        {"P5 99999999999 2 255 123456", HR_E_FORMAT, "the width"},
        {"P5 999999 999999 255 123456", HR_E_FORMAT, "the file has 6"},
        {"P5 9999999 1 255 123456", HR_E_RANGE, "at most"},
        {"P2 3 1 15 0 1 16", HR_E_FORMAT, "a value of 16"},
        {"P2 3 1 15 0 1", HR_E_FORMAT, "at least 5 bytes"},
        {"P2 3 1 15 0 1 x", HR_E_FORMAT, "a value"},
        {"P4 8 1 x", HR_E_UNSUPPORTED, "bitmap"},
        {"P7\nWIDTH 1", HR_E_UNSUPPORTED, "PAM"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scratch_write(s, "bad.pnm", cases[i].file, strlen(cases[i].file));
        expect_refused(s, "bad.pnm", cases[i].status, cases[i].word);
    }
}

static void pnms_that_are_written_are_these_bytes(void **state)
{
    scratch *s = *state;
    const uint8_t gray[6] = {1, 2, 3, 4, 5, 6};
    const uint16_t deep[3] = {0x102, 0xfffe, 7};
    hr_shape plane = {2, {2, 3}};
    hr_shape color = {3, {1, 1, 3}};
    size_t bytes = 0;
    write_picture(s, "a.pgm", HR_U8, &plane, gray, 6, 0);
    unsigned char *file = scratch_read(s, "a.pgm", &bytes);
    assert_int_equal(bytes, 17);
    assert_memory_equal(file, "P5\n3 2\n255\n\1\2\3\4\5\6", 17);
    free(file);
    write_picture(s, "a.ppm", HR_U16, &color, deep, 6, 0);
    file = scratch_read(s, "a.ppm", &bytes);
    assert_int_equal(bytes, 19);
    assert_memory_equal(file, "P6\n1 1\n65535\n\1\2\xff\xfe\0\7", 19);
    free(file);
}

static double largest_difference(scratch *s, const char *name, const uint8_t *pixels, uint64_t bytes,
                                 uint64_t rank)
{
    hr_error error;
    hr_input *input = NULL;
    hr_array_info info = HR_ARRAY_INFO_INIT;
    assert_int_equal(open_named(s, name, &input, &info, &error), HR_OK);
    assert_int_equal(info.shape.rank, rank);
    assert_int_equal(info.bytes, bytes);
    const uint8_t *back = hr_input_source(input)->data;
    double largest = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        largest = fmax(largest, fabs((double)back[i] - (double)pixels[i]));
    }
    hr_input_close(&input);
    return largest;
}

static void jpegs_keep_a_smooth_picture_and_quality_decides_how_well(void **state)
{
    scratch *s = *state;
    if (!built_with(s, "a.jpg")) {
        skip();
    }
    enum { ROWS = 40, COLUMNS = 64 };
    static uint8_t gray[ROWS * COLUMNS];
    static uint8_t color[ROWS * COLUMNS * 3];
    for (int y = 0; y < ROWS; y++) {
        for (int x = 0; x < COLUMNS; x++) {
            gray[y * COLUMNS + x] = (uint8_t)(2 * x + 3 * y);
            uint8_t *pixel = color + 3 * (y * COLUMNS + x);
            pixel[0] = (uint8_t)(3 * x);
            pixel[1] = (uint8_t)(5 * y);
            pixel[2] = (uint8_t)(x + y);
        }
    }
    hr_shape plane = {2, {ROWS, COLUMNS}};
    hr_shape solid = {3, {ROWS, COLUMNS, 3}};
    write_picture(s, "g.jpg", HR_U8, &plane, gray, sizeof gray, 100);
    assert_true(largest_difference(s, "g.jpg", gray, sizeof gray, 2) <= 2);
    write_picture(s, "c.jpeg", HR_U8, &solid, color, sizeof color, 100);
    assert_true(largest_difference(s, "c.jpeg", color, sizeof color, 3) <= 8);
    write_picture(s, "low.jpg", HR_U8, &plane, gray, sizeof gray, 5);
    assert_true(largest_difference(s, "low.jpg", gray, sizeof gray, 2) > 2);
}

static void jpegs_that_are_not_right(void **state)
{
    scratch *s = *state;
    if (!built_with(s, "a.jpg")) {
        skip();
    }
    enum { EDGE = 64 };
    static uint8_t gray[EDGE * EDGE];
    unsigned seed = 5;
    for (size_t i = 0; i < sizeof gray; i++) {
        gray[i] = (uint8_t)(rand_r(&seed) >> 8);
    }
    hr_shape plane = {2, {EDGE, EDGE}};
    write_picture(s, "g.jpg", HR_U8, &plane, gray, sizeof gray, 90);
    size_t bytes = 0;
    unsigned char *file = scratch_read(s, "g.jpg", &bytes);
    scratch_write(s, "cut.jpg", file, bytes / 2);
    expect_refused(s, "cut.jpg", HR_E_FORMAT, "JPEG");
    /* The frame header holds the size: marker C0, length, precision, rows, columns. */
    unsigned char *frame = memmem(file, bytes, "\xff\xc0", 2);
    assert_non_null(frame);
    memcpy(frame + 5, "\xff\xdc\xff\xdc", 4);
    scratch_write(s, "bomb.jpg", file, bytes);
    expect_refused(s, "bomb.jpg", HR_E_RANGE, "too few");
    scratch_write(s, "text.jpg", "no picture", 10);
    expect_refused(s, "text.jpg", HR_E_FORMAT, "JPEG");
    free(file);
}

static void arrays_that_a_format_cannot_hold_are_refused_at_once(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *name;
        hr_dtype dtype;
        hr_shape shape;
        const char *word;
    } cases[] = {
        {"a.png", HR_F32, {2, {3, 4}}, "u8 or u16"},
        {"a.png", HR_U8, {1, {3}}, "(3,)"},
        {"a.png", HR_U8, {3, {3, 4, 5}}, "(3, 4, 5)"},
        {"a.png", HR_U8, {2, {0, 4}}, "(0, 4)"},
        {"a.jpg", HR_U16, {2, {3, 4}}, "not u16"},
        {"a.jpg", HR_U8, {3, {3, 4, 4}}, "1 or 3"},
        {"a.jpg", HR_U8, {2, {70000, 4}}, "65500"},
        {"a.pgm", HR_U8, {3, {3, 4, 3}}, "(rows, columns)"},
        {"a.ppm", HR_U8, {2, {3, 4}}, "(rows, columns, 3)"},
        {"a.png", HR_U8, {2, {HR_LENGTH_UNKNOWN, 4}}, "(?, 4)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hr_error error = HR_ERROR_INIT;
        hr_output *output = NULL;
        hr_status status = hr_output_create(scratch_path(s, cases[i].name), cases[i].dtype, &cases[i].shape,
                                            NULL, &output, &error);
        /* A format that is not built in is refused as early. */
        const char *word = strstr(error.text, "built without") != NULL ? "built without" : cases[i].word;
        if (status != HR_E_UNSUPPORTED || strstr(error.text, word) == NULL) {
            print_error("case %zu: %s\n", i, error.text);
        }
        assert_int_equal(status, HR_E_UNSUPPORTED);
        assert_non_null(strstr(error.text, word));
        assert_null(output);
    }
    assert_int_equal(scratch_count(s), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_of_png_is_read_as_its_pixels),
        TEST(pngs_that_are_written_hold_the_pixels),
        TEST(pgm_and_ppm_binary_and_plain),
        TEST(pnms_that_are_not_right),
        TEST(pnms_that_are_written_are_these_bytes),
        TEST(jpegs_keep_a_smooth_picture_and_quality_decides_how_well),
        TEST(jpegs_that_are_not_right),
        TEST(arrays_that_a_format_cannot_hold_are_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
