/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs to files are whole or absent, under every ending. */
#include "unit/io/scratch.h"

#include "io/replace.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

static hr_status create_as(const char *path, hr_dtype dtype, const hr_shape *shape, hr_output **output,
                           hr_error *error)
{
    *error = HR_ERROR_INIT;
    return hr_output_create(path, dtype, shape, NULL, output, error);
}

static hr_output *create(const char *path, const hr_shape *shape)
{
    hr_error error;
    hr_output *output = NULL;
    hr_status status = create_as(path, HR_F32, shape, &output, &error);
    if (status != HR_OK) {
        fail_msg("%s", error.text);
    }
    return output;
}

static hr_status put(hr_output *output, uint64_t offset, const void *data, uint64_t bytes, hr_error *error)
{
    hr_sink *sink = hr_output_sink(output);
    return sink->write(sink->self, offset, data, bytes, error);
}

static void write_whole(hr_output *output, const void *data, uint64_t bytes)
{
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(put(output, 0, data, bytes, &error), HR_OK);
    if (hr_output_commit(output, &error) != HR_OK) {
        fail_msg("%s", error.text);
    }
}

static const float values[4] = {1, -2, 3.5f, 1e30f};
static const hr_shape four = {1, {4}};

static void expect_values(scratch *s, const char *name)
{
    hr_error error = HR_ERROR_INIT;
    hr_input *input = NULL;
    assert_int_equal(hr_input_open(scratch_path(s, name), NULL, &input, &error), HR_OK);
    float back[4] = {0};
    assert_int_equal(hr_input_source(input)->bytes, sizeof back);
    assert_int_equal(hr_input_read_all(input, back, &error), HR_OK);
    assert_memory_equal(back, values, sizeof back);
    hr_input_close(&input);
}

static void expect_old(scratch *s, const char *name)
{
    size_t bytes = 0;
    unsigned char *old = scratch_read(s, name, &bytes);
    assert_non_null(old);
    assert_int_equal(bytes, 3);
    assert_memory_equal(old, "old", 3);
    free(old);
}

static void nothing_is_seen_before_the_commit_and_nothing_left_without_one(void **state)
{
    scratch *s = *state;
    hr_error error = HR_ERROR_INIT;
    scratch_write(s, "old.npy", "old", 3);
    hr_output *output = create(scratch_path(s, "old.npy"), &four);
    assert_int_equal(put(output, 0, values, sizeof values, &error), HR_OK);
    expect_old(s, "old.npy");
    hr_output_close(&output);
    assert_null(output);
    assert_int_equal(scratch_count(s), 1);
    expect_old(s, "old.npy");

    output = create(scratch_path(s, "old.npy"), &four);
    write_whole(output, values, sizeof values);
    assert_int_equal(hr_output_commit(output, &error), HR_OK); /* again is harmless */
    hr_output_close(&output);
    assert_int_equal(scratch_count(s), 1);
    expect_values(s, "old.npy");
}

static void a_killed_process_leaves_the_old_file_and_nothing_else(void **state)
{
    scratch *s = *state;
    scratch_write(s, "old.npy", "old", 3);
    hr_shape large = {1, {1 << 20}};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hr_error error;
        hr_output *output = NULL;
        if (create_as(scratch_path(s, "old.npy"), HR_F32, &large, &output, &error) == HR_OK &&
            put(output, 4096, values, sizeof values, &error) == HR_OK) {
            raise(SIGKILL);
        }
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(scratch_count(s), 1);
    expect_old(s, "old.npy");
}

static void mode_and_umask_are_kept(void **state)
{
    scratch *s = *state;
    mode_t before = umask(027);
    hr_output *output = create(scratch_path(s, "new.npy"), &four);
    write_whole(output, values, sizeof values);
    hr_output_close(&output);
    umask(before);
    struct stat st;
    assert_int_equal(stat(scratch_path(s, "new.npy"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);

    scratch_write(s, "old.npy", "old", 3);
    assert_int_equal(chmod(scratch_path(s, "old.npy"), 0604), 0);
    output = create(scratch_path(s, "old.npy"), &four);
    write_whole(output, values, sizeof values);
    hr_output_close(&output);
    assert_int_equal(stat(scratch_path(s, "old.npy"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0604);
}

static void links_are_followed(void **state)
{
    scratch *s = *state;
    char other[PATH_MAX + 300];
    scratch_write(s, "real.npy", "old", 3);
    snprintf(other, sizeof other, "%s/link.npy", s->folder);
    assert_int_equal(symlink("real.npy", other), 0);
    hr_output *output = create(other, &four);
    write_whole(output, values, sizeof values);
    hr_output_close(&output);
    struct stat st;
    assert_int_equal(lstat(other, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    expect_values(s, "real.npy");

    snprintf(other, sizeof other, "%s/dangling.npy", s->folder);
    assert_int_equal(symlink("./new.npy", other), 0);
    output = create(other, &four);
    write_whole(output, values, sizeof values);
    hr_output_close(&output);
    expect_values(s, "new.npy");

    snprintf(other, sizeof other, "%s/loop.npy", s->folder);
    assert_int_equal(symlink("loop.npy", other), 0);
    hr_error error;
    assert_int_equal(create_as(other, HR_F32, &four, &output, &error), HR_E_IO);
    assert_int_equal(error.code, ELOOP);
}

static void places_that_cannot_be_written(void **state)
{
    scratch *s = *state;
    hr_output *output = NULL;
    hr_error error;
    assert_int_equal(create_as(scratch_path(s, "none/a.npy"), HR_F32, &four, &output, &error),
                     HR_E_NOT_FOUND);
    assert_non_null(strstr(error.text, "none: No such file"));
    assert_int_equal(create_as(s->folder, HR_F32, &four, &output, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "folder"));
    assert_int_equal(create_as("", HR_F32, &four, &output, &error), HR_E_INVALID);
    scratch_write(s, "file", "x", 1);
    assert_int_equal(create_as(scratch_path(s, "file/a.npy"), HR_F32, &four, &output, &error),
                     HR_E_NOT_FOUND);
    if (geteuid() != 0) {
        scratch_write(s, "locked.npy", "old", 3);
        assert_int_equal(chmod(scratch_path(s, "locked.npy"), 0444), 0);
        assert_int_equal(create_as(scratch_path(s, "locked.npy"), HR_F32, &four, &output, &error), HR_E_IO);
        assert_int_equal(error.code, EACCES);
    }
    assert_null(output);
}

static void a_limit_on_file_sizes_is_met_before_the_work(void **state)
{
    scratch *s = *state;
    hr_shape large = {1, {1 << 20}};
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit small = {1 << 16, old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    hr_output *output = NULL;
    hr_error error;
    hr_status status = create_as(scratch_path(s, "a.npy"), HR_F32, &large, &output, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, HR_E_NO_SPACE);
    assert_int_equal(error.code, EFBIG);
    assert_null(output);
    assert_int_equal(scratch_count(s), 0);
}

/* A file system of 1 MiB; false where this process may not mount one. */
static bool mount_small(scratch *s)
{
    assert_int_equal(mkdir(scratch_path(s, "small"), 0700), 0);
    return mount("tmpfs", scratch_path(s, "small"), "tmpfs", 0, "size=1m") == 0;
}

static void unmount_small(scratch *s)
{
    assert_int_equal(umount2(scratch_path(s, "small"), MNT_DETACH), 0);
}

static void a_full_disk_is_met_before_the_work_where_the_length_is_known(void **state)
{
    scratch *s = *state;
    if (!mount_small(s)) {
        skip();
    }
    scratch_write(s, "small/a.npy", "old", 3);
    hr_shape large = {1, {1 << 20}};
    hr_output *output = NULL;
    hr_error error;
    hr_status status = create_as(scratch_path(s, "small/a.npy"), HR_F32, &large, &output, &error);
    expect_old(s, "small/a.npy");
    unmount_small(s);
    assert_int_equal(status, HR_E_NO_SPACE);
    assert_int_equal(error.code, ENOSPC);
    assert_non_null(strstr(error.text, "reserve 4194432 bytes"));
    assert_null(output);
}

static void a_disk_that_fills_up_leaves_the_old_file(void **state)
{
    scratch *s = *state;
    if (!mount_small(s)) {
        skip();
    }
    scratch_write(s, "small/a.npy", "old", 3);
    hr_shape growing = {1, {HR_LENGTH_UNKNOWN}};
    hr_output *output = create(scratch_path(s, "small/a.npy"), &growing);
    static const unsigned char block[1 << 16];
    hr_error error = HR_ERROR_INIT;
    hr_status status = HR_OK;
    for (uint64_t i = 0; i < 64 && status == HR_OK; i++) {
        status = put(output, i * sizeof block, block, sizeof block, &error);
    }
    hr_output_close(&output);
    expect_old(s, "small/a.npy");
    char folder[PATH_MAX + 300];
    snprintf(folder, sizeof folder, "%s", scratch_path(s, "small"));
    scratch small = {0};
    snprintf(small.folder, sizeof small.folder, "%.4000s", folder);
    assert_int_equal(scratch_count(&small), 1);
    unmount_small(s);
    assert_int_equal(status, HR_E_NO_SPACE);
    assert_int_equal(error.code, ENOSPC);
}

typedef struct writer {
    hr_output *output;
    const unsigned char *data;
    unsigned first;
    hr_status status;
} writer;

enum { PIECES = 512, PIECE = 1001, WRITERS = 4 };

static void *write_share(void *argument)
{
    writer *w = argument;
    hr_error error = HR_ERROR_INIT;
    for (unsigned i = w->first; i < PIECES && w->status == HR_OK; i += WRITERS) {
        unsigned piece =
            (i * 77) % PIECES; /* 77 and 512 have no common factor: each piece once, in no order */
        uint64_t offset = (uint64_t)piece * PIECE;
        w->status = put(w->output, offset, w->data + offset, PIECE, &error);
    }
    return NULL;
}

static void several_threads_write_at_any_offset(void **state)
{
    scratch *s = *state;
    unsigned char *data = malloc((size_t)PIECES * PIECE);
    for (size_t i = 0; i < (size_t)PIECES * PIECE; i++) {
        data[i] = (unsigned char)(i * 2654435761u >> 24);
    }
    hr_shape shape = {1, {(uint64_t)PIECES * PIECE}};
    hr_error error;
    hr_output *output = NULL;
    assert_int_equal(create_as(scratch_path(s, "a.raw"), HR_U8, &shape, &output, &error), HR_OK);
    assert_false(hr_output_sink(output)->sequential);
    pthread_t threads[WRITERS];
    writer writers[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (writer){output, data, i, HR_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, write_share, &writers[i]), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].status, HR_OK);
    }
    assert_int_equal(hr_output_commit(output, &error), HR_OK);
    hr_output_close(&output);
    size_t bytes = 0;
    unsigned char *back = scratch_read(s, "a.raw", &bytes);
    assert_int_equal(bytes, (size_t)PIECES * PIECE);
    assert_memory_equal(back, data, bytes);
    free(back);
    free(data);
}

static void what_does_not_belong_to_the_array_is_refused(void **state)
{
    scratch *s = *state;
    hr_error error = HR_ERROR_INIT;
    hr_output *output = create(scratch_path(s, "a.npy"), &four);
    assert_int_equal(put(output, 8, values, sizeof values, &error), HR_E_RANGE);
    assert_int_equal(put(output, UINT64_MAX - 1, values, sizeof values, &error), HR_E_RANGE);
    hr_sink *sink = hr_output_sink(output);
    assert_int_equal(sink->room_bytes, sizeof values);
    assert_int_equal(sink->finish(sink->self, 8, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "8 bytes were written, 16 belong"));
    /* Whoever was told so does not publish it as whole. */
    assert_int_equal(hr_output_commit(output, &error), HR_E_INVALID);
    hr_output_close(&output);
    assert_int_equal(scratch_count(s), 0);

    hr_shape rows = {2, {HR_LENGTH_UNKNOWN, 3}};
    output = create(scratch_path(s, "a.npy"), &rows);
    assert_int_equal(hr_output_commit(output, &error), HR_E_INVALID);
    assert_int_equal(put(output, 0, values, sizeof values, &error), HR_OK);
    sink = hr_output_sink(output);
    assert_int_equal(sink->finish(sink->self, 16, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "no whole rows"));
    hr_output_close(&output);
    assert_int_equal(scratch_count(s), 0);

    hr_shape huge = {2, {UINT64_C(1) << 40, UINT64_C(1) << 40}};
    assert_int_equal(create_as(scratch_path(s, "a.npy"), HR_F32, &huge, &output, &error), HR_E_RANGE);
    hr_shape deep = {HR_MAX_RANK + 1, {1}};
    assert_int_equal(create_as(scratch_path(s, "a.npy"), HR_F32, &deep, &output, &error), HR_E_INVALID);
    assert_int_equal(create_as(scratch_path(s, "a.npy"), HR_DTYPE_NONE, &four, &output, &error),
                     HR_E_INVALID);
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    options.format = (hr_format)77;
    assert_int_equal(hr_output_create(scratch_path(s, "a.npy"), HR_F32, &four, &options, &output, &error),
                     HR_E_INVALID);
    assert_non_null(strstr(error.text, "format 77"));
    assert_null(output);
    assert_int_equal(scratch_count(s), 0);
}

/* What file systems without O_TMPFILE get: a hidden name that says whose it is. */
static void a_file_with_a_hidden_name_is_whole_or_absent_too(void **state)
{
    scratch *s = *state;
    char path[PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/old", s->folder);
    scratch_write(s, "old", "old", 3);
    for (int commit = 0; commit < 2; commit++) {
        hr_error error = HR_ERROR_INIT;
        hr_replace replace;
        assert_int_equal(hr_replace_open("old", path, true, &replace, &error), HR_OK);
        assert_int_equal(scratch_count(s), 2);
        assert_int_equal(strncmp(replace.temporary, ".old.headrace-", 14), 0);
        assert_int_equal(write(replace.fd, "new!", 4), 4);
        expect_old(s, "old");
        if (commit) {
            assert_int_equal(hr_replace_commit(&replace, false, &error), HR_OK);
        }
        hr_replace_close(&replace);
        assert_int_equal(scratch_count(s), 1);
    }
    size_t bytes = 0;
    unsigned char *now = scratch_read(s, "old", &bytes);
    assert_int_equal(bytes, 4);
    assert_memory_equal(now, "new!", 4);
    free(now);
}

static void long_names_are_replaced_as_well(void **state)
{
    scratch *s = *state;
    char name[256];
    memset(name, 'n', sizeof name);
    memcpy(name + 251, ".npy", 5);
    for (int round = 0; round < 2; round++) {
        hr_output *output = create(scratch_path(s, name), &four);
        write_whole(output, values, sizeof values);
        hr_output_close(&output);
        expect_values(s, name);
    }
    assert_int_equal(scratch_count(s), 1);
}

/* A program that was built when the structs were shorter gets defaults for what it does not know. */
static void structs_of_an_older_program(void **state)
{
    scratch *s = *state;
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_output *output = NULL;
    options.quality = 101;
    assert_int_equal(hr_output_create(scratch_path(s, "a.npy"), HR_F32, &four, &options, &output, &error),
                     HR_E_INVALID);
    assert_non_null(strstr(error.text, "quality of 101"));
    options.size = offsetof(hr_create_options, quality);
    assert_int_equal(hr_output_create(scratch_path(s, "a.npy"), HR_F32, &four, &options, &output, &error),
                     HR_OK);
    write_whole(output, values, sizeof values);
    hr_array_info info;
    memset(&info, 0xa5, sizeof info);
    info.size = offsetof(hr_array_info, format);
    hr_output_info(output, &info);
    assert_int_equal(info.bytes, sizeof values);
    assert_int_equal((unsigned)info.format, 0xa5a5a5a5u);
    assert_int_equal(info.size, offsetof(hr_array_info, format));
    hr_output_close(&output);
    options.size = 0;
    assert_int_equal(hr_output_create(scratch_path(s, "a.npy"), HR_F32, &four, &options, &output, &error),
                     HR_E_INVALID);
    expect_values(s, "a.npy");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_seen_before_the_commit_and_nothing_left_without_one),
        TEST(a_killed_process_leaves_the_old_file_and_nothing_else),
        TEST(mode_and_umask_are_kept),
        TEST(links_are_followed),
        TEST(places_that_cannot_be_written),
        TEST(a_limit_on_file_sizes_is_met_before_the_work),
        TEST(a_full_disk_is_met_before_the_work_where_the_length_is_known),
        TEST(a_disk_that_fills_up_leaves_the_old_file),
        TEST(several_threads_write_at_any_offset),
        TEST(what_does_not_belong_to_the_array_is_refused),
        TEST(a_file_with_a_hidden_name_is_whole_or_absent_too),
        TEST(long_names_are_replaced_as_well),
        TEST(structs_of_an_older_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
