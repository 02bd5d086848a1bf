/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tile.h"

#include "base/checked.h"
#include "pipeline/plan.h"

#include <headrace/copy.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

tile_box tile_load_box(const tile_job *job, uint32_t load)
{
    const hr_tile_problem *p = &job->problem;
    const hr_tile_layout *l = &job->plan.layout;
    const hr_tile_load *one = &job->plan.loads[load];
    if (one->is_b) {
        uint64_t row = one->row * l->tk, column = one->column * l->tn;
        return (tile_box){.port = 1,
                          .rows = hr_tile_extent(p->k, l->tk, one->row),
                          .row_bytes = hr_tile_extent(p->n, l->tn, one->column) * p->b_bytes,
                          .pitch_bytes = p->n * p->b_bytes,
                          .offset_bytes = (row * p->n + column) * p->b_bytes};
    }
    uint64_t row = job->first_row + one->row * l->tm, column = one->column * l->tk;
    return (tile_box){.port = 0,
                      .rows = hr_tile_extent(p->m, l->tm, one->row),
                      .row_bytes = hr_tile_extent(p->k, l->tk, one->column) * p->a_bytes,
                      .pitch_bytes = p->k * p->a_bytes,
                      .offset_bytes = (row * p->k + column) * p->a_bytes};
}

tile_box tile_store_box(const tile_job *job, uint32_t store)
{
    const hr_tile_problem *p = &job->problem;
    const hr_tile_layout *l = &job->plan.layout;
    const hr_tile_step *step = &job->plan.steps[job->plan.store_steps[store]];
    uint64_t row = job->first_row + step->row * l->tm, column = step->column * l->tn;
    return (tile_box){.port = 0,
                      .rows = hr_tile_extent(p->m, l->tm, step->row),
                      .row_bytes = hr_tile_extent(p->n, l->tn, step->column) * p->c_bytes,
                      .pitch_bytes = p->n * p->c_bytes,
                      .offset_bytes = (row * p->n + column) * p->c_bytes};
}

static uint64_t load_chunk(const tile_job *job, uint32_t load)
{
    return tile_chunk(job, job->plan.loads[load].for_step);
}

static uint64_t store_chunk(const tile_job *job, uint32_t store)
{
    return tile_chunk(job, job->plan.store_steps[store]);
}

bool tile_wait_above(tile_job *job, const uint32_t *counter, uint32_t number, uint64_t chunk)
{
    while (*counter <= number && !hr_run_stopped(job->pipeline, chunk)) {
        pthread_cond_wait(&job->moved, &job->pipeline->lock);
    }
    return !hr_run_stopped(job->pipeline, chunk);
}

static bool wait_above(tile_job *job, const uint32_t *counter, uint32_t number, uint64_t chunk)
{
    pthread_mutex_lock(&job->pipeline->lock);
    bool there = tile_wait_above(job, counter, number, chunk);
    pthread_mutex_unlock(&job->pipeline->lock);
    return there;
}

static void count_up(tile_job *job, uint32_t *counter)
{
    pthread_mutex_lock(&job->pipeline->lock);
    ++*counter;
    pthread_cond_broadcast(&job->moved);
    pthread_mutex_unlock(&job->pipeline->lock);
}

/* Waits for the slot of this band to be in a phase. False if the chunk is stopped. */
static bool wait_band(tile_job *job, band_slot *slot, uint64_t number, band_phase phase, uint64_t chunk)
{
    pthread_mutex_lock(&job->pipeline->lock);
    while ((slot->number != number || slot->phase != phase) && !hr_run_stopped(job->pipeline, chunk)) {
        pthread_cond_wait(&job->moved, &job->pipeline->lock);
    }
    bool there = !hr_run_stopped(job->pipeline, chunk);
    pthread_mutex_unlock(&job->pipeline->lock);
    return there;
}

static void set_phase(tile_job *job, band_slot *slot, band_phase phase)
{
    pthread_mutex_lock(&job->pipeline->lock);
    if (phase == BAND_EMPTY) {
        slot->number += TILE_RING;
    }
    slot->phase = phase;
    pthread_cond_broadcast(&job->moved);
    pthread_mutex_unlock(&job->pipeline->lock);
}

static void fail_at(tile_job *job, uint64_t chunk, hr_status status, hr_error *error)
{
    hr_status refused = hr_run_refused(status, "the device", error);
    (void)refused;
    hr_run_fail(job->pipeline, chunk, error);
}

/* Bands that the rows of a box make, and the band that begins at a row. */
static band_slot next_band(const tile_job *job, const tile_box *box, band_cursor *cursor, uint64_t chunk)
{
    uint64_t rows = hr_min_u64(tile_band_rows(job, box), box->rows - cursor->first_row);
    band_slot band = {.number = cursor->number,
                      .tile = cursor->tile,
                      .first_row = cursor->first_row,
                      .rows = rows,
                      .chunk = chunk,
                      .bytes = rows * box->row_bytes};
    cursor->number++;
    cursor->first_row += rows;
    if (cursor->first_row == box->rows) {
        cursor->first_row = 0;
        cursor->tile++;
    }
    return band;
}

static void skip_direct(const tile_job *job, band_cursor *cursor)
{
    while (cursor->tile < job->plan.load_count && job->direct_in[job->plan.loads[cursor->tile].is_b]) {
        cursor->tile++;
    }
}

/* Takes the next band of the ring in, once its slot is empty. */
static bool take_empty(tile_job *job, band_slot **slot)
{
    pthread_mutex_lock(&job->pipeline->lock);
    bool there = false;
    for (;;) {
        band_cursor *cursor = &job->read_cursor;
        skip_direct(job, cursor);
        if (cursor->tile >= job->plan.load_count ||
            hr_run_stopped(job->pipeline, load_chunk(job, cursor->tile))) {
            break;
        }
        band_slot *candidate = &job->ring_in[cursor->number % TILE_RING];
        if (candidate->number == cursor->number && candidate->phase == BAND_EMPTY) {
            tile_box box = tile_load_box(job, cursor->tile);
            band_slot band = next_band(job, &box, cursor, load_chunk(job, cursor->tile));
            candidate->tile = band.tile;
            candidate->first_row = band.first_row;
            candidate->rows = band.rows;
            candidate->chunk = band.chunk;
            candidate->bytes = band.bytes;
            *slot = candidate;
            there = true;
            break;
        }
        pthread_cond_wait(&job->moved, &job->pipeline->lock);
    }
    pthread_mutex_unlock(&job->pipeline->lock);
    return there;
}

static void read_bands(hr_pipeline *pipeline, void *argument)
{
    tile_job *job = argument;
    band_slot *slot;
    while (take_empty(job, &slot)) {
        tile_box box = tile_load_box(job, slot->tile);
        const hr_source *source = pipeline->options.in[box.port].source;
        hr_place_in_run place = {.stage = source->data != NULL ? HR_STAGE_STAGE : HR_STAGE_READ,
                                 .chunk = slot->chunk,
                                 .port = box.port,
                                 .lane = (uint32_t)(slot - job->ring_in)};
        hr_error error = HR_ERROR_INIT;
        hr_mark mark = hr_run_enter(pipeline, place.stage);
        hr_status status = hr_port_read_rows(source, box.offset_bytes + slot->first_row * box.pitch_bytes,
                                             box.row_bytes, slot->rows, box.pitch_bytes, slot->host, &error);
        hr_run_leave(pipeline, place, mark, status == HR_OK ? slot->bytes : 0);
        if (status != HR_OK) {
            error.status = hr_port_named(status, "input", box.port, 2, &error);
            hr_run_fail(pipeline, slot->chunk, &error);
            return;
        }
        set_phase(job, slot, BAND_FULL);
    }
}

static tile_place *load_place(const tile_job *job, uint32_t load)
{
    const hr_tile_load *one = &job->plan.loads[load];
    return one->is_b ? &job->b[one->place] : &job->a[one->place];
}

/* A tile of memory that the device reaches itself: one copy by rows. */
static hr_status load_direct(tile_job *job, uint32_t load, hr_error *error)
{
    tile_box box = tile_load_box(job, load);
    hr_copy copy = HR_COPY_INIT;
    copy.src.base =
        (unsigned char *)(uintptr_t)job->pipeline->options.in[box.port].source->data + box.offset_bytes;
    copy.src.row_pitch_bytes = box.pitch_bytes;
    copy.dst.place = HR_PLACE_DEVICE;
    copy.dst.base = load_place(job, load)->data;
    copy.width_bytes = box.row_bytes;
    copy.height = box.rows;
    return hr_copy_async(job->in, &copy, error);
}

static hr_status load_bands(tile_job *job, uint32_t load, uint64_t *number, hr_error *error)
{
    tile_box box = tile_load_box(job, load);
    uint64_t row = 0, chunk = load_chunk(job, load);
    while (row < box.rows) {
        band_slot *slot = &job->ring_in[*number % TILE_RING];
        if (!wait_band(job, slot, *number, BAND_FULL, chunk)) {
            return HR_AGAIN;
        }
        unsigned char *data = (unsigned char *)load_place(job, load)->data + row * box.row_bytes;
        hr_status status = hr_timer_record(slot->begin, job->in, error);
        if (status == HR_OK) {
            status = hr_copy_to_device(job->in, data, slot->host, slot->bytes, error);
        }
        if (status == HR_OK) {
            status = hr_timer_record(slot->end, job->in, error);
        }
        if (status == HR_OK) {
            status = hr_event_record(slot->copied, job->in, error);
        }
        if (status != HR_OK) {
            return status;
        }
        row += slot->rows;
        set_phase(job, slot, BAND_QUEUED);
        ++*number;
    }
    return HR_OK;
}

static void load_tiles(hr_pipeline *pipeline, void *argument)
{
    (void)pipeline;
    tile_job *job = argument;
    uint64_t number = 0;
    for (uint32_t load = 0; load < job->plan.load_count; load++) {
        const hr_tile_load *one = &job->plan.loads[load];
        uint64_t chunk = load_chunk(job, load);
        hr_error error = HR_ERROR_INIT;
        hr_status status = HR_OK;
        if (one->after_step != HR_TILE_NONE) {
            if (!wait_above(job, &job->steps_queued, one->after_step, chunk)) {
                return;
            }
            status = hr_stream_wait_event(job->in, load_place(job, load)->used, &error);
        }
        if (status == HR_OK) {
            status = job->direct_in[one->is_b] ? load_direct(job, load, &error)
                                               : load_bands(job, load, &number, &error);
        }
        if (status == HR_OK) {
            status = hr_event_record(load_place(job, load)->filled, job->in, &error);
        }
        if (status == HR_AGAIN) {
            return;
        }
        if (status != HR_OK) {
            fail_at(job, chunk, status, &error);
            return;
        }
        count_up(job, &job->loads_queued);
    }
}

static void tell_copy(tile_job *job, const band_slot *slot, hr_stage stage, uint32_t port)
{
    uint64_t begin, end;
    hr_error ignored = HR_ERROR_INIT;
    if (hr_timer_read(slot->begin, &begin, &ignored) == HR_OK &&
        hr_timer_read(slot->end, &end, &ignored) == HR_OK) {
        hr_place_in_run place = {
            .stage = stage, .chunk = slot->chunk, .port = port, .lane = job->index, .device = job->info.spec};
        hr_run_span(job->pipeline, place, begin, end, slot->bytes);
    }
}

/* Waits for the copies of a ring in order, and hands each slot on. */
static void follow_ring(tile_job *job, bool in)
{
    uint32_t tiles = in ? job->plan.load_count : job->direct_out ? 0 : job->plan.store_count;
    band_cursor cursor = {0};
    for (;;) {
        if (in) {
            skip_direct(job, &cursor);
        }
        if (cursor.tile >= tiles) {
            return;
        }
        tile_box box = in ? tile_load_box(job, cursor.tile) : tile_store_box(job, cursor.tile);
        uint64_t chunk = in ? load_chunk(job, cursor.tile) : store_chunk(job, cursor.tile);
        band_slot *slot = &(in ? job->ring_in : job->ring_out)[cursor.number % TILE_RING];
        if (!wait_band(job, slot, cursor.number, BAND_QUEUED, chunk)) {
            return;
        }
        hr_error error = HR_ERROR_INIT;
        hr_status status = hr_event_wait(slot->copied, &error);
        if (status != HR_OK) {
            fail_at(job, chunk, status, &error);
            return;
        }
        tell_copy(job, slot, in ? HR_STAGE_H2D : HR_STAGE_D2H, box.port);
        set_phase(job, slot, in ? BAND_EMPTY : BAND_LANDED);
        (void)next_band(job, &box, &cursor, chunk);
    }
}

static void follow_in(hr_pipeline *pipeline, void *argument)
{
    (void)pipeline;
    follow_ring(argument, true);
}

static void follow_out(hr_pipeline *pipeline, void *argument)
{
    (void)pipeline;
    follow_ring(argument, false);
}

static hr_status store_direct(tile_job *job, uint32_t store, hr_error *error)
{
    tile_box box = tile_store_box(job, store);
    hr_copy copy = HR_COPY_INIT;
    copy.src.place = HR_PLACE_DEVICE;
    copy.src.base = job->c[job->plan.steps[job->plan.store_steps[store]].c_place].data;
    copy.dst.base = (unsigned char *)job->pipeline->options.out[0].sink->data + box.offset_bytes;
    copy.dst.row_pitch_bytes = box.pitch_bytes;
    copy.width_bytes = box.row_bytes;
    copy.height = box.rows;
    return hr_copy_async(job->out, &copy, error);
}

static hr_status store_bands(tile_job *job, uint32_t store, band_cursor *cursor, hr_error *error)
{
    tile_box box = tile_store_box(job, store);
    uint64_t chunk = store_chunk(job, store);
    const tile_place *place = &job->c[job->plan.steps[job->plan.store_steps[store]].c_place];
    while (cursor->tile == store) {
        band_slot *slot = &job->ring_out[cursor->number % TILE_RING];
        if (!wait_band(job, slot, cursor->number, BAND_EMPTY, chunk)) {
            return HR_AGAIN;
        }
        band_slot band = next_band(job, &box, cursor, chunk);
        slot->tile = band.tile;
        slot->first_row = band.first_row;
        slot->rows = band.rows;
        slot->chunk = band.chunk;
        slot->bytes = band.bytes;
        const unsigned char *data = (const unsigned char *)place->data + band.first_row * box.row_bytes;
        hr_status status = hr_timer_record(slot->begin, job->out, error);
        if (status == HR_OK) {
            status = hr_copy_to_host(job->out, slot->host, data, slot->bytes, error);
        }
        if (status == HR_OK) {
            status = hr_timer_record(slot->end, job->out, error);
        }
        if (status == HR_OK) {
            status = hr_event_record(slot->copied, job->out, error);
        }
        if (status != HR_OK) {
            return status;
        }
        set_phase(job, slot, BAND_QUEUED);
    }
    return HR_OK;
}

/* Share of the run that one tile of C is, in bytes of the inputs. */
static void tell_done(tile_job *job, uint32_t store)
{
    hr_pipeline *pipeline = job->pipeline;
    tile_box box = tile_store_box(job, store);
    double all =
        (double)pipeline->plan.shape[0].extent[0] * (double)job->problem.n * (double)job->problem.c_bytes;
    double share = (double)box.rows * (double)box.row_bytes / all;
    atomic_fetch_add(&pipeline->done_bytes, (uint64_t)(share * (double)pipeline->total_bytes));
    atomic_fetch_add(&pipeline->written_bytes[0], box.rows * box.row_bytes);
}

static void store_tiles(hr_pipeline *pipeline, void *argument)
{
    (void)pipeline;
    tile_job *job = argument;
    band_cursor cursor = {0};
    for (uint32_t store = 0; store < job->plan.store_count; store++) {
        uint32_t step = job->plan.store_steps[store];
        uint64_t chunk = tile_chunk(job, step);
        if (!wait_above(job, &job->steps_queued, step, chunk)) {
            return;
        }
        hr_error error = HR_ERROR_INIT;
        tile_place *place = &job->c[job->plan.steps[step].c_place];
        hr_status status = hr_stream_wait_event(job->out, place->filled, &error);
        if (status == HR_OK) {
            status =
                job->direct_out ? store_direct(job, store, &error) : store_bands(job, store, &cursor, &error);
        }
        if (status == HR_OK) {
            status = hr_event_record(place->used, job->out, &error);
        }
        if (status == HR_AGAIN) {
            return;
        }
        if (status != HR_OK) {
            fail_at(job, chunk, status, &error);
            return;
        }
        tell_done(job, store);
        count_up(job, &job->stores_queued);
    }
    if (job->direct_out) {
        /* Nobody follows these copies one by one. */
        hr_error error = HR_ERROR_INIT;
        hr_status status = hr_stream_wait(job->out, &error);
        if (status != HR_OK) {
            fail_at(job, store_chunk(job, job->plan.store_count - 1), status, &error);
        }
    }
}

static bool take_landed(tile_job *job, band_slot **slot)
{
    hr_pipeline *pipeline = job->pipeline;
    pthread_mutex_lock(&pipeline->lock);
    bool there = false;
    band_cursor *cursor = &job->write_cursor;
    while (cursor->tile < job->plan.store_count &&
           !hr_run_stopped(pipeline, store_chunk(job, cursor->tile))) {
        band_slot *candidate = &job->ring_out[cursor->number % TILE_RING];
        if (candidate->number == cursor->number && candidate->phase == BAND_LANDED) {
            tile_box box = tile_store_box(job, cursor->tile);
            (void)next_band(job, &box, cursor, 0);
            *slot = candidate;
            there = true;
            break;
        }
        pthread_cond_wait(&job->moved, &pipeline->lock);
    }
    pthread_mutex_unlock(&pipeline->lock);
    return there;
}

static void write_bands(hr_pipeline *pipeline, void *argument)
{
    tile_job *job = argument;
    const hr_sink *sink = pipeline->options.out[0].sink;
    band_slot *slot;
    while (take_landed(job, &slot)) {
        tile_box box = tile_store_box(job, slot->tile);
        hr_place_in_run place = {
            .stage = HR_STAGE_WRITE, .chunk = slot->chunk, .lane = (uint32_t)(slot - job->ring_out)};
        hr_error error = HR_ERROR_INIT;
        hr_mark mark = hr_run_enter(pipeline, place.stage);
        hr_status status = hr_port_write_rows(sink, box.offset_bytes + slot->first_row * box.pitch_bytes,
                                              box.row_bytes, slot->rows, box.pitch_bytes, slot->host, &error);
        hr_run_leave(pipeline, place, mark, status == HR_OK ? slot->bytes : 0);
        if (status != HR_OK) {
            hr_run_fail(pipeline, slot->chunk, &error);
            return;
        }
        set_phase(job, slot, BAND_EMPTY);
    }
}

static hr_status spawn_many(tile_job *job, uint32_t count, void (*body)(hr_pipeline *, void *),
                            hr_error *error)
{
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < count && status == HR_OK; i++) {
        status = hr_run_spawn(job->pipeline, "hr-tile", body, job, error);
    }
    return status;
}

static hr_status spawn_job(tile_job *job, hr_error *error)
{
    hr_pipeline *pipeline = job->pipeline;
    void (*const bodies[])(hr_pipeline *, void *) = {load_tiles, follow_in, tile_submit_steps, store_tiles,
                                                     follow_out};
    hr_status status = HR_OK;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0] && status == HR_OK; i++) {
        status = spawn_many(job, 1, bodies[i], error);
    }
    if (status == HR_OK && !(job->direct_in[0] && job->direct_in[1])) {
        uint32_t readers = (uint32_t)hr_min_u64(hr_plan_readers(pipeline), TILE_RING);
        pipeline->width[HR_STAGE_READ] = pipeline->width[HR_STAGE_STAGE] = readers;
        status = spawn_many(job, readers, read_bands, error);
    }
    if (status == HR_OK && !job->direct_out) {
        bool in_order = pipeline->options.out[0].sink->sequential;
        uint32_t writers = in_order ? 1 : (uint32_t)hr_min_u64(hr_plan_writers(pipeline), TILE_RING);
        pipeline->width[HR_STAGE_WRITE] = writers;
        status = spawn_many(job, writers, write_bands, error);
    }
    return status;
}

static hr_status check_ports(const hr_pipeline *pipeline, hr_error *error)
{
    for (uint32_t i = 0; i < 2; i++) {
        const hr_source *source = pipeline->options.in[i].source;
        if ((source->sequential && source->data == NULL) || source->bytes == HR_LENGTH_UNKNOWN) {
            return hr_fail(error, HR_E_UNSUPPORTED,
                           "%s: input %" PRIu32
                           " is a stream, and tiles must be read anywhere: store it in a file first",
                           pipeline->options.op->name, i + 1);
        }
    }
    return HR_OK;
}

/* Gives each device its rows of C. */
static void share_rows(tile_state *state, uint64_t rows)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < state->job_count; i++) {
        uint64_t share = (rows - first) / (state->job_count - i);
        state->jobs[i].first_row = first;
        state->jobs[i].problem.m = share;
        first += share;
    }
}

static hr_status open_jobs(hr_pipeline *pipeline, tile_state *state, hr_error *error)
{
    hr_status status = HR_OK;
    double slowest = 0.0;
    for (uint32_t i = 0; i < state->job_count && status == HR_OK; i++) {
        tile_job *job = &state->jobs[i];
        status = tile_take(job, error);
        slowest = job->plan.predicted_s > slowest ? job->plan.predicted_s : slowest;
        if (status == HR_OK) {
            status = spawn_job(job, error);
        }
    }
    pipeline->predicted_s = slowest;
    return status;
}

static hr_status tile_open(hr_pipeline *pipeline, hr_error *error)
{
    hr_status status = check_ports(pipeline, error);
    if (status != HR_OK) {
        return status;
    }
    tile_state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for its state");
    }
    pipeline->state = state;
    uint32_t jobs = pipeline->options.out[0].sink->sequential ? 1 : pipeline->options.device_count;
    state->jobs = calloc(jobs, sizeof *state->jobs);
    if (state->jobs == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for its devices");
    }
    state->job_count = jobs;
    for (uint32_t i = 0; i < jobs; i++) {
        tile_job *job = &state->jobs[i];
        job->pipeline = pipeline;
        job->index = i;
        job->count = jobs;
        job->device = pipeline->options.devices[i];
        pthread_cond_init(&job->moved, NULL);
    }
    pipeline->width[HR_STAGE_H2D] = pipeline->width[HR_STAGE_COMPUTE] = pipeline->width[HR_STAGE_D2H] = jobs;
    share_rows(state, pipeline->plan.shape[0].extent[0]);
    status = open_jobs(pipeline, state, error);
    uint64_t chunks = 0;
    for (uint32_t i = 0; i < jobs && status == HR_OK; i++) {
        uint64_t steps = state->jobs[i].plan.step_count;
        chunks =
            steps > 0 ? hr_max_u64(chunks, tile_chunk(&state->jobs[i], (uint32_t)steps - 1) + 1) : chunks;
        pipeline->device_work += hr_tile_plan_work(&state->jobs[i].problem, &state->jobs[i].plan) / jobs;
    }
    atomic_store(&pipeline->chunks, chunks);
    const hr_tile_layout *l = &state->jobs[0].plan.layout;
    pipeline->chunk_bytes = l->tm * l->tn * state->jobs[0].problem.c_bytes;
    pipeline->depth = TILE_RING;
    return status;
}

static void tile_wake_all(hr_pipeline *pipeline)
{
    tile_state *state = pipeline->state;
    for (uint32_t i = 0; i < state->job_count; i++) {
        pthread_cond_broadcast(&state->jobs[i].moved);
    }
}

/* Calls one function for each stream of the pipeline's. What it answers was told through an event, or
 * concerns nobody any more. */
static void each_stream(hr_pipeline *pipeline, bool cancel)
{
    tile_state *state = pipeline->state;
    for (uint32_t i = 0; i < state->job_count; i++) {
        hr_stream *streams[] = {state->jobs[i].in, state->jobs[i].compute, state->jobs[i].out};
        for (size_t s = 0; s < sizeof streams / sizeof streams[0]; s++) {
            hr_status status = cancel ? hr_stream_cancel(streams[s]) : hr_stream_wait(streams[s], NULL);
            (void)status;
        }
    }
}

static void tile_cancel(hr_pipeline *pipeline)
{
    each_stream(pipeline, true);
}

static void tile_settle(hr_pipeline *pipeline)
{
    each_stream(pipeline, false);
}

static hr_status tile_close(hr_pipeline *pipeline, hr_error *error)
{
    tile_state *state = pipeline->state;
    if (state == NULL) {
        return HR_OK;
    }
    hr_status worst = HR_OK;
    for (uint32_t i = 0; i < state->job_count; i++) {
        hr_status status = tile_release(&state->jobs[i], error);
        worst = status != HR_OK ? status : worst;
        pthread_cond_destroy(&state->jobs[i].moved);
    }
    free(state->jobs);
    free(state);
    pipeline->state = NULL;
    return worst;
}

const hr_executor hr_tile_executor = {
    .name = "tiles",
    .open = tile_open,
    .wake_all = tile_wake_all,
    .cancel = tile_cancel,
    .settle = tile_settle,
    .close = tile_close,
};
