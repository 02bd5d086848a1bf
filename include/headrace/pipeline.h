/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: source → slot → copy in → op → copy out → slot → sink, with several chunks in flight. */
#ifndef HEADRACE_PIPELINE_H
#define HEADRACE_PIPELINE_H

#include <headrace/device.h>
#include <headrace/io.h>
#include <headrace/observe.h>
#include <headrace/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_pipeline hr_pipeline;

/* One array that goes in or comes out. */
typedef struct hr_port {
    hr_source *source; /* of an input */
    hr_sink *sink;     /* of an output */
    hr_dtype dtype;    /* of an output: checked against the op's plan unless HR_DTYPE_NONE */
    hr_shape shape;    /* of an input; extent[0] may be HR_LENGTH_UNKNOWN */
} hr_port;

typedef struct hr_pipeline_options {
    size_t size; /* sizeof(hr_pipeline_options) */
    const hr_op *op;
    const void *params;  /* copied by nobody: lives until the pipeline is closed */
    void *user;          /* handed to the launchers */
    hr_device **devices; /* one or more of the same kind; chunks go to them in turn */
    uint32_t device_count;
    hr_port in[HR_MAX_PORTS];
    hr_port out[HR_MAX_PORTS];
    uint64_t chunk_bytes; /* of the largest port, all alike; 0: planned, smaller at the ends */
    uint32_t depth;       /* slots; 0: planned */
    uint64_t
        pinned_bytes; /* ceiling for slots in host memory; 0: what the plan needs, at most an eighth of RAM */
    uint64_t device_bytes; /* ceiling for device memory; 0: three quarters of what is free */
    const char
        *cost_file; /* measured costs; null: the user's cache folder; "": none, use what a short probe says */
    const hr_observer *observer; /* lives until the pipeline is closed */
} hr_pipeline_options;

/* Sets every field to its default. */
HR_API void hr_pipeline_options_init(hr_pipeline_options *options);

typedef struct hr_stage_report {
    double busy_s;       /* the union of the stage's spans */
    uint64_t bytes;      /* moved by it (compute: bytes in and out) */
    double ceiling_gbps; /* what this machine was measured to do in this stage alone; 0 if not known */
} hr_stage_report;

typedef struct hr_report {
    size_t size;          /* set by the caller to sizeof(hr_report) */
    uint64_t chunk_bytes; /* of the largest chunk */
    uint64_t chunks;
    uint32_t depth;
    uint64_t pinned_bytes, device_bytes;
    double setup_s, wall_s;
    hr_stage_report stage[HR_STAGE_COUNT];
    double floor_s;
    hr_stage bottleneck;
    double efficiency;  /* floor / wall */
    double overlap;     /* (Σ busy − wall) / (Σ busy − max busy), 0 to 1 */
    double predicted_s; /* by the plan, before the run */
    hr_result result;
    uint64_t done_bytes;
} hr_report;
#define HR_REPORT_INIT                                                                                  \
    {                                                                                                   \
        sizeof(hr_report), 0, 0, 0, 0, 0, 0.0, 0.0, {{0.0, 0, 0.0}}, 0.0, HR_STAGE_READ, 0.0, 0.0, 0.0, \
            {HR_RESULT_NONE, {0}}, 0                                                                    \
    }

/*
 * Plans, takes every buffer and starts the threads. Devices, sources, sinks, op and params stay the caller's
 * and must live until the pipeline is closed. The caller owns *pipeline. Blocks (setup_s). HR_E_INVALID and
 * HR_E_RANGE (shapes, a chunk larger than the pool can hold), HR_E_UNSUPPORTED (op on this device, a stream where tiles are read anywhere),
 * HR_E_*_MEMORY, HR_E_THREAD, and what op->plan or op->prepare failed with.
 *
 * An output in memory must not overlap an input in memory, HR_E_INVALID otherwise, except that elements
 * (HR_CHUNK_ELEMENTS, HR_CHUNK_REDUCE) of the same size may go exactly where they came from.
 */
HR_API HR_CHECKED hr_status hr_pipeline_open(const hr_pipeline_options *options, hr_pipeline **pipeline,
                                             hr_error *error);
/* What the op makes of the inputs: dtype and shape of each output. Valid after open. */
HR_API HR_CHECKED hr_status hr_pipeline_output(const hr_pipeline *pipeline, uint32_t index, hr_dtype *dtype,
                                               hr_shape *shape);
/*
 * Runs once (HR_E_INVALID the second time), blocking until all is written and finished, or the first failure has
 * been cleaned up. Takes no memory and releases none, except that a stream of a CPU device takes some where more is
 * queued in it than ever before. A failing chunk is named in error->chunk. HR_E_CANCELLED after
 * hr_pipeline_cancel(); HR_E_IO where a source ends before its shape; HR_E_FORMAT where data of unknown length ends
 * inside a row, or inputs end at different elements; HR_E_FORKED; otherwise what a source, a sink, the op or a device
 * failed with. *report is filled on success and, as far as it got, on failure.
 */
HR_API HR_CHECKED hr_status hr_pipeline_run(hr_pipeline *pipeline, hr_report *report, hr_error *error);
/* Ends the run soon; hr_pipeline_run() returns HR_E_CANCELLED. Async-signal-safe, any thread, any time
 * between open and close. */
HR_API void hr_pipeline_cancel(hr_pipeline *pipeline);
/* Clears *pipeline. Null is accepted. Not while hr_pipeline_run() is in progress: HR_E_BUSY. HR_E_FORKED. */
HR_API HR_CHECKED hr_status hr_pipeline_close(hr_pipeline **pipeline, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
