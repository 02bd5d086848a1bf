/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan.h"

#include "host/topology.h"

#include <inttypes.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

/* A lane's slot should stay in caches near its core from reading to writing, and be worth a system call. */
#define LANE_SLOT_LEAST (768 * KIB)
#define LANE_SLOT_MOST  (4 * MIB)

/* Chunks of whole pages let files be read and written at page bounds. */
#define CHUNK_GRAIN (4 * KIB)

uint64_t hr_plan_cores(const hr_pipeline *pipeline)
{
    uint64_t cores = hr_host_cores();
    bool own = pipeline->info.kind == HR_DEVICE_CPU && pipeline->info.compute_units > 0;
    return own ? hr_min_u64(cores, pipeline->info.compute_units) : cores;
}

uint64_t hr_plan_pinned_limit(const hr_pipeline *pipeline)
{
    if (pipeline->options.pinned_bytes > 0) {
        return pipeline->options.pinned_bytes;
    }
    uint64_t total, unused;
    hr_host_memory_room(&total, &unused);
    return total > 0 ? total / 8 : 256 * MIB;
}

uint64_t hr_lane_slot_bytes(const hr_pipeline *pipeline)
{
    const hr_cut *cut = &pipeline->cut;
    uint64_t bytes = hr_slot_round(pipeline->plan.partial_bytes);
    for (uint32_t i = 0; i < cut->inputs; i++) {
        if (pipeline->options.in[i].source->data == NULL || cut->units == HR_LENGTH_UNKNOWN) {
            bytes += hr_slot_round(hr_cut_in_bytes(cut, i));
        }
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        if (pipeline->options.out[i].sink->data == NULL) {
            bytes += hr_slot_round(hr_cut_out_bytes(cut, i));
        }
    }
    return bytes;
}

uint64_t hr_plan_round_chunk(uint64_t bytes)
{
    return bytes >= 16 * CHUNK_GRAIN ? bytes / CHUNK_GRAIN * CHUNK_GRAIN : bytes;
}

/* Bytes of all ports that one unit has. */
static uint64_t bytes_a_unit(const hr_cut *cut)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < cut->inputs; i++) {
        bytes += cut->in[i].unit_bytes;
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        bytes += cut->out[i].unit_bytes;
    }
    return bytes > 0 ? bytes : 1;
}

/* The chunk, of the largest port, whose slot is as near to `slot_bytes` as the op allows. */
static uint64_t chunk_for_slot(const hr_pipeline *pipeline, uint64_t slot_bytes, uint64_t lanes)
{
    const hr_cut *cut = &pipeline->cut;
    uint64_t units = slot_bytes / bytes_a_unit(cut);
    if (cut->units != HR_LENGTH_UNKNOWN) {
        /* A few chunks for each lane, so that they end together. */
        units = hr_min_u64(units, hr_div_up(cut->units, 4 * lanes));
    }
    /* Rows that neighbours read as well are read twice: keep that share small. */
    units = hr_max_u64(units, 16 * cut->in[0].halo_units);
    units = hr_round_up(hr_max_u64(units, 1), cut->align_units);
    uint64_t bytes;
    return hr_mul_overflows(units, hr_cut_unit_bytes(cut), &bytes) ? UINT64_MAX : hr_plan_round_chunk(bytes);
}

hr_status hr_plan_fit_chunk(hr_pipeline *pipeline, uint64_t chunk, uint64_t slots,
                            uint64_t (*fitting)(const hr_pipeline *pipeline), hr_error *error)
{
    uint64_t smallest = hr_cut_unit_bytes(&pipeline->cut) * pipeline->cut.align_units;
    for (uint64_t wanted = slots; wanted > 0; wanted /= 2) {
        uint64_t tried = chunk;
        for (;;) {
            hr_status status = hr_cut_set_chunk(&pipeline->cut, tried, error);
            if (status != HR_OK || fitting(pipeline) >= wanted) {
                return status;
            }
            /* Slots do not become smaller than their alignment. */
            if (tried / 2 < smallest || tried <= HR_SLOT_ALIGN) {
                break;
            }
            tried /= 2;
        }
    }
    return HR_OK;
}

static uint64_t lanes_that_fit(const hr_pipeline *pipeline)
{
    uint64_t slot_bytes = hr_lane_slot_bytes(pipeline);
    return slot_bytes > 0 ? hr_plan_pinned_limit(pipeline) / slot_bytes : UINT64_MAX;
}

static bool any_port_does_io(const hr_pipeline *pipeline)
{
    bool any = false;
    for (uint32_t i = 0; i < pipeline->cut.inputs; i++) {
        any = any || pipeline->options.in[i].source->data == NULL;
    }
    for (uint32_t i = 0; i < pipeline->cut.outputs; i++) {
        any = any || pipeline->options.out[i].sink->data == NULL;
    }
    return any;
}

/* Lanes do one stage after the other, each lane on its own: what the stages take one after the other, shared
 * by the lanes. */
static void predict_lanes(hr_pipeline *pipeline)
{
    const hr_cut *cut = &pipeline->cut;
    if (cut->units == HR_LENGTH_UNKNOWN) {
        return;
    }
    double bytes[HR_STAGE_COUNT] = {0.0}, seconds = 0.0;
    for (uint32_t i = 0; i < cut->inputs; i++) {
        double all = (double)cut->units * (double)cut->in[i].unit_bytes;
        bytes[HR_STAGE_COMPUTE] += all;
        bytes[HR_STAGE_READ] += pipeline->options.in[i].source->data == NULL ? all : 0.0;
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        double all = (double)cut->units * (double)cut->out[i].unit_bytes;
        bytes[HR_STAGE_COMPUTE] += all;
        bytes[HR_STAGE_WRITE] += pipeline->options.out[i].sink->data == NULL ? all : 0.0;
    }
    for (int i = 0; i < HR_STAGE_COUNT; i++) {
        seconds += bytes[i] / hr_plan_cost(pipeline, (hr_stage)i).bytes_per_s;
    }
    double sharing = (double)hr_min_u64(pipeline->depth, hr_max_u64(1, hr_cut_chunks(cut)));
    pipeline->predicted_s = seconds / sharing;
}

hr_status hr_plan_lanes(hr_pipeline *pipeline, hr_error *error)
{
    const hr_pipeline_options *options = &pipeline->options;
    uint64_t cores = hr_plan_cores(pipeline);
    uint64_t lanes = options->depth > 0 ? options->depth : cores + any_port_does_io(pipeline);
    lanes = hr_min_u64(lanes, HR_RUN_MAX_THREADS);
    uint64_t slot = pipeline->info.l2_bytes > 0 ? 2 * pipeline->info.l2_bytes : MIB;
    slot = hr_max_u64(LANE_SLOT_LEAST, hr_min_u64(slot, LANE_SLOT_MOST));
    uint64_t limit = hr_plan_pinned_limit(pipeline);
    hr_status status = options->chunk_bytes > 0
                           ? hr_cut_set_chunk(&pipeline->cut, options->chunk_bytes, error)
                           : hr_plan_fit_chunk(pipeline, chunk_for_slot(pipeline, slot, lanes), lanes,
                                               lanes_that_fit, error);
    if (status != HR_OK) {
        return status;
    }
    uint64_t slot_bytes = hr_lane_slot_bytes(pipeline);
    if (slot_bytes > limit || (slot_bytes > 0 && options->chunk_bytes > limit)) {
        uint64_t actual = pipeline->cut.chunk_units * hr_cut_unit_bytes(&pipeline->cut);
        return hr_fail(error, HR_E_RANGE,
                       "pipeline: chunks of %" PRIu64 " bytes need slots of %" PRIu64
                       " bytes, and memory for slots is limited to %" PRIu64,
                       hr_max_u64(actual, options->chunk_bytes), hr_max_u64(slot_bytes, options->chunk_bytes),
                       limit);
    }
    uint64_t fitting = slot_bytes > 0 ? limit / slot_bytes : lanes;
    if (fitting < lanes) {
        hr_run_note(pipeline,
                    "%" PRIu64 " slots instead of %" PRIu64 ": memory for slots is limited to %" PRIu64
                    " bytes",
                    fitting, lanes, limit);
        lanes = fitting;
    }
    pipeline->depth = (uint32_t)lanes;
    predict_lanes(pipeline);
    return HR_OK;
}
