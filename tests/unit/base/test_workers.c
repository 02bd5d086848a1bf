/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/fork.h"
#include "base/workers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static hr_crew *open_crew(uint32_t threads)
{
    hr_crew *crew = NULL;
    assert_int_equal(hr_crew_open(threads, &crew, NULL), HR_OK);
    return crew;
}

static void count(void *user, uint64_t index)
{
    atomic_fetch_add(&((atomic_int *)user)[index], 1);
}

static void each_index_runs_exactly_once(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 2, 3, 5, 64, 1001};
    static atomic_int ran[1001];
    hr_crew *crew = open_crew(4);
    assert_int_equal(hr_crew_workers(crew)->threads, 4);
    for (unsigned round = 0; round < 70; round++) {
        uint64_t indices = counts[round % 7];
        for (int i = 0; i < 1001; i++) {
            atomic_store(&ran[i], 0);
        }
        const hr_workers *workers = hr_crew_workers(crew);
        workers->run(workers->self, indices, count, ran);
        for (uint64_t i = 0; i < 1001; i++) {
            assert_int_equal(atomic_load(&ran[i]), i < indices ? 1 : 0);
        }
    }
    hr_crew_close(&crew);
    assert_null(crew);
    hr_crew_close(&crew);
}

/* Two indices that wait for each other: only two threads at once get through. */
typedef struct meeting_point {
    pthread_barrier_t barrier;
} meeting_point;

static void meet(void *user, uint64_t index)
{
    (void)index;
    pthread_barrier_wait(&((meeting_point *)user)->barrier);
}

static void indices_run_at_the_same_time(void **state)
{
    (void)state;
    hr_crew *crew = open_crew(3);
    meeting_point meeting;
    pthread_barrier_init(&meeting.barrier, NULL, 3);
    for (int i = 0; i < 200; i++) {
        hr_crew_run(crew, 3, meet, &meeting);
    }
    usleep(2000); /* long enough for the helpers to sleep; then they must be woken */
    hr_crew_run(crew, 3, meet, &meeting);
    pthread_barrier_destroy(&meeting.barrier);
    hr_crew_close(&crew);
}

typedef struct nested {
    hr_crew *crew;
    atomic_int total;
} nested;

static void add_one(void *user, uint64_t index)
{
    (void)index;
    atomic_fetch_add(&((nested *)user)->total, 1);
}

static void run_inside(void *user, uint64_t index)
{
    (void)index;
    hr_crew_run(((nested *)user)->crew, 7, add_one, user);
}

static void loops_inside_loops_end(void **state)
{
    (void)state;
    nested work = {open_crew(3), 0};
    for (int i = 0; i < 100; i++) {
        hr_crew_run(work.crew, 11, run_inside, &work);
    }
    assert_int_equal(atomic_load(&work.total), 100 * 11 * 7);
    hr_crew_close(&work.crew);
}

static void *run_many(void *argument)
{
    nested *work = argument;
    for (int i = 0; i < 300; i++) {
        hr_crew_run(work->crew, (uint64_t)i % 9, add_one, work);
    }
    return NULL;
}

static void several_threads_share_one_crew(void **state)
{
    (void)state;
    nested work = {open_crew(3), 0};
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &work), 0);
    }
    int expected = 0;
    for (int i = 0; i < 300; i++) {
        expected += i % 9;
    }
    for (int i = 0; i < 5; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&work.total), 5 * expected);
    hr_crew_close(&work.crew);
}

static void a_crew_of_one_runs_on_the_caller(void **state)
{
    (void)state;
    nested work = {open_crew(1), 0};
    hr_crew_run(work.crew, 5, add_one, &work);
    assert_int_equal(atomic_load(&work.total), 5);
    hr_crew_close(&work.crew);
}

static void a_child_knows_that_it_is_one(void **state)
{
    (void)state;
    hr_fork_guard guard;
    hr_fork_guard_open(&guard);
    assert_false(hr_forked(&guard));
    pid_t child = fork();
    if (child == 0) {
        hr_fork_guard own;
        hr_fork_guard_open(&own);
        _exit(hr_forked(&guard) && !hr_forked(&own) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_false(hr_forked(&guard));
    /* The same where the kernel wipes no pages. */
    hr_fork_guard slow = {NULL, getpid() + 1};
    assert_true(hr_forked(&slow));
    hr_fork_guard_close(&guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_index_runs_exactly_once),     cmocka_unit_test(indices_run_at_the_same_time),
        cmocka_unit_test(loops_inside_loops_end),           cmocka_unit_test(several_threads_share_one_crew),
        cmocka_unit_test(a_crew_of_one_runs_on_the_caller), cmocka_unit_test(a_child_knows_that_it_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
