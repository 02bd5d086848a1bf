/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a job that launches its steps, and follows them at a distance. */
#include "pipeline/tile.h"

static hr_view view_of(const tile_job *job, hr_dtype dtype, uint64_t rows, uint64_t columns, void *data,
                       const hr_shape *whole)
{
    (void)job;
    return (hr_view){.data = data,
                     .dtype = dtype,
                     .shape = {2, {rows, columns}},
                     .row_pitch_bytes = columns * hr_dtype_bytes(dtype),
                     .whole = *whole};
}

static hr_launch step_launch(const tile_job *job, uint32_t index)
{
    const hr_pipeline *pipeline = job->pipeline;
    const hr_tile_problem *p = &job->problem;
    const hr_tile_layout *l = &job->plan.layout;
    const hr_tile_step *step = &job->plan.steps[index];
    uint64_t m = hr_tile_extent(p->m, l->tm, step->row), n = hr_tile_extent(p->n, l->tn, step->column);
    uint64_t k = p->k == 0 ? 0 : hr_tile_extent(p->k, l->tk, step->panel);
    void *a = step->a_load != HR_TILE_NONE ? job->a[job->plan.loads[step->a_load].place].data : NULL;
    void *b = step->b_load != HR_TILE_NONE ? job->b[job->plan.loads[step->b_load].place].data : NULL;
    const tile_place *c = &job->c[step->c_place];
    hr_launch launch = hr_run_launch(pipeline, tile_chunk(job, index));
    launch.in[0] = view_of(job, pipeline->in_dtype[0], m, k, a, &pipeline->options.in[0].shape);
    launch.in[1] = view_of(job, pipeline->in_dtype[1], k, n, b, &pipeline->options.in[1].shape);
    launch.out[0] = view_of(job, pipeline->plan.dtype[0], m, n, c->data, &pipeline->plan.shape[0]);
    launch.in[0].first = launch.out[0].first = job->first_row + step->row * l->tm;
    launch.in[1].first = step->panel * l->tk;
    launch.accumulate = !step->first;
    launch.last = step->last;
    launch.accumulator = l->panels > 1 ? c->accumulator : NULL;
    return launch;
}

/* All that a step waits for has been queued by others; makes the compute stream wait for it. */
static hr_status wait_inputs(tile_job *job, const hr_tile_step *step, hr_error *error)
{
    hr_status status = HR_OK;
    if (step->a_load != HR_TILE_NONE) {
        status =
            hr_stream_wait_event(job->compute, job->a[job->plan.loads[step->a_load].place].filled, error);
    }
    if (status == HR_OK && step->b_load != HR_TILE_NONE) {
        status =
            hr_stream_wait_event(job->compute, job->b[job->plan.loads[step->b_load].place].filled, error);
    }
    if (status == HR_OK && step->after_store != HR_TILE_NONE) {
        status = hr_stream_wait_event(job->compute, job->c[step->c_place].used, error);
    }
    return status;
}

static hr_status mark_used(tile_job *job, const hr_tile_step *step, hr_error *error)
{
    hr_status status = HR_OK;
    if (step->a_load != HR_TILE_NONE) {
        status = hr_event_record(job->a[job->plan.loads[step->a_load].place].used, job->compute, error);
    }
    if (status == HR_OK && step->b_load != HR_TILE_NONE) {
        status = hr_event_record(job->b[job->plan.loads[step->b_load].place].used, job->compute, error);
    }
    if (status == HR_OK && step->last) {
        status = hr_event_record(job->c[step->c_place].filled, job->compute, error);
    }
    return status;
}

static hr_status submit_step(tile_job *job, uint32_t index, hr_error *error)
{
    const hr_tile_step *step = &job->plan.steps[index];
    hr_launch launch = step_launch(job, index);
    hr_status status = wait_inputs(job, step, error);
    if (status == HR_OK) {
        status = hr_timer_record(job->ahead[index % TILE_AHEAD].begin, job->compute, error);
    }
    if (status == HR_OK) {
        status = hr_stream_launch(job->compute, job->fn, &launch, error);
    }
    if (status == HR_OK) {
        status = hr_timer_record(job->ahead[index % TILE_AHEAD].end, job->compute, error);
    }
    if (status == HR_OK) {
        status = hr_event_record(job->ahead[index % TILE_AHEAD].done, job->compute, error);
    }
    return status == HR_OK ? mark_used(job, step, error) : status;
}

/* Waits until what the step needs has been queued. */
static bool wait_queued(tile_job *job, uint32_t index)
{
    const hr_tile_step *step = &job->plan.steps[index];
    uint64_t chunk = tile_chunk(job, index);
    pthread_mutex_lock(&job->pipeline->lock);
    bool there = !hr_run_stopped(job->pipeline, chunk);
    if (there && step->a_load != HR_TILE_NONE) {
        there = tile_wait_above(job, &job->loads_queued, step->a_load, chunk);
    }
    if (there && step->b_load != HR_TILE_NONE) {
        there = tile_wait_above(job, &job->loads_queued, step->b_load, chunk);
    }
    if (there && step->after_store != HR_TILE_NONE) {
        there = tile_wait_above(job, &job->stores_queued, step->after_store, chunk);
    }
    pthread_mutex_unlock(&job->pipeline->lock);
    return there;
}

static uint64_t step_bytes(const tile_job *job, const hr_launch *launch)
{
    (void)job;
    return launch->in[0].shape.extent[0] * launch->in[0].row_pitch_bytes +
           launch->in[1].shape.extent[0] * launch->in[1].row_pitch_bytes +
           launch->out[0].shape.extent[0] * launch->out[0].row_pitch_bytes;
}

/* Waits for a step that was queued and tells its span; false if it failed, or is not to be waited for. */
static bool follow_step(tile_job *job, uint32_t index)
{
    hr_pipeline *pipeline = job->pipeline;
    uint64_t chunk = tile_chunk(job, index);
    if (hr_run_stopped(pipeline, chunk)) {
        return false;
    }
    hr_error error = HR_ERROR_INIT;
    hr_status status = hr_event_wait(job->ahead[index % TILE_AHEAD].done, &error);
    if (status != HR_OK) {
        error.status = status;
        hr_run_fail(pipeline, chunk, &error);
        return false;
    }
    uint64_t begin, end;
    if (hr_timer_read(job->ahead[index % TILE_AHEAD].begin, &begin, &error) == HR_OK &&
        hr_timer_read(job->ahead[index % TILE_AHEAD].end, &end, &error) == HR_OK) {
        hr_launch launch = step_launch(job, index);
        hr_place_in_run place = {
            .stage = HR_STAGE_COMPUTE, .chunk = chunk, .lane = job->index, .device = job->info.spec};
        hr_run_span(pipeline, place, begin, end, step_bytes(job, &launch));
    }
    return true;
}

void tile_submit_steps(hr_pipeline *pipeline, void *argument)
{
    tile_job *job = argument;
    uint32_t followed = 0, queued = 0;
    while (queued < job->plan.step_count && wait_queued(job, queued)) {
        if (queued - followed == TILE_AHEAD && !follow_step(job, followed++)) {
            break;
        }
        hr_error error = HR_ERROR_INIT;
        hr_status status = submit_step(job, queued, &error);
        if (status != HR_OK) {
            error.status = status;
            hr_run_fail(pipeline, tile_chunk(job, queued), &error);
            break;
        }
        queued++;
        pthread_mutex_lock(&pipeline->lock);
        job->steps_queued = queued;
        pthread_cond_broadcast(&job->moved);
        pthread_mutex_unlock(&pipeline->lock);
    }
    /* Steps before the one at which the run stops are followed to their end: one of them may have failed
     * first. */
    while (followed < queued && follow_step(job, followed)) {
        followed++;
    }
}
