/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of pinned memory, and the threads that copy between them and pageable memory. */
#include "backend/cuda/stage.h"
#include "base/nt_copy.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

static void run_task(hr_stage_slot *slot, hr_slot_state state)
{
    if (state == HR_SLOT_FILLING) {
        hr_stage_fill(slot);
    } else {
        hr_stage_drain(slot);
    }
}

/* Takes the oldest task, if there is one, and does it. Locked, unlocked in between; false: there was none. */
static bool do_task(hr_cuda_stager *stager, hr_stage_ring *ring)
{
    if (ring->task_count == 0) {
        return false;
    }
    hr_stage_slot *slot = &ring->slot[ring->task[ring->task_head]];
    ring->task_head = (ring->task_head + 1) % HR_STAGE_SLOTS;
    ring->task_count--;
    hr_slot_state state = slot->state;
    pthread_mutex_unlock(&stager->lock);
    run_task(slot, state);
    pthread_mutex_lock(&stager->lock);
    if (state == HR_SLOT_FILLING) {
        slot->state = HR_SLOT_FILLED;
    } else {
        slot->owner->outstanding--;
        slot->owner = NULL;
        slot->state = HR_SLOT_FREE;
    }
    stager->news++;
    pthread_cond_signal(&stager->work);
    return true;
}

typedef struct copier {
    hr_cuda_stager *stager;
    hr_stage_ring *ring;
} copier;

static void *copy_thread(void *argument)
{
    copier self = *(copier *)argument;
    free(argument);
    pthread_mutex_lock(&self.stager->lock);
    while (!self.stager->stop) {
        if (!do_task(self.stager, self.ring)) {
            pthread_cond_wait(&self.stager->tasks, &self.stager->lock);
        }
    }
    pthread_mutex_unlock(&self.stager->lock);
    return NULL;
}

/* One fewer than there are cores, since the submitting thread wants one; fewer is slower and no failure, as
 * long as there is one. */
static hr_status start_threads(hr_cuda_stager *stager, hr_stage_ring *ring, hr_error *error)
{
    uint32_t cores = hr_host_cores();
    uint32_t wanted = cores > 1 ? cores - 1 : 1;
    wanted = wanted < HR_STAGE_MAX_THREADS ? wanted : HR_STAGE_MAX_THREADS;
    hr_status status = HR_OK;
    while (ring->threads < wanted && status == HR_OK) {
        copier *self = malloc(sizeof *self);
        if (self == NULL) {
            status = hr_fail(error, HR_E_HOST_MEMORY, "staging: a copying thread could not be described");
            break;
        }
        *self = (copier){stager, ring};
        status = hr_thread_start(&ring->thread[ring->threads], "hr-cuda-copy", copy_thread, self, error);
        if (status == HR_OK) {
            ring->threads++;
        } else {
            free(self);
        }
    }
    return ring->threads > 0 ? HR_OK : status;
}

static hr_status furnish_slots(hr_cuda_stager *stager, hr_stage_ring *ring, hr_error *error)
{
    for (uint32_t i = 0; i < ring->slots; i++) {
        hr_stage_slot *slot = &ring->slot[i];
        slot->base = (char *)ring->memory.base + i * ring->slot_bytes;
        hr_status status =
            hr_cuda_check(stager->device, cudaEventCreateWithFlags(&slot->event, cudaEventDisableTiming),
                          error, "staging: creating an event");
        if (status != HR_OK) {
            slot->event = NULL;
            return status;
        }
        slot->segments = malloc(HR_STAGE_SEGMENTS * sizeof *slot->segments);
        slot->packed = malloc(HR_STAGE_SEGMENTS * sizeof *slot->packed);
        if (slot->segments == NULL || slot->packed == NULL) {
            return hr_fail(error, HR_E_HOST_MEMORY, "staging: the lists of its slots could not be had");
        }
    }
    return HR_OK;
}

hr_status hr_stage_ring_open(hr_cuda_stager *stager, hr_stage_ring **ring, hr_error *error)
{
    hr_stage_ring *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "staging: the description of its ring could not be had");
    }
    /* A smaller ring is slower and no failure: two slots of 256 KiB still overlap. */
    made->memory = (hr_bmemory){.kind = HR_MEMORY_PINNED,
                                .bytes = HR_STAGE_SLOTS * HR_STAGE_SLOT_BYTES,
                                .minimum_bytes = 2 * HR_STAGE_PIECE_LEAST};
    hr_status status = hr_cuda_memory_take(stager->device, &made->memory, error);
    if (status != HR_OK) {
        free(made);
        return status;
    }
    made->slots = (uint32_t)hr_min_u64(HR_STAGE_SLOTS, made->memory.got_bytes / HR_STAGE_PIECE_LEAST);
    made->slot_bytes = made->memory.got_bytes / made->slots / 4096 * 4096;
    status = furnish_slots(stager, made, error);
    if (status == HR_OK) {
        status = start_threads(stager, made, error);
    }
    if (status != HR_OK) {
        hr_stage_ring_close(stager, made);
        return status;
    }
    *ring = made;
    return HR_OK;
}

/* The threads have been told to stop, or were never started. */
void hr_stage_ring_close(hr_cuda_stager *stager, hr_stage_ring *ring)
{
    for (uint32_t i = 0; i < ring->threads; i++) {
        pthread_join(ring->thread[i], NULL);
    }
    for (uint32_t i = 0; i < ring->slots; i++) {
        hr_stage_slot *slot = &ring->slot[i];
        if (slot->event != NULL) {
            hr_cuda_ignore(stager->device, cudaEventDestroy(slot->event));
        }
        free(slot->segments);
        free(slot->packed);
    }
    hr_cuda_memory_release(stager->device, &ring->memory);
    free(ring);
}

/*
 * HR_OK: the device has done with the slot. HR_PENDING: not yet. HR_E_DEVICE_LOST: it will not come back to it, and what is in
 * the slot means nothing. A query that fails for another reason proves nothing, so the event is waited for; when that fails too,
 * nobody can tell what is still running, and the device counts as lost.
 */
static hr_status ask_device(hr_bdevice *device, cudaEvent_t busy)
{
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(device, &scope);
    hr_status status = hr_cuda_check(device, cudaEventQuery(busy), NULL, "staging: a slot's event");
    if (status != HR_OK && status != HR_PENDING && status != HR_E_DEVICE_LOST) {
        cudaError_t code = cudaEventSynchronize(busy);
        status = HR_OK;
        if (code != cudaSuccess) {
            hr_cuda_ignore(device, code);
            hr_cuda_lose(device, code, "staging: the state of a slot cannot be told");
            status = HR_E_DEVICE_LOST;
        }
    }
    hr_cuda_leave(&scope);
    return status;
}

/*
 * Nobody is told when a slot that no copy waits for is done with; it is found out when one is wanted. The stager's lock
 * is held, which declaring a device lost would want too: a failure counts as not done, and the submitting thread, which
 * asks without the lock, finds out what it was.
 */
static bool abandoned_and_done(const hr_stage_slot *slot)
{
    if (slot->state != HR_SLOT_ON_DEVICE || slot->owner != NULL) {
        return false;
    }
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(slot->busy_device, &scope);
    bool done = cudaEventQuery(slot->busy) == cudaSuccess;
    if (!done) {
        (void)cudaGetLastError();
    }
    hr_cuda_leave(&scope);
    return done;
}

hr_stage_slot *hr_stage_slot_take(hr_stage_ring *ring)
{
    for (uint32_t i = 0; i < ring->slots; i++) {
        if (ring->slot[i].state == HR_SLOT_FREE || abandoned_and_done(&ring->slot[i])) {
            ring->slot[i].state = HR_SLOT_FILLING;
            ring->slot[i].uses++;
            return &ring->slot[i];
        }
    }
    return NULL;
}

bool hr_stage_is_small(const hr_stage_slot *slot)
{
    const hr_stage_piece *piece = &slot->piece;
    return piece->segments == 0 && piece->width * piece->height * piece->depth <= HR_STAGE_SMALL;
}

void hr_stage_slot_hand(hr_cuda_stager *stager, hr_stage_slot *slot, hr_slot_state state)
{
    hr_stage_ring *ring = stager->ring;
    slot->state = state;
    ring->task[(ring->task_head + ring->task_count) % HR_STAGE_SLOTS] = (uint32_t)(slot - ring->slot);
    ring->task_count++;
    pthread_cond_signal(&stager->tasks);
}

bool hr_stage_ring_poll(hr_cuda_stager *stager, bool *any)
{
    hr_stage_ring *ring = stager->ring;
    bool moved = false;
    for (uint32_t i = 0; ring != NULL && i < ring->slots; i++) {
        hr_stage_slot *slot = &ring->slot[i];
        if (slot->state != HR_SLOT_ON_DEVICE) {
            continue;
        }
        hr_bdevice *device = slot->busy_device;
        cudaEvent_t busy = slot->busy;
        uint64_t uses = slot->uses;
        pthread_mutex_unlock(&stager->lock);
        hr_status status = ask_device(device, busy);
        pthread_mutex_lock(&stager->lock);
        if (slot->uses != uses || slot->state != HR_SLOT_ON_DEVICE) {
            *any = true; /* taken by somebody in between */
            continue;
        }
        if (status == HR_PENDING) {
            *any = true;
            continue;
        }
        moved = true;
        if (slot->owner != NULL && status == HR_E_DEVICE_LOST) {
            /* The copy fails, and nothing is put where it should have gone: the device may still be writing here. */
            slot->owner->outstanding--;
            slot->owner = NULL;
            slot->state = HR_SLOT_FREE;
        } else if (slot->owner != NULL && hr_stage_is_small(slot)) {
            slot->state = HR_SLOT_DRAINING;
            pthread_mutex_unlock(&stager->lock);
            hr_stage_drain(slot);
            pthread_mutex_lock(&stager->lock);
            slot->owner->outstanding--;
            slot->owner = NULL;
            slot->state = HR_SLOT_FREE;
        } else if (slot->owner != NULL) {
            hr_stage_slot_hand(stager, slot, HR_SLOT_DRAINING);
        } else {
            slot->state = HR_SLOT_FREE;
        }
    }
    return moved;
}

/* One row or more between host memory with pitches and a slot without. */
static void copy_box(char *dst, uint64_t dst_row, uint64_t dst_slice, const char *src, uint64_t src_row,
                     uint64_t src_slice, const hr_stage_piece *piece)
{
    bool flat_rows = dst_row == piece->width && src_row == piece->width;
    for (uint64_t z = 0; z < piece->depth; z++) {
        char *to = dst + z * dst_slice;
        const char *from = src + z * src_slice;
        if (flat_rows || piece->height == 1) {
            hr_copy_nontemporal(to, from, (size_t)(piece->width * piece->height));
            continue;
        }
        for (uint64_t y = 0; y < piece->height; y++) {
            hr_copy_nontemporal(to + y * dst_row, from + y * src_row, (size_t)piece->width);
        }
    }
}

static char *box_base(const hr_bend *end, const hr_stage_piece *piece)
{
    return (char *)end->base + piece->z * end->slice_pitch_bytes + piece->y * end->row_pitch_bytes + piece->x;
}

void hr_stage_fill(hr_stage_slot *slot)
{
    const hr_bend *src = &slot->owner->copy.src;
    const hr_stage_piece *piece = &slot->piece;
    if (piece->segments > 0) {
        for (uint32_t i = 0; i < piece->segments; i++) {
            hr_copy_nontemporal(slot->base + slot->packed[i],
                                (const char *)src->base + slot->segments[i].src_offset_bytes,
                                (size_t)slot->segments[i].bytes);
        }
        return;
    }
    copy_box(slot->base, piece->width, piece->width * piece->height, box_base(src, piece),
             src->row_pitch_bytes, src->slice_pitch_bytes, piece);
}

/* From end to end on the host, with the slot as a token. */
static void copy_on_host(const hr_stage_slot *slot)
{
    const hr_bcopy *copy = &slot->owner->copy;
    const hr_stage_piece *piece = &slot->piece;
    for (uint32_t i = 0; i < piece->segments; i++) {
        hr_copy_nontemporal((char *)copy->dst.base + slot->segments[i].dst_offset_bytes,
                            (const char *)copy->src.base + slot->segments[i].src_offset_bytes,
                            (size_t)slot->segments[i].bytes);
    }
    if (piece->segments == 0) {
        copy_box(box_base(&copy->dst, piece), copy->dst.row_pitch_bytes, copy->dst.slice_pitch_bytes,
                 box_base(&copy->src, piece), copy->src.row_pitch_bytes, copy->src.slice_pitch_bytes, piece);
    }
}

void hr_stage_drain(hr_stage_slot *slot)
{
    if (slot->owner->way == HR_CUDA_WAY_HOST) {
        copy_on_host(slot);
        return;
    }
    const hr_bend *dst = &slot->owner->copy.dst;
    const hr_stage_piece *piece = &slot->piece;
    if (piece->segments > 0) {
        for (uint32_t i = 0; i < piece->segments; i++) {
            hr_copy_nontemporal((char *)dst->base + slot->segments[i].dst_offset_bytes,
                                slot->base + slot->packed[i], (size_t)slot->segments[i].bytes);
        }
        return;
    }
    copy_box(box_base(dst, piece), dst->row_pitch_bytes, dst->slice_pitch_bytes, slot->base, piece->width,
             piece->width * piece->height, piece);
}
