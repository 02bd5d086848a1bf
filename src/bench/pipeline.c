/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs from host memory to host memory. Where the device has plain programs that do the same by hand,
 * they run in the same process, before, and the rows say how much faster the pipeline is. */
#include "base/clock.h"
#include "base/samples.h"
#include "bench/bench_internal.h"

#include <headrace/pipeline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the plain programs took, picked out of the rows that pass by. */
typedef struct plain {
    const hr_bench_options *options;
    double quarter_ms, best_ms, pageable_ms;
} plain;

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static void keep(void *user, const hr_bench_row *row)
{
    plain *seen = user;
    if (row->unit != NULL && begins(row->name, "add: four streams by hand, pinned, a quarter")) {
        seen->quarter_ms = row->value;
    } else if (row->unit != NULL && begins(row->name, "add: four streams by hand, pinned, the best")) {
        seen->best_ms = row->value;
    } else if (row->unit != NULL && begins(row->name, "add: cudaMemcpy by hand")) {
        seen->pageable_ms = row->value;
    }
    seen->options->row(seen->options->user, row);
}

static hr_status run_plain(hr_device *device, plain *seen, hr_error *error)
{
    hr_bench_options options = *seen->options;
    options.what = "baseline";
    options.user = seen;
    options.row = keep;
    hr_status status = hr_device_bench(device, &options, error);
    return status == HR_E_UNSUPPORTED ? HR_OK : status;
}

typedef struct arrays {
    hr_pool *pool;
    float *a, *b, *c;
    uint64_t count;
} arrays;

static hr_status open_arrays(hr_device *device, hr_memory_kind kind, uint64_t count, arrays *data,
                             hr_error *error)
{
    uint64_t bytes = count * sizeof(float);
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "bench pipeline";
    options.kind = kind;
    options.bytes = 3 * (bytes + 4096);
    *data = (arrays){.count = count};
    hr_status status = hr_pool_open(device, &options, &data->pool, error);
    float **blocks[3] = {&data->a, &data->b, &data->c};
    for (int i = 0; i < 3 && status == HR_OK; i++) {
        status = hr_pool_take(data->pool, bytes, 4096, "array", (void **)blocks[i]);
    }
    if (status == HR_OK) {
        unsigned state = 1;
        for (uint64_t i = 0; i < count; i++) {
            state = state * 1664525u + 1013904223u;
            data->a[i] = (float)(state >> 12);
            data->b[i] = (float)(state & 0xFFFFF);
        }
    }
    return status;
}

static hr_status close_arrays(arrays *data, hr_error *error)
{
    hr_status status = HR_OK;
    float *blocks[3] = {data->a, data->b, data->c};
    for (int i = 0; i < 3; i++) {
        if (blocks[i] != NULL) {
            hr_status given = hr_pool_give(data->pool, blocks[i]);
            status = status == HR_OK ? given : status;
        }
    }
    hr_status closed = hr_pool_close(&data->pool, error);
    return status == HR_OK ? closed : status;
}

static int sums_are_right(const arrays *data)
{
    for (uint64_t i = 0; i < data->count; i++) {
        float sum = data->a[i] + data->b[i];
        if (memcmp(&sum, &data->c[i], sizeof sum) != 0) {
            return 0;
        }
    }
    return 1;
}

/* One pipeline, opened and run; the run alone is what counts. */
static hr_status run_add(hr_device *device, const arrays *data, hr_report *report, hr_error *error)
{
    uint64_t bytes = data->count * sizeof(float);
    hr_source a = hr_source_from_memory(data->a, bytes);
    hr_source b = hr_source_from_memory(data->b, bytes);
    hr_sink c = hr_sink_to_memory(data->c, bytes);
    hr_shape shape = {.rank = 1, .extent = {data->count}};
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = hr_op_find("add");
    options.devices = &device;
    options.device_count = 1;
    options.in[0] = (hr_port){.source = &a, .dtype = HR_F32, .shape = shape};
    options.in[1] = (hr_port){.source = &b, .dtype = HR_F32, .shape = shape};
    options.out[0] = (hr_port){.sink = &c};
    hr_pipeline *pipeline = NULL;
    hr_status status = hr_pipeline_open(&options, &pipeline, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_pipeline_run(pipeline, report, error);
    hr_error ignored = HR_ERROR_INIT;
    hr_status closed = hr_pipeline_close(&pipeline, status == HR_OK ? error : &ignored);
    return status == HR_OK ? closed : status;
}

typedef struct add_runs {
    double ms[HR_BENCH_SAMPLES], efficiency[HR_BENCH_SAMPLES];
    size_t samples;
    int verified;
    hr_report last;
    uint64_t bytes; /* of one array */
} add_runs;

/* The first run is not counted: it loads the kernel. */
static hr_status measure_add(hr_device *device, const hr_bench_options *options, hr_memory_kind kind,
                             add_runs *runs, hr_error *error)
{
    arrays data;
    uint64_t count = options->quick ? UINT64_C(1) << 24 : UINT64_C(1) << 27;
    *runs = (add_runs){.samples = options->quick ? 3 : HR_BENCH_SAMPLES, .bytes = count * sizeof(float)};
    hr_status status = open_arrays(device, kind, count, &data, error);
    if (status == HR_OK) {
        memset(data.c, 0xFF, runs->bytes);
    }
    for (size_t i = 0; i < runs->samples + 1 && status == HR_OK; i++) {
        hr_report report = HR_REPORT_INIT;
        status = run_add(device, &data, &report, error);
        if (i == 0) {
            runs->verified = status == HR_OK && sums_are_right(&data);
        } else {
            runs->ms[i - 1] = report.wall_s * 1e3;
            runs->efficiency[i - 1] = report.efficiency;
            runs->last = report;
        }
    }
    hr_error ignored = HR_ERROR_INIT;
    hr_status closed = close_arrays(&data, status == HR_OK ? error : &ignored);
    return status == HR_OK ? closed : status;
}

static void tell_add(const hr_bench_options *options, const char *memory, add_runs *runs, const char *vs,
                     double plain_ms)
{
    char name[128];
    double median = hr_samples_median(runs->ms, runs->samples);
    snprintf(name, sizeof name, "add: pipeline, %s, %llu chunks, %u slots", memory,
             (unsigned long long)runs->last.chunks, runs->last.depth);
    hr_bench_tell(options, name, runs->bytes, "ms", runs->ms, runs->samples, runs->verified,
                  plain_ms > 0.0 ? vs : NULL, plain_ms / median);
}

static hr_status bench_add(hr_device *device, const hr_bench_options *options, const plain *seen,
                           hr_error *error)
{
    add_runs runs;
    hr_status status = measure_add(device, options, HR_MEMORY_PINNED, &runs, error);
    if (status != HR_OK) {
        return status;
    }
    tell_add(options, "pinned", &runs, "four streams by hand, a quarter each", seen->quarter_ms);
    if (seen->best_ms > 0.0) {
        tell_add(options, "pinned", &runs, "four streams by hand, the best chunk", seen->best_ms);
    }
    hr_bench_tell(options, "add: pipeline, pinned, floor over wall", runs.bytes, "efficiency",
                  runs.efficiency, runs.samples, -1, NULL, 0.0);
    status = measure_add(device, options, HR_MEMORY_PAGEABLE, &runs, error);
    if (status == HR_OK) {
        tell_add(options, "pageable", &runs, "cudaMemcpy by hand", seen->pageable_ms);
        hr_bench_tell(options, "add: pipeline, pageable, floor over wall", runs.bytes, "efficiency",
                      runs.efficiency, runs.samples, -1, NULL, 0.0);
    }
    return status;
}

hr_status hr_bench_pipeline(hr_device *device, const hr_bench_options *options, hr_error *error)
{
    plain seen = {.options = options};
    hr_status status = run_plain(device, &seen, error);
    return status == HR_OK ? bench_add(device, options, &seen, error) : status;
}
