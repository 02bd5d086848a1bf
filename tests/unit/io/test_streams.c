/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes, devices and files that are open already, as inputs and as outputs. */
#include "unit/io/scratch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

/* A pipe whose other end a thread works at. */
typedef struct feed {
    pthread_t thread;
    int fd;
    unsigned char *data;
    size_t bytes;
    size_t step; /* bytes a write */
    char path[40];
    int own_fd;
} feed;

static void *feed_thread(void *argument)
{
    feed *f = argument;
    for (size_t at = 0; at < f->bytes;) {
        size_t n = f->bytes - at < f->step ? f->bytes - at : f->step;
        ssize_t written = write(f->fd, f->data + at, n);
        if (written < 0) {
            break;
        }
        at += (size_t)written;
    }
    close(f->fd);
    return NULL;
}

/* Starts feeding; f->path can be opened. */
static void feed_start(feed *f, const void *data, size_t bytes, size_t step)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    f->data = malloc(bytes + 1);
    memcpy(f->data, data, bytes);
    f->bytes = bytes;
    f->step = step;
    f->fd = ends[1];
    f->own_fd = ends[0];
    snprintf(f->path, sizeof f->path, "/dev/fd/%d", ends[0]);
    assert_int_equal(pthread_create(&f->thread, NULL, feed_thread, f), 0);
}

static void feed_stop(feed *f)
{
    close(f->own_fd);
    assert_int_equal(pthread_join(f->thread, NULL), 0);
    free(f->data);
}

#define COUNT 50000

static void make_values(float *values)
{
    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)i * 0.5f;
    }
}

static void an_array_is_read_from_a_pipe_in_small_pieces(void **state)
{
    (void)state;
    static float values[COUNT];
    static unsigned char file[sizeof values + 256];
    make_values(values);
    size_t bytes = npy_around("{'descr': '<f4', 'fortran_order': False, 'shape': (50000,), }", values,
                              sizeof values, file);
    feed f;
    feed_start(&f, file, bytes, 777);
    hr_error error = HR_ERROR_INIT;
    hr_input *input = NULL;
    assert_int_equal(hr_input_open(f.path, NULL, &input, &error), HR_OK);
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_input_info(input, &info);
    assert_string_equal(info.method, "stream");
    assert_int_equal(info.bytes, sizeof values);
    hr_source *source = hr_input_source(input);
    assert_true(source->sequential);
    float *back = malloc(sizeof values);
    uint64_t got = 0;
    assert_int_equal(source->read(source->self, 0, back, 1001, &got, &error), HR_OK);
    assert_int_equal(got, 1001);
    assert_int_equal(source->read(source->self, 0, back, 10, &got, &error), HR_E_INVALID);
    assert_int_equal(
        source->read(source->self, 1001, (char *)back + 1001, sizeof values - 1001, &got, &error), HR_OK);
    assert_memory_equal(back, values, sizeof values);
    free(back);
    hr_input_close(&input);
    feed_stop(&f);
}

/* Reads all of a stream of known length; the status of the read that failed, or HR_OK. */
static hr_status read_known(const char *header, const void *data, size_t data_bytes, void *back,
                            hr_error *error)
{
    static unsigned char file[1 << 16];
    size_t bytes = npy_around(header, data, data_bytes, file);
    feed f;
    feed_start(&f, file, bytes, 100);
    hr_input *input = NULL;
    *error = HR_ERROR_INIT;
    hr_status status = hr_input_open(f.path, NULL, &input, error);
    if (status == HR_OK) {
        status = hr_input_read_all(input, back, error);
    }
    hr_input_close(&input);
    feed_stop(&f);
    return status;
}

static void big_endian_and_fortran_order_come_out_right(void **state)
{
    (void)state;
    hr_error error;
    const unsigned char big[6] = {0, 1, 2, 3, 0xff, 0xfe};
    int16_t back[6] = {0};
    assert_int_equal(
        read_known("{'descr': '>i2', 'fortran_order': False, 'shape': (3,)}", big, sizeof big, back, &error),
        HR_OK);
    assert_int_equal(back[0], 1);
    assert_int_equal(back[1], 0x203);
    assert_int_equal(back[2], -2);
    const int16_t columns[6] = {1, 4, 2, 5, 3, 6};
    const int16_t rows[6] = {1, 2, 3, 4, 5, 6};
    assert_int_equal(read_known("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}", columns,
                                sizeof columns, back, &error),
                     HR_OK);
    assert_memory_equal(back, rows, sizeof rows);
}

static void less_and_more_data_than_promised(void **state)
{
    (void)state;
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 7)}";
    static const char fortran[] = "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 7)}";
    unsigned char data[116] = {0};
    unsigned char back[112];
    hr_error error;
    assert_int_equal(read_known(header, data, 112, back, &error), HR_OK);
    assert_int_equal(read_known(header, data, 96, back, &error), HR_E_FORMAT);
    assert_non_null(strstr(error.text, "(4, 7) of f32 needs 112 bytes of data, the stream ends after 96"));
    assert_int_equal(read_known(header, data, 116, back, &error), HR_E_FORMAT);
    assert_non_null(strstr(error.text, "the stream goes on"));
    assert_int_equal(read_known(fortran, data, 96, back, &error), HR_E_FORMAT);
    assert_int_equal(read_known(fortran, data, 116, back, &error), HR_E_FORMAT);
}

static void bad_starts_of_streams(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t bytes;
        hr_status status;
        const char *word;
    } cases[] = {
        {"", 0, HR_E_FORMAT, "empty"},
        {"hello", 5, HR_E_FORMAT, "needs a dtype"},
        {"\x93NUMPY\x01", 7, HR_E_FORMAT, "cut short"},
        {"\x93NUMPY\x01\x00\x76\x00{'descr'", 18, HR_E_FORMAT, "cut short"},
        {"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'", 20, HR_E_RANGE, "4294967295"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        feed f;
        feed_start(&f, cases[i].data, cases[i].bytes, 3);
        hr_input *input = NULL;
        hr_error error = HR_ERROR_INIT;
        assert_int_equal(hr_input_open(f.path, NULL, &input, &error), cases[i].status);
        assert_non_null(strstr(error.text, cases[i].word));
        assert_null(input);
        feed_stop(&f);
    }
}

static void raw_streams_are_as_long_as_they_are(void **state)
{
    (void)state;
    static float values[COUNT];
    make_values(values);
    for (int ragged = 0; ragged < 2; ragged++) {
        feed f;
        feed_start(&f, values, sizeof values - (ragged ? 4 : 0), 4096);
        hr_open_options options = HR_OPEN_OPTIONS_INIT;
        options.dtype = HR_F32;
        options.shape = (hr_shape){2, {HR_LENGTH_UNKNOWN, 10}};
        hr_input *input = NULL;
        hr_error error = HR_ERROR_INIT;
        assert_int_equal(hr_input_open(f.path, &options, &input, &error), HR_OK);
        hr_array_info info = HR_ARRAY_INFO_INIT;
        hr_input_info(input, &info);
        assert_true(info.bytes == HR_LENGTH_UNKNOWN && info.shape.extent[0] == HR_LENGTH_UNKNOWN);
        hr_source *source = hr_input_source(input);
        size_t room = 2 * sizeof values;
        unsigned char *back = malloc(room);
        uint64_t got = 0;
        hr_status status = source->read(source->self, 0, back, room, &got, &error);
        if (ragged) {
            assert_int_equal(status, HR_E_FORMAT);
            assert_non_null(strstr(error.text, "199996 bytes, no multiple of 40"));
        } else {
            assert_int_equal(status, HR_OK);
            assert_int_equal(got, sizeof values);
            assert_memory_equal(back, values, sizeof values);
            assert_int_equal(source->read(source->self, sizeof values, back, 40, &got, &error), HR_END);
            assert_int_equal(got, 0);
        }
        free(back);
        hr_input_close(&input);
        feed_stop(&f);
    }
}

static void an_extent_in_the_middle_cannot_be_left_open(void **state)
{
    (void)state;
    feed f;
    feed_start(&f, "abcd", 4, 4);
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.dtype = HR_U8;
    options.shape = (hr_shape){2, {2, HR_LENGTH_UNKNOWN}};
    hr_input *input = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_input_open(f.path, &options, &input, &error), HR_E_UNSUPPORTED);
    assert_null(input);
    feed_stop(&f);
}

typedef struct interrupter {
    void (*interrupt)(void *self);
    void *self;
} interrupter;

static void *interrupt_soon(void *argument)
{
    const interrupter *i = argument;
    usleep(20000);
    i->interrupt(i->self);
    return NULL;
}

static void a_read_and_a_write_that_block_can_be_interrupted(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "12345678", 8), 8);
    char path[40];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.dtype = HR_U8;
    hr_input *input = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_input_open(path, &options, &input, &error), HR_OK);
    hr_source *source = hr_input_source(input);
    interrupter reader = {source->interrupt, source->self};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, &reader), 0);
    char buffer[100];
    uint64_t got = 0;
    assert_int_equal(source->read(source->self, 0, buffer, sizeof buffer, &got, &error), HR_E_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    hr_input_close(&input);

    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    hr_shape large = {1, {64 << 20}};
    hr_output *output = NULL;
    assert_int_equal(hr_output_create(path, HR_U8, &large, NULL, &output, &error), HR_OK);
    hr_sink *sink = hr_output_sink(output);
    assert_true(sink->sequential);
    interrupter writer = {sink->interrupt, sink->self};
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, &writer), 0);
    unsigned char *block = calloc(1, 64 << 20);
    assert_int_equal(sink->write(sink->self, 0, block, 64 << 20, &error), HR_E_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    free(block);
    hr_output_close(&output);
    close(ends[0]);
    close(ends[1]);
}

static void a_pipe_that_closes_is_an_error_with_its_name(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char path[40];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    hr_shape shape = {1, {1 << 20}};
    hr_error error = HR_ERROR_INIT;
    hr_output *output = NULL;
    assert_int_equal(hr_output_create(path, HR_U8, &shape, NULL, &output, &error), HR_OK);
    close(ends[0]);
    hr_sink *sink = hr_output_sink(output);
    static const unsigned char block[1 << 20];
    assert_int_equal(sink->write(sink->self, 0, block, sizeof block, &error), HR_E_IO);
    assert_int_equal(error.code, EPIPE);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "closed the pipe"));
    hr_output_close(&output);
    close(ends[1]);
}

static void what_goes_into_a_pipe_comes_out_of_it(void **state)
{
    scratch *s = *state;
    char path[PATH_MAX + 300];
    snprintf(path, sizeof path, "%s", scratch_path(s, "fifo"));
    assert_int_equal(mkfifo(path, 0600), 0);
    const uint16_t values[6] = {1, 2, 3, 4, 5, 6};
    hr_shape shape = {2, {2, 3}};
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    hr_error error = HR_ERROR_INIT;
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    options.format = HR_FORMAT_NPY;
    hr_output *output = NULL;
    assert_int_equal(hr_output_create(path, HR_U16, &shape, &options, &output, &error), HR_OK);
    hr_sink *sink = hr_output_sink(output);
    assert_int_equal(sink->write(sink->self, 4, values, 8, &error), HR_E_INVALID);
    assert_int_equal(sink->write(sink->self, 0, values, 12, &error), HR_OK);
    assert_int_equal(hr_output_commit(output, &error), HR_OK);
    hr_output_close(&output);
    unsigned char all[256];
    assert_int_equal(read(reader, all, sizeof all), 128 + 12);
    assert_memory_equal(all, "\x93NUMPY", 6);
    assert_memory_equal(all + 128, values, 12);
    close(reader);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

static void a_stream_of_unknown_length_is_written_raw_or_refused(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char path[40];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    hr_shape growing = {1, {HR_LENGTH_UNKNOWN}};
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_output *output = NULL;
    options.format = HR_FORMAT_NPY;
    assert_int_equal(hr_output_create(path, HR_U8, &growing, &options, &output, &error), HR_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "shape first"));
    assert_null(output);
    options.format = HR_FORMAT_AUTO;
    assert_int_equal(hr_output_create(path, HR_U8, &growing, &options, &output, &error), HR_OK);
    hr_sink *sink = hr_output_sink(output);
    assert_int_equal(sink->write(sink->self, 0, "abc", 3, &error), HR_OK);
    assert_int_equal(sink->finish(sink->self, 3, &error), HR_OK);
    hr_output_close(&output);
    char all[8];
    assert_int_equal(read(ends[0], all, sizeof all), 3);
    assert_memory_equal(all, "abc", 3);
    close(ends[0]);
    close(ends[1]);
}

static void nothing_happens_to_dev_null(void **state)
{
    (void)state;
    hr_shape shape = {1, {3}};
    hr_error error = HR_ERROR_INIT;
    hr_output *output = NULL;
    assert_int_equal(hr_output_create("/dev/null", HR_U8, &shape, NULL, &output, &error), HR_OK);
    hr_sink *sink = hr_output_sink(output);
    assert_int_equal(sink->write(sink->self, 0, "abc", 3, &error), HR_OK);
    assert_int_equal(hr_output_commit(output, &error), HR_OK);
    hr_output_close(&output);
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* With standard input and output replaced; puts them back. */
static void standard_files_that_are_regular(void **state)
{
    scratch *s = *state;
    int old_in = dup(STDIN_FILENO);
    int old_out = dup(STDOUT_FILENO);
    int file = open(scratch_path(s, "out"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(file, "before", 6), 6);
    assert_int_equal(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
    const uint8_t values[5] = {9, 8, 7, 6, 5};
    hr_shape shape = {1, {5}};
    hr_error error = HR_ERROR_INIT;
    hr_output *output = NULL;
    hr_status created = hr_output_create("-", HR_U8, &shape, NULL, &output, &error);
    hr_sink *sink = hr_output_sink(output);
    hr_status written = sink->write(sink->self, 0, values, 5, &error);
    hr_status committed = hr_output_commit(output, &error);
    hr_output_close(&output);
    ssize_t after = write(STDOUT_FILENO, "after", 5);
    assert_int_equal(dup2(old_out, STDOUT_FILENO), STDOUT_FILENO);
    close(old_out);
    assert_int_equal(created, HR_OK);
    assert_int_equal(written, HR_OK);
    assert_int_equal(committed, HR_OK);
    assert_int_equal(after, 5);
    assert_int_equal(lseek(file, 0, SEEK_END), 6 + 128 + 5 + 5);

    /* The array as input, from where the file stands: after "before", and without what comes after. */
    assert_int_equal(ftruncate(file, 6 + 128 + 5), 0);
    assert_int_equal(lseek(file, 6, SEEK_SET), 6);
    assert_int_equal(dup2(file, STDIN_FILENO), STDIN_FILENO);
    hr_input *input = NULL;
    hr_status opened = hr_input_open("-", NULL, &input, &error);
    assert_int_equal(dup2(old_in, STDIN_FILENO), STDIN_FILENO);
    close(old_in);
    close(file);
    assert_int_equal(opened, HR_OK);
    assert_false(hr_input_source(input)->sequential);
    uint8_t back[5];
    assert_int_equal(hr_input_read_all(input, back, &error), HR_OK);
    assert_memory_equal(back, values, 5);
    hr_input_close(&input);
}

/* `> file` and `| cat > file` write the same. */
static void standard_output_of_unknown_length_is_raw_in_a_file_too(void **state)
{
    scratch *s = *state;
    int old_out = dup(STDOUT_FILENO);
    int file = open(scratch_path(s, "out"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
    hr_shape growing = {1, {HR_LENGTH_UNKNOWN}};
    hr_error error = HR_ERROR_INIT;
    hr_output *output = NULL;
    hr_status created = hr_output_create("-", HR_U8, &growing, NULL, &output, &error);
    hr_sink *sink = hr_output_sink(output);
    hr_status written = sink->write(sink->self, 0, "abc", 3, &error);
    hr_status finished = sink->finish(sink->self, 3, &error);
    hr_output_close(&output);
    assert_int_equal(dup2(old_out, STDOUT_FILENO), STDOUT_FILENO);
    close(old_out);
    close(file);
    assert_int_equal(created, HR_OK);
    assert_int_equal(written, HR_OK);
    assert_int_equal(finished, HR_OK);
    size_t bytes = 0;
    unsigned char *all = scratch_read(s, "out", &bytes);
    assert_int_equal(bytes, 3);
    assert_memory_equal(all, "abc", 3);
    free(all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    /* As a program that writes to pipes does. */
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        TEST(an_array_is_read_from_a_pipe_in_small_pieces),
        TEST(big_endian_and_fortran_order_come_out_right),
        TEST(less_and_more_data_than_promised),
        TEST(bad_starts_of_streams),
        TEST(raw_streams_are_as_long_as_they_are),
        TEST(an_extent_in_the_middle_cannot_be_left_open),
        TEST(a_read_and_a_write_that_block_can_be_interrupted),
        TEST(a_pipe_that_closes_is_an_error_with_its_name),
        TEST(what_goes_into_a_pipe_comes_out_of_it),
        TEST(a_stream_of_unknown_length_is_written_raw_or_refused),
        TEST(nothing_happens_to_dev_null),
        TEST(standard_files_that_are_regular),
        TEST(standard_output_of_unknown_length_is_raw_in_a_file_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
