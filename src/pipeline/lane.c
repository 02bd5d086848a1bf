/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor for devices that share the host's memory. A lane is a thread with one slot: it takes the next
 * chunk, reads it into the slot, computes it and writes it, while other lanes are at other stages of other
 * chunks. On such a device reading, computing and writing all need the same cores, so a chunk that stays on
 * one core, small enough for that core's cache, costs one pass through memory where handing it from thread to
 * thread would cost three. Sources and sinks that lie in memory are used where they are.
 *
 * A slot belongs to its lane for good, so bytes in flight never exceed lanes × chunk, and a slot comes back
 * exactly when its lane asks for the next chunk.
 */
#include "pipeline/plan.h"
#include "pipeline/port.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct lane {
    uint32_t index;
    void *in[HR_MAX_PORTS];
    void *out[HR_MAX_PORTS];
    void *partial;
} lane;

typedef struct lane_state {
    hr_pool *pool;
    hr_launch_fn fn;
    hr_reader reader[HR_MAX_PORTS];
    hr_turn writer[HR_MAX_PORTS];
    hr_turn combine;
    void *op_state;
    lane lanes[HR_RUN_MAX_THREADS];
} lane_state;

static void run_serial(void *self, uint64_t count, void (*body)(void *user, uint64_t index), void *user)
{
    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        body(user, i);
    }
}

/* A lane's launcher has one core: the others are busy with lanes of their own. */
static const hr_workers serial_workers = {.self = NULL, .threads = 1, .run = run_serial};

static bool claim(hr_pipeline *pipeline, uint64_t *chunk)
{
    pthread_mutex_lock(&pipeline->lock);
    bool there = !hr_run_stopped(pipeline, pipeline->next_chunk);
    if (there) {
        *chunk = pipeline->next_chunk++;
    }
    pthread_mutex_unlock(&pipeline->lock);
    return there;
}

/* Memory is used where it lies, unless nobody knows where the data ends. */
static bool uses_slot(const hr_pipeline *pipeline, uint32_t port)
{
    return pipeline->options.in[port].source->data == NULL || pipeline->cut.units == HR_LENGTH_UNKNOWN;
}

/* Makes the input's data available; sets what the launch sees. */
static hr_status fetch(hr_pipeline *pipeline, lane *self, uint64_t chunk, uint32_t port, hr_range *range,
                       void **data, hr_error *error)
{
    lane_state *state = pipeline->state;
    hr_source *source = pipeline->options.in[port].source;
    hr_place_in_run place = {.stage = HR_STAGE_READ, .chunk = chunk, .port = port, .lane = self->index};
    *range = hr_cut_in(&pipeline->cut, port, chunk);
    if (uses_slot(pipeline, port)) {
        *data = self->in[port];
        return hr_reader_fetch(pipeline, &state->reader[port], place, self->in[port], range, error);
    }
    /* Nothing writes through an input's view; the launcher's struct is shared by inputs and outputs. */
    *data = (unsigned char *)(uintptr_t)source->data + range->offset_bytes;
    if (source->will_need != NULL) {
        hr_mark mark = hr_run_enter(pipeline, HR_STAGE_READ);
        source->will_need(source->self, range->offset_bytes, range->bytes);
        hr_run_leave(pipeline, place, mark, range->bytes);
    }
    return HR_OK;
}

/* Fetches all inputs of a chunk. Where the length is not known, all must end at the same element. */
static hr_status fetch_all(hr_pipeline *pipeline, lane *self, hr_launch *launch, uint64_t *units,
                           hr_error *error)
{
    const hr_cut *cut = &pipeline->cut;
    for (uint32_t port = 0; port < cut->inputs; port++) {
        hr_range range;
        void *data;
        hr_status status = fetch(pipeline, self, launch->chunk, port, &range, &data, error);
        if (status == HR_END) {
            range.units = 0;
        } else if (status != HR_OK) {
            return status;
        }
        if (port > 0 && cut->units == HR_LENGTH_UNKNOWN && range.units != *units) {
            return hr_fail(error, HR_E_FORMAT,
                           "inputs of different length: input %" PRIu32 " ends after %" PRIu64
                           " elements of this chunk, input 1 after %" PRIu64,
                           port + 1, range.units, *units);
        }
        if (port == 0) {
            *units = range.units;
        }
        launch->in[port] = hr_cut_view(cut, &cut->in[port], &range, data);
    }
    if (cut->units != HR_LENGTH_UNKNOWN) {
        *units = hr_cut_units(cut, launch->chunk); /* what was fetched has the neighbours' rows as well */
    } else if (*units < cut->chunk_units) {
        hr_run_end(pipeline, launch->chunk + (*units > 0));
    }
    return *units > 0 ? HR_OK : HR_END;
}

/* The part of an output that this chunk makes, shortened where the data ended early. */
static hr_range output_range(const hr_cut *cut, uint32_t port, uint64_t chunk, uint64_t units)
{
    hr_range range = hr_cut_out(cut, port, chunk);
    if (cut->units == HR_LENGTH_UNKNOWN) {
        range.units = units;
        range.bytes = units * cut->out[port].unit_bytes;
    }
    return range;
}

static hr_status compute(hr_pipeline *pipeline, lane *self, hr_launch *launch, uint64_t units,
                         hr_error *error)
{
    lane_state *state = pipeline->state;
    const hr_cut *cut = &pipeline->cut;
    uint64_t bytes = 0;
    for (uint32_t port = 0; port < cut->inputs; port++) {
        bytes += launch->in[port].shape.extent[0] * cut->in[port].unit_bytes;
    }
    for (uint32_t port = 0; port < cut->outputs; port++) {
        hr_sink *sink = pipeline->options.out[port].sink;
        hr_range range = output_range(cut, port, launch->chunk, units);
        if (sink->data != NULL && hr_sink_check_room(sink, &range, error) != HR_OK) {
            return hr_port_named(HR_E_RANGE, "output", port, cut->outputs, error);
        }
        void *data = sink->data != NULL ? (unsigned char *)sink->data + range.offset_bytes : self->out[port];
        launch->out[port] = hr_cut_view(cut, &cut->out[port], &range, data);
        bytes += range.bytes;
    }
    launch->state = state->op_state;
    launch->partial = self->partial;
    launch->workers = &serial_workers;
    hr_place_in_run place = {.stage = HR_STAGE_COMPUTE,
                             .chunk = launch->chunk,
                             .lane = self->index,
                             .device = pipeline->info.spec};
    hr_mark mark = hr_run_enter(pipeline, HR_STAGE_COMPUTE);
    hr_status status = state->fn(launch, error);
    if (status != HR_OK) {
        return hr_run_refused(status, "the op", error);
    }
    hr_run_leave(pipeline, place, mark, bytes);
    return HR_OK;
}

static hr_status store(hr_pipeline *pipeline, lane *self, const hr_launch *launch, uint64_t units,
                       hr_error *error)
{
    lane_state *state = pipeline->state;
    const hr_cut *cut = &pipeline->cut;
    for (uint32_t port = 0; port < cut->outputs; port++) {
        hr_range range = output_range(cut, port, launch->chunk, units);
        hr_place_in_run place = {
            .stage = HR_STAGE_WRITE, .chunk = launch->chunk, .port = port, .lane = self->index};
        if (pipeline->options.out[port].sink->data == NULL) {
            hr_status status =
                hr_writer_put(pipeline, &state->writer[port], place, self->out[port], &range, error);
            if (status != HR_OK) {
                return status;
            }
        }
        atomic_fetch_add(&pipeline->written_bytes[port], range.bytes);
    }
    if (pipeline->total == NULL) {
        return HR_OK;
    }
    if (!hr_turn_wait(pipeline, &state->combine, launch->chunk)) {
        return HR_AGAIN;
    }
    const hr_op *op = pipeline->options.op;
    op->combine(op, pipeline->options.params, pipeline->total, self->partial, units);
    hr_turn_pass(pipeline, &state->combine, launch->chunk);
    return HR_OK;
}

static hr_status run_chunk(hr_pipeline *pipeline, lane *self, uint64_t chunk, hr_error *error)
{
    hr_launch launch = hr_run_launch(pipeline, chunk);
    uint64_t units = 0;
    hr_status status = fetch_all(pipeline, self, &launch, &units, error);
    if (status != HR_OK) {
        return status;
    }
    if (hr_run_stopped(pipeline, chunk)) {
        return HR_AGAIN;
    }
    status = compute(pipeline, self, &launch, units, error);
    if (status != HR_OK) {
        return status;
    }
    if (hr_run_stopped(pipeline, chunk)) {
        return HR_AGAIN;
    }
    status = store(pipeline, self, &launch, units, error);
    if (status == HR_OK) {
        hr_run_done(pipeline, chunk, units);
    }
    return status;
}

static void lane_main(hr_pipeline *pipeline, void *argument)
{
    lane *self = argument;
    uint64_t chunk;
    while (claim(pipeline, &chunk)) {
        hr_error error = HR_ERROR_INIT;
        hr_status status = run_chunk(pipeline, self, chunk, &error);
        if (status < 0) {
            hr_run_fail(pipeline, chunk, &error);
        }
    }
}

static hr_status take(lane_state *state, uint64_t bytes, const char *name, void **block, hr_error *error)
{
    if (bytes == 0) {
        return HR_OK; /* an empty array's slot: no chunk will ask for it */
    }
    hr_status status = hr_pool_take(state->pool, bytes, 0, name, block);
    return status == HR_OK ? HR_OK
                           : hr_fail(error, HR_E_INTERNAL, "slots: the pool has no room for %s", name);
}

static hr_status take_lane(hr_pipeline *pipeline, lane *self, hr_error *error)
{
    lane_state *state = pipeline->state;
    const hr_cut *cut = &pipeline->cut;
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < cut->inputs && status == HR_OK; i++) {
        if (uses_slot(pipeline, i)) {
            status = take(state, hr_cut_in_bytes(cut, i), "input slot", &self->in[i], error);
        }
    }
    for (uint32_t i = 0; i < cut->outputs && status == HR_OK; i++) {
        if (pipeline->options.out[i].sink->data == NULL) {
            status = take(state, hr_cut_out_bytes(cut, i), "output slot", &self->out[i], error);
        }
    }
    if (status == HR_OK && pipeline->plan.partial_bytes > 0) {
        status = take(state, pipeline->plan.partial_bytes, "partial result", &self->partial, error);
    }
    return status;
}

static hr_status make_turns(lane_state *state)
{
    for (uint32_t i = 0; i < HR_MAX_PORTS; i++) {
        if (hr_turn_init(&state->reader[i].turn) != HR_OK || hr_turn_init(&state->writer[i]) != HR_OK) {
            return HR_E_HOST_MEMORY;
        }
    }
    return hr_turn_init(&state->combine);
}

/* How many lanes can be in each stage at once. */
static void set_widths(hr_pipeline *pipeline)
{
    const hr_pipeline_options *options = &pipeline->options;
    uint32_t lanes = (uint32_t)hr_min_u64(pipeline->depth, hr_plan_cores(pipeline));
    uint32_t readers = 0, writers = 0;
    for (uint32_t i = 0; i < pipeline->cut.inputs; i++) {
        const hr_source *source = options->in[i].source;
        readers = source->data == NULL && source->sequential ? readers + 1 : lanes;
    }
    for (uint32_t i = 0; i < pipeline->cut.outputs; i++) {
        writers = options->out[i].sink->sequential ? writers + 1 : lanes;
    }
    pipeline->width[HR_STAGE_READ] = (uint32_t)hr_min_u64(readers, lanes);
    pipeline->width[HR_STAGE_COMPUTE] = lanes;
    pipeline->width[HR_STAGE_WRITE] = (uint32_t)hr_min_u64(writers, lanes);
}

/* All memory of the run: the lanes' slots, the carries, the op's state. */
static hr_status take_memory(hr_pipeline *pipeline, hr_error *error)
{
    lane_state *state = pipeline->state;
    uint64_t extra = hr_slot_round(pipeline->plan.state_bytes);
    for (uint32_t i = 0; i < pipeline->cut.inputs; i++) {
        extra += hr_slot_round(hr_reader_carry_bytes(pipeline, i));
    }
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "pipeline slots";
    options.kind = HR_MEMORY_PAGEABLE;
    options.bytes = extra + pipeline->depth * hr_lane_slot_bytes(pipeline);
    if (options.bytes == 0) {
        return HR_OK;
    }
    hr_status status = hr_pool_open(pipeline->options.devices[0], &options, &state->pool, error);
    if (status != HR_OK) {
        return status;
    }
    pipeline->pinned_bytes = options.bytes;
    for (uint32_t i = 0; i < pipeline->cut.inputs && status == HR_OK; i++) {
        uint64_t bytes = hr_reader_carry_bytes(pipeline, i);
        if (bytes > 0) {
            status = take(state, bytes, "rows shared by chunks", (void **)&state->reader[i].carry, error);
        }
    }
    if (status == HR_OK && pipeline->plan.state_bytes > 0) {
        status = take(state, pipeline->plan.state_bytes, "the op's state", &state->op_state, error);
    }
    for (uint32_t i = 0; i < pipeline->depth && status == HR_OK; i++) {
        state->lanes[i].index = i;
        status = take_lane(pipeline, &state->lanes[i], error);
    }
    return status;
}

static hr_status lane_open(hr_pipeline *pipeline, hr_error *error)
{
    lane_state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for its lanes");
    }
    pipeline->state = state;
    const hr_op *op = pipeline->options.op;
    hr_status status = make_turns(state);
    if (status == HR_OK) {
        status = hr_device_launcher(pipeline->options.devices[0], op, &state->fn, error);
    }
    if (status == HR_OK) {
        status = hr_plan_lanes(pipeline, error);
    }
    if (status == HR_OK) {
        atomic_store(&pipeline->chunks, hr_cut_chunks(&pipeline->cut));
        set_widths(pipeline);
        status = take_memory(pipeline, error);
    }
    if (status == HR_OK && state->op_state != NULL) {
        status = hr_run_prepare(pipeline, state->op_state, error);
    }
    for (uint32_t i = 0; i < pipeline->depth && status == HR_OK; i++) {
        status = hr_run_spawn(pipeline, "hr-lane", lane_main, &state->lanes[i], error);
    }
    return status;
}

static void lane_wake_all(hr_pipeline *pipeline)
{
    lane_state *state = pipeline->state;
    for (uint32_t i = 0; i < HR_MAX_PORTS; i++) {
        pthread_cond_broadcast(&state->reader[i].turn.moved);
        pthread_cond_broadcast(&state->writer[i].moved);
    }
    pthread_cond_broadcast(&state->combine.moved);
}

static void give(lane_state *state, void *block, hr_status *worst)
{
    if (block != NULL && hr_pool_give(state->pool, block) != HR_OK) {
        *worst = HR_E_INTERNAL;
    }
}

static hr_status lane_close(hr_pipeline *pipeline, hr_error *error)
{
    lane_state *state = pipeline->state;
    if (state == NULL) {
        return HR_OK;
    }
    hr_status worst = HR_OK;
    for (uint32_t i = 0; i < HR_RUN_MAX_THREADS; i++) {
        for (uint32_t port = 0; port < HR_MAX_PORTS; port++) {
            give(state, state->lanes[i].in[port], &worst);
            give(state, state->lanes[i].out[port], &worst);
        }
        give(state, state->lanes[i].partial, &worst);
    }
    for (uint32_t i = 0; i < HR_MAX_PORTS; i++) {
        give(state, state->reader[i].carry, &worst);
        hr_turn_destroy(&state->reader[i].turn);
        hr_turn_destroy(&state->writer[i]);
    }
    give(state, state->op_state, &worst);
    hr_turn_destroy(&state->combine);
    hr_status closed = hr_pool_close(&state->pool, error);
    free(state);
    pipeline->state = NULL;
    return closed != HR_OK ? closed : worst;
}

const hr_executor hr_lane_executor = {
    .name = "lanes",
    .open = lane_open,
    .wake_all = lane_wake_all,
    .close = lane_close,
};
