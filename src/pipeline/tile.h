/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor for matrix products in tiles. A job is one device's share: whole rows of C, planned by
 * tile_plan.h.
 *
 * Tiles travel in bands of rows, through two rings of pinned slots, one in and one out, so that little memory
 * has to be pinned and reading, copying and computing overlap within a tile. The threads of a job and what
 * they wait for:
 *
 *   readers    a free slot of the ring in            → fill it with the next band
 *   loader     the next band                         → queue its copy; before a tile's first band the stream
 * waits for the last step that used the tile's place feeder     the copy of the oldest band           → the
 * slot is free again submitter  the copies of a step's tiles queued   → queue the launch; the stream waits
 * for the copies drainer    a tile's last step queued             → queue the copies of its bands to slots of
 * the ring out collector  the copy of the oldest band           → the band may be written writers    the next
 * band                         → write it; the slot is free again
 *
 * Every wait is for something with a smaller number in the plan's order of loads, steps and stores, so the
 * threads cannot wait for each other in a circle. A chunk, in failures and spans, is a step of the plan.
 */
#ifndef HR_PIPELINE_TILE_H
#define HR_PIPELINE_TILE_H

#include "pipeline/port.h"
#include "pipeline/tile_plan.h"

/* Bytes of a band, unless a single row has more, or there is not so much pinned memory. */
#define TILE_BAND_BYTES (UINT64_C(4) << 20)
#define TILE_RING       8u
/* Launches that may be queued ahead of the one that runs. */
#define TILE_AHEAD 32u

typedef enum band_phase { BAND_EMPTY, BAND_FULL, BAND_QUEUED, BAND_LANDED } band_phase;

/* A slot of a ring, and the band that it holds or is to hold next. */
typedef struct band_slot {
    uint64_t number; /* of the band, in the ring's order */
    band_phase phase;
    void *host;
    hr_event *copied;
    hr_timer *begin, *end;
    uint32_t tile; /* load or store */
    uint64_t first_row, rows;
    uint64_t chunk, bytes;
} band_slot;

/* Where a ring's workers are: the next band to be begun. */
typedef struct band_cursor {
    uint64_t number;
    uint32_t tile;
    uint64_t first_row;
} band_cursor;

typedef struct tile_place {
    void *data, *accumulator;
    hr_event *filled; /* A, B: its copy in is done. C: its last step is done */
    hr_event *used;   /* A, B: the last step queued that uses it. C: its copy out is done */
} tile_place;

typedef struct tile_job {
    hr_pipeline *pipeline;
    uint32_t index, count; /* of the jobs */
    uint64_t first_row;    /* of C and A */
    hr_tile_problem problem;
    hr_tile_plan plan;
    hr_device *device;
    hr_device_info info;
    hr_launch_fn fn;
    hr_pool *pinned, *memory;
    hr_stream *in, *compute, *out;
    tile_place *a, *b, *c;
    bool direct_in[2], direct_out; /* pinned by the caller: copied from and to where it lies */
    uint64_t band_bytes, in_slot_bytes, out_slot_bytes;
    band_slot ring_in[TILE_RING], ring_out[TILE_RING];
    band_cursor read_cursor, write_cursor;
    uint32_t loads_queued, steps_queued, stores_queued;
    struct {
        hr_event *done;
        hr_timer *begin, *end;
    } ahead[TILE_AHEAD];
    pthread_cond_t moved; /* any of the above */
} tile_job;

/* Rows, row length and place in the matrix of a load or a store. */
typedef struct tile_box {
    uint32_t port;
    uint64_t rows, row_bytes, pitch_bytes, offset_bytes;
} tile_box;
tile_box tile_load_box(const tile_job *job, uint32_t load);
tile_box tile_store_box(const tile_job *job, uint32_t store);
static inline uint64_t tile_band_rows(const tile_job *job, const tile_box *box)
{
    uint64_t rows = box->row_bytes > 0 ? job->band_bytes / box->row_bytes : box->rows;
    return rows > 0 ? rows : 1;
}

/* The chunk by which a step is known in the whole run. */
static inline uint64_t tile_chunk(const tile_job *job, uint32_t step)
{
    return (uint64_t)step * job->count + job->index;
}

/* What a pipeline of this kind holds. */
typedef struct tile_state {
    uint32_t job_count;
    tile_job *jobs;
} tile_state;

/* tile_memory.c */
HR_CHECKED hr_status tile_take(tile_job *job, hr_error *error);
HR_CHECKED hr_status tile_release(tile_job *job, hr_error *error);

/* tile_step.c: the thread that launches. */
void tile_submit_steps(hr_pipeline *pipeline, void *argument);

/* Waits, with the pipeline's lock held, until `*counter` is above `number`; false if the chunk is stopped. */
bool tile_wait_above(tile_job *job, const uint32_t *counter, uint32_t number, uint64_t chunk);

#endif
