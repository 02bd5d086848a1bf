/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOL_BYTES (UINT64_C(96) << 20)

void fixture_fail(fixture *fx, const char *file, int line, const char *what, hr_status status)
{
    const char *name = strrchr(file, '/');
    const char *text = status < HR_OK && fx->error.text[0] != '\0' ? fx->error.text : hr_status_text(status);
    snprintf(fx->failure, sizeof fx->failure, "%s:%d: %s%s%s", name != NULL ? name + 1 : file, line, what,
             status != HR_OK ? ": " : "", status != HR_OK ? text : "");
}

uint64_t random_below(fixture *fx, uint64_t bound)
{
    fx->random ^= fx->random << 13;
    fx->random ^= fx->random >> 7;
    fx->random ^= fx->random << 17;
    return fx->random % bound;
}

void random_bytes(fixture *fx, void *bytes, uint64_t count)
{
    unsigned char *at = bytes;
    for (uint64_t i = 0; i < count; i++) {
        at[i] = (unsigned char)random_below(fx, 256);
    }
}

struct gate_lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool reached, open;
};

bool gate_works(const fixture *fx)
{
    return fx->info.kind == HR_DEVICE_CPU;
}

static hr_status hold(const hr_launch *launch, hr_error *error)
{
    (void)error;
    struct gate_lock *lock = launch->user;
    pthread_mutex_lock(&lock->mutex);
    lock->reached = true;
    pthread_cond_broadcast(&lock->changed);
    while (!lock->open) {
        pthread_cond_wait(&lock->changed, &lock->mutex);
    }
    pthread_mutex_unlock(&lock->mutex);
    return HR_OK;
}

hr_status gate_close_in(fixture *fx, stream_gate *gate, hr_stream *stream)
{
    struct gate_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL) {
        return HR_E_HOST_MEMORY;
    }
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->changed, NULL);
    gate->lock = lock;
    return launch(fx, stream, hold, lock);
}

void gate_reached(stream_gate *gate)
{
    struct gate_lock *lock = gate->lock;
    pthread_mutex_lock(&lock->mutex);
    while (!lock->reached) {
        pthread_cond_wait(&lock->changed, &lock->mutex);
    }
    pthread_mutex_unlock(&lock->mutex);
}

void gate_open(stream_gate *gate)
{
    struct gate_lock *lock = gate->lock;
    pthread_mutex_lock(&lock->mutex);
    lock->open = true;
    pthread_cond_broadcast(&lock->changed);
    pthread_mutex_unlock(&lock->mutex);
}

void gate_free(stream_gate *gate)
{
    struct gate_lock *lock = gate->lock;
    pthread_cond_destroy(&lock->changed);
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
}

hr_status launch(fixture *fx, hr_stream *stream, hr_launch_fn fn, void *user)
{
    hr_launch values;
    memset(&values, 0, sizeof values);
    values.size = sizeof values;
    values.user = user;
    return hr_stream_launch(stream, fn, &values, &fx->error);
}

static void run_cases(fixture *fx, const named_case *cases, const char *only, unsigned *good, unsigned *bad)
{
    for (; cases->name != NULL; cases++) {
        if (only != NULL && strstr(cases->name, only) == NULL) {
            continue;
        }
        fx->failure[0] = '\0';
        fx->skipped = NULL;
        fx->error = HR_ERROR_INIT;
        cases->run(fx);
        if (fx->failure[0] != '\0') {
            printf("FAILED %s: %s\n", cases->name, fx->failure);
            (*bad)++;
        } else if (fx->skipped != NULL) {
            printf("skipped %s: %s\n", cases->name, fx->skipped);
        } else {
            printf("ok %s\n", cases->name);
            (*good)++;
        }
        fflush(stdout);
    }
}

static hr_status open_pools(fixture *fx)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.bytes = POOL_BYTES;
    options.name = "device";
    options.kind = HR_MEMORY_DEVICE;
    hr_status status = hr_pool_open(fx->device, &options, &fx->on_device, &fx->error);
    if (status == HR_OK) {
        options.name = "pinned";
        options.kind = HR_MEMORY_PINNED;
        status = hr_pool_open(fx->device, &options, &fx->pinned, &fx->error);
    }
    return status;
}

/* Everything given back, everything closes: a case that leaks fails here. */
static hr_status close_all(fixture *fx)
{
    hr_status status = hr_pool_close(&fx->on_device, &fx->error);
    if (status == HR_OK) {
        status = hr_pool_close(&fx->pinned, &fx->error);
    }
    if (status == HR_OK) {
        status = hr_device_close(&fx->device, &fx->error);
    }
    return status == HR_OK ? hr_runtime_close(&fx->runtime, &fx->error) : status;
}

int conformance_run(const char *spec, const char *peer, const char *module_path, const char *only,
                    bool thorough)
{
    fixture fx;
    memset(&fx, 0, sizeof fx);
    fx.info = (hr_device_info)HR_DEVICE_INFO_INIT;
    fx.error = HR_ERROR_INIT;
    fx.spec = spec;
    fx.peer = peer != NULL ? peer : spec;
    fx.thorough = thorough;
    fx.random = UINT64_C(0x9E3779B97F4A7C15);
    hr_runtime_options options = HR_RUNTIME_OPTIONS_INIT;
    options.module_path = module_path;
    if (hr_runtime_open(&options, &fx.runtime, &fx.error) != HR_OK) {
        printf("FAILED open: %s\n", fx.error.text);
        return 1;
    }
    hr_status status = hr_device_open(fx.runtime, spec, &fx.device, &fx.error);
    if (status != HR_OK) {
        bool absent = status == HR_E_UNSUPPORTED || status == HR_E_NOT_FOUND;
        printf("%s %s: %s\n", absent ? "skipped" : "FAILED", spec, fx.error.text);
        IGNORE(hr_runtime_close(&fx.runtime, NULL));
        return absent ? 77 : 1;
    }
    if (hr_device_get_info(fx.device, &fx.info, &fx.error) != HR_OK || open_pools(&fx) != HR_OK) {
        printf("FAILED %s: %s\n", spec, fx.error.text);
        return 1;
    }
    unsigned good = 0, bad = 0;
    run_cases(&fx, order_cases, only, &good, &bad);
    run_cases(&fx, shape_cases, only, &good, &bad);
    run_cases(&fx, large_cases, only, &good, &bad);
    run_cases(&fx, failure_cases, only, &good, &bad);
    run_cases(&fx, thread_cases, only, &good, &bad);
    /* What a failed case held is still held. */
    if (bad == 0 && close_all(&fx) != HR_OK) {
        printf("FAILED close: %s\n", fx.error.text);
        bad++;
    }
    printf("%s: %u good, %u failed\n", spec, good, bad);
    return bad > 0 ? 1 : 0;
}
