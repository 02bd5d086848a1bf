/* SPDX-License-Identifier: Apache-2.0 */
/* Chunk and depth of a flow, from what each stage costs. */
#include "pipeline/flow.h"
#include "pipeline/plan.h"

#include <inttypes.h>
#include <math.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

#define FLOW_CHUNK_LEAST (64 * KIB)
#define FLOW_CHUNK_MOST  (64 * MIB)
#define FLOW_DEPTH_LEAST 3u
/* Passing a chunk from thread to thread costs this much at least, whatever the stage does. */
#define HAND_OVER_S 10e-6
/* A slot comes back when the host has seen its last event and two threads have woken up. */
#define SLOT_RETURN_S   60e-6
#define FLOW_DEPTH_MOST 12u
/* Ends of tapers are tried down to the chunk's size over two to the power of this … */
#define FLOW_TAPER_STEPS 5
/* … where they make a difference: not in a long run, and not where next to nothing is gained. */
#define FLOW_TAPER_MOST_CHUNKS UINT64_C(2048)
#define FLOW_LEAST_GAIN        0.001
/* What is assumed of an input whose length is not known. */
#define FLOW_ASSUMED_BYTES ((double)(UINT64_C(1) << 30))

/* What a machine of today does, for what has not been measured. */
static const hr_cost_stage assumed[HR_STAGE_COUNT] = {
    [HR_STAGE_READ] = {5e-6, 10e9},     [HR_STAGE_STAGE] = {1e-6, 10e9}, [HR_STAGE_H2D] = {8e-6, 25e9},
    [HR_STAGE_COMPUTE] = {8e-6, 500e9}, [HR_STAGE_D2H] = {8e-6, 25e9},   [HR_STAGE_WRITE] = {5e-6, 10e9},
};

uint32_t hr_plan_readers(const hr_pipeline *pipeline)
{
    return (uint32_t)hr_max_u64(2, hr_min_u64(12, hr_plan_cores(pipeline) * 3 / 4));
}

uint32_t hr_plan_writers(const hr_pipeline *pipeline)
{
    return (uint32_t)hr_max_u64(2, hr_min_u64(8, hr_plan_cores(pipeline) / 2));
}

hr_cost_stage hr_plan_cost(const hr_pipeline *pipeline, hr_stage stage)
{
    return pipeline->cost[stage].bytes_per_s > 0.0 ? pipeline->cost[stage] : assumed[stage];
}

/* Bytes that each stage moves for one unit. */
static void stage_bytes_a_unit(const hr_pipeline *pipeline, double bytes[HR_STAGE_COUNT])
{
    const flow_state *state = pipeline->state;
    const hr_cut *cut = &pipeline->cut;
    for (int i = 0; i < HR_STAGE_COUNT; i++) {
        bytes[i] = 0.0;
    }
    for (uint32_t i = 0; i < cut->inputs; i++) {
        double unit = (double)cut->in[i].unit_bytes;
        bool in_memory = pipeline->options.in[i].source->data != NULL;
        bytes[HR_STAGE_H2D] += unit;
        bytes[HR_STAGE_COMPUTE] += unit;
        if (state->in_way[i] != FLOW_DIRECT) {
            bytes[in_memory ? HR_STAGE_STAGE : HR_STAGE_READ] += unit;
        }
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        double unit = (double)cut->out[i].unit_bytes;
        bytes[HR_STAGE_D2H] += unit;
        bytes[HR_STAGE_COMPUTE] += unit;
        bytes[HR_STAGE_WRITE] += state->out_way[i] != FLOW_DIRECT ? unit : 0.0;
    }
}

/* The stages as the cost arithmetic wants them: by bytes of the chunk, several devices as one fast one. */
static void scaled_stages(const hr_pipeline *pipeline, hr_cost_stage stages[HR_STAGE_COUNT])
{
    double bytes[HR_STAGE_COUNT];
    stage_bytes_a_unit(pipeline, bytes);
    double unit = (double)hr_cut_unit_bytes(&pipeline->cut);
    for (int i = 0; i < HR_STAGE_COUNT; i++) {
        hr_cost_stage stage = hr_plan_cost(pipeline, (hr_stage)i);
        bool on_device = i == HR_STAGE_H2D || i == HR_STAGE_COMPUTE || i == HR_STAGE_D2H;
        double devices = on_device ? pipeline->options.device_count : 1.0;
        double start_s = fmax(stage.start_s, HAND_OVER_S);
        stages[i].start_s = bytes[i] > 0.0 ? start_s / devices : 0.0;
        stages[i].bytes_per_s = bytes[i] > 0.0 ? stage.bytes_per_s * devices * unit / bytes[i] : 0.0;
    }
}

static double total_chunk_bytes(const hr_pipeline *pipeline)
{
    const hr_cut *cut = &pipeline->cut;
    return cut->units == HR_LENGTH_UNKNOWN ? FLOW_ASSUMED_BYTES
                                           : (double)cut->units * (double)hr_cut_unit_bytes(cut);
}

uint64_t hr_plan_device_limit(const hr_pipeline *pipeline)
{
    if (pipeline->options.device_bytes > 0) {
        return pipeline->options.device_bytes;
    }
    return pipeline->info.memory_free_bytes > 0 ? pipeline->info.memory_free_bytes / 4 * 3 : UINT64_MAX;
}

/* Slots a device that both memories have room for at the cut's chunk. */
static uint64_t depth_that_fits(const hr_pipeline *pipeline)
{
    uint64_t host = flow_slot_host_bytes(pipeline, pipeline->state);
    uint64_t device = flow_slot_device_bytes(pipeline);
    uint64_t by_host =
        host > 0 ? hr_plan_pinned_limit(pipeline) / pipeline->options.device_count / host : UINT32_MAX;
    uint64_t by_device = device > 0 ? hr_plan_device_limit(pipeline) / device : UINT32_MAX;
    return hr_min_u64(by_host, by_device);
}

static hr_status does_not_fit(const hr_pipeline *pipeline, uint64_t depth, hr_error *error)
{
    return hr_fail(
        error, HR_E_RANGE,
        "pipeline: %" PRIu64 " slot%s for chunks of %" PRIu64 " bytes need%s %" PRIu64
        " bytes of host and %" PRIu64 " bytes of device memory, and the limits are %" PRIu64 " and %" PRIu64,
        depth, depth == 1 ? "" : "s", pipeline->cut.chunk_units * hr_cut_unit_bytes(&pipeline->cut),
        depth == 1 ? "s" : "", depth * flow_slot_host_bytes(pipeline, pipeline->state),
        depth * flow_slot_device_bytes(pipeline),
        hr_plan_pinned_limit(pipeline) / pipeline->options.device_count, hr_plan_device_limit(pipeline));
}

/* Rows that neighbours read as well are copied twice: chunks of many times the halo keep that share small. */
static uint64_t least_chunk(const hr_pipeline *pipeline)
{
    const hr_cut *cut = &pipeline->cut;
    uint64_t unit = hr_cut_unit_bytes(cut), units, bytes;
    if (hr_mul_overflows(cut->in[0].halo_units, 16, &units)) {
        return UINT64_MAX;
    }
    units = hr_max_u64(units, cut->align_units);
    if (cut->units != HR_LENGTH_UNKNOWN) {
        units = hr_min_u64(units, hr_max_u64(hr_round_up(cut->units, cut->align_units), cut->align_units));
    }
    return hr_mul_overflows(units, unit, &bytes) ? UINT64_MAX : hr_max_u64(bytes, FLOW_CHUNK_LEAST);
}

/* The best chunk, or what fits of it. */
static hr_status choose_chunk(hr_pipeline *pipeline, const hr_cost_stage *stages, hr_error *error)
{
    uint64_t least = least_chunk(pipeline);
    double most = fmax((double)FLOW_CHUNK_MOST, (double)least);
    double best =
        hr_cost_best_chunk(stages, HR_STAGE_COUNT,
                           total_chunk_bytes(pipeline) / pipeline->options.device_count, (double)least, most);
    uint64_t smallest = hr_cut_unit_bytes(&pipeline->cut) * pipeline->cut.align_units;
    uint64_t chunk = hr_max_u64(hr_plan_round_chunk((uint64_t)best), smallest);
    uint32_t depth = pipeline->options.depth;
    return hr_plan_fit_chunk(pipeline, chunk, depth > 0 ? depth : FLOW_DEPTH_LEAST, depth_that_fits, error);
}

/* When the last chunk of the cut has left, with so many slots a device. */
static double sequence_s(const hr_pipeline *pipeline, const hr_cost_stage *stages, uint64_t depth)
{
    const hr_cut *cut = &pipeline->cut;
    double unit = (double)hr_cut_unit_bytes(cut), seconds = 0.0;
    hr_cost_line line = {.chunks = 0};
    uint32_t slots = (uint32_t)hr_min_u64(depth * pipeline->options.device_count, HR_COST_MAX_DEPTH);
    for (uint64_t chunk = 0; chunk < hr_cut_chunks(cut); chunk++) {
        seconds =
            hr_cost_line_add(&line, stages, HR_STAGE_COUNT, slots, (double)hr_cut_units(cut, chunk) * unit);
    }
    return seconds;
}

/* A chunk's size over two to the power of `steps`, on the grain that files like; 0 if that is less than may be. */
static uint64_t taper_units(const hr_pipeline *pipeline, uint32_t steps)
{
    const hr_cut *cut = &pipeline->cut;
    uint64_t unit = hr_cut_unit_bytes(cut);
    uint64_t bytes = hr_plan_round_chunk((cut->chunk_units >> steps) * unit);
    return steps > 0 && bytes >= least_chunk(pipeline) ? bytes / unit : 0;
}

/*
 * While the first chunk is on its way to the slowest stage, and the last on its way from it, that stage has nothing to do.
 * Smaller chunks at the ends make that short, and cost their start-up each: which way is best is tried. Answers how long
 * the whole takes then.
 */
static double choose_taper(hr_pipeline *pipeline, const hr_cost_stage *stages, uint64_t depth)
{
    hr_cut *cut = &pipeline->cut;
    hr_cut_set_taper(cut, 0, 0);
    double plain_s = sequence_s(pipeline, stages, depth), best_s = plain_s * (1.0 - FLOW_LEAST_GAIN);
    uint64_t best_head = 0, best_tail = 0;
    bool found = false;
    for (uint32_t head = 0; head <= FLOW_TAPER_STEPS; head++) {
        for (uint32_t tail = 0; tail <= FLOW_TAPER_STEPS; tail++) {
            uint64_t head_units = taper_units(pipeline, head), tail_units = taper_units(pipeline, tail);
            hr_cut_set_taper(cut, head_units, tail_units);
            double seconds = sequence_s(pipeline, stages, depth);
            if (seconds < best_s) {
                found = true;
                best_s = seconds;
                best_head = head_units;
                best_tail = tail_units;
            }
        }
    }
    hr_cut_set_taper(cut, best_head, best_tail);
    return found ? best_s : plain_s;
}

/* Sets the taper, and says how many slots it wants: one more than without, where that pays. */
static uint64_t choose_ends(hr_pipeline *pipeline, const hr_cost_stage *stages, uint64_t depth, uint64_t most)
{
    uint64_t chunks = hr_cut_chunks(&pipeline->cut);
    if (chunks < 2 || chunks > FLOW_TAPER_MOST_CHUNKS) {
        return depth;
    }
    double seconds = choose_taper(pipeline, stages, depth);
    if (depth < most && choose_taper(pipeline, stages, depth + 1) < seconds * (1.0 - FLOW_LEAST_GAIN)) {
        return depth + 1;
    }
    choose_taper(pipeline, stages, depth);
    return depth;
}

static uint64_t wanted_depth(const hr_cost_stage *stages, double chunk_bytes)
{
    uint32_t depth = hr_cost_depth(stages, HR_STAGE_COUNT, chunk_bytes, SLOT_RETURN_S);
    return depth < FLOW_DEPTH_MOST ? depth : FLOW_DEPTH_MOST;
}

hr_status hr_plan_flow(hr_pipeline *pipeline, hr_error *error)
{
    const hr_pipeline_options *options = &pipeline->options;
    hr_cost_stage stages[HR_STAGE_COUNT];
    scaled_stages(pipeline, stages);
    hr_status status = options->chunk_bytes > 0
                           ? hr_cut_set_chunk(&pipeline->cut, options->chunk_bytes, error)
                           : choose_chunk(pipeline, stages, error);
    if (status != HR_OK) {
        return status;
    }
    uint64_t limit = hr_plan_pinned_limit(pipeline) / options->device_count;
    if (options->chunk_bytes > limit && flow_slot_host_bytes(pipeline, pipeline->state) > 0) {
        /* Also where the array is so small that a slot of it would fit: whoever asks for that has not meant it. */
        return hr_fail(error, HR_E_RANGE,
                       "pipeline: chunks of %" PRIu64 " bytes, and memory for slots is limited to %" PRIu64,
                       options->chunk_bytes, limit);
    }
    double chunk = (double)(pipeline->cut.chunk_units * hr_cut_unit_bytes(&pipeline->cut));
    uint64_t fits = depth_that_fits(pipeline);
    uint64_t depth = options->depth > 0 ? options->depth : wanted_depth(stages, chunk);
    if (options->depth == 0) {
        /* No more slots than there are chunks, no more than there is room for. */
        uint64_t useful = hr_div_up(hr_cut_chunks(&pipeline->cut), options->device_count);
        depth = hr_max_u64(1, hr_min_u64(hr_max_u64(depth, FLOW_DEPTH_LEAST), useful));
        if (fits == 0) {
            return does_not_fit(pipeline, 1, error);
        }
        if (fits < depth) {
            hr_run_note(pipeline, "%" PRIu64 " slots instead of %" PRIu64 ": no room for more", fits, depth);
            depth = fits;
        }
    }
    if (depth > fits || depth > UINT32_MAX / options->device_count) {
        return does_not_fit(pipeline, depth, error);
    }
    if (options->chunk_bytes == 0) {
        depth = choose_ends(pipeline, stages, depth, options->depth > 0 ? depth : fits);
    }
    pipeline->depth = (uint32_t)depth;
    bool short_run = hr_cut_chunks(&pipeline->cut) <= FLOW_TAPER_MOST_CHUNKS;
    pipeline->predicted_s =
        short_run ? sequence_s(pipeline, stages, depth)
                  : hr_cost_pipeline_s(stages, HR_STAGE_COUNT, total_chunk_bytes(pipeline), chunk);
    return HR_OK;
}
