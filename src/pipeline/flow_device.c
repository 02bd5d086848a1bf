/* SPDX-License-Identifier: Apache-2.0 */
/* What a slot asks of its device: copies in, launch, copies out, with events between them. */
#include "pipeline/flow.h"

#include "base/checked.h"
#include "base/clock.h"

#include <headrace/copy.h>

static void *input_host(const hr_pipeline *pipeline, const flow_slot *slot, uint32_t port)
{
    const flow_state *state = pipeline->state;
    if (state->in_way[port] != FLOW_DIRECT) {
        return slot->host_in[port];
    }
    return (unsigned char *)(uintptr_t)pipeline->options.in[port].source->data + slot->in[port].offset_bytes;
}

static void *output_host(const hr_pipeline *pipeline, const flow_slot *slot, uint32_t port)
{
    const flow_state *state = pipeline->state;
    if (state->out_way[port] != FLOW_DIRECT) {
        return slot->host_out[port];
    }
    return (unsigned char *)pipeline->options.out[port].sink->data + slot->out[port].offset_bytes;
}

static bool watched(const hr_pipeline *pipeline)
{
    const flow_state *state = pipeline->state;
    return state->watched;
}

/* A time that only a listener to spans needs. Each costs the copy engine some microseconds. */
static hr_status mark(const hr_pipeline *pipeline, hr_timer *timer, hr_stream *stream, hr_error *error)
{
    return watched(pipeline) ? hr_timer_record(timer, stream, error) : HR_OK;
}

static hr_status copy_in(hr_pipeline *pipeline, flow_device *device, flow_slot *slot, hr_error *error)
{
    uint32_t inputs = pipeline->cut.inputs;
    slot->submitted_ns = hr_now_ns();
    /* The first copy of a run has none before it that could tell when it began. */
    bool first = slot->chunk == device->index;
    hr_status status = first ? hr_timer_record(slot->in_time[0], device->in, error)
                             : mark(pipeline, slot->in_time[0], device->in, error);
    for (uint32_t i = 0; i < inputs && status == HR_OK; i++) {
        status = hr_copy_to_device(device->in, slot->device_in[i], input_host(pipeline, slot, i),
                                   slot->in[i].bytes, error);
        if (status == HR_OK && i + 1 < inputs) {
            status = mark(pipeline, slot->in_time[i + 1], device->in, error);
        }
    }
    if (status == HR_OK) {
        status = hr_timer_record(slot->in_time[inputs], device->in, error);
    }
    return status == HR_OK ? hr_event_record(slot->in_done, device->in, error) : status;
}

static hr_status compute(hr_pipeline *pipeline, flow_device *device, flow_slot *slot, hr_error *error)
{
    const hr_cut *cut = &pipeline->cut;
    hr_launch launch = hr_run_launch(pipeline, slot->chunk);
    for (uint32_t i = 0; i < cut->inputs; i++) {
        launch.in[i] = hr_cut_view(cut, &cut->in[i], &slot->in[i], slot->device_in[i]);
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        launch.out[i] = hr_cut_view(cut, &cut->out[i], &slot->out[i], slot->device_out[i]);
    }
    launch.state = device->op_state;
    launch.partial = slot->device_partial;
    hr_status status = hr_stream_wait_event(device->compute, slot->in_done, error);
    if (status == HR_OK) {
        status = mark(pipeline, slot->compute_time[0], device->compute, error);
    }
    if (status == HR_OK) {
        status = hr_stream_launch(device->compute, device->fn, &launch, error);
    }
    if (status == HR_OK) {
        status = hr_timer_record(slot->compute_time[1], device->compute, error);
    }
    return status == HR_OK ? hr_event_record(slot->computed, device->compute, error) : status;
}

/* Copies that leave: the outputs, or a partial result. */
static uint32_t copies_out(const hr_pipeline *pipeline)
{
    return pipeline->plan.partial_bytes > 0 ? 1 : pipeline->cut.outputs;
}

static hr_status copy_out(hr_pipeline *pipeline, flow_device *device, flow_slot *slot, hr_error *error)
{
    uint32_t outputs = pipeline->cut.outputs;
    hr_status status = hr_stream_wait_event(device->out, slot->computed, error);
    if (status == HR_OK) {
        status = mark(pipeline, slot->out_time[0], device->out, error);
    }
    for (uint32_t i = 0; i < outputs && status == HR_OK; i++) {
        status = hr_copy_to_host(device->out, output_host(pipeline, slot, i), slot->device_out[i],
                                 slot->out[i].bytes, error);
        if (status == HR_OK && i + 1 < copies_out(pipeline)) {
            status = mark(pipeline, slot->out_time[i + 1], device->out, error);
        }
    }
    if (status == HR_OK && slot->device_partial != NULL) {
        status = hr_copy_to_host(device->out, slot->host_partial, slot->device_partial,
                                 pipeline->plan.partial_bytes, error);
    }
    if (status == HR_OK) {
        status = hr_timer_record(slot->out_time[copies_out(pipeline)], device->out, error);
    }
    return status == HR_OK ? hr_event_record(slot->out_done, device->out, error) : status;
}

hr_status flow_submit(hr_pipeline *pipeline, flow_device *device, flow_slot *slot, hr_error *error)
{
    hr_status status = copy_in(pipeline, device, slot, error);
    if (status == HR_OK) {
        status = compute(pipeline, device, slot, error);
    }
    return status == HR_OK ? copy_out(pipeline, device, slot, error) : status;
}

/* Tells one span between two timers. A time that cannot be read leaves the span out: it is a report, no
 * result. */
static void tell(hr_pipeline *pipeline, hr_place_in_run place, hr_timer *begin, hr_timer *end, uint64_t bytes)
{
    uint64_t begin_ns, end_ns;
    hr_error ignored = HR_ERROR_INIT;
    if (hr_timer_read(begin, &begin_ns, &ignored) == HR_OK &&
        hr_timer_read(end, &end_ns, &ignored) == HR_OK) {
        hr_run_span(pipeline, place, begin_ns, end_ns, bytes);
    }
}

static uint64_t bytes_in(const hr_pipeline *pipeline, const flow_slot *slot)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pipeline->cut.inputs; i++) {
        bytes += slot->in[i].bytes;
    }
    return bytes;
}

static uint64_t bytes_out(const hr_pipeline *pipeline, const flow_slot *slot)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pipeline->cut.outputs; i++) {
        bytes += slot->out[i].bytes;
    }
    return bytes;
}

/* Every copy and the kernel with the times that were taken for each. */
static void tell_each(hr_pipeline *pipeline, flow_device *device, flow_slot *slot)
{
    const hr_cut *cut = &pipeline->cut;
    hr_place_in_run place = {.chunk = slot->chunk, .lane = device->index, .device = device->info.spec};
    place.stage = HR_STAGE_H2D;
    for (uint32_t i = 0; i < cut->inputs; i++) {
        place.port = i;
        tell(pipeline, place, slot->in_time[i], slot->in_time[i + 1], slot->in[i].bytes);
    }
    place.stage = HR_STAGE_D2H;
    for (uint32_t i = 0; i < cut->outputs && slot->device_partial == NULL; i++) {
        place.port = i;
        tell(pipeline, place, slot->out_time[i], slot->out_time[i + 1], slot->out[i].bytes);
    }
    place.port = 0;
    if (slot->device_partial != NULL) {
        tell(pipeline, place, slot->out_time[0], slot->out_time[1],
             bytes_out(pipeline, slot) + pipeline->plan.partial_bytes);
    }
    place.stage = HR_STAGE_COMPUTE;
    tell(pipeline, place, slot->compute_time[0], slot->compute_time[1],
         bytes_in(pipeline, slot) + bytes_out(pipeline, slot));
}

/*
 * Without a listener only ends are taken, since a time costs the copy engine as much as some hundred kilobytes. A stage
 * began with a chunk when the stage before had ended it and the stage itself had ended the chunk before: streams keep
 * their order, so it cannot have been sooner, and it is later by no more than what the hand-over takes.
 */
static void tell_ends(hr_pipeline *pipeline, flow_device *device, flow_slot *slot)
{
    uint64_t begin = slot->submitted_ns, in, compute, out;
    hr_error ignored = HR_ERROR_INIT;
    bool first = slot->chunk == device->index;
    if ((first && hr_timer_read(slot->in_time[0], &begin, &ignored) != HR_OK) ||
        hr_timer_read(slot->in_time[pipeline->cut.inputs], &in, &ignored) != HR_OK ||
        hr_timer_read(slot->compute_time[1], &compute, &ignored) != HR_OK ||
        hr_timer_read(slot->out_time[copies_out(pipeline)], &out, &ignored) != HR_OK) {
        return;
    }
    uint64_t entered = bytes_in(pipeline, slot), left = bytes_out(pipeline, slot);
    hr_place_in_run place = {.chunk = slot->chunk, .lane = device->index, .device = device->info.spec};
    place.stage = HR_STAGE_H2D;
    hr_run_span(pipeline, place, hr_max_u64(device->in_end_ns, begin), in, entered);
    place.stage = HR_STAGE_COMPUTE;
    hr_run_span(pipeline, place, hr_max_u64(device->compute_end_ns, in), compute, entered + left);
    place.stage = HR_STAGE_D2H;
    left += slot->device_partial != NULL ? pipeline->plan.partial_bytes : 0;
    if (left > 0) {
        hr_run_span(pipeline, place, hr_max_u64(device->out_end_ns, compute), out, left);
    }
    device->in_end_ns = in;
    device->compute_end_ns = compute;
    device->out_end_ns = out;
}

hr_status flow_collect(hr_pipeline *pipeline, flow_device *device, flow_slot *slot, hr_error *error)
{
    hr_status status = hr_event_wait(slot->out_done, error);
    if (status == HR_OK) {
        if (watched(pipeline)) {
            tell_each(pipeline, device, slot);
        } else {
            tell_ends(pipeline, device, slot);
        }
    }
    return status;
}
