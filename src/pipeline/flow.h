/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor for devices with memory of their own: reading, copying in, computing, copying out and writing
 * are each done by somebody else, at once, on different chunks.
 *
 * The life of a slot. Slot i serves chunks i, i + S, i + 2·S, … (S slots in all; slot i belongs to device
 * i mod D, so chunks go to the devices in turn):
 *
 *   FILLING   readers put pieces of each input into pinned memory    → the last piece makes it READY
 *   READY     waits for the submitter of its device                  → copies, launch and events queued:
 * QUEUED QUEUED    the device works; the collector waits for `out_done`   → done: DRAINING DRAINING  writers
 * write pieces of each output                    → the last piece makes it FILLING for the chunk after the
 * next S − 1
 *
 * Only the thread that completes a phase moves the slot to the next, with the pipeline's lock held, so a slot
 * comes back exactly once. Because a slot comes back only after the host has seen `out_done`, nothing that
 * the slot holds is still in use by the device then, and no stream need wait for another use of the slot.
 * Three streams a device: the order between them is by in_done (copies → launch) and computed (launch →
 * copies).
 */
#ifndef HR_PIPELINE_FLOW_H
#define HR_PIPELINE_FLOW_H

#include "pipeline/port.h"

/* How an input or output is moved between its source or sink and the slot. */
typedef enum flow_way {
    FLOW_DIRECT, /* pinned memory of the caller's: the device copies from and to it */
    FLOW_PIECES, /* anywhere at any time: several threads, piece by piece */
    FLOW_STREAM  /* in order, or until it ends: one thread of its own */
} flow_way;

/* Small enough that several threads share a chunk, large enough that a call is not felt. */
#define FLOW_PIECE_BYTES (UINT64_C(1) << 20)

typedef enum flow_phase { FLOW_FILLING, FLOW_READY, FLOW_QUEUED, FLOW_DRAINING } flow_phase;

typedef struct flow_slot {
    uint64_t chunk;
    flow_phase phase;
    uint64_t pieces_left; /* of this phase */
    hr_range in[HR_MAX_PORTS], out[HR_MAX_PORTS];
    uint64_t units;
    void *host_in[HR_MAX_PORTS], *host_out[HR_MAX_PORTS], *host_partial;
    void *device_in[HR_MAX_PORTS], *device_out[HR_MAX_PORTS], *device_partial;
    hr_event *in_done, *computed, *out_done;
    /* When copies and kernels begin and end. Of a run that nobody watches, only the ends: see flow_device.c. */
    hr_timer *in_time[HR_MAX_PORTS + 1], *compute_time[2], *out_time[HR_MAX_PORTS + 1];
    uint64_t submitted_ns;
} flow_slot;

typedef struct flow_device {
    uint32_t index;
    hr_device *device;
    hr_device_info info;
    hr_launch_fn fn;
    hr_pool *pinned, *memory;
    hr_stream *in, *compute, *out;
    void *op_state, *op_state_host;
    uint64_t next_chunk;                            /* that the submitter begins with */
    uint64_t in_end_ns, compute_end_ns, out_end_ns; /* of the last chunk that was collected */
} flow_device;

/* The next piece to be moved by whoever comes. */
typedef struct flow_cursor {
    uint64_t chunk;
    uint32_t port;
    uint64_t piece;
} flow_cursor;

typedef struct flow_lane {
    uint32_t index; /* of the thread within its stage */
    uint32_t port;  /* FLOW_STREAM */
} flow_lane;

typedef struct flow_state {
    flow_way in_way[HR_MAX_PORTS], out_way[HR_MAX_PORTS];
    hr_reader reader[HR_MAX_PORTS];
    hr_turn writer[HR_MAX_PORTS];
    hr_turn combine;
    flow_cursor read_cursor, write_cursor;
    pthread_cond_t filling, ready, queued, draining; /* a slot entered this phase */
    uint32_t device_count, slot_count;
    flow_device *devices;
    flow_slot *slots;
    flow_lane lanes[HR_RUN_MAX_THREADS];
    uint32_t lane_count;
    bool watched; /* somebody listens to spans: each copy gets its own */
} flow_state;

/* Queues all device work of a ready slot. */
HR_CHECKED hr_status flow_submit(hr_pipeline *pipeline, flow_device *device, flow_slot *slot,
                                 hr_error *error);
/* Waits for a queued slot and tells its device spans. */
HR_CHECKED hr_status flow_collect(hr_pipeline *pipeline, flow_device *device, flow_slot *slot,
                                  hr_error *error);

/* Prepares a slot for its next chunk; FLOW_READY at once if there is nothing to be read. With the lock held,
 * or before the threads run. */
void flow_refill(hr_pipeline *pipeline, flow_slot *slot);

/* Memory, streams, events; flow_memory.c. */
HR_CHECKED hr_status flow_take(hr_pipeline *pipeline, hr_error *error);
HR_CHECKED hr_status flow_release(hr_pipeline *pipeline, hr_error *error);

/* Host and device memory that one slot takes. */
uint64_t flow_slot_host_bytes(const hr_pipeline *pipeline, const flow_state *state);
uint64_t flow_slot_device_bytes(const hr_pipeline *pipeline);

#endif
