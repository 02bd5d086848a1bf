/* SPDX-License-Identifier: Apache-2.0 */
/* The public door: opens, runs and closes a pipeline. What happens in between is in run.h and the executors.
 */
#include "pipeline/plan.h"

#include "base/clock.h"
#include "base/thread.h"
#include "pipeline/port.h"
#include "pipeline/report.h"
#include "pipeline/tune.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_NS (HR_NS_PER_S / 10)
/* Of an op's state, a partial result, an accumulated element: more than any memory has. */
#define OP_BYTES_MOST (UINT64_C(1) << 47)

void hr_pipeline_options_init(hr_pipeline_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

static hr_status check_devices(const hr_pipeline_options *options, hr_device_info *info, hr_error *error)
{
    if (options->devices == NULL || options->device_count == 0) {
        return hr_fail(error, HR_E_INVALID, "pipeline: no device given");
    }
    for (uint32_t i = 0; i < options->device_count; i++) {
        hr_device_info other = HR_DEVICE_INFO_INIT;
        hr_status status = hr_device_get_info(options->devices[i], &other, error);
        if (status != HR_OK) {
            return status;
        }
        if (i > 0 && (other.kind != info->kind || other.shares_host_memory != info->shares_host_memory)) {
            return hr_fail(error, HR_E_INVALID, "pipeline: devices of different kinds (%s and %s)",
                           info->spec, other.spec);
        }
        if (i == 0) {
            *info = other;
        }
    }
    return HR_OK;
}

static hr_status check_source(const hr_port *port, uint32_t index, hr_dtype dtype, hr_error *error)
{
    const hr_source *source = port->source;
    if (source == NULL || (source->read == NULL && source->data == NULL)) {
        return hr_fail(error, HR_E_INVALID, "input %" PRIu32 ": no source that reads", index + 1);
    }
    if (source->data != NULL && source->bytes == HR_LENGTH_UNKNOWN) {
        return hr_fail(error, HR_E_INVALID, "input %" PRIu32 ": data in memory of unknown length", index + 1);
    }
    bool open_ended = port->shape.rank > 0 && port->shape.extent[0] == HR_LENGTH_UNKNOWN;
    uint64_t bytes;
    if (open_ended) {
        return HR_OK;
    }
    if (hr_shape_bytes(&port->shape, dtype, &bytes) != HR_OK) {
        return hr_fail(error, HR_E_RANGE, "input %" PRIu32 ": the array's size does not fit in 63 bits",
                       index + 1);
    }
    if (source->bytes != HR_LENGTH_UNKNOWN && source->bytes != bytes) {
        return hr_fail(error, HR_E_INVALID,
                       "input %" PRIu32 ": the shape needs %" PRIu64 " bytes, the source has %" PRIu64,
                       index + 1, bytes, source->bytes);
    }
    return HR_OK;
}

/* `bytes`: what the output will hold, or HR_LENGTH_UNKNOWN. */
static hr_status check_sink(const hr_port *port, uint32_t index, hr_dtype dtype, uint64_t bytes,
                            hr_error *error)
{
    const hr_sink *sink = port->sink;
    if (sink == NULL || (sink->write == NULL && sink->data == NULL)) {
        return hr_fail(error, HR_E_INVALID, "output %" PRIu32 ": no sink that writes", index + 1);
    }
    if (port->dtype != HR_DTYPE_NONE && port->dtype != dtype) {
        return hr_fail(error, HR_E_INVALID, "output %" PRIu32 ": the op makes %s, the output is to hold %s",
                       index + 1, hr_dtype_name(dtype), hr_dtype_name(port->dtype));
    }
    if (bytes != HR_LENGTH_UNKNOWN && bytes > hr_sink_room(sink)) {
        return hr_fail(error, HR_E_RANGE,
                       "output %" PRIu32 ": needs %" PRIu64 " bytes, the sink has room for %" PRIu64,
                       index + 1, bytes, hr_sink_room(sink));
    }
    return HR_OK;
}

static hr_status check_op(const hr_op *op, hr_error *error)
{
    if (op == NULL) {
        return hr_fail(error, HR_E_INVALID, "pipeline: no op given");
    }
    if (op->name == NULL) {
        return hr_fail(error, HR_E_INVALID, "pipeline: an op without a name");
    }
    if (op->rule < HR_CHUNK_ELEMENTS || op->rule > HR_CHUNK_TILES) {
        return hr_fail(error, HR_E_INVALID, "%s: %d is none of the rules for chunks", op->name,
                       (int)op->rule);
    }
    if (op->inputs == 0 || op->inputs > HR_MAX_PORTS) {
        return hr_fail(error, HR_E_INVALID, "%s: %" PRIu32 " inputs, and there may be 1 to %d", op->name,
                       op->inputs, HR_MAX_PORTS);
    }
    if (op->rule == HR_CHUNK_REDUCE && op->combine == NULL) {
        return hr_fail(error, HR_E_INVALID, "%s: a reduction without a combine step", op->name);
    }
    return HR_OK;
}

/* Devices have their launchers of the built-in ops by name: another op of that name must not get one. */
static hr_status check_name(const hr_op *op, const hr_device_info *info, hr_error *error)
{
    const hr_op *built_in = hr_op_find(op->name);
    if (info->kind == HR_DEVICE_CUDA && op->cuda == NULL && built_in != NULL && built_in->cpu != op->cpu) {
        return hr_fail(
            error, HR_E_UNSUPPORTED,
            "%s: is not the built-in op of that name, and has no launcher of its own for device %s", op->name,
            info->spec);
    }
    return HR_OK;
}

/* A matrix product has a plan of its own; of the cut only the number of ports counts. */
static hr_status cut_product(hr_pipeline *pipeline, hr_error *error)
{
    const hr_op *op = pipeline->options.op;
    const hr_shape *a = &pipeline->options.in[0].shape, *b = &pipeline->options.in[1].shape;
    const hr_shape *c = &pipeline->plan.shape[0];
    if (op->inputs != 2 || pipeline->plan.outputs != 1 || a->rank != 2 || b->rank != 2 || c->rank != 2 ||
        a->extent[1] != b->extent[0] || c->extent[0] != a->extent[0] || c->extent[1] != b->extent[1]) {
        return hr_fail(error, HR_E_INVALID, "%s: a product needs (m, k) and (k, n) and makes (m, n)",
                       op->name);
    }
    if (a->extent[0] == HR_LENGTH_UNKNOWN || b->extent[0] == HR_LENGTH_UNKNOWN) {
        return hr_fail(error, HR_E_UNSUPPORTED, "%s: the shapes of a product must be known", op->name);
    }
    if (pipeline->plan.state_bytes > 0) {
        return hr_fail(error, HR_E_UNSUPPORTED, "%s: a product has no state", op->name);
    }
    pipeline->cut = (hr_cut){.rule = HR_CHUNK_TILES, .inputs = 2, .outputs = 1, .units = c->extent[0]};
    return HR_OK;
}

/* What an op asks for beside its ports: slots are counted in sums and products of it, which must not wrap. */
static hr_status check_plan(const hr_op *op, const hr_op_plan *plan, hr_error *error)
{
    if (plan->outputs > HR_MAX_PORTS) {
        return hr_fail(error, HR_E_INVALID, "%s: %" PRIu32 " outputs, and there may be %d", op->name,
                       plan->outputs, HR_MAX_PORTS);
    }
    if (plan->state_bytes > OP_BYTES_MOST || plan->partial_bytes > OP_BYTES_MOST ||
        plan->accumulator_bytes > OP_BYTES_MOST) {
        return hr_fail(error, HR_E_RANGE,
                       "%s: wants %" PRIu64 " bytes of state, %" PRIu64 " a partial result, %" PRIu64
                       " an accumulated element, and each may have at most %" PRIu64,
                       op->name, plan->state_bytes, plan->partial_bytes, plan->accumulator_bytes,
                       OP_BYTES_MOST);
    }
    return HR_OK;
}

static bool overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    uint64_t reach = first < second ? a_bytes : b_bytes,
             apart = first < second ? second - first : first - second;
    return a_bytes > 0 && b_bytes > 0 && apart < reach;
}

/* What a sink in memory will be written; of data of unknown length, what it has room for or at least its first byte. */
static uint64_t output_bytes(const hr_pipeline *pipeline, uint32_t output)
{
    uint64_t bytes, room = hr_sink_room(pipeline->options.out[output].sink);
    bool known = pipeline->cut.units != HR_LENGTH_UNKNOWN &&
                 hr_shape_bytes(&pipeline->plan.shape[output], pipeline->plan.dtype[output], &bytes) == HR_OK;
    return known ? bytes : room != HR_LENGTH_UNKNOWN ? room : 1;
}

/*
 * Results are written while later chunks are still to be read: where they lie in an input's memory, the op would see
 * results for data. Only an element that goes exactly where it came from is safe, in any order of chunks.
 */
static hr_status check_memory(const hr_pipeline *pipeline, uint32_t output, hr_error *error)
{
    const hr_pipeline_options *options = &pipeline->options;
    const hr_sink *sink = options->out[output].sink;
    uint64_t bytes = output_bytes(pipeline, output);
    for (uint32_t i = 0; sink->data != NULL && i < pipeline->cut.inputs; i++) {
        const hr_source *source = options->in[i].source;
        bool in_place = source->data == sink->data && pipeline->cut.rule != HR_CHUNK_ROWS &&
                        pipeline->cut.rule != HR_CHUNK_TILES &&
                        pipeline->cut.in[i].unit_bytes == pipeline->cut.out[output].unit_bytes;
        if (source->data != NULL && !in_place && overlap(source->data, source->bytes, sink->data, bytes)) {
            return hr_fail(error, HR_E_INVALID,
                           "output %" PRIu32 ": its memory overlaps that of input %" PRIu32
                           ", which is read while it is written",
                           output + 1, i + 1);
        }
    }
    for (uint32_t i = 0; sink->data != NULL && i < output; i++) {
        const hr_sink *other = options->out[i].sink;
        if (other->data != NULL && overlap(other->data, output_bytes(pipeline, i), sink->data, bytes)) {
            return hr_fail(error, HR_E_INVALID,
                           "output %" PRIu32 ": its memory overlaps that of output %" PRIu32, output + 1,
                           i + 1);
        }
    }
    return HR_OK;
}

/* Works out what the op makes of the inputs, and checks that the ports fit it. */
static hr_status resolve(hr_pipeline *pipeline, hr_error *error)
{
    const hr_pipeline_options *options = &pipeline->options;
    const hr_op *op = options->op;
    hr_status status = check_op(op, error);
    if (status == HR_OK) {
        status = check_devices(options, &pipeline->info, error);
    }
    if (status == HR_OK) {
        status = check_name(op, &pipeline->info, error);
    }
    hr_shape shapes[HR_MAX_PORTS];
    for (uint32_t i = 0; status == HR_OK && i < op->inputs; i++) {
        pipeline->in_dtype[i] = options->in[i].dtype;
        shapes[i] = options->in[i].shape;
        status = check_source(&options->in[i], i, pipeline->in_dtype[i], error);
    }
    if (status == HR_OK) {
        status = hr_op_make_plan(op, options->params, pipeline->in_dtype, shapes, &pipeline->plan, error);
    }
    if (status == HR_OK) {
        status = check_plan(op, &pipeline->plan, error);
    }
    if (status == HR_OK) {
        status = op->rule == HR_CHUNK_TILES
                     ? cut_product(pipeline, error)
                     : hr_cut_make(op, &pipeline->plan, pipeline->in_dtype, shapes, &pipeline->cut, error);
    }
    for (uint32_t i = 0; status == HR_OK && i < pipeline->plan.outputs; i++) {
        uint64_t bytes = HR_LENGTH_UNKNOWN;
        if (pipeline->cut.units != HR_LENGTH_UNKNOWN &&
            hr_shape_bytes(&pipeline->plan.shape[i], pipeline->plan.dtype[i], &bytes) != HR_OK) {
            return hr_fail(error, HR_E_RANGE, "output %" PRIu32 ": its size does not fit in 63 bits", i + 1);
        }
        status = check_sink(&options->out[i], i, pipeline->plan.dtype[i], bytes, error);
        if (status == HR_OK) {
            status = check_memory(pipeline, i, error);
        }
    }
    return status;
}

static void make_sync(hr_pipeline *pipeline)
{
    pthread_mutex_init(&pipeline->lock, NULL);
    pthread_cond_init(&pipeline->gate, NULL);
    sem_init(&pipeline->wake, 0, 0);
    hr_fork_guard_open(&pipeline->guard);
    for (int i = 0; i < HR_STAGE_COUNT; i++) {
        hr_gauge_init(&pipeline->gauge[i]);
    }
    atomic_init(&pipeline->stop_at, UINT64_MAX);
    atomic_init(&pipeline->chunks, UINT64_MAX);
}

static const hr_executor *choose_executor(const hr_pipeline *pipeline)
{
    const hr_pipeline_options *options = &pipeline->options;
    bool shared = pipeline->info.shares_host_memory;
    if (pipeline->cut.rule != HR_CHUNK_TILES) {
        return shared ? &hr_lane_executor : &hr_flow_executor;
    }
    bool in_memory = options->in[0].source->data != NULL && options->in[1].source->data != NULL &&
                     options->out[0].sink->data != NULL;
    return shared && in_memory ? &hr_band_executor : &hr_tile_executor;
}

static hr_status take_total(hr_pipeline *pipeline, hr_error *error)
{
    if (pipeline->cut.rule != HR_CHUNK_REDUCE) {
        return HR_OK;
    }
    pipeline->total = calloc(1, pipeline->plan.partial_bytes > 0 ? pipeline->plan.partial_bytes : 1);
    return pipeline->total != NULL ? HR_OK
                                   : hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for the result");
}

static uint64_t input_bytes(const hr_pipeline *pipeline)
{
    if (pipeline->cut.units == HR_LENGTH_UNKNOWN) {
        return 0;
    }
    uint64_t all = 0, bytes;
    for (uint32_t i = 0; i < pipeline->cut.inputs; i++) {
        /* Checked with the sources; a sum of four sizes below 63 bits saturates at worst. */
        if (hr_shape_bytes(&pipeline->options.in[i].shape, pipeline->in_dtype[i], &bytes) == HR_OK &&
            hr_add_overflows(all, bytes, &all)) {
            all = UINT64_MAX;
        }
    }
    return all;
}

hr_status hr_pipeline_open(const hr_pipeline_options *options, hr_pipeline **pipeline, hr_error *error)
{
    hr_error unused = HR_ERROR_INIT;
    error = error != NULL ? error : &unused;
    uint64_t begin = hr_now_ns();
    if (options == NULL || pipeline == NULL || options->size < sizeof *options) {
        return hr_fail(error, HR_E_INVALID,
                       "pipeline: options that hr_pipeline_options_init() has not set up");
    }
    hr_pipeline *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pipeline: no memory for itself");
    }
    made->options = *options;
    make_sync(made);
    hr_status status = resolve(made, error);
    if (status == HR_OK) {
        status = take_total(made, error);
    }
    if (status == HR_OK) {
        made->total_bytes = input_bytes(made);
        made->executor = choose_executor(made);
        hr_tune_begin(made);
        status = made->executor->open(made, error);
    }
    if (status != HR_OK) {
        hr_error ignored = HR_ERROR_INIT;
        hr_status closed = hr_pipeline_close(&made, &ignored);
        (void)closed; /* the first failure is the one to tell */
        return status;
    }
    made->setup_s = (double)(hr_now_ns() - begin) / (double)HR_NS_PER_S;
    *pipeline = made;
    return HR_OK;
}

hr_status hr_pipeline_output(const hr_pipeline *pipeline, uint32_t index, hr_dtype *dtype, hr_shape *shape)
{
    if (pipeline == NULL || index >= pipeline->plan.outputs) {
        return HR_E_INVALID;
    }
    if (dtype != NULL) {
        *dtype = pipeline->plan.dtype[index];
    }
    if (shape != NULL) {
        *shape = pipeline->plan.shape[index];
    }
    return HR_OK;
}

static void tell_progress(hr_pipeline *pipeline)
{
    const hr_observer *observer = pipeline->options.observer;
    if (observer != NULL && observer->progress != NULL) {
        observer->progress(observer->self, atomic_load(&pipeline->done_bytes), pipeline->total_bytes,
                           hr_now_ns() - pipeline->begin_ns);
    }
}

/* Sleeps until the last thread has left; tells progress and passes a cancel on meanwhile. */
static void supervise(hr_pipeline *pipeline)
{
    bool told_cancel = false;
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PROGRESS_NS;
        until.tv_sec += until.tv_nsec / (long)HR_NS_PER_S;
        until.tv_nsec %= (long)HR_NS_PER_S;
        int woken = sem_clockwait(&pipeline->wake, CLOCK_MONOTONIC, &until);
        if (woken != 0 && errno == ETIMEDOUT) {
            tell_progress(pipeline);
        }
        if (atomic_load(&pipeline->cancelled) && !told_cancel) {
            told_cancel = true;
            hr_run_stop(pipeline);
        }
        pthread_mutex_lock(&pipeline->lock);
        bool all_left = pipeline->active == 0;
        pthread_mutex_unlock(&pipeline->lock);
        if (all_left) {
            return;
        }
    }
}

typedef struct finish_watch {
    hr_pipeline *pipeline;
    hr_sink *sink;
    atomic_bool over;
} finish_watch;

static void *watch_finish(void *argument)
{
    finish_watch *watch = argument;
    while (!atomic_load(&watch->over)) {
        if (atomic_load(&watch->pipeline->cancelled)) {
            watch->sink->interrupt(watch->sink->self);
            break;
        }
        while (sem_wait(&watch->pipeline->wake) != 0) {
        }
    }
    return NULL;
}

/* Finishing may take long (a picture is compressed) or wait for who reads a pipe: a cancel is passed on meanwhile. */
static hr_status finish_sink(hr_pipeline *pipeline, hr_sink *sink, uint64_t bytes, hr_error *error)
{
    finish_watch watch = {.pipeline = pipeline, .sink = sink};
    pthread_t thread;
    atomic_init(&watch.over, false);
    hr_error why = HR_ERROR_INIT;
    bool watched = sink->interrupt != NULL;
    if (watched && hr_thread_start(&thread, "hr-finish", watch_finish, &watch, &why) != HR_OK) {
        hr_run_note(pipeline, "finishing cannot be cancelled: %s", why.text);
        watched = false;
    }
    hr_status status = sink->finish(sink->self, bytes, error);
    if (watched) {
        atomic_store(&watch.over, true);
        sem_post(&pipeline->wake);
        pthread_join(thread, NULL);
    }
    return status;
}

/* Finishes each sink, or discards those that are not finished when something has failed. */
static void end_sinks(hr_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->cut.outputs; i++) {
        hr_sink *sink = pipeline->options.out[i].sink;
        if (pipeline->failed) {
            if (sink->discard != NULL) {
                sink->discard(sink->self);
            }
            continue;
        }
        if (sink->finish == NULL) {
            continue;
        }
        hr_error error = HR_ERROR_INIT;
        uint64_t begin = hr_now_ns();
        hr_status status = finish_sink(pipeline, sink, atomic_load(&pipeline->written_bytes[i]), &error);
        if (status != HR_OK) {
            pipeline->failed = true;
            pipeline->failure = error;
            pipeline->failure.status = hr_run_refused(status, "the sink", &pipeline->failure);
            pipeline->failure.chunk = HR_NO_CHUNK;
        } else {
            hr_place_in_run place = {.stage = HR_STAGE_WRITE, .chunk = HR_NO_CHUNK, .port = i};
            hr_run_finished(pipeline, place, begin, hr_now_ns());
        }
    }
}

static void take_result(hr_pipeline *pipeline, hr_result *result)
{
    const hr_op *op = pipeline->options.op;
    if (pipeline->failed || pipeline->total == NULL || op->result == NULL) {
        return;
    }
    hr_error error = HR_ERROR_INIT;
    hr_status status =
        op->result(op, pipeline->options.params, pipeline->in_dtype[0], pipeline->total, result, &error);
    if (status != HR_OK) {
        pipeline->failed = true;
        pipeline->failure = error;
        pipeline->failure.status = hr_run_refused(status, op->name, &pipeline->failure);
        *result = (hr_result){0};
    }
}

static hr_status fail_forked(hr_error *error)
{
    return hr_fail(error, HR_E_FORKED,
                   "pipeline: it was opened before fork() and is of no use in the child; open it there");
}

/*
 * Data of unknown length may end behind any index of its first axis, and nowhere else. Which chunk holds the end is
 * known only once all have come to theirs: some are claimed that lie behind it.
 */
static void check_end(hr_pipeline *pipeline)
{
    const hr_cut *cut = &pipeline->cut;
    uint64_t element_bytes = 0, chunks = atomic_load(&pipeline->chunks);
    for (uint32_t i = 0; i < cut->inputs; i++) {
        element_bytes += cut->in[i].unit_bytes;
    }
    for (uint32_t i = 0; i < cut->inputs && !pipeline->failed && cut->units == HR_LENGTH_UNKNOWN; i++) {
        uint64_t elements = atomic_load(&pipeline->done_bytes) / element_bytes, row = 1;
        for (uint32_t axis = 1; axis < cut->in[i].whole.rank; axis++) {
            row *= cut->in[i].whole.extent[axis]; /* its size was checked with the shape */
        }
        if (row > 0 && elements % row != 0) {
            uint64_t last = chunks > 0 ? chunks - 1 : 0;
            pipeline->failed = true;
            hr_fail(&pipeline->failure, HR_E_FORMAT,
                    "chunk %" PRIu64 ": the data ends in the middle of a row: %" PRIu64 " of %" PRIu64
                    " elements",
                    last, elements % row, row);
            pipeline->failure.chunk = last;
        }
    }
}

hr_status hr_pipeline_run(hr_pipeline *pipeline, hr_report *report, hr_error *error)
{
    if (pipeline == NULL || (report != NULL && report->size < sizeof *report)) {
        return hr_fail(error, HR_E_INVALID, "pipeline: null, or a report that HR_REPORT_INIT has not set up");
    }
    if (hr_forked(&pipeline->guard)) {
        return fail_forked(error);
    }
    pthread_mutex_lock(&pipeline->lock);
    if (pipeline->phase != HR_RUN_OPENED) {
        pthread_mutex_unlock(&pipeline->lock);
        return hr_fail(error, HR_E_INVALID, "pipeline: runs once");
    }
    pipeline->phase = HR_RUN_STARTING;
    pthread_mutex_unlock(&pipeline->lock);
    for (int i = 0; i < HR_STAGE_COUNT; i++) {
        pipeline->gauge[i].width = pipeline->width[i];
    }
    pipeline->begin_ns = hr_now_ns();
    if (pipeline->executor->begin != NULL) {
        pipeline->executor->begin(pipeline);
    }
    pthread_mutex_lock(&pipeline->lock);
    pipeline->phase = HR_RUN_RUNNING;
    pipeline->active = pipeline->thread_count;
    pthread_cond_broadcast(&pipeline->gate);
    pthread_mutex_unlock(&pipeline->lock);

    supervise(pipeline);
    if (pipeline->executor->settle != NULL) {
        pipeline->executor->settle(pipeline);
    }
    if (!pipeline->failed && atomic_load(&pipeline->cancelled)) {
        pipeline->failed = true;
        hr_fail(&pipeline->failure, HR_E_CANCELLED, "%s: cancelled", pipeline->options.op->name);
    }
    check_end(pipeline);
    if (!pipeline->failed && pipeline->cut.rule == HR_CHUNK_TILES) {
        /* Shares of a product are rounded, and of an empty one there are none. */
        atomic_store(&pipeline->done_bytes, pipeline->total_bytes);
    }
    hr_result result = {0};
    take_result(pipeline, &result);
    end_sinks(pipeline);
    uint64_t end = hr_now_ns();
    if (!pipeline->failed) {
        tell_progress(pipeline);
    }
    if (report != NULL) {
        hr_report_fill(pipeline, end, report);
        report->result = result;
    }
    if (!pipeline->failed) {
        hr_tune_learn(pipeline);
    }
    pthread_mutex_lock(&pipeline->lock);
    pipeline->phase = HR_RUN_OVER;
    pthread_mutex_unlock(&pipeline->lock);
    if (pipeline->failed && error != NULL) {
        *error = pipeline->failure;
    }
    return pipeline->failed ? pipeline->failure.status : HR_OK;
}

void hr_pipeline_cancel(hr_pipeline *pipeline)
{
    /* A lock-free store and a semaphore: both may be used in a signal handler. */
    if (pipeline != NULL) {
        atomic_store(&pipeline->cancelled, true);
        sem_post(&pipeline->wake);
    }
}

hr_status hr_pipeline_close(hr_pipeline **pipeline, hr_error *error)
{
    if (pipeline == NULL || *pipeline == NULL) {
        return HR_OK;
    }
    hr_pipeline *self = *pipeline;
    if (hr_forked(&self->guard)) {
        return fail_forked(error);
    }
    pthread_mutex_lock(&self->lock);
    bool running = self->phase == HR_RUN_STARTING || self->phase == HR_RUN_RUNNING;
    if (self->phase == HR_RUN_OPENED) {
        self->phase = HR_RUN_CLOSING;
        pthread_cond_broadcast(&self->gate);
    }
    pthread_mutex_unlock(&self->lock);
    if (running) {
        return hr_fail(error, HR_E_BUSY, "pipeline: it is running");
    }
    for (uint32_t i = 0; i < self->thread_count; i++) {
        pthread_join(self->threads[i].thread, NULL);
    }
    hr_status status = self->executor != NULL ? self->executor->close(self, error) : HR_OK;
    hr_tune_end(self);
    for (int i = 0; i < HR_STAGE_COUNT; i++) {
        hr_gauge_destroy(&self->gauge[i]);
    }
    hr_fork_guard_close(&self->guard);
    sem_destroy(&self->wake);
    pthread_cond_destroy(&self->gate);
    pthread_mutex_destroy(&self->lock);
    free(self->total);
    free(self);
    *pipeline = NULL;
    return status;
}
