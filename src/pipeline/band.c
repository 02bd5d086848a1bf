/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor for matrix products whose matrices all lie in memory that the device shares: nothing is moved.
 * C is computed in bands of rows, each with all of the device's workers, so that a cancel and the progress
 * are felt.
 */
#include "pipeline/plan.h"

#include <stdlib.h>
#include <string.h>

/* Rows of a band, where there are many: enough to pay for looking at all of B again. */
#define BAND_ROWS UINT64_C(512)

typedef struct band_state {
    hr_stream *stream;
    hr_event *done;
    hr_launch_fn fn;
    uint64_t rows; /* of a band */
} band_state;

static hr_view whole_view(hr_dtype dtype, const hr_shape *shape, const void *data)
{
    /* Nothing writes through an input's view; the launcher's struct is shared by inputs and outputs. */
    return (hr_view){.data = (void *)(uintptr_t)data,
                     .dtype = dtype,
                     .shape = *shape,
                     .row_pitch_bytes = shape->extent[1] * hr_dtype_bytes(dtype),
                     .whole = *shape};
}

static void keep_rows(hr_view *view, uint64_t first, uint64_t rows)
{
    view->data = (unsigned char *)view->data + first * view->row_pitch_bytes;
    view->first = first;
    view->shape.extent[0] = rows;
}

static hr_status run_band(hr_pipeline *pipeline, uint64_t chunk, hr_error *error)
{
    band_state *state = pipeline->state;
    const hr_pipeline_options *options = &pipeline->options;
    uint64_t first = chunk * state->rows;
    uint64_t rows = hr_min_u64(state->rows, pipeline->plan.shape[0].extent[0] - first);
    hr_launch launch = hr_run_launch(pipeline, chunk);
    launch.in[0] = whole_view(pipeline->in_dtype[0], &options->in[0].shape, options->in[0].source->data);
    launch.in[1] = whole_view(pipeline->in_dtype[1], &options->in[1].shape, options->in[1].source->data);
    launch.out[0] = whole_view(pipeline->plan.dtype[0], &pipeline->plan.shape[0], options->out[0].sink->data);
    keep_rows(&launch.in[0], first, rows);
    keep_rows(&launch.out[0], first, rows);
    launch.last = true;
    hr_mark mark = hr_run_enter(pipeline, HR_STAGE_COMPUTE);
    hr_status status = hr_stream_launch(state->stream, state->fn, &launch, error);
    if (status == HR_OK) {
        status = hr_event_record(state->done, state->stream, error);
    }
    if (status == HR_OK) {
        status = hr_event_wait(state->done, error);
    }
    if (status != HR_OK) {
        return hr_run_refused(status, "the op", error);
    }
    uint64_t in_bytes = rows * launch.in[0].row_pitch_bytes, out_bytes = rows * launch.out[0].row_pitch_bytes;
    uint64_t b_bytes = launch.in[1].shape.extent[0] * launch.in[1].row_pitch_bytes;
    hr_place_in_run place = {.stage = HR_STAGE_COMPUTE, .chunk = chunk, .device = pipeline->info.spec};
    hr_run_leave(pipeline, place, mark, in_bytes + b_bytes + out_bytes);
    atomic_fetch_add(&pipeline->done_bytes, in_bytes);
    atomic_fetch_add(&pipeline->written_bytes[0], out_bytes);
    return HR_OK;
}

static void run_bands(hr_pipeline *pipeline, void *argument)
{
    (void)argument;
    for (uint64_t chunk = 0; !hr_run_stopped(pipeline, chunk); chunk++) {
        hr_error error = HR_ERROR_INIT;
        if (run_band(pipeline, chunk, &error) != HR_OK) {
            hr_run_fail(pipeline, chunk, &error);
            return;
        }
    }
}

static hr_status band_open(hr_pipeline *pipeline, hr_error *error)
{
    band_state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for its state");
    }
    pipeline->state = state;
    const hr_shape *c = &pipeline->plan.shape[0];
    uint64_t row_bytes = c->extent[1] * hr_dtype_bytes(pipeline->plan.dtype[0]);
    uint64_t wished = pipeline->options.chunk_bytes > 0 && row_bytes > 0
                          ? pipeline->options.chunk_bytes / row_bytes
                          : BAND_ROWS;
    state->rows = hr_max_u64(1, hr_min_u64(wished, c->extent[0]));
    bool empty = c->extent[0] == 0 || c->extent[1] == 0;
    atomic_store(&pipeline->chunks, empty ? 0 : hr_div_up(c->extent[0], state->rows));
    pipeline->chunk_bytes = state->rows * row_bytes;
    pipeline->depth = 1;
    pipeline->width[HR_STAGE_COMPUTE] = 1;
    hr_device *device = pipeline->options.devices[0];
    hr_status status = hr_device_launcher(device, pipeline->options.op, &state->fn, error);
    if (status == HR_OK) {
        status = hr_stream_open(device, HR_STREAM_COMPUTE, &state->stream, error);
    }
    if (status == HR_OK) {
        status = hr_event_open(device, &state->done, error);
    }
    return status == HR_OK ? hr_run_spawn(pipeline, "hr-bands", run_bands, NULL, error) : status;
}

static void band_wake_all(hr_pipeline *pipeline)
{
    (void)pipeline; /* its only wait ends with the band */
}

static void band_cancel(hr_pipeline *pipeline)
{
    band_state *state = pipeline->state;
    hr_status status = hr_stream_cancel(state->stream);
    (void)status; /* a band that runs already runs to its end */
}

static hr_status band_close(hr_pipeline *pipeline, hr_error *error)
{
    (void)error;
    band_state *state = pipeline->state;
    if (state == NULL) {
        return HR_OK;
    }
    hr_status event = hr_event_close(&state->done, NULL), stream = hr_stream_close(&state->stream, NULL);
    (void)event;
    (void)stream; /* the band that failed has told */
    free(state);
    pipeline->state = NULL;
    return HR_OK;
}

const hr_executor hr_band_executor = {
    .name = "bands",
    .open = band_open,
    .wake_all = band_wake_all,
    .cancel = band_cancel,
    .close = band_close,
};
