/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a loop. The caller puts a job, which lives on its own stack, into the crew's list and starts to
 * take indices from it; helpers that find the job join it (`helpers` counts them, under the lock) and take
 * indices too. When no index is left the caller takes the job off the list, so that nobody can join any more,
 * and waits until the helpers that joined have left. Only then does the job's memory go.
 *
 * Helpers look at `posted` for a short while before they sleep: a chunk of a pipeline is often followed by
 * the next within microseconds, and a sleeping thread takes longer than that to wake.
 */
#include "base/workers.h"

#include "base/clock.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Longer than a wake-up by the kernel, and short beside any chunk worth sharing out. */
#define SPIN_NS UINT64_C(15000)

typedef struct job {
    struct job *next;
    uint64_t count;
    void (*body)(void *user, uint64_t index);
    void *user;
    _Atomic uint64_t taken;
    _Atomic uint32_t helpers; /* joins are counted under the lock, leaves are not */
} job;

struct hr_crew {
    hr_workers workers;
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job was posted, or the crew closes */
    pthread_cond_t left; /* a helper left a job whose caller sleeps */
    job *jobs;
    _Atomic uint64_t posted;
    uint32_t sleeping;
    uint32_t started;
    _Atomic uint32_t callers_asleep;
    bool closing;
    pthread_t threads[];
};

static void take_indices(job *work)
{
    for (;;) {
        uint64_t index = atomic_fetch_add_explicit(&work->taken, 1, memory_order_relaxed);
        if (index >= work->count) {
            return;
        }
        work->body(work->user, index);
    }
}

/* Under the lock. A job with indices left, or null. */
static job *find_job(hr_crew *crew)
{
    for (job *work = crew->jobs; work != NULL; work = work->next) {
        if (atomic_load_explicit(&work->taken, memory_order_relaxed) < work->count) {
            return work;
        }
    }
    return NULL;
}

static void spin_for_a_job(hr_crew *crew, uint64_t seen)
{
    uint64_t until = hr_now_ns() + SPIN_NS;
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(&crew->posted, memory_order_relaxed) != seen) {
                return;
            }
            hr_spin_pause();
        }
    } while (hr_now_ns() < until);
}

static void *helper(void *argument)
{
    hr_crew *crew = argument;
    pthread_mutex_lock(&crew->lock);
    while (!crew->closing) {
        job *work = find_job(crew);
        if (work != NULL) {
            atomic_fetch_add_explicit(&work->helpers, 1, memory_order_relaxed);
            pthread_mutex_unlock(&crew->lock);
            take_indices(work);
            /* The job may be gone after this; the caller that sleeps for it is woken through the crew. */
            atomic_fetch_sub_explicit(&work->helpers, 1, memory_order_seq_cst);
            bool wake = atomic_load_explicit(&crew->callers_asleep, memory_order_seq_cst) > 0;
            pthread_mutex_lock(&crew->lock);
            if (wake) {
                pthread_cond_broadcast(&crew->left);
            }
            continue;
        }
        uint64_t seen = atomic_load_explicit(&crew->posted, memory_order_relaxed);
        pthread_mutex_unlock(&crew->lock);
        spin_for_a_job(crew, seen);
        pthread_mutex_lock(&crew->lock);
        if (!crew->closing && atomic_load_explicit(&crew->posted, memory_order_relaxed) == seen) {
            crew->sleeping++;
            pthread_cond_wait(&crew->work, &crew->lock);
            crew->sleeping--;
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Takes the job off the list and waits until its last helper has left. */
static void finish_job(hr_crew *crew, job *work)
{
    pthread_mutex_lock(&crew->lock);
    job **link = &crew->jobs;
    while (*link != work) {
        link = &(*link)->next;
    }
    *link = work->next;
    pthread_mutex_unlock(&crew->lock);

    uint64_t until = hr_now_ns() + SPIN_NS;
    while (atomic_load_explicit(&work->helpers, memory_order_acquire) > 0) {
        if (hr_now_ns() >= until) {
            pthread_mutex_lock(&crew->lock);
            atomic_fetch_add_explicit(&crew->callers_asleep, 1, memory_order_seq_cst);
            while (atomic_load_explicit(&work->helpers, memory_order_seq_cst) > 0) {
                pthread_cond_wait(&crew->left, &crew->lock);
            }
            atomic_fetch_sub_explicit(&crew->callers_asleep, 1, memory_order_relaxed);
            pthread_mutex_unlock(&crew->lock);
            return;
        }
        hr_spin_pause();
    }
}

void hr_crew_run(hr_crew *crew, uint64_t count, void (*body)(void *user, uint64_t index), void *user)
{
    if (count <= 1 || crew->started == 0) {
        for (uint64_t i = 0; i < count; i++) {
            body(user, i);
        }
        return;
    }
    job work = {.count = count, .body = body, .user = user};
    pthread_mutex_lock(&crew->lock);
    work.next = crew->jobs;
    crew->jobs = &work;
    atomic_fetch_add_explicit(&crew->posted, 1, memory_order_relaxed);
    uint32_t sleeping = crew->sleeping;
    pthread_mutex_unlock(&crew->lock);
    if (sleeping == 1 || (sleeping > 1 && count == 2)) {
        pthread_cond_signal(&crew->work);
    } else if (sleeping > 1) {
        pthread_cond_broadcast(&crew->work);
    }
    take_indices(&work);
    finish_job(crew, &work);
}

static void run_for_launchers(void *self, uint64_t count, void (*body)(void *user, uint64_t index),
                              void *user)
{
    hr_crew_run(self, count, body, user);
}

hr_status hr_crew_open(uint32_t threads, hr_crew **crew, hr_error *error)
{
    uint32_t helpers = threads > 1 ? threads - 1 : 0;
    hr_crew *made = calloc(1, sizeof *made + helpers * sizeof made->threads[0]);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "worker threads: no memory for %u threads", threads);
    }
    made->workers = (hr_workers){made, helpers + 1, run_for_launchers};
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->left, NULL);
    for (uint32_t i = 0; i < helpers; i++) {
        hr_status status = hr_thread_start(&made->threads[i], "hr-worker", helper, made, error);
        if (status != HR_OK) {
            hr_crew_close(&made);
            return status;
        }
        made->started++;
    }
    *crew = made;
    return HR_OK;
}

void hr_crew_close(hr_crew **crew)
{
    hr_crew *closed = *crew;
    if (closed == NULL) {
        return;
    }
    pthread_mutex_lock(&closed->lock);
    closed->closing = true;
    atomic_fetch_add_explicit(&closed->posted, 1, memory_order_relaxed);
    pthread_cond_broadcast(&closed->work);
    pthread_mutex_unlock(&closed->lock);
    for (uint32_t i = 0; i < closed->started; i++) {
        pthread_join(closed->threads[i], NULL);
    }
    pthread_cond_destroy(&closed->left);
    pthread_cond_destroy(&closed->work);
    pthread_mutex_destroy(&closed->lock);
    free(closed);
    *crew = NULL;
}

const hr_workers *hr_crew_workers(const hr_crew *crew)
{
    return &crew->workers;
}
