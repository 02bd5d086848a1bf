/* SPDX-License-Identifier: Apache-2.0 */
/* The ring alone: what it registers, what it says of failures, and where files end. */
#include "unit/io/scratch.h"

#include "io/ring.h"

#include <errno.h>
#include <sys/resource.h>

/* Buffers that the kernel counts as registered with this process's rings; −1 where it does not tell. */
static int registered_buffers(void)
{
    int total = -1;
    for (int fd = 3; fd < 64; fd++) {
        char path[40];
        char line[128];
        snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
        FILE *info = fopen(path, "r");
        while (info != NULL && fgets(line, sizeof line, info) != NULL) {
            int count = 0;
            /* NOLINTNEXTLINE(cert-err34-c) */
            if (sscanf(line, "UserBufs: %d", &count) == 1) {
                total = (total < 0 ? 0 : total) + count;
            }
        }
        if (info != NULL) {
            fclose(info);
        }
    }
    return total;
}

static hr_ring *open_ring(bool direct)
{
    hr_ring *ring = NULL;
    int errnum = hr_ring_open(direct, &ring);
    if (errnum == ENOSYS || errnum == EPERM) {
        skip();
    }
    assert_int_equal(errnum, 0);
    return ring;
}

static void the_stage_and_the_callers_buffers_are_registered(void **state)
{
    (void)state;
    hr_ring *ring = open_ring(true);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    void *buffers[3];
    uint64_t bytes[3];
    for (int i = 0; i < 3; i++) {
        bytes[i] = 1 << 20;
        buffers[i] = aligned_alloc(4096, bytes[i]);
    }
    hr_ring_register(ring, buffers, bytes, 3);
    int found = registered_buffers();
    if (found >= 0 && (geteuid() == 0 || limit.rlim_cur >= 16u << 20)) {
        assert_int_equal(found, 4);
    }
    hr_ring_close(&ring);
    assert_null(ring);
    for (int i = 0; i < 3; i++) {
        free(buffers[i]);
    }
}

static void a_failing_read_ends_with_its_number_and_nothing_in_flight(void **state)
{
    scratch *s = *state;
    hr_ring *ring = open_ring(false);
    int folder = open(s->folder, O_RDONLY | O_DIRECTORY);
    unsigned char *buffer = malloc(16 << 20);
    uint64_t got = 7;
    assert_int_equal(hr_ring_read(ring, folder, 0, buffer, 16 << 20, &got), EISDIR);
    assert_int_equal(got, 7);
    /* The ring is as good as before. */
    scratch_write(s, "a", "0123456789", 10);
    int fd = open(scratch_path(s, "a"), O_RDONLY);
    assert_int_equal(hr_ring_read(ring, fd, 2, buffer, 5, &got), 0);
    assert_int_equal(got, 5);
    assert_memory_equal(buffer, "23456", 5);
    assert_int_equal(hr_ring_read(ring, fd, 8, buffer, 16 << 20, &got), 0);
    assert_int_equal(got, 2);
    assert_int_equal(hr_ring_read(ring, fd, 100, buffer, 16 << 20, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(hr_ring_read(ring, fd, 0, buffer, 0, &got), 0);
    assert_int_equal(got, 0);
    close(fd);
    close(folder);
    free(buffer);
    hr_ring_close(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stage_and_the_callers_buffers_are_registered),
        cmocka_unit_test_setup_teardown(a_failing_read_ends_with_its_number_and_nothing_in_flight,
                                        scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
