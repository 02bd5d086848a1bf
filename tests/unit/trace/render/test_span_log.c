/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <headrace/span_log.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hr_span_log *open_log(void)
{
    hr_span_log *log = NULL;
    assert_int_equal(hr_span_log_open(&log, NULL), HR_OK);
    return log;
}

static void tell(hr_span_log *log, const hr_span *span)
{
    const hr_observer *observer = hr_span_log_observer(log);
    observer->span(observer->self, span);
}

static void names_outlive_who_told_them(void **state)
{
    (void)state;
    hr_span_log *log = open_log();
    char device[] = "cuda:0", name[] = "add";
    tell(log, &(hr_span){.stage = HR_STAGE_COMPUTE, .device = device, .name = name, .chunk = 7});
    tell(log, &(hr_span){.stage = HR_STAGE_READ});
    memset(device, 'x', sizeof device - 1);
    memset(name, 'x', sizeof name - 1);
    size_t count = 0;
    const hr_span *spans = hr_span_log_spans(log, &count);
    assert_int_equal(count, 2);
    assert_string_equal(spans[0].device, "cuda:0");
    assert_string_equal(spans[0].name, "add");
    assert_int_equal(spans[0].chunk, 7);
    assert_null(spans[1].device);
    hr_span_log_close(&log);
}

enum { THREADS = 4, SPANS = 20000 };

static void *tell_many(void *log)
{
    for (uint64_t i = 0; i < SPANS; i++)
        tell(log, &(hr_span){.stage = HR_STAGE_WRITE, .chunk = i, .name = i % 2 ? "odd" : "even"});
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    (void)state;
    hr_span_log *log = open_log();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, tell_many, log), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    size_t count = 0;
    const hr_span *spans = hr_span_log_spans(log, &count);
    assert_int_equal(count, THREADS * SPANS);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += spans[i].chunk;
        assert_string_equal(spans[i].name, spans[i].chunk % 2 ? "odd" : "even");
    }
    assert_int_equal(sum, (uint64_t)THREADS * SPANS * (SPANS - 1) / 2);
    hr_span_log_close(&log);
}

static char *read_file(const char *path)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static int entries(const char *folder)
{
    int count = 0;
    DIR *opened = opendir(folder);
    assert_non_null(opened);
    while (readdir(opened))
        count++;
    closedir(opened);
    return count - 2;
}

static void a_file_has_times_from_the_first_span_on(void **state)
{
    (void)state;
    char folder[] = "span-log-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.json", folder);
    hr_span_log *log = open_log();
    hr_span_log_about about = HR_SPAN_LOG_ABOUT_INIT;
    about.title = "say \"hi\"";
    about.device_name = "A device";
    tell(log, &(hr_span){.stage = HR_STAGE_H2D,
                         .begin_ns = 5001234,
                         .end_ns = 5003234,
                         .bytes = 4000,
                         .device = "cuda:0",
                         .chunk = 3});
    tell(log, &(hr_span){.stage = HR_STAGE_READ, .begin_ns = 5000000, .end_ns = 5000001, .lane = 2});
    assert_int_equal(hr_span_log_write(log, path, &about, NULL), HR_OK);
    const char *text = read_file(path);
    assert_ptr_equal(strstr(text, "{\"headrace\":"), text);
    assert_non_null(strstr(text, "\"op\":\"say \\\"hi\\\"\""));
    assert_non_null(strstr(text, "\"ts\":1.234,\"dur\":2.000"));
    assert_non_null(strstr(text, "\"ts\":0.000,\"dur\":0.001"));
    assert_non_null(strstr(text, "\"device\":0,\"context\":1,\"stream\":1,\"bytes\":4000,\"chunk\":3"));
    assert_non_null(strstr(text, "\"memory bandwidth (GB/s)\":2.000"));
    assert_non_null(strstr(text, "\"name\":\"A device\""));
    assert_int_equal(entries(folder), 1);
    unlink(path);
    rmdir(folder);
    hr_span_log_close(&log);
}

static void a_file_that_cannot_be_named_leaves_nothing(void **state)
{
    (void)state;
    char folder[] = "span-log-XXXXXX", path[64];
    hr_error error = HR_ERROR_INIT;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.json", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    hr_span_log *log = open_log();
    assert_int_equal(hr_span_log_write(log, path, NULL, &error), HR_E_IO);
    assert_non_null(strstr(error.text, path));
    assert_int_equal(entries(folder), 1);
    rmdir(path);
    rmdir(folder);
    hr_span_log_close(&log);
}

static void a_pipe_is_written_and_not_replaced(void **state)
{
    (void)state;
    char folder[] = "/tmp/span_log_XXXXXX", path[64], read_back[4096];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int pipe = open(path, O_RDWR | O_CLOEXEC); /* a pipe holds 64 KiB: nobody has to read meanwhile */
    assert_true(pipe >= 0);
    hr_span_log *log = open_log();
    tell(log, &(hr_span){.stage = HR_STAGE_READ, .begin_ns = 5, .end_ns = 9});
    assert_int_equal(hr_span_log_write(log, path, NULL, NULL), HR_OK);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_true(S_ISFIFO(about.st_mode));
    assert_true(read(pipe, read_back, sizeof read_back) > 20);
    assert_int_equal(read_back[0], '{');
    close(pipe);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing lies beside it */
    hr_span_log_close(&log);
}

static void a_symbolic_link_stays_one(void **state)
{
    (void)state;
    char folder[] = "span-log-XXXXXX", link_path[64], path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(link_path, sizeof link_path, "%s/link.json", folder);
    snprintf(path, sizeof path, "%s/t.json", folder);
    FILE *old = fopen(path, "we");
    assert_non_null(old);
    fclose(old);
    assert_int_equal(symlink("t.json", link_path), 0);
    hr_span_log *log = open_log();
    assert_int_equal(hr_span_log_write(log, link_path, NULL, NULL), HR_OK);
    const char *text = read_file(path);
    assert_ptr_equal(strstr(text, "{\"headrace\":"), text);
    struct stat about;
    assert_int_equal(lstat(link_path, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(entries(folder), 2);
    unlink(link_path);
    unlink(path);
    rmdir(folder);
    hr_span_log_close(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_outlive_who_told_them),
        cmocka_unit_test(threads_lose_nothing),
        cmocka_unit_test(a_file_has_times_from_the_first_span_on),
        cmocka_unit_test(a_file_that_cannot_be_named_leaves_nothing),
        cmocka_unit_test(a_pipe_is_written_and_not_replaced),
        cmocka_unit_test(a_symbolic_link_stays_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
