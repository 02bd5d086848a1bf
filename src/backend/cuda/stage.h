/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred work: what the files stage.c (queues and their thread), stage_copy.c (a staged copy, piece by
 * piece) and stage_ring.c (slots and copying threads) share.
 *
 * A copy with an end in pageable memory cannot be handed to CUDA without blocking, and no thread of the host
 * can be made part of a stream without making the GPU wait for the host, which deadlocks as soon as the
 * driver puts two streams into one hardware queue. So the order is kept on the host: a stream that has
 * accepted a staged copy queues whatever comes after it here, and one thread of the device's hands it to the
 * driver in order, when its turn has come. To the driver it looks like a program that submits each thing once
 * it may run: everything that is on the device depends only on what was submitted before, so everything
 * finishes by itself.
 *
 * The life of a deferred operation: accepted (counted in stream->deferred) → at the head of its stream's
 * queue → submitted, or dropped because its stream failed, was cancelled, or the device is lost → freed,
 * stream->deferred down by one. A stream without deferred work pays one load of that counter for all this.
 *
 * The life of a slot:
 *   in:   free → filling (a copying thread) → filled → on the device (event) → free
 *   out:  free → on the device (event) → draining (a copying thread) → free
 *   host: free → draining (a copying thread copies from end to end, the slot is a token) → free
 *   peer: free → on the devices (event) → free
 * A copy in, and one between peers, is over when all of it is submitted: the rest is stream order. A copy
 * out, and one on the host, is over when the last slot is drained; what follows in the stream comes after it.
 */
#ifndef HR_BACKEND_CUDA_STAGE_H
#define HR_BACKEND_CUDA_STAGE_H

#include "backend/cuda/cuda_backend.h"

#define HR_STAGE_SLOTS       16
#define HR_STAGE_SLOT_BYTES  ((uint64_t)4 << 20)
#define HR_STAGE_SEGMENTS    4096 /* of a list in one slot */
#define HR_STAGE_MAX_THREADS 12
#define HR_STAGE_PIECE_LEAST ((uint64_t)256 << 10)
/* Up to here a copy on the host takes less time than waking a thread for it. */
#define HR_STAGE_SMALL ((uint64_t)128 << 10)

/* The part of a copy that one slot carries. */
typedef struct hr_stage_piece {
    uint64_t x, y, z; /* bytes, rows, slices from the copy's first */
    uint64_t width, height, depth;
    uint32_t segments; /* of a list: in the slot's arrays */
} hr_stage_piece;

typedef enum hr_slot_state {
    HR_SLOT_FREE = 0,
    HR_SLOT_FILLING,
    HR_SLOT_FILLED,
    HR_SLOT_ON_DEVICE,
    HR_SLOT_DRAINING
} hr_slot_state;

typedef struct hr_stage_slot {
    hr_slot_state state;
    uint64_t uses; /* goes up each time it is taken, so that an answer about an older use is known as such */
    char *base;    /* pinned */
    cudaEvent_t event;
    cudaEvent_t busy; /* done: the device has done with the slot; `event`, or one of a peer's */
    hr_bdevice *busy_device;
    hr_cuda_pending *owner; /* null once the owner need not hear of the slot any more */
    hr_stage_piece piece;
    hr_segment *segments; /* HR_STAGE_SEGMENTS: at the copy's two ends */
    uint64_t *packed;     /* where each lies in the slot */
} hr_stage_slot;

/* A stream on another device, and an event for each slot, for copies between devices. */
typedef struct hr_stage_helper {
    hr_bdevice *device; /* the helper's own: only what submitting copies needs of a device */
    cudaStream_t stream;
    cudaEvent_t event[HR_STAGE_SLOTS];
} hr_stage_helper;

struct hr_cuda_pending {
    hr_cuda_pending_kind kind;
    hr_bstream *stream;
    hr_cuda_pending *next;
    hr_bcopy copy;
    hr_segment *segments; /* our copy of the caller's */
    hr_bfill fill;
    hr_launch_fn fn;
    hr_launch launch;
    hr_bevent *event;
    uint64_t generation;
    hr_btimer *timer;
    /* A staged copy. */
    hr_cuda_stage_way way;
    bool begun;
    bool wait_quiet;     /* its host memory may be written by earlier work of the stream's on the device */
    cudaEvent_t quiet;   /* marks that work */
    hr_stage_piece step; /* the largest piece */
    uint64_t x, y, z;    /* the next piece */
    uint64_t segment, inside;
    bool all_started;
    uint32_t outstanding; /* slots that it still has to hear of */
    hr_stage_helper *helper;
    cudaEvent_t last; /* of the helper's */
};

typedef struct hr_stage_ring {
    hr_bmemory memory;
    hr_stage_slot slot[HR_STAGE_SLOTS];
    uint32_t slots;
    uint64_t slot_bytes;
    pthread_t thread[HR_STAGE_MAX_THREADS];
    uint32_t threads;
    uint32_t task[HR_STAGE_SLOTS]; /* slots to be filled or drained, first in first out */
    uint32_t task_head, task_count;
} hr_stage_ring;

struct hr_cuda_stager {
    hr_bdevice *device;
    pthread_mutex_t lock;
    pthread_cond_t work;    /* for the submitting thread */
    pthread_cond_t tasks;   /* for the copying threads */
    pthread_cond_t changed; /* for whoever waits for deferred work */
    pthread_t thread;
    bool stop;
    uint64_t news; /* goes up with each thing that the submitting thread should look at */
    hr_bstream *streams;
    hr_stage_ring *ring; /* taken by the first staged copy */
    hr_stage_helper *helper[HR_CUDA_MAX_PEERS];
};

typedef enum hr_step { HR_STEP_DONE, HR_STEP_BLOCKED } hr_step;

/* stage_ring.c. With the stager's lock held where it says so. */
hr_status hr_stage_ring_open(hr_cuda_stager *stager, hr_stage_ring **ring, hr_error *error);
void hr_stage_ring_close(hr_cuda_stager *stager, hr_stage_ring *ring);
hr_stage_slot *hr_stage_slot_take(hr_stage_ring *ring);                                    /* locked */
void hr_stage_slot_hand(hr_cuda_stager *stager, hr_stage_slot *slot, hr_slot_state state); /* locked */
/* Looks at the slots on the device; true if one moved on. *any: some are still there. Locked. */
bool hr_stage_ring_poll(hr_cuda_stager *stager, bool *any);
/* Copies a piece between the host's end of its copy and the slot. Unlocked. */
void hr_stage_fill(hr_stage_slot *slot);
void hr_stage_drain(hr_stage_slot *slot);

/* A piece of few bytes, which whoever comes by copies itself. */
bool hr_stage_is_small(const hr_stage_slot *slot);

/* stage_copy.c, on the submitting thread, unlocked. */
hr_step hr_stage_copy_step(hr_cuda_stager *stager, hr_cuda_pending *op);
/* Ends a staged copy that its stream's failure cut short; blocked while slots are out. */
hr_step hr_stage_copy_abandon(hr_cuda_stager *stager, hr_cuda_pending *op);
/* On any thread: stages and submits a small copy in at once. HR_AGAIN: not such a copy, or no slot is free. */
hr_status hr_stage_copy_in_now(hr_cuda_stager *stager, hr_bstream *stream, const hr_bcopy *copy,
                               hr_error *error);
void hr_stage_helper_close(hr_stage_helper *helper);

#endif
