/* SPDX-License-Identifier: Apache-2.0 */
/* Large files by every way of reading: cached, through a ring, past the page cache, without io_uring; any
 * range, any alignment, several threads. */
#include "unit/io/scratch.h"

#include <pthread.h>

enum { BYTES = (5 << 20) + 123, THREADS = 4, ROUNDS = 60 };

static unsigned char *make_data(void)
{
    unsigned char *data = malloc(BYTES);
    assert_non_null(data);
    uint32_t x = 12345;
    for (size_t i = 0; i < BYTES; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (unsigned char)(x >> 24);
    }
    return data;
}

typedef struct reader {
    hr_source *source;
    const unsigned char *data;
    unsigned char *buffer;
    unsigned seed;
    int wrong;
} reader;

/* Reads ranges of all sizes at all offsets; every third is aligned as blocks are, in file and memory. */
static void *read_ranges(void *argument)
{
    reader *r = argument;
    for (int round = 0; round < ROUNDS && !r->wrong; round++) {
        uint64_t offset = ((uint64_t)rand_r(&r->seed) << 8) % BYTES;
        uint64_t bytes = ((uint64_t)rand_r(&r->seed) << 8) % (BYTES - offset + 1);
        uint64_t shift = (uint64_t)rand_r(&r->seed) % 4096;
        if (round % 3 == 0) {
            offset = offset / 4096 * 4096;
            bytes = bytes / 4096 * 4096;
            shift = 0;
        }
        if (round == 1) {
            offset = BYTES - 200; /* the tail */
            bytes = 200;
        }
        uint64_t got = 0;
        hr_error error = HR_ERROR_INIT;
        unsigned char *to = r->buffer + 4096 + shift;
        to[-1] = 0xa5;
        to[bytes] = 0xa5;
        hr_status status = r->source->read(r->source->self, offset, to, bytes, &got, &error);
        r->wrong = status != HR_OK || got != bytes || memcmp(to, r->data + offset, bytes) != 0 ||
                   to[-1] != 0xa5 || to[bytes] != 0xa5;
    }
    return NULL;
}

static void read_from_threads(hr_input *input, const unsigned char *data)
{
    hr_source *source = hr_input_source(input);
    reader readers[THREADS];
    void *buffers[THREADS];
    uint64_t lengths[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        lengths[i] = (BYTES / 4096 + 4) * 4096;
        buffers[i] = aligned_alloc(4096, lengths[i]);
        readers[i] = (reader){source, data, buffers[i], (unsigned)i + 1, 0};
    }
    source->prepare(source->self, buffers, lengths, THREADS);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_ranges, &readers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(readers[i].wrong, 0);
        free(buffers[i]);
    }
}

/* By one way of reading; `direct_above` 1 asks for direct reads. Returns how it was read. */
static const char *read_by(scratch *s, const char *name, const char *way, uint64_t direct_above,
                           bool drop_cache, const unsigned char *data)
{
    if (way != NULL) {
        assert_int_equal(setenv("HEADRACE_IO", way, 1), 0);
    }
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.dtype = HR_U8;
    options.direct_above_bytes = direct_above;
    hr_error error = HR_ERROR_INIT;
    hr_input *input = NULL;
    assert_int_equal(hr_input_open(scratch_path(s, name), &options, &input, &error), HR_OK);
    unsetenv("HEADRACE_IO");
    if (drop_cache) {
        int fd = open(scratch_path(s, name), O_RDONLY);
        assert_int_equal(fsync(fd), 0);
        assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        close(fd);
    }
    unsigned char *all = malloc(BYTES);
    assert_int_equal(hr_input_read_all(input, all, &error), HR_OK);
    assert_memory_equal(all, data, BYTES);
    free(all);
    read_from_threads(input, data);
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_input_info(input, &info);
    hr_input_close(&input);
    return info.method;
}

static void every_way_reads_the_same(void **state)
{
    scratch *s = *state;
    unsigned char *data = make_data();
    scratch_write(s, "a.raw", data, BYTES);
    char header[128];
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }", BYTES);
    unsigned char *file = malloc(BYTES + 256);
    scratch_write(s, "a.npy", file, npy_around(header, data, BYTES, file));
    free(file);
    static const char *const names[] = {"a.raw", "a.npy"};
    for (int i = 0; i < 2; i++) {
        assert_string_equal(read_by(s, names[i], "pread", UINT64_MAX, false, data), "pread threads");
        const char *plain = read_by(s, names[i], NULL, UINT64_MAX, true, data);
        const char *ring = read_by(s, names[i], "uring", UINT64_MAX, false, data);
        assert_string_equal(plain, ring);
        const char *direct = read_by(s, names[i], "pread", 1, false, data);
        if (strcmp(direct, "pread threads") != 0) {
            assert_string_equal(direct, "pread threads, direct");
        }
        const char *both = read_by(s, names[i], NULL, 1, false, data);
        if (strcmp(ring, "io_uring") == 0 && strcmp(direct, "pread threads, direct") == 0) {
            assert_string_equal(both, "io_uring, direct");
        }
    }
    free(data);
}

/* A range beyond 4 GiB, in a file with a hole: sizes and offsets are 64-bit all the way. */
static void offsets_beyond_four_gib(void **state)
{
    scratch *s = *state;
    const uint64_t far = (UINT64_C(5) << 30) + 77;
    scratch_write(s, "far.raw", "", 0);
    int fd = open(scratch_path(s, "far.raw"), O_WRONLY);
    assert_int_equal(pwrite(fd, "needle", 6, (off_t)far), 6);
    close(fd);
    for (int direct = 0; direct < 2; direct++) {
        hr_open_options options = HR_OPEN_OPTIONS_INIT;
        options.dtype = HR_U8;
        options.direct_above_bytes = direct ? 1 : UINT64_MAX;
        hr_input *input = NULL;
        hr_error error = HR_ERROR_INIT;
        assert_int_equal(hr_input_open(scratch_path(s, "far.raw"), &options, &input, &error), HR_OK);
        hr_source *source = hr_input_source(input);
        assert_int_equal(source->bytes, far + 6);
        unsigned char *buffer = malloc(1 << 20);
        uint64_t got = 0;
        uint64_t offset = far + 6 - (1 << 20);
        assert_int_equal(source->read(source->self, offset, buffer, 1 << 20, &got, &error), HR_OK);
        assert_memory_equal(buffer + (1 << 20) - 6, "needle", 6);
        assert_int_equal(buffer[0], 0);
        assert_int_equal(source->read(source->self, far, buffer, 7, &got, &error), HR_E_RANGE);
        free(buffer);
        hr_input_close(&input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_way_reads_the_same, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(offsets_beyond_four_gib, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
