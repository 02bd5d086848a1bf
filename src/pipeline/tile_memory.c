/* SPDX-License-Identifier: Apache-2.0 */
/* What a job of a matrix product takes before it runs, and gives back after. */
#include "pipeline/plan.h"
#include "pipeline/tile.h"

#include <inttypes.h>
#include <stdlib.h>

/* A multiply-add rate for a plan, where none was measured: a guess by kind of device is enough to rank
 * layouts. */
static double flops_of(const hr_pipeline *pipeline, const hr_device_info *info)
{
    if (pipeline->flops_per_s > 0.0) {
        return pipeline->flops_per_s;
    }
    return info->kind == HR_DEVICE_CPU ? 20e9 * (info->compute_units > 0 ? info->compute_units : 1) : 50e12;
}

static void state_problem(tile_job *job)
{
    const hr_pipeline *pipeline = job->pipeline;
    const hr_shape *a = &pipeline->options.in[0].shape, *c = &pipeline->plan.shape[0];
    hr_tile_problem *p = &job->problem;
    p->n = c->extent[1];
    p->k = a->extent[1];
    p->a_bytes = hr_dtype_bytes(pipeline->in_dtype[0]);
    p->b_bytes = hr_dtype_bytes(pipeline->in_dtype[1]);
    p->c_bytes = hr_dtype_bytes(pipeline->plan.dtype[0]);
    p->accumulator_bytes = pipeline->plan.accumulator_bytes;
    p->memory_bytes = hr_plan_device_limit(pipeline);
    const hr_sink *sink = pipeline->options.out[0].sink;
    p->in_row_order = sink->data == NULL && sink->sequential;
    p->h2d_bytes_per_s = hr_plan_cost(pipeline, HR_STAGE_H2D).bytes_per_s;
    p->d2h_bytes_per_s = hr_plan_cost(pipeline, HR_STAGE_D2H).bytes_per_s;
    p->launch_s = hr_plan_cost(pipeline, HR_STAGE_COMPUTE).start_s;
    p->flops_per_s = flops_of(pipeline, &job->info);
    hr_device_product_block(job->device, pipeline->options.op, pipeline->in_dtype[0], &p->unit_rows,
                            &p->unit_columns);
    p->units = p->unit_rows > 0 && p->unit_columns > 0 ? job->info.compute_units : 0;
}

static bool is_pinned(const tile_job *job, const void *data, uint64_t bytes)
{
    hr_memory_kind kind;
    return data != NULL && bytes > 0 && hr_memory_kind_of(job->device, data, bytes, &kind) == HR_OK &&
           kind == HR_MEMORY_PINNED;
}

static void choose_ways(tile_job *job)
{
    const hr_pipeline *pipeline = job->pipeline;
    for (uint32_t i = 0; i < 2; i++) {
        const hr_source *source = pipeline->options.in[i].source;
        job->direct_in[i] = is_pinned(job, source->data, source->bytes);
    }
    uint64_t bytes = 0;
    hr_status status = hr_shape_bytes(&pipeline->plan.shape[0], pipeline->plan.dtype[0], &bytes);
    job->direct_out = status == HR_OK && is_pinned(job, pipeline->options.out[0].sink->data, bytes);
}

/* A slot holds a band: as many rows as fit in it, and at least one. */
static uint64_t slot_bytes(const tile_job *job, uint64_t rows, uint64_t row_bytes)
{
    return hr_slot_round(hr_min_u64(rows * row_bytes, hr_max_u64(job->band_bytes, row_bytes)));
}

static hr_status size_rings(tile_job *job, hr_error *error)
{
    const hr_tile_layout *l = &job->plan.layout;
    const hr_tile_problem *p = &job->problem;
    uint64_t limit = hr_plan_pinned_limit(job->pipeline) / job->count;
    job->band_bytes = hr_min_u64(TILE_BAND_BYTES, limit / (2 * TILE_RING));
    uint64_t a = job->direct_in[0] ? 0 : slot_bytes(job, l->tm, l->tk * p->a_bytes);
    uint64_t b = job->direct_in[1] ? 0 : slot_bytes(job, l->tk, l->tn * p->b_bytes);
    job->in_slot_bytes = hr_max_u64(a, b);
    job->out_slot_bytes = job->direct_out ? 0 : slot_bytes(job, l->tm, l->tn * p->c_bytes);
    uint64_t needed = TILE_RING * (job->in_slot_bytes + job->out_slot_bytes);
    if (needed > limit) {
        return hr_fail(error, HR_E_RANGE,
                       "pipeline: tiles of %" PRIu64 " × %" PRIu64 " × %" PRIu64 " need %" PRIu64
                       " bytes of slots, and memory for slots is limited to %" PRIu64,
                       l->tm, l->tn, l->tk, needed, limit);
    }
    return HR_OK;
}

static hr_status open_pools(tile_job *job, hr_error *error)
{
    hr_pipeline *pipeline = job->pipeline;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "pinned bands";
    options.kind = job->info.shares_host_memory ? HR_MEMORY_PAGEABLE : HR_MEMORY_PINNED;
    options.bytes = TILE_RING * (job->in_slot_bytes + job->out_slot_bytes);
    pipeline->pinned_bytes += options.bytes;
    hr_status status = options.bytes > 0 ? hr_pool_open(job->device, &options, &job->pinned, error) : HR_OK;
    options.name = "device tiles";
    options.kind = HR_MEMORY_DEVICE;
    /* On a device that shares the host's memory the copies in are the first touch, and happen while others compute. */
    options.no_touch = job->info.shares_host_memory;
    options.bytes = hr_tile_layout_bytes(&job->problem, &job->plan.layout);
    options.max_blocks =
        job->plan.layout.a_places + job->plan.layout.b_places + 2 * job->plan.layout.c_places;
    pipeline->device_bytes += options.bytes;
    return status == HR_OK && options.bytes > 0 ? hr_pool_open(job->device, &options, &job->memory, error)
                                                : status;
}

static hr_status take(hr_pool *pool, uint64_t bytes, const char *name, void **block, hr_error *error)
{
    if (bytes == 0) {
        return HR_OK;
    }
    hr_status status = hr_pool_take(pool, bytes, HR_SLOT_ALIGN, name, block);
    return status == HR_OK ? HR_OK
                           : hr_fail(error, HR_E_INTERNAL, "tiles: the pool has no room for %s", name);
}

static hr_status open_places(tile_job *job, tile_place **places, uint32_t count, uint64_t bytes,
                             uint64_t accumulator_bytes, const char *name, hr_error *error)
{
    *places = calloc(count > 0 ? count : 1, sizeof **places);
    if (*places == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "tiles: no memory for a list of places");
    }
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < count && status == HR_OK; i++) {
        tile_place *place = &(*places)[i];
        status = take(job->memory, bytes, name, &place->data, error);
        if (status == HR_OK) {
            status = take(job->memory, accumulator_bytes, "accumulator", &place->accumulator, error);
        }
        if (status == HR_OK) {
            status = hr_event_open(job->device, &place->filled, error);
        }
        if (status == HR_OK) {
            status = hr_event_open(job->device, &place->used, error);
        }
    }
    return status;
}

static hr_status open_all_places(tile_job *job, hr_error *error)
{
    const hr_tile_layout *l = &job->plan.layout;
    const hr_tile_problem *p = &job->problem;
    uint64_t accumulator = l->panels > 1 ? l->tm * l->tn * p->accumulator_bytes : 0;
    hr_status status =
        open_places(job, &job->a, l->a_places, l->tm * l->tk * p->a_bytes, 0, "tile of A", error);
    if (status == HR_OK) {
        status = open_places(job, &job->b, l->b_places, l->tk * l->tn * p->b_bytes, 0, "tile of B", error);
    }
    return status == HR_OK ? open_places(job, &job->c, l->c_places, l->tm * l->tn * p->c_bytes, accumulator,
                                         "tile of C", error)
                           : status;
}

static hr_status open_ring(tile_job *job, band_slot *ring, uint64_t bytes, const char *name, hr_error *error)
{
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < TILE_RING && bytes > 0 && status == HR_OK; i++) {
        ring[i].number = i;
        status = take(job->pinned, bytes, name, &ring[i].host, error);
        if (status == HR_OK) {
            status = hr_event_open(job->device, &ring[i].copied, error);
        }
        if (status == HR_OK) {
            status = hr_timer_open(job->device, &ring[i].begin, error);
        }
        if (status == HR_OK) {
            status = hr_timer_open(job->device, &ring[i].end, error);
        }
    }
    return status;
}

static hr_status open_streams(tile_job *job, hr_error *error)
{
    hr_status status = hr_stream_open(job->device, HR_STREAM_IN, &job->in, error);
    if (status == HR_OK) {
        status = hr_stream_open(job->device, HR_STREAM_COMPUTE, &job->compute, error);
    }
    if (status == HR_OK) {
        status = hr_stream_open(job->device, HR_STREAM_OUT, &job->out, error);
    }
    for (uint32_t i = 0; i < TILE_AHEAD && status == HR_OK; i++) {
        status = hr_event_open(job->device, &job->ahead[i].done, error);
        if (status == HR_OK) {
            status = hr_timer_open(job->device, &job->ahead[i].begin, error);
        }
        if (status == HR_OK) {
            status = hr_timer_open(job->device, &job->ahead[i].end, error);
        }
    }
    return status;
}

hr_status tile_take(tile_job *job, hr_error *error)
{
    job->info.size = sizeof job->info;
    hr_status status = hr_device_get_info(job->device, &job->info, error);
    if (status == HR_OK) {
        status = hr_device_launcher(job->device, job->pipeline->options.op, &job->fn, error);
    }
    if (status == HR_OK) {
        state_problem(job);
        choose_ways(job);
        status = hr_tile_plan_make(&job->problem, &job->plan, error);
    }
    if (status == HR_OK) {
        status = size_rings(job, error);
    }
    if (status == HR_OK) {
        status = open_pools(job, error);
    }
    if (status == HR_OK) {
        status = open_all_places(job, error);
    }
    if (status == HR_OK) {
        status = open_ring(job, job->ring_in, job->in_slot_bytes, "band on its way in", error);
    }
    if (status == HR_OK) {
        status = open_ring(job, job->ring_out, job->out_slot_bytes, "band on its way out", error);
    }
    return status == HR_OK ? open_streams(job, error) : status;
}

static void give(hr_pool *pool, void *block, hr_status *worst)
{
    if (block != NULL && hr_pool_give(pool, block) != HR_OK) {
        *worst = HR_E_INTERNAL;
    }
}

/* What an event marked, failed or not, has been told long ago. */
static void close_event(hr_event **event)
{
    hr_status status = hr_event_close(event, NULL);
    (void)status;
}

static void close_places(tile_job *job, tile_place *places, uint32_t count, hr_status *worst)
{
    for (uint32_t i = 0; places != NULL && i < count; i++) {
        give(job->memory, places[i].data, worst);
        give(job->memory, places[i].accumulator, worst);
        close_event(&places[i].filled);
        close_event(&places[i].used);
    }
    free(places);
}

static void close_ring(tile_job *job, band_slot *ring, hr_status *worst)
{
    for (uint32_t i = 0; i < TILE_RING; i++) {
        give(job->pinned, ring[i].host, worst);
        close_event(&ring[i].copied);
        hr_timer_close(&ring[i].begin);
        hr_timer_close(&ring[i].end);
    }
}

hr_status tile_release(tile_job *job, hr_error *error)
{
    hr_status worst = HR_OK;
    close_places(job, job->a, job->plan.layout.a_places, &worst);
    close_places(job, job->b, job->plan.layout.b_places, &worst);
    close_places(job, job->c, job->plan.layout.c_places, &worst);
    close_ring(job, job->ring_in, &worst);
    close_ring(job, job->ring_out, &worst);
    for (uint32_t i = 0; i < TILE_AHEAD; i++) {
        close_event(&job->ahead[i].done);
        hr_timer_close(&job->ahead[i].begin);
        hr_timer_close(&job->ahead[i].end);
    }
    hr_stream **streams[] = {&job->in, &job->compute, &job->out};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        hr_status status = hr_stream_close(streams[i], NULL);
        (void)status; /* told through an event */
    }
    hr_status closed = hr_pool_close(&job->pinned, error);
    worst = closed != HR_OK ? closed : worst;
    closed = hr_pool_close(&job->memory, error);
    worst = closed != HR_OK ? closed : worst;
    hr_tile_plan_free(&job->plan);
    return worst;
}
