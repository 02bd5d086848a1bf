/* SPDX-License-Identifier: Apache-2.0 */
#include "io/parallel.h"

#include "base/checked.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS_MAX 64

typedef struct loop {
    atomic_uint_fast64_t next;
    uint64_t count;
    hr_parallel_body body;
    void *user;
    pthread_mutex_t lock;
    hr_status status; /* of the failure below */
    uint64_t failed_index;
    hr_error error;
} loop;

static void note_failure(loop *l, uint64_t index, hr_status status, const hr_error *error)
{
    pthread_mutex_lock(&l->lock);
    if (l->status == HR_OK || index < l->failed_index) {
        l->status = status;
        l->failed_index = index;
        l->error = *error;
    }
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->next, l->count);
}

static void *work(void *argument)
{
    loop *l = argument;
    for (;;) {
        uint64_t index = atomic_fetch_add(&l->next, 1);
        if (index >= l->count) {
            return NULL;
        }
        hr_error error = HR_ERROR_INIT;
        hr_status status = l->body(l->user, index, &error);
        if (status != HR_OK) {
            note_failure(l, index, status, &error);
        }
    }
}

hr_status hr_parallel(uint32_t threads, uint64_t count, hr_parallel_body body, void *user, hr_error *error)
{
    loop l = {.count = count, .body = body, .user = user, .status = HR_OK};
    atomic_init(&l.next, 0);
    pthread_mutex_init(&l.lock, NULL);
    pthread_t started[THREADS_MAX];
    uint64_t wanted = hr_min_u64(hr_min_u64(threads, count), THREADS_MAX);
    uint64_t running = 0;
    while (running + 1 < wanted && hr_thread_start(&started[running], "hr-read", work, &l, NULL) == HR_OK) {
        running++;
    }
    work(&l);
    for (uint64_t i = 0; i < running; i++) {
        pthread_join(started[i], NULL);
    }
    pthread_mutex_destroy(&l.lock);
    if (l.status != HR_OK && error != NULL) {
        *error = l.error;
    }
    return l.status;
}
