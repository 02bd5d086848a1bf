/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/flow.h"

#include "base/checked.h"
#include "base/nt_copy.h"
#include "pipeline/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static flow_slot *slot_of(const flow_state *state, uint64_t chunk)
{
    return &state->slots[chunk % state->slot_count];
}

/* Is the slot of this chunk in this phase, for this chunk? With the lock held. */
static bool in_phase(const flow_state *state, uint64_t chunk, flow_phase phase)
{
    const flow_slot *slot = slot_of(state, chunk);
    return slot->chunk == chunk && slot->phase == phase;
}

static bool wait_phase(hr_pipeline *pipeline, pthread_cond_t *entered, uint64_t chunk, flow_phase phase)
{
    flow_state *state = pipeline->state;
    pthread_mutex_lock(&pipeline->lock);
    while (!in_phase(state, chunk, phase) && !hr_run_stopped(pipeline, chunk)) {
        pthread_cond_wait(entered, &pipeline->lock);
    }
    bool there = !hr_run_stopped(pipeline, chunk);
    pthread_mutex_unlock(&pipeline->lock);
    return there;
}

static void enter_phase(flow_slot *slot, flow_phase phase, pthread_cond_t *entered)
{
    slot->phase = phase;
    pthread_cond_broadcast(entered);
}

static uint64_t pieces_of(flow_way way, const hr_range *range)
{
    switch (way) {
    case FLOW_DIRECT:
        return 0;
    case FLOW_STREAM:
        return 1;
    case FLOW_PIECES:
        break;
    }
    return hr_div_up(range->bytes, FLOW_PIECE_BYTES);
}

void flow_refill(hr_pipeline *pipeline, flow_slot *slot)
{
    flow_state *state = pipeline->state;
    const hr_cut *cut = &pipeline->cut;
    slot->pieces_left = 0;
    if (slot->chunk >= hr_cut_chunks(cut)) {
        enter_phase(slot, FLOW_FILLING, &state->filling);
        return;
    }
    for (uint32_t i = 0; i < cut->inputs; i++) {
        slot->in[i] = hr_cut_in(cut, i, slot->chunk);
        slot->pieces_left += pieces_of(state->in_way[i], &slot->in[i]);
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        slot->out[i] = hr_cut_out(cut, i, slot->chunk);
    }
    slot->units = hr_cut_units(cut, slot->chunk);
    if (slot->pieces_left > 0) {
        enter_phase(slot, FLOW_FILLING, &state->filling);
    } else {
        enter_phase(slot, FLOW_READY, &state->ready);
    }
}

/* The chunk is through: its slot serves another one. With the lock held. */
static void recycle(hr_pipeline *pipeline, flow_slot *slot)
{
    flow_state *state = pipeline->state;
    slot->chunk += state->slot_count;
    flow_refill(pipeline, slot);
}

static uint64_t input_end(const flow_state *state, const hr_pipeline *pipeline, const flow_slot *slot)
{
    (void)state;
    uint64_t units = slot->in[0].units;
    for (uint32_t i = 1; i < pipeline->cut.inputs; i++) {
        units = slot->in[i].units == units ? units : UINT64_MAX;
    }
    return units;
}

/* Where the length is not known: how much of the chunk there is. False if the chunk is not to go on. */
static bool settle_length(hr_pipeline *pipeline, flow_slot *slot)
{
    const hr_cut *cut = &pipeline->cut;
    if (cut->units != HR_LENGTH_UNKNOWN) {
        return true;
    }
    uint64_t units = input_end(pipeline->state, pipeline, slot);
    if (units == UINT64_MAX) {
        hr_error error = HR_ERROR_INIT;
        hr_fail(&error, HR_E_FORMAT,
                "inputs of different length: one ends after %" PRIu64
                " elements of this chunk, another goes on or ends before",
                slot->in[0].units);
        hr_run_fail(pipeline, slot->chunk, &error);
        return false;
    }
    slot->units = units;
    for (uint32_t i = 0; i < cut->outputs; i++) {
        slot->out[i].units = units;
        slot->out[i].bytes = units * cut->out[i].unit_bytes;
    }
    if (units < cut->chunk_units) {
        hr_run_end(pipeline, slot->chunk + (units > 0));
    }
    return units > 0;
}

/* One piece of the slot's inputs has arrived. */
static void piece_read(hr_pipeline *pipeline, flow_slot *slot)
{
    flow_state *state = pipeline->state;
    pthread_mutex_lock(&pipeline->lock);
    bool last = --slot->pieces_left == 0;
    pthread_mutex_unlock(&pipeline->lock);
    if (!last || !settle_length(pipeline, slot)) {
        return;
    }
    pthread_mutex_lock(&pipeline->lock);
    enter_phase(slot, FLOW_READY, &state->ready);
    pthread_mutex_unlock(&pipeline->lock);
}

static hr_range piece_range(const hr_range *range, uint64_t piece)
{
    uint64_t begin = piece * FLOW_PIECE_BYTES;
    return (hr_range){.offset_bytes = range->offset_bytes + begin,
                      .bytes = hr_min_u64(FLOW_PIECE_BYTES, range->bytes - begin)};
}

/* Takes the cursor's piece and moves the cursor on. With the lock held. */
static flow_cursor advance(flow_cursor *cursor, const flow_way *ways, const hr_range *ranges, uint32_t ports)
{
    flow_cursor taken = *cursor;
    cursor->piece++;
    while (cursor->port < ports &&
           cursor->piece >=
               (ways[cursor->port] == FLOW_PIECES ? pieces_of(FLOW_PIECES, &ranges[cursor->port]) : 0)) {
        cursor->piece = 0;
        cursor->port++;
    }
    if (cursor->port == ports) {
        cursor->chunk++;
        cursor->port = 0;
        /* The first port that goes by pieces; there is one, or nobody would be here. */
        while (ways[cursor->port] != FLOW_PIECES) {
            cursor->port++;
        }
    }
    return taken;
}

/* Waits for the next piece in the given phase; false when there is none any more. */
static bool next_piece(hr_pipeline *pipeline, bool reading, flow_cursor *taken)
{
    flow_state *state = pipeline->state;
    flow_cursor *cursor = reading ? &state->read_cursor : &state->write_cursor;
    flow_phase phase = reading ? FLOW_FILLING : FLOW_DRAINING;
    pthread_mutex_lock(&pipeline->lock);
    while (!hr_run_stopped(pipeline, cursor->chunk) && !in_phase(state, cursor->chunk, phase)) {
        pthread_cond_wait(reading ? &state->filling : &state->draining, &pipeline->lock);
    }
    bool there = !hr_run_stopped(pipeline, cursor->chunk);
    if (there) {
        flow_slot *slot = slot_of(state, cursor->chunk);
        *taken = reading ? advance(cursor, state->in_way, slot->in, pipeline->cut.inputs)
                         : advance(cursor, state->out_way, slot->out, pipeline->cut.outputs);
    }
    pthread_mutex_unlock(&pipeline->lock);
    return there;
}

static hr_status read_piece(hr_pipeline *pipeline, hr_place_in_run place, void *buffer, const hr_range *range,
                            hr_error *error)
{
    const hr_source *source = pipeline->options.in[place.port].source;
    place.stage = source->data != NULL ? HR_STAGE_STAGE : HR_STAGE_READ;
    hr_mark mark = hr_run_enter(pipeline, place.stage);
    if (source->data != NULL) {
        hr_copy_nontemporal(buffer, (const unsigned char *)source->data + range->offset_bytes, range->bytes);
    } else {
        hr_status status = hr_port_read(source, range->offset_bytes, buffer, range->bytes, NULL, error);
        if (status != HR_OK) {
            hr_run_leave(pipeline, place, mark, 0);
            return hr_port_named(status, "input", place.port, pipeline->cut.inputs, error);
        }
    }
    hr_run_leave(pipeline, place, mark, range->bytes);
    return HR_OK;
}

static void read_pieces(hr_pipeline *pipeline, void *argument)
{
    const flow_lane *lane = argument;
    flow_state *state = pipeline->state;
    flow_cursor at;
    while (next_piece(pipeline, true, &at)) {
        flow_slot *slot = slot_of(state, at.chunk);
        hr_range range = piece_range(&slot->in[at.port], at.piece);
        hr_place_in_run place = {
            .stage = HR_STAGE_READ, .chunk = at.chunk, .port = at.port, .lane = lane->index};
        unsigned char *buffer = (unsigned char *)slot->host_in[at.port] + at.piece * FLOW_PIECE_BYTES;
        hr_error error = HR_ERROR_INIT;
        if (read_piece(pipeline, place, buffer, &range, &error) == HR_OK) {
            piece_read(pipeline, slot);
        } else {
            hr_run_fail(pipeline, at.chunk, &error);
        }
    }
}

static void read_stream(hr_pipeline *pipeline, void *argument)
{
    const flow_lane *lane = argument;
    flow_state *state = pipeline->state;
    for (uint64_t chunk = 0; wait_phase(pipeline, &state->filling, chunk, FLOW_FILLING); chunk++) {
        flow_slot *slot = slot_of(state, chunk);
        hr_place_in_run place = {
            .stage = HR_STAGE_READ, .chunk = chunk, .port = lane->port, .lane = lane->index};
        hr_error error = HR_ERROR_INIT;
        hr_range range = slot->in[lane->port];
        hr_status status = hr_reader_fetch(pipeline, &state->reader[lane->port], place,
                                           slot->host_in[lane->port], &range, &error);
        if (status < 0) {
            hr_run_fail(pipeline, chunk, &error);
        } else if (status != HR_AGAIN) {
            slot->in[lane->port].units = status == HR_END ? 0 : range.units;
            slot->in[lane->port].bytes = status == HR_END ? 0 : range.bytes;
            piece_read(pipeline, slot);
        }
    }
}

/* A ready slot goes to its device. */
static bool submit_chunk(hr_pipeline *pipeline, flow_device *device, uint64_t chunk)
{
    flow_state *state = pipeline->state;
    flow_slot *slot = slot_of(state, chunk);
    hr_error error = HR_ERROR_INIT;
    hr_status status = flow_submit(pipeline, device, slot, &error);
    if (status != HR_OK) {
        hr_run_fail(pipeline, chunk, &error);
        return false;
    }
    pthread_mutex_lock(&pipeline->lock);
    enter_phase(slot, FLOW_QUEUED, &state->queued);
    pthread_mutex_unlock(&pipeline->lock);
    return true;
}

static void submit_chunks(hr_pipeline *pipeline, void *argument)
{
    flow_device *device = argument;
    flow_state *state = pipeline->state;
    for (uint64_t chunk = device->next_chunk; wait_phase(pipeline, &state->ready, chunk, FLOW_READY);
         chunk += state->device_count) {
        if (!submit_chunk(pipeline, device, chunk)) {
            return;
        }
    }
}

/* Where nothing has to be read, each device's first chunk is queued at once: a thread takes longer to wake up. */
static void flow_begin(hr_pipeline *pipeline)
{
    flow_state *state = pipeline->state;
    for (uint32_t i = 0; i < state->device_count; i++) {
        flow_device *device = &state->devices[i];
        device->next_chunk = i;
        if (!hr_run_stopped(pipeline, i) && in_phase(state, i, FLOW_READY) &&
            submit_chunk(pipeline, device, i)) {
            device->next_chunk += state->device_count;
        }
    }
}

static bool combine(hr_pipeline *pipeline, flow_slot *slot)
{
    flow_state *state = pipeline->state;
    if (pipeline->total == NULL) {
        return true;
    }
    if (!hr_turn_wait(pipeline, &state->combine, slot->chunk)) {
        return false;
    }
    const hr_op *op = pipeline->options.op;
    op->combine(op, pipeline->options.params, pipeline->total, slot->host_partial, slot->units);
    hr_turn_pass(pipeline, &state->combine, slot->chunk);
    return true;
}

static void finish_chunk(hr_pipeline *pipeline, flow_slot *slot)
{
    for (uint32_t i = 0; i < pipeline->cut.outputs; i++) {
        atomic_fetch_add(&pipeline->written_bytes[i], slot->out[i].bytes);
    }
    hr_run_done(pipeline, slot->chunk, slot->units);
    pthread_mutex_lock(&pipeline->lock);
    recycle(pipeline, slot);
    pthread_mutex_unlock(&pipeline->lock);
}

static void collect_chunks(hr_pipeline *pipeline, void *argument)
{
    flow_device *device = argument;
    flow_state *state = pipeline->state;
    for (uint64_t chunk = device->index; wait_phase(pipeline, &state->queued, chunk, FLOW_QUEUED);
         chunk += state->device_count) {
        flow_slot *slot = slot_of(state, chunk);
        hr_error error = HR_ERROR_INIT;
        hr_status status = flow_collect(pipeline, device, slot, &error);
        if (status != HR_OK) {
            hr_run_fail(pipeline, chunk, &error);
            return;
        }
        if (!combine(pipeline, slot)) {
            return;
        }
        uint64_t pieces = 0;
        for (uint32_t i = 0; i < pipeline->cut.outputs; i++) {
            pieces += pieces_of(state->out_way[i], &slot->out[i]);
        }
        if (pieces == 0) {
            finish_chunk(pipeline, slot);
            continue;
        }
        pthread_mutex_lock(&pipeline->lock);
        slot->pieces_left = pieces;
        enter_phase(slot, FLOW_DRAINING, &state->draining);
        pthread_mutex_unlock(&pipeline->lock);
    }
}

static void piece_written(hr_pipeline *pipeline, flow_slot *slot)
{
    pthread_mutex_lock(&pipeline->lock);
    bool last = --slot->pieces_left == 0;
    pthread_mutex_unlock(&pipeline->lock);
    if (last) {
        finish_chunk(pipeline, slot);
    }
}

static hr_status write_piece(hr_pipeline *pipeline, hr_place_in_run place, const void *buffer,
                             const hr_range *range, hr_error *error)
{
    const hr_sink *sink = pipeline->options.out[place.port].sink;
    if (sink->data == NULL) {
        return hr_writer_put(pipeline, NULL, place, buffer, range, error);
    }
    if (hr_sink_check_room(sink, range, error) != HR_OK) {
        return hr_port_named(HR_E_RANGE, "output", place.port, pipeline->cut.outputs, error);
    }
    hr_mark mark = hr_run_enter(pipeline, HR_STAGE_WRITE);
    hr_copy_nontemporal((unsigned char *)sink->data + range->offset_bytes, buffer, range->bytes);
    hr_run_leave(pipeline, place, mark, range->bytes);
    return HR_OK;
}

static void write_pieces(hr_pipeline *pipeline, void *argument)
{
    const flow_lane *lane = argument;
    flow_state *state = pipeline->state;
    flow_cursor at;
    while (next_piece(pipeline, false, &at)) {
        flow_slot *slot = slot_of(state, at.chunk);
        hr_range range = piece_range(&slot->out[at.port], at.piece);
        hr_place_in_run place = {
            .stage = HR_STAGE_WRITE, .chunk = at.chunk, .port = at.port, .lane = lane->index};
        const unsigned char *buffer =
            (const unsigned char *)slot->host_out[at.port] + at.piece * FLOW_PIECE_BYTES;
        hr_error error = HR_ERROR_INIT;
        hr_status status = write_piece(pipeline, place, buffer, &range, &error);
        if (status == HR_OK) {
            piece_written(pipeline, slot);
        } else if (status < 0) {
            hr_run_fail(pipeline, at.chunk, &error);
        }
    }
}

static void write_stream(hr_pipeline *pipeline, void *argument)
{
    const flow_lane *lane = argument;
    flow_state *state = pipeline->state;
    for (uint64_t chunk = 0; wait_phase(pipeline, &state->draining, chunk, FLOW_DRAINING); chunk++) {
        flow_slot *slot = slot_of(state, chunk);
        hr_place_in_run place = {
            .stage = HR_STAGE_WRITE, .chunk = chunk, .port = lane->port, .lane = lane->index};
        hr_error error = HR_ERROR_INIT;
        hr_status status = hr_writer_put(pipeline, &state->writer[lane->port], place,
                                         slot->host_out[lane->port], &slot->out[lane->port], &error);
        if (status == HR_OK) {
            piece_written(pipeline, slot);
        } else if (status < 0) {
            hr_run_fail(pipeline, chunk, &error);
        }
    }
}

/* Room and way of each port are known: starts the threads of one side. */
static hr_status spawn_side(hr_pipeline *pipeline, const flow_way *ways, uint32_t ports,
                            uint32_t piece_threads, bool reading, hr_error *error)
{
    flow_state *state = pipeline->state;
    const char *name = reading ? "hr-read" : "hr-write";
    uint32_t index = 0;
    bool any_pieces = false;
    for (uint32_t port = 0; port < ports; port++) {
        any_pieces = any_pieces || ways[port] == FLOW_PIECES;
        if (ways[port] != FLOW_STREAM) {
            continue;
        }
        flow_lane *lane = &state->lanes[state->lane_count++];
        *lane = (flow_lane){.index = index++, .port = port};
        hr_status status = hr_run_spawn(pipeline, name, reading ? read_stream : write_stream, lane, error);
        if (status != HR_OK) {
            return status;
        }
    }
    for (uint32_t i = 0; any_pieces && i < piece_threads; i++) {
        flow_lane *lane = &state->lanes[state->lane_count++];
        *lane = (flow_lane){.index = index++};
        hr_status status = hr_run_spawn(pipeline, name, reading ? read_pieces : write_pieces, lane, error);
        if (status != HR_OK) {
            return status;
        }
    }
    uint32_t width = (uint32_t)hr_min_u64(index, hr_plan_cores(pipeline));
    if (reading) {
        pipeline->width[HR_STAGE_READ] = pipeline->width[HR_STAGE_STAGE] = width;
    } else {
        pipeline->width[HR_STAGE_WRITE] = width;
    }
    return HR_OK;
}

static hr_status spawn_all(hr_pipeline *pipeline, hr_error *error)
{
    flow_state *state = pipeline->state;
    hr_status status =
        spawn_side(pipeline, state->in_way, pipeline->cut.inputs, hr_plan_readers(pipeline), true, error);
    if (status == HR_OK) {
        status = spawn_side(pipeline, state->out_way, pipeline->cut.outputs, hr_plan_writers(pipeline), false,
                            error);
    }
    for (uint32_t i = 0; i < state->device_count && status == HR_OK; i++) {
        status = hr_run_spawn(pipeline, "hr-submit", submit_chunks, &state->devices[i], error);
        if (status == HR_OK) {
            status = hr_run_spawn(pipeline, "hr-collect", collect_chunks, &state->devices[i], error);
        }
    }
    return status;
}

static void place_cursor(flow_cursor *cursor, const flow_way *ways, uint32_t ports)
{
    while (cursor->port < ports && ways[cursor->port] != FLOW_PIECES) {
        cursor->port++;
    }
}

static bool is_pinned(const hr_pipeline *pipeline, const void *data, uint64_t bytes)
{
    bool pinned = data != NULL && bytes > 0;
    for (uint32_t i = 0; i < pipeline->options.device_count && pinned; i++) {
        hr_memory_kind kind;
        pinned = hr_memory_kind_of(pipeline->options.devices[i], data, bytes, &kind) == HR_OK &&
                 kind == HR_MEMORY_PINNED;
    }
    return pinned;
}

static void choose_ways(hr_pipeline *pipeline)
{
    flow_state *state = pipeline->state;
    const hr_cut *cut = &pipeline->cut;
    for (uint32_t i = 0; i < cut->inputs; i++) {
        const hr_source *source = pipeline->options.in[i].source;
        if (cut->units != HR_LENGTH_UNKNOWN && is_pinned(pipeline, source->data, source->bytes)) {
            state->in_way[i] = FLOW_DIRECT;
        } else if (source->data != NULL && cut->units != HR_LENGTH_UNKNOWN) {
            state->in_way[i] = FLOW_PIECES;
        } else {
            bool anywhere = !source->sequential && cut->units != HR_LENGTH_UNKNOWN;
            state->in_way[i] = anywhere ? FLOW_PIECES : FLOW_STREAM;
        }
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        const hr_sink *sink = pipeline->options.out[i].sink;
        uint64_t bytes = cut->units == HR_LENGTH_UNKNOWN ? 0 : cut->units * cut->out[i].unit_bytes;
        if (is_pinned(pipeline, sink->data, bytes)) {
            state->out_way[i] = FLOW_DIRECT;
        } else {
            state->out_way[i] = sink->data == NULL && sink->sequential ? FLOW_STREAM : FLOW_PIECES;
        }
    }
    place_cursor(&state->read_cursor, state->in_way, cut->inputs);
    place_cursor(&state->write_cursor, state->out_way, cut->outputs);
}

static hr_status make_sync(flow_state *state)
{
    pthread_cond_init(&state->filling, NULL);
    pthread_cond_init(&state->ready, NULL);
    pthread_cond_init(&state->queued, NULL);
    pthread_cond_init(&state->draining, NULL);
    hr_status status = hr_turn_init(&state->combine);
    for (uint32_t i = 0; i < HR_MAX_PORTS && status == HR_OK; i++) {
        status = hr_turn_init(&state->reader[i].turn);
        if (status == HR_OK) {
            status = hr_turn_init(&state->writer[i]);
        }
    }
    return status;
}

static hr_status flow_open(hr_pipeline *pipeline, hr_error *error)
{
    flow_state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for its state");
    }
    pipeline->state = state;
    state->device_count = pipeline->options.device_count;
    state->watched = pipeline->options.observer != NULL && pipeline->options.observer->span != NULL;
    hr_status status = make_sync(state);
    if (status == HR_OK) {
        choose_ways(pipeline);
        status = hr_plan_flow(pipeline, error);
    }
    if (status == HR_OK) {
        atomic_store(&pipeline->chunks, hr_cut_chunks(&pipeline->cut));
        status = flow_take(pipeline, error);
    }
    for (uint32_t i = 0; i < state->slot_count && status == HR_OK; i++) {
        state->slots[i].chunk = i;
        flow_refill(pipeline, &state->slots[i]);
    }
    return status == HR_OK ? spawn_all(pipeline, error) : status;
}

static void flow_wake_all(hr_pipeline *pipeline)
{
    flow_state *state = pipeline->state;
    pthread_cond_broadcast(&state->filling);
    pthread_cond_broadcast(&state->ready);
    pthread_cond_broadcast(&state->queued);
    pthread_cond_broadcast(&state->draining);
    pthread_cond_broadcast(&state->combine.moved);
    for (uint32_t i = 0; i < HR_MAX_PORTS; i++) {
        pthread_cond_broadcast(&state->reader[i].turn.moved);
        pthread_cond_broadcast(&state->writer[i].moved);
    }
}

static void flow_cancel(hr_pipeline *pipeline)
{
    flow_state *state = pipeline->state;
    for (uint32_t i = 0; i < state->device_count; i++) {
        hr_stream *streams[] = {state->devices[i].in, state->devices[i].compute, state->devices[i].out};
        for (size_t s = 0; s < sizeof streams / sizeof streams[0]; s++) {
            hr_status status = hr_stream_cancel(streams[s]);
            (void)status; /* what cannot be recalled runs to its end, and settle waits for it */
        }
    }
}

static void flow_settle(hr_pipeline *pipeline)
{
    flow_state *state = pipeline->state;
    if (!pipeline->failed && !atomic_load(&pipeline->cancelled)) {
        return; /* every chunk's last event was seen, and nothing is queued behind the last chunk */
    }
    for (uint32_t i = 0; i < state->device_count; i++) {
        hr_stream *streams[] = {state->devices[i].in, state->devices[i].compute, state->devices[i].out};
        for (size_t s = 0; s < sizeof streams / sizeof streams[0]; s++) {
            hr_error error = HR_ERROR_INIT;
            hr_status status = hr_stream_wait(streams[s], &error);
            (void)status; /* a failure that matters came through a chunk's event */
        }
    }
}

static hr_status flow_close(hr_pipeline *pipeline, hr_error *error)
{
    flow_state *state = pipeline->state;
    if (state == NULL) {
        return HR_OK;
    }
    hr_status status = flow_release(pipeline, error);
    pthread_cond_destroy(&state->filling);
    pthread_cond_destroy(&state->ready);
    pthread_cond_destroy(&state->queued);
    pthread_cond_destroy(&state->draining);
    hr_turn_destroy(&state->combine);
    for (uint32_t i = 0; i < HR_MAX_PORTS; i++) {
        hr_turn_destroy(&state->reader[i].turn);
        hr_turn_destroy(&state->writer[i]);
    }
    free(state);
    pipeline->state = NULL;
    return status;
}

const hr_executor hr_flow_executor = {
    .name = "flow",
    .open = flow_open,
    .begin = flow_begin,
    .wake_all = flow_wake_all,
    .cancel = flow_cancel,
    .settle = flow_settle,
    .close = flow_close,
};
