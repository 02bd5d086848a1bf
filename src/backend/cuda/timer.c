/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: CUDA events with timing, placed on the host's clock. CUDA tells only the difference of two events,
 * as a float of milliseconds that is good to about half a microsecond for some seconds. So there is an epoch:
 * an event whose host time was measured on an idle stream. It is replaced when it has grown old; timers keep
 * the epoch that they were recorded under.
 */
#include "backend/cuda/cuda_backend.h"
#include "base/clock.h"

#include <stdlib.h>

#define EPOCH_NS       (4 * HR_NS_PER_S)
#define EPOCH_ATTEMPTS 8

static void release_epoch(hr_cuda_epoch *epoch)
{
    if (epoch != NULL && atomic_fetch_sub(&epoch->references, 1) == 1) {
        (void)cudaEventDestroy(epoch->event);
        free(epoch);
    }
}

/* Of several attempts, the one that took the host least time has its middle nearest to the truth. */
static hr_status measure_epoch(hr_bdevice *device, hr_cuda_epoch *epoch, hr_error *error)
{
    uint64_t best_ns = UINT64_MAX;
    cudaEvent_t best = NULL;
    for (int i = 0; i < EPOCH_ATTEMPTS; i++) {
        cudaEvent_t event = NULL;
        hr_status status = hr_cuda_check(device, cudaEventCreateWithFlags(&event, cudaEventDefault), error,
                                         "timer: creating an event");
        if (status != HR_OK) {
            if (best != NULL) {
                (void)cudaEventDestroy(best);
            }
            return status;
        }
        uint64_t begin = hr_now_ns();
        cudaError_t code = cudaEventRecord(event, device->own_stream);
        if (code == cudaSuccess) {
            code = cudaEventSynchronize(event);
        }
        uint64_t took = hr_now_ns() - begin;
        if (code == cudaSuccess && took < best_ns) {
            best_ns = took;
            epoch->host_ns = begin + took / 2;
            cudaEvent_t worse = best;
            best = event;
            event = worse;
        }
        if (event != NULL) {
            (void)cudaEventDestroy(event);
        }
        status = hr_cuda_check(device, code, error, "timer: setting the clock");
        if (status != HR_OK) {
            if (best != NULL) {
                (void)cudaEventDestroy(best);
            }
            return status;
        }
    }
    epoch->event = best;
    return HR_OK;
}

/* The epoch for a record made now. The caller gets a reference. */
static hr_status current_epoch(hr_bdevice *device, hr_cuda_epoch **epoch, hr_error *error)
{
    hr_status status = HR_OK;
    pthread_mutex_lock(&device->lock);
    hr_cuda_epoch *old = device->epoch;
    if (old == NULL || hr_now_ns() - old->host_ns > EPOCH_NS) {
        hr_cuda_epoch *made = calloc(1, sizeof *made);
        if (made == NULL) {
            status = hr_fail(error, HR_E_HOST_MEMORY, "timer: its epoch could not be had");
        } else {
            /* Unlocked: a lost device is noted under the same lock. */
            pthread_mutex_unlock(&device->lock);
            status = measure_epoch(device, made, error);
            pthread_mutex_lock(&device->lock);
            if (status != HR_OK) {
                free(made);
            } else {
                atomic_store(&made->references, 1);
                hr_cuda_epoch *replaced = device->epoch;
                device->epoch = made;
                release_epoch(replaced);
            }
        }
    }
    if (status == HR_OK) {
        *epoch = device->epoch;
        atomic_fetch_add(&device->epoch->references, 1);
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

void hr_cuda_epochs_free(hr_bdevice *device)
{
    release_epoch(device->epoch);
    device->epoch = NULL;
}

hr_status hr_cuda_timer_open(hr_bdevice *device, hr_btimer **timer, hr_error *error)
{
    hr_btimer *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "timer: its description could not be had");
    }
    made->device = device;
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(device, &scope, error);
    if (status == HR_OK) {
        status = hr_cuda_check(device, cudaEventCreateWithFlags(&made->native, cudaEventDefault), error,
                               "timer: creating it");
        if (status == HR_OK) {
            status = current_epoch(device, &made->epoch, error);
            if (status != HR_OK) {
                (void)cudaEventDestroy(made->native);
            }
        }
        hr_cuda_leave(&scope);
    }
    if (status != HR_OK) {
        free(made);
        return status;
    }
    *timer = made;
    return HR_OK;
}

void hr_cuda_timer_close(hr_btimer *timer)
{
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(timer->device, &scope);
    while (atomic_load(&timer->deferred)) {
        hr_cuda_stager_pause(timer->device);
    }
    hr_cuda_ignore(timer->device, cudaEventDestroy(timer->native));
    release_epoch(timer->epoch);
    hr_cuda_leave(&scope);
    free(timer);
}

hr_status hr_cuda_timer_submit(hr_btimer *timer, hr_bstream *stream, hr_error *error)
{
    hr_cuda_epoch *epoch = NULL;
    hr_status status = current_epoch(timer->device, &epoch, error);
    if (status != HR_OK) {
        return status;
    }
    release_epoch(timer->epoch);
    timer->epoch = epoch;
    return hr_cuda_check(stream->device, cudaEventRecord(timer->native, stream->native), error,
                         "timer: recording it");
}

hr_status hr_cuda_timer_record(hr_btimer *timer, hr_bstream *stream, hr_error *error)
{
    hr_status status = hr_cuda_stream_ready(stream, error);
    if (status != HR_OK) {
        return status;
    }
    hr_cuda_scope scope;
    status = hr_cuda_enter(stream->device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_cuda_stream_deferred(stream) ? hr_cuda_defer_timer(stream, timer, error)
                                             : hr_cuda_timer_submit(timer, stream, error);
    hr_cuda_leave(&scope);
    return status;
}

hr_status hr_cuda_timer_read(hr_btimer *timer, uint64_t *time_ns, hr_error *error)
{
    if (atomic_load_explicit(&timer->deferred, memory_order_acquire)) {
        return HR_PENDING;
    }
    hr_cuda_scope scope;
    hr_status status = hr_cuda_enter(timer->device, &scope, error);
    if (status != HR_OK) {
        return status;
    }
    float ms = 0.0f;
    status = hr_cuda_check(timer->device, cudaEventElapsedTime(&ms, timer->epoch->event, timer->native),
                           error, "timer: reading it");
    hr_cuda_leave(&scope);
    if (status == HR_OK) {
        *time_ns = (uint64_t)((int64_t)timer->epoch->host_ns + (int64_t)((double)ms * 1e6));
    }
    return status;
}
