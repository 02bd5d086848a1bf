/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a flow takes before it runs, and gives back after: pools, blocks, streams, events, timers.
 */
#include "pipeline/flow.h"
#include "pipeline/plan.h"

#include <headrace/copy.h>

#include <inttypes.h>
#include <stdlib.h>

uint64_t flow_slot_host_bytes(const hr_pipeline *pipeline, const flow_state *state)
{
    const hr_cut *cut = &pipeline->cut;
    uint64_t bytes = hr_slot_round(pipeline->plan.partial_bytes);
    for (uint32_t i = 0; i < cut->inputs; i++) {
        bytes += state->in_way[i] == FLOW_DIRECT ? 0 : hr_slot_round(hr_cut_in_bytes(cut, i));
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        bytes += state->out_way[i] == FLOW_DIRECT ? 0 : hr_slot_round(hr_cut_out_bytes(cut, i));
    }
    return bytes;
}

uint64_t flow_slot_device_bytes(const hr_pipeline *pipeline)
{
    const hr_cut *cut = &pipeline->cut;
    uint64_t bytes = hr_slot_round(pipeline->plan.partial_bytes);
    for (uint32_t i = 0; i < cut->inputs; i++) {
        bytes += hr_slot_round(hr_cut_in_bytes(cut, i));
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        bytes += hr_slot_round(hr_cut_out_bytes(cut, i));
    }
    return bytes;
}

static hr_status take(hr_pool *pool, uint64_t bytes, const char *name, void **block, hr_error *error)
{
    if (bytes == 0) {
        return HR_OK; /* an empty array's slot: no chunk will ask for it */
    }
    hr_status status = hr_pool_take(pool, bytes, HR_SLOT_ALIGN, name, block);
    return status == HR_OK ? HR_OK
                           : hr_fail(error, HR_E_INTERNAL, "slots: the pool has no room for %s", name);
}

/* The host's side of the first device also holds what sequential inputs carry from chunk to chunk. */
static uint64_t extra_host_bytes(const hr_pipeline *pipeline, const flow_device *device)
{
    uint64_t bytes = hr_slot_round(pipeline->plan.state_bytes);
    for (uint32_t i = 0; device->index == 0 && i < pipeline->cut.inputs; i++) {
        bytes += hr_slot_round(hr_reader_carry_bytes(pipeline, i));
    }
    return bytes;
}

static hr_status open_pools(hr_pipeline *pipeline, flow_device *device, hr_error *error)
{
    flow_state *state = pipeline->state;
    uint64_t slot_host = flow_slot_host_bytes(pipeline, state);
    uint64_t extra = extra_host_bytes(pipeline, device);
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "pinned slots";
    options.kind = HR_MEMORY_PINNED;
    options.bytes = pipeline->depth * slot_host + extra;
    options.max_blocks = (pipeline->depth + 1) * (2 * HR_MAX_PORTS + 1);
    options.minimum_bytes = (pipeline->depth < 2 ? 1 : 2) * slot_host + extra;
    if (options.bytes > 0) {
        hr_status status = hr_pool_open(device->device, &options, &device->pinned, error);
        if (status != HR_OK) {
            return status;
        }
        hr_pool_stats stats = HR_POOL_STATS_INIT;
        status = hr_pool_get_stats(device->pinned, &stats);
        if (status != HR_OK) {
            return hr_fail(error, status, "slots: the pool does not tell its size");
        }
        if (stats.fallback != NULL) {
            hr_run_note(pipeline, "%s: %s", device->info.spec, stats.fallback);
        }
        uint64_t fitting = slot_host > 0 ? (stats.bytes - extra) / slot_host : pipeline->depth;
        pipeline->depth = fitting < pipeline->depth ? (uint32_t)fitting : pipeline->depth;
        pipeline->pinned_bytes += stats.bytes;
    }
    options.name = "device slots";
    options.kind = HR_MEMORY_DEVICE;
    options.minimum_bytes = 0;
    options.bytes =
        pipeline->depth * flow_slot_device_bytes(pipeline) + hr_slot_round(pipeline->plan.state_bytes);
    pipeline->device_bytes += options.bytes;
    return options.bytes == 0 ? HR_OK : hr_pool_open(device->device, &options, &device->memory, error);
}

static hr_status open_streams(flow_device *device, hr_error *error)
{
    hr_status status = hr_stream_open(device->device, HR_STREAM_IN, &device->in, error);
    if (status == HR_OK) {
        status = hr_stream_open(device->device, HR_STREAM_COMPUTE, &device->compute, error);
    }
    return status == HR_OK ? hr_stream_open(device->device, HR_STREAM_OUT, &device->out, error) : status;
}

static hr_status open_state(hr_pipeline *pipeline, flow_device *device, hr_error *error)
{
    uint64_t bytes = pipeline->plan.state_bytes;
    if (bytes == 0) {
        return HR_OK;
    }
    hr_status status = take(device->pinned, bytes, "the op's state", &device->op_state_host, error);
    if (status == HR_OK) {
        status = take(device->memory, bytes, "the op's state", &device->op_state, error);
    }
    if (status == HR_OK) {
        status = hr_run_prepare(pipeline, device->op_state_host, error);
    }
    if (status == HR_OK) {
        status = hr_copy_to_device(device->in, device->op_state, device->op_state_host, bytes, error);
    }
    return status == HR_OK ? hr_stream_wait(device->in, error) : status;
}

static hr_status open_device(hr_pipeline *pipeline, uint32_t index, hr_error *error)
{
    flow_state *state = pipeline->state;
    flow_device *device = &state->devices[index];
    device->index = index;
    device->device = pipeline->options.devices[index];
    device->info.size = sizeof device->info;
    hr_status status = hr_device_get_info(device->device, &device->info, error);
    if (status == HR_OK) {
        status = hr_device_launcher(device->device, pipeline->options.op, &device->fn, error);
    }
    if (status == HR_OK) {
        status = open_pools(pipeline, device, error);
    }
    if (status == HR_OK) {
        status = open_streams(device, error);
    }
    return status == HR_OK ? open_state(pipeline, device, error) : status;
}

static hr_status open_events(const hr_pipeline *pipeline, hr_device *device, flow_slot *slot, hr_error *error)
{
    hr_event **events[] = {&slot->in_done, &slot->computed, &slot->out_done};
    hr_status status = HR_OK;
    for (size_t i = 0; i < sizeof events / sizeof events[0] && status == HR_OK; i++) {
        status = hr_event_open(device, events[i], error);
    }
    for (uint32_t i = 0; i <= pipeline->cut.inputs && status == HR_OK; i++) {
        status = hr_timer_open(device, &slot->in_time[i], error);
    }
    for (uint32_t i = 0; i < 2 && status == HR_OK; i++) {
        status = hr_timer_open(device, &slot->compute_time[i], error);
    }
    uint32_t outs = pipeline->plan.partial_bytes > 0 ? 1 : pipeline->cut.outputs;
    for (uint32_t i = 0; i <= outs && status == HR_OK; i++) {
        status = hr_timer_open(device, &slot->out_time[i], error);
    }
    return status;
}

static hr_status take_slot(const hr_pipeline *pipeline, const flow_device *device, flow_slot *slot,
                           hr_error *error)
{
    const flow_state *state = pipeline->state;
    const hr_cut *cut = &pipeline->cut;
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < cut->inputs && status == HR_OK; i++) {
        uint64_t bytes = hr_cut_in_bytes(cut, i);
        if (state->in_way[i] != FLOW_DIRECT) {
            status = take(device->pinned, bytes, "input slot", &slot->host_in[i], error);
        }
        if (status == HR_OK) {
            status = take(device->memory, bytes, "input slot", &slot->device_in[i], error);
        }
    }
    for (uint32_t i = 0; i < cut->outputs && status == HR_OK; i++) {
        uint64_t bytes = hr_cut_out_bytes(cut, i);
        if (state->out_way[i] != FLOW_DIRECT) {
            status = take(device->pinned, bytes, "output slot", &slot->host_out[i], error);
        }
        if (status == HR_OK) {
            status = take(device->memory, bytes, "output slot", &slot->device_out[i], error);
        }
    }
    uint64_t partial = pipeline->plan.partial_bytes;
    if (partial > 0 && status == HR_OK) {
        status = take(device->pinned, partial, "partial result", &slot->host_partial, error);
    }
    if (partial > 0 && status == HR_OK) {
        status = take(device->memory, partial, "partial result", &slot->device_partial, error);
    }
    return status == HR_OK ? open_events(pipeline, device->device, slot, error) : status;
}

/* Tells random-access sources and sinks which buffers they will see, once. */
static hr_status tell_buffers(hr_pipeline *pipeline, hr_error *error)
{
    const flow_state *state = pipeline->state;
    void **buffers = calloc(state->slot_count, sizeof *buffers);
    uint64_t *bytes = calloc(state->slot_count, sizeof *bytes);
    hr_status status = buffers != NULL && bytes != NULL
                           ? HR_OK
                           : hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for a list");
    for (uint32_t port = 0; port < pipeline->cut.inputs && status == HR_OK; port++) {
        hr_source *source = pipeline->options.in[port].source;
        for (uint32_t i = 0; i < state->slot_count; i++) {
            buffers[i] = state->slots[i].host_in[port];
            bytes[i] = hr_cut_in_bytes(&pipeline->cut, port);
        }
        if (source->prepare != NULL && state->in_way[port] != FLOW_DIRECT) {
            source->prepare(source->self, buffers, bytes, state->slot_count);
        }
    }
    for (uint32_t port = 0; port < pipeline->cut.outputs && status == HR_OK; port++) {
        hr_sink *sink = pipeline->options.out[port].sink;
        for (uint32_t i = 0; i < state->slot_count; i++) {
            buffers[i] = state->slots[i].host_out[port];
            bytes[i] = hr_cut_out_bytes(&pipeline->cut, port);
        }
        if (sink->prepare != NULL && state->out_way[port] != FLOW_DIRECT) {
            sink->prepare(sink->self, buffers, bytes, state->slot_count);
        }
    }
    free(buffers);
    free(bytes);
    return status;
}

hr_status flow_take(hr_pipeline *pipeline, hr_error *error)
{
    flow_state *state = pipeline->state;
    state->devices = calloc(state->device_count, sizeof *state->devices);
    if (state->devices == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for its devices");
    }
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < state->device_count && status == HR_OK; i++) {
        status = open_device(pipeline, i, error);
    }
    for (uint32_t i = 0; i < pipeline->cut.inputs && status == HR_OK; i++) {
        uint64_t bytes = hr_reader_carry_bytes(pipeline, i);
        if (bytes > 0) {
            status = take(state->devices[0].pinned, bytes, "rows shared by chunks",
                          (void **)&state->reader[i].carry, error);
        }
    }
    if (status != HR_OK) {
        return status;
    }
    /* The last pool may have come out smallest, and the ring has the same number of slots on each device. */
    uint32_t slots = pipeline->depth * state->device_count;
    state->slots = calloc(slots, sizeof *state->slots);
    if (state->slots == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for its slots");
    }
    state->slot_count = slots;
    for (uint32_t i = 0; i < slots && status == HR_OK; i++) {
        status = take_slot(pipeline, &state->devices[i % state->device_count], &state->slots[i], error);
    }
    return status == HR_OK ? tell_buffers(pipeline, error) : status;
}

static void give(hr_pool *pool, void *block, hr_status *worst)
{
    if (block != NULL && hr_pool_give(pool, block) != HR_OK) {
        *worst = HR_E_INTERNAL;
    }
}

static void release_slot(flow_device *device, flow_slot *slot, hr_status *worst)
{
    for (uint32_t i = 0; i < HR_MAX_PORTS; i++) {
        give(device->pinned, slot->host_in[i], worst);
        give(device->pinned, slot->host_out[i], worst);
        give(device->memory, slot->device_in[i], worst);
        give(device->memory, slot->device_out[i], worst);
    }
    give(device->pinned, slot->host_partial, worst);
    give(device->memory, slot->device_partial, worst);
    for (uint32_t i = 0; i <= HR_MAX_PORTS; i++) {
        hr_timer_close(&slot->in_time[i]);
        hr_timer_close(&slot->out_time[i]);
    }
    hr_timer_close(&slot->compute_time[0]);
    hr_timer_close(&slot->compute_time[1]);
    hr_event **events[] = {&slot->in_done, &slot->computed, &slot->out_done};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        hr_error ignored = HR_ERROR_INIT;
        hr_status status = hr_event_close(events[i], &ignored);
        (void)status; /* the failure of what it marked has been told */
    }
}

static void release_device(flow_device *device, hr_status *worst, hr_error *error)
{
    give(device->pinned, device->op_state_host, worst);
    give(device->memory, device->op_state, worst);
    hr_stream **streams[] = {&device->in, &device->compute, &device->out};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        hr_error ignored = HR_ERROR_INIT;
        hr_status status = hr_stream_close(streams[i], &ignored);
        (void)status; /* the stream's failure has been told */
    }
    hr_pool **pools[] = {&device->pinned, &device->memory};
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        hr_status status = hr_pool_close(pools[i], error);
        *worst = status != HR_OK ? status : *worst;
    }
}

hr_status flow_release(hr_pipeline *pipeline, hr_error *error)
{
    flow_state *state = pipeline->state;
    hr_status worst = HR_OK;
    for (uint32_t i = 0; i < state->slot_count; i++) {
        release_slot(&state->devices[i % state->device_count], &state->slots[i], &worst);
    }
    for (uint32_t i = 0; state->devices != NULL && i < HR_MAX_PORTS; i++) {
        give(state->devices[0].pinned, state->reader[i].carry, &worst);
    }
    for (uint32_t i = 0; state->devices != NULL && i < state->device_count; i++) {
        release_device(&state->devices[i], &worst, error);
    }
    free(state->slots);
    free(state->devices);
    return worst;
}
