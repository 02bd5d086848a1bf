/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs from host memory to host memory. Where the device has plain programs that do the same by hand, they run in the
 * same process, right before, since machines change their speed, and the rows say how much faster the pipeline is. */
#include "bench/bench_jobs.h"

#include "base/samples.h"

#include <headrace/pipeline.h>

#include <stdio.h>
#include <string.h>

/* The plain programs' rows, by what their names begin with, and how a row of ours names them. */
static const struct {
    const char *begins, *label;
    const char *op;
    hr_memory_kind memory;
} plain_rows[] = {
    {"add: four streams by hand, pinned, a quarter", "four streams by hand, a quarter each", "add",
     HR_MEMORY_PINNED},
    {"add: four streams by hand, pinned, the best", "four streams by hand, the best chunk", "add",
     HR_MEMORY_PINNED},
    {"add: cudaMemcpy by hand", "cudaMemcpy by hand", "add", HR_MEMORY_PAGEABLE},
    {"conv2d: one stream by hand", "one stream by hand, in turn", "conv2d", HR_MEMORY_PINNED},
    {"conv2d: four streams by hand", "four streams by hand, a quarter each", "conv2d", HR_MEMORY_PINNED},
    {"matmul: one stream by hand", "one stream by hand, in turn", "matmul", HR_MEMORY_PINNED},
    {"matmul: cublasXt", "cublasXt", "matmul", HR_MEMORY_PINNED},
};
enum { PLAIN_ROWS = sizeof plain_rows / sizeof *plain_rows };

/* What the plain programs took, picked out of the rows that pass by. */
typedef struct plain {
    const hr_bench_options *options;
    double ms[PLAIN_ROWS]; /* 0: did not run */
} plain;

static void keep(void *user, const hr_bench_row *row)
{
    plain *seen = user;
    for (size_t i = 0; i < PLAIN_ROWS; i++) {
        if (row->unit != NULL &&
            strncmp(row->name, plain_rows[i].begins, strlen(plain_rows[i].begins)) == 0) {
            seen->ms[i] = row->value;
        }
    }
    seen->options->row(seen->options->user, row);
}

static hr_status run_plain(hr_device *device, const char *op, plain *seen, hr_error *error)
{
    char what[32];
    snprintf(what, sizeof what, "baseline %s", op);
    hr_bench_options options = *seen->options;
    options.what = what;
    options.user = seen;
    options.row = keep;
    hr_status status = hr_device_bench(device, &options, error);
    return status == HR_E_UNSUPPORTED ? HR_OK : status;
}

/* The arrays of a job: inputs, then the output. */
typedef struct arrays {
    hr_pool *pool;
    float *block[HR_BENCH_MOST_INPUTS + 1];
} arrays;

static hr_status open_arrays(hr_device *device, hr_memory_kind kind, const hr_bench_job *job, arrays *data,
                             hr_error *error)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.name = "bench pipeline";
    options.kind = kind;
    options.bytes = (job->inputs + 1) * (hr_bench_job_bytes(job) + 4096);
    *data = (arrays){0};
    hr_status status = hr_pool_open(device, &options, &data->pool, error);
    for (uint32_t i = 0; i <= job->inputs && status == HR_OK; i++) {
        status = hr_pool_take(data->pool, hr_bench_job_bytes(job), 4096, "array", (void **)&data->block[i]);
    }
    for (uint32_t i = 0; i < job->inputs && status == HR_OK; i++) {
        job->fill(job, i, data->block[i]);
    }
    return status;
}

static hr_status close_arrays(arrays *data, hr_error *error)
{
    hr_status status = HR_OK;
    for (size_t i = 0; i < sizeof data->block / sizeof data->block[0]; i++) {
        if (data->block[i] != NULL) {
            hr_status given = hr_pool_give(data->pool, data->block[i]);
            status = status == HR_OK ? given : status;
        }
    }
    hr_status closed = hr_pool_close(&data->pool, error);
    return status == HR_OK ? closed : status;
}

/* One pipeline, opened and run; the run alone is what counts. */
static hr_status run_job(hr_device *device, const hr_bench_job *job, const arrays *data, hr_report *report,
                         hr_error *error)
{
    uint64_t bytes = hr_bench_job_bytes(job);
    hr_source in[HR_BENCH_MOST_INPUTS];
    hr_sink out = hr_sink_to_memory(data->block[job->inputs], bytes);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = hr_op_find(job->op);
    options.params = &job->params;
    options.devices = &device;
    options.device_count = 1;
    for (uint32_t i = 0; i < job->inputs; i++) {
        in[i] = hr_source_from_memory(data->block[i], bytes);
        options.in[i] = (hr_port){.source = &in[i], .dtype = HR_F32, .shape = job->shape};
    }
    options.out[0] = (hr_port){.sink = &out};
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

typedef struct runs {
    double ms[HR_BENCH_SAMPLES], efficiency[HR_BENCH_SAMPLES];
    size_t samples;
    int verified;
    hr_report last;
} runs;

/* The first run is not counted: it loads the kernel. */
static hr_status measure(hr_device *device, const hr_bench_job *job, hr_memory_kind kind, size_t samples,
                         runs *made, hr_error *error)
{
    arrays data;
    *made = (runs){.samples = samples};
    hr_status status = open_arrays(device, kind, job, &data, error);
    float *out = data.block[job->inputs];
    if (status == HR_OK) {
        memset(out, 0xFF, hr_bench_job_bytes(job));
    }
    for (size_t i = 0; i < samples + 1 && status == HR_OK; i++) {
        hr_report report = HR_REPORT_INIT;
        status = run_job(device, job, &data, &report, error);
        if (i == 0) {
            made->verified = status == HR_OK && job->is_right(job, (const float *const *)data.block, out);
        } else {
            made->ms[i - 1] = report.wall_s * 1e3;
            made->efficiency[i - 1] = report.efficiency;
            made->last = report;
        }
    }
    hr_error ignored = HR_ERROR_INIT;
    hr_status closed = close_arrays(&data, status == HR_OK ? error : &ignored);
    return status == HR_OK ? closed : status;
}

/* A row beside each plain program that ran, or one alone; then how near the floor it was. */
static void tell(const hr_bench_options *options, const hr_bench_job *job, hr_memory_kind kind, runs *made,
                 const plain *seen)
{
    char name[128];
    const char *memory = kind == HR_MEMORY_PINNED ? "pinned" : "pageable";
    uint64_t bytes = hr_bench_job_bytes(job);
    double median = hr_samples_median(made->ms, made->samples);
    snprintf(name, sizeof name, "%s: pipeline, %s, %llu chunks, %u slots", job->op, memory,
             (unsigned long long)made->last.chunks, made->last.depth);
    bool beside = false;
    for (size_t i = 0; i < PLAIN_ROWS; i++) {
        if (seen->ms[i] > 0.0 && strcmp(plain_rows[i].op, job->op) == 0 && plain_rows[i].memory == kind) {
            beside = true;
            hr_bench_tell(options, name, bytes, "ms", made->ms, made->samples, made->verified,
                          plain_rows[i].label, seen->ms[i] / median);
        }
    }
    if (!beside) {
        hr_bench_tell(options, name, bytes, "ms", made->ms, made->samples, made->verified, NULL, 0.0);
    }
    snprintf(name, sizeof name, "%s: pipeline, %s, floor over wall", job->op, memory);
    hr_bench_tell(options, name, bytes, "efficiency", made->efficiency, made->samples, -1, NULL, 0.0);
}

static hr_status bench_job(hr_device *device, const hr_bench_options *options, const hr_bench_job *job,
                           hr_memory_kind kind, const plain *seen, hr_error *error)
{
    runs made;
    hr_status status = measure(device, job, kind, options->quick ? 3 : HR_BENCH_SAMPLES, &made, error);
    if (status == HR_OK) {
        tell(options, job, kind, &made, seen);
    }
    return status;
}

hr_status hr_bench_pipeline(hr_device *device, const hr_bench_options *options, hr_error *error)
{
    plain seen = {.options = options};
    hr_device_info info = HR_DEVICE_INFO_INIT;
    hr_status status = hr_device_get_info(device, &info, error);
    bool fast = info.kind == HR_DEVICE_CUDA;
    hr_bench_job add = hr_bench_add(options->quick), conv2d = hr_bench_conv2d(options->quick, fast);
    hr_bench_job matmul = hr_bench_matmul(options->quick, fast);
    const struct {
        const hr_bench_job *job;
        hr_memory_kind kind;
    } all[] = {{&add, HR_MEMORY_PINNED},
               {&add, HR_MEMORY_PAGEABLE},
               {&conv2d, HR_MEMORY_PINNED},
               {&matmul, HR_MEMORY_PINNED}};
    for (size_t i = 0; i < sizeof all / sizeof *all && status == HR_OK; i++) {
        if (i == 0 || all[i].job != all[i - 1].job) {
            status = run_plain(device, all[i].job->op, &seen, error);
        }
        if (status == HR_OK) {
            status = bench_job(device, options, all[i].job, all[i].kind, &seen, error);
        }
    }
    return status;
}
