/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of bad input is refused with its status, in one line that names the file, what was found and what
 * is needed. */
#include "unit/io/scratch.h"

#include <sys/resource.h>

#define HEADER(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

/* Opens and expects a failure whose text holds all that `words` has, separated by '|'. */
static void expect_refused_with(scratch *s, const char *name, const hr_open_options *options,
                                hr_status status, const char *words)
{
    hr_error error = HR_ERROR_INIT;
    hr_input *input = (hr_input *)s;
    hr_status found = hr_input_open(scratch_path(s, name), options, &input, &error);
    if (found != status) {
        print_error("%s: status %d, not %d: %s\n", words, found, status, error.text);
    }
    assert_int_equal(found, status);
    assert_int_equal(error.status, status);
    assert_ptr_equal(input, s); /* outputs are set only on success */
    assert_null(strchr(error.text, '\n'));
    assert_non_null(strstr(error.text, name));
    char copy[512];
    snprintf(copy, sizeof copy, "%s", words);
    char *rest = NULL;
    for (char *word = strtok_r(copy, "|", &rest); word != NULL; word = strtok_r(NULL, "|", &rest)) {
        if (strstr(error.text, word) == NULL) {
            print_error("'%s' is not in: %s\n", word, error.text);
        }
        assert_non_null(strstr(error.text, word));
    }
}

static void expect_refused(scratch *s, const char *header, size_t data_bytes, hr_status status,
                           const char *words)
{
    unsigned char data[256] = {0};
    unsigned char file[2048];
    size_t bytes = npy_around(header, data, data_bytes, file);
    scratch_write(s, "bad.npy", file, bytes);
    expect_refused_with(s, "bad.npy", NULL, status, words);
}

static void a_missing_an_unreadable_and_an_empty_file(void **state)
{
    scratch *s = *state;
    expect_refused_with(s, "none.npy", NULL, HR_E_NOT_FOUND, "No such file");
    scratch_write(s, "empty.npy", "", 0);
    expect_refused_with(s, "empty.npy", NULL, HR_E_FORMAT, "empty");
    scratch_write(s, "empty.dat", "", 0);
    expect_refused_with(s, "empty.dat", NULL, HR_E_FORMAT, "empty");
    assert_int_equal(mkdir(scratch_path(s, "folder.npy"), 0700), 0);
    expect_refused_with(s, "folder.npy", NULL, HR_E_INVALID, "folder");
    if (geteuid() != 0) {
        scratch_write(s, "locked.npy", "x", 1);
        assert_int_equal(chmod(scratch_path(s, "locked.npy"), 0), 0);
        expect_refused_with(s, "locked.npy", NULL, HR_E_IO, "Permission denied");
    }
}

static void truncated_files_at_every_length(void **state)
{
    scratch *s = *state;
    unsigned char data[112] = {0};
    unsigned char file[512];
    size_t bytes = npy_around(HEADER("'<f4'", "False", "(4, 7)"), data, sizeof data, file);
    for (size_t length = 1; length < bytes; length++) {
        scratch_write(s, "cut.npy", file, length);
        hr_error error = HR_ERROR_INIT;
        hr_input *input = NULL;
        assert_int_equal(hr_input_open(scratch_path(s, "cut.npy"), NULL, &input, &error), HR_E_FORMAT);
        assert_null(input);
        assert_non_null(strstr(error.text, "cut.npy"));
    }
    scratch_write(s, "cut.npy", file, bytes - 16);
    expect_refused_with(s, "cut.npy", NULL, HR_E_FORMAT, "(4, 7)|f32|needs 112 bytes|has 96");
}

static void more_data_than_promised(void **state)
{
    scratch *s = *state;
    expect_refused(s, HEADER("'<f4'", "False", "(4, 7)"), 113, HR_E_FORMAT, "needs 112|has 113|more");
    expect_refused(s, HEADER("'<f4'", "False", "(0, 7)"), 4, HR_E_FORMAT, "needs 0|has 4");
}

static void headers_that_are_too_long_are_not_read(void **state)
{
    scratch *s = *state;
    /* Promises 4 GiB less one of header; the file is sparse and really has them. */
    const unsigned char start[] = "\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'";
    scratch_write(s, "long.npy", start, sizeof start - 1);
    assert_int_equal(truncate(scratch_path(s, "long.npy"), (off_t)5 << 30), 0);
    struct rusage before;
    struct rusage after;
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    expect_refused_with(s, "long.npy", NULL, HR_E_RANGE, "4294967295 bytes|at most");
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
}

static void versions_and_magic(void **state)
{
    scratch *s = *state;
    scratch_write(s, "v4.npy", "\x93NUMPY\x04\x00\x10\x00\x00\x00{}              ", 28);
    expect_refused_with(s, "v4.npy", NULL, HR_E_UNSUPPORTED, "version 4.0");
    scratch_write(s, "v11.npy", "\x93NUMPY\x01\x01\x10\x00{}              ", 26);
    expect_refused_with(s, "v11.npy", NULL, HR_E_UNSUPPORTED, "version 1.1");
    scratch_write(s, "text.npy", "hello, world, this is text", 26);
    expect_refused_with(s, "text.npy", NULL, HR_E_FORMAT, "not a .npy file");
    scratch_write(s, "text.dat", "hello, world, this is text", 26);
    expect_refused_with(s, "text.dat", NULL, HR_E_FORMAT, "needs a dtype");
}

static void shapes_that_cannot_be(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *shape;
        hr_status status;
        const char *words;
    } cases[] = {
        {"(4, -7)", HR_E_RANGE, "extent 1|-7|negative"},
        {"(18446744073709551616,)", HR_E_RANGE, "18446744073709551616|63 bits"},
        {"(99999999999999999999999999999999999999,)", HR_E_RANGE, "63 bits"},
        {"(9223372036854775808,)", HR_E_RANGE, "63 bits"},
        {"(4294967296, 4294967296)", HR_E_RANGE, "63 bits"},
        {"(4611686018427387904,)", HR_E_RANGE, "63 bits"},
        {"(1, 1, 1, 1, 1, 1, 1, 1, 1)", HR_E_RANGE, "more than 8 dimensions"},
        {"(3)", HR_E_FORMAT, "tuple"},
        {"3", HR_E_FORMAT, "'('"},
        {"(3.0,)", HR_E_FORMAT, "'.'"},
        {"(3,,4)", HR_E_FORMAT, "','"},
        {"(,)", HR_E_FORMAT, "','"},
        {"(3, 4", HR_E_FORMAT, "needed"},
        {"(a,)", HR_E_FORMAT, "'a'"},
        {"(3 4)", HR_E_FORMAT, "'4'"},
        {"[3, 4]", HR_E_FORMAT, "'['"},
        {"None", HR_E_FORMAT, "'N'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char header[256];
        snprintf(header, sizeof header, HEADER("'<f4'", "False", "%s"), cases[i].shape);
        expect_refused(s, header, 12, cases[i].status, cases[i].words);
    }
}

static void dtypes_that_are_not_taken_are_named(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *descr;
        hr_status status;
        const char *words;
    } cases[] = {
        {"'|O'", HR_E_UNSUPPORTED, "'|O'|objects"},
        {"'|b1'", HR_E_UNSUPPORTED, "'|b1'|booleans"},
        {"'<c8'", HR_E_UNSUPPORTED, "'<c8'|complex"},
        {"'<U4'", HR_E_UNSUPPORTED, "'<U4'|strings"},
        {"'|S3'", HR_E_UNSUPPORTED, "'|S3'|strings"},
        {"'<M8[ns]'", HR_E_UNSUPPORTED, "'<M8[ns]'|dates"},
        {"'<f16'", HR_E_UNSUPPORTED, "'<f16'|floats"},
        {"'<f3'", HR_E_UNSUPPORTED, "'<f3'|floats"},
        {"'<i16'", HR_E_UNSUPPORTED, "'<i16'|integers"},
        {"'<V1'", HR_E_UNSUPPORTED, "'<V1'|raw bytes"},
        {"'|V2'", HR_E_UNSUPPORTED, "'|V2'|bf16"},
        {"'float32'", HR_E_UNSUPPORTED, "'float32'|not known"},
        {"'x4'", HR_E_UNSUPPORTED, "'x4'|not known"},
        {"''", HR_E_UNSUPPORTED, "not known"},
        {"'<f4\x1b[31m'", HR_E_UNSUPPORTED, "'<f4?[31m'"},
        {"[('a', '<f4'), ('b', '<i4')]", HR_E_UNSUPPORTED, "structured"},
        {"('<f4', (2,))", HR_E_UNSUPPORTED, "structured"},
        {"4", HR_E_FORMAT, "dtype's string"},
        {"'<f4", HR_E_UNSUPPORTED, "'<f4, '"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char header[256];
        snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (3,), }",
                 cases[i].descr);
        expect_refused(s, header, 12, cases[i].status, cases[i].words);
    }
}

static void headers_that_are_no_dict_of_three_keys(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *header;
        const char *words;
    } cases[] = {
        {"", "'{'"},
        {"[]", "'{'"},
        {"{}", "'descr' is missing"},
        {"{'descr': '<f4'}", "'fortran_order' is missing"},
        {"{'descr': '<f4', 'fortran_order': False}", "'shape' is missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "repeated key 'descr'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}", "unknown key 'x'"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", "True or False"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}", "','"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (3,)}", "':'"},
        {"{descr: '<f4', 'fortran_order': False, 'shape': (3,)}", "a key"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", "end of the header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", "'}'"},
        {"{'descr': '<f\\x34', 'fortran_order': False, 'shape': (3,)}", "end of a string"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refused(s, cases[i].header, 12, HR_E_FORMAT, cases[i].words);
    }
}

static void unusual_headers_that_are_right_are_read(void **state)
{
    scratch *s = *state;
    static const char *const headers[] = {
        "{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "  {  'descr' : '<f4' ,\t'fortran_order' : True , 'shape' : ( 3 , ) , }  ",
        "{'descr': '=f4', 'fortran_order': False, 'shape': (3L,)}",
        "{'descr': '|f4', 'fortran_order': False, 'shape': (1, 3)}",
    };
    const float values[3] = {1, 2, 3};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        unsigned char file[512];
        size_t bytes = npy_around(headers[i], values, sizeof values, file);
        scratch_write(s, "odd.npy", file, bytes);
        hr_input *input = NULL;
        hr_error error = HR_ERROR_INIT;
        assert_int_equal(hr_input_open(scratch_path(s, "odd.npy"), NULL, &input, &error), HR_OK);
        float back[3];
        assert_int_equal(hr_input_read_all(input, back, &error), HR_OK);
        assert_memory_equal(back, values, sizeof values);
        hr_input_close(&input);
    }
}

static void two_raw_bytes_are_bf16_when_the_caller_says_so(void **state)
{
    scratch *s = *state;
    unsigned char file[512];
    const unsigned char values[4] = {0x80, 0x3f, 0x00, 0x40};
    scratch_write(s, "v2.npy", file, npy_around(HEADER("'|V2'", "False", "(2,)"), values, 4, file));
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.dtype = HR_BF16;
    hr_input *input = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_input_open(scratch_path(s, "v2.npy"), &options, &input, &error), HR_OK);
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_input_info(input, &info);
    assert_int_equal(info.dtype, HR_BF16);
    hr_input_close(&input);
}

static void raw_data_must_fit_its_shape(void **state)
{
    scratch *s = *state;
    unsigned char data[96] = {0};
    scratch_write(s, "a.raw", data, sizeof data);
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    expect_refused_with(s, "a.raw", NULL, HR_E_FORMAT, "needs a dtype");
    options.format = HR_FORMAT_RAW;
    expect_refused_with(s, "a.raw", &options, HR_E_INVALID, "needs a dtype");
    options.format = (hr_format)55;
    expect_refused_with(s, "a.raw", &options, HR_E_INVALID, "format 55");
    options.format = HR_FORMAT_RAW;
    options.dtype = HR_F32;
    options.shape = (hr_shape){2, {4, 7}};
    expect_refused_with(s, "a.raw", &options, HR_E_FORMAT, "(4, 7)|needs 112|has 96");
    options.shape = (hr_shape){2, {4, 5}};
    expect_refused_with(s, "a.raw", &options, HR_E_FORMAT, "needs 80|has 96");
    options.shape = (hr_shape){2, {HR_LENGTH_UNKNOWN, 7}};
    expect_refused_with(s, "a.raw", &options, HR_E_FORMAT, "96 bytes|multiple of 28");
    options.shape = (hr_shape){2, {HR_LENGTH_UNKNOWN, HR_LENGTH_UNKNOWN}};
    expect_refused_with(s, "a.raw", &options, HR_E_INVALID, "more than one");
    options.shape = (hr_shape){2, {HR_LENGTH_UNKNOWN, 0}};
    expect_refused_with(s, "a.raw", &options, HR_E_RANGE, "(?, 0)");
    options.shape = (hr_shape){3, {UINT64_C(1) << 40, UINT64_C(1) << 40, 2}};
    expect_refused_with(s, "a.raw", &options, HR_E_RANGE, "63 bits");
    options.shape = (hr_shape){0, {0}};
    options.dtype = HR_F64;
    scratch_write(s, "b.raw", data, 12);
    expect_refused_with(s, "b.raw", &options, HR_E_FORMAT, "12 bytes|multiple of 8");
}

static void raw_extents_follow_from_the_length(void **state)
{
    scratch *s = *state;
    unsigned char data[96] = {0};
    scratch_write(s, "a.raw", data, sizeof data);
    static const struct {
        hr_shape given;
        hr_shape found;
    } cases[] = {
        {{0, {0}}, {1, {48}}},
        {{2, {HR_LENGTH_UNKNOWN, 4}}, {2, {12, 4}}},
        {{3, {2, HR_LENGTH_UNKNOWN, 3}}, {3, {2, 8, 3}}},
        {{2, {6, 8}}, {2, {6, 8}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hr_open_options options = HR_OPEN_OPTIONS_INIT;
        options.dtype = HR_I16;
        options.shape = cases[i].given;
        hr_input *input = NULL;
        hr_error error = HR_ERROR_INIT;
        assert_int_equal(hr_input_open(scratch_path(s, "a.raw"), &options, &input, &error), HR_OK);
        hr_array_info info = HR_ARRAY_INFO_INIT;
        hr_input_info(input, &info);
        assert_int_equal(info.format, HR_FORMAT_RAW);
        assert_int_equal(info.shape.rank, cases[i].found.rank);
        assert_memory_equal(info.shape.extent, cases[i].found.extent, info.shape.rank * sizeof(uint64_t));
        hr_input_close(&input);
    }
    /* No bytes are an array of no elements. */
    scratch_write(s, "none.raw", "", 0);
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.dtype = HR_I16;
    hr_input *input = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_input_open(scratch_path(s, "none.raw"), &options, &input, &error), HR_OK);
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_input_info(input, &info);
    assert_int_equal(info.shape.extent[0], 0);
    assert_int_equal(hr_input_read_all(input, NULL, &error), HR_OK);
    hr_input_close(&input);
}

static void a_file_that_shrinks_while_it_is_read(void **state)
{
    scratch *s = *state;
    static unsigned char data[4096 * 4];
    for (int way = 0; way < 2; way++) {
        assert_int_equal(setenv("HEADRACE_IO", way == 0 ? "pread" : "uring", 1), 0);
        scratch_write(s, "s.raw", data, sizeof data);
        hr_open_options options = HR_OPEN_OPTIONS_INIT;
        options.dtype = HR_U8;
        hr_input *input = NULL;
        hr_error error = HR_ERROR_INIT;
        assert_int_equal(hr_input_open(scratch_path(s, "s.raw"), &options, &input, &error), HR_OK);
        assert_int_equal(truncate(scratch_path(s, "s.raw"), 4096 + 5), 0);
        unsigned char *all = malloc(sizeof data);
        assert_int_equal(hr_input_read_all(input, all, &error), HR_E_FORMAT);
        assert_non_null(strstr(error.text, "became shorter"));
        assert_non_null(strstr(error.text, "4101"));
        free(all);
        hr_input_close(&input);
    }
    unsetenv("HEADRACE_IO");
}

static void the_same_file_by_other_names(void **state)
{
    scratch *s = *state;
    char other[PATH_MAX + 300];
    scratch_write(s, "one", "x", 1);
    scratch_write(s, "two", "x", 1);
    snprintf(other, sizeof other, "%s/./two", s->folder);
    assert_false(hr_same_file(scratch_path(s, "one"), other));
    assert_true(hr_same_file(scratch_path(s, "two"), other));
    assert_false(hr_same_file(scratch_path(s, "none"), other));
    assert_false(hr_same_file(NULL, other));
    snprintf(other, sizeof other, "%s/link", s->folder);
    assert_int_equal(symlink("one", other), 0);
    assert_true(hr_same_file(scratch_path(s, "one"), other));
    snprintf(other, sizeof other, "%s/hard", s->folder);
    assert_int_equal(link(scratch_path(s, "one"), other), 0);
    assert_true(hr_same_file(scratch_path(s, "one"), other));
    assert_false(hr_same_file("/dev/null", "/dev/null"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_missing_an_unreadable_and_an_empty_file),
        TEST(truncated_files_at_every_length),
        TEST(more_data_than_promised),
        TEST(headers_that_are_too_long_are_not_read),
        TEST(versions_and_magic),
        TEST(shapes_that_cannot_be),
        TEST(dtypes_that_are_not_taken_are_named),
        TEST(headers_that_are_no_dict_of_three_keys),
        TEST(unusual_headers_that_are_right_are_read),
        TEST(two_raw_bytes_are_bf16_when_the_caller_says_so),
        TEST(raw_data_must_fit_its_shape),
        TEST(raw_extents_follow_from_the_length),
        TEST(a_file_that_shrinks_while_it_is_read),
        TEST(the_same_file_by_other_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
