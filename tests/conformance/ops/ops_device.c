/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_device SPEC [--modules FOLDER] [--quick]: runs every built-in op on a device, for each dtype that it takes, on awkward
 * sizes and data and in chunks that do not fit, and compares with the `cpu` device: to the bit, or within the bound that the
 * op states. One line a case: "ok" or "FAIL", what it was, and how far apart. Ends with 1 if a case failed, 77 if there is
 * no such device.
 */
#include "ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct bench {
    hr_device *device, *cpu;
    char costs[64]; /* a file of this run's own, so that the link is measured once */
    bool quick;
    int failed, cases;
} bench;

/* One run of an op: what goes in, and the chunk. */
typedef struct job {
    const hr_op *op;
    hr_op_params params;
    hr_dtype dtype;
    hr_shape shape[2];
    void *in[2];
    uint64_t chunk_bytes;
} job;

static uint64_t bytes_of(const hr_shape *shape, hr_dtype dtype)
{
    uint64_t bytes = 0;
    return hr_shape_bytes(shape, dtype, &bytes) == HR_OK ? bytes : 0;
}

static void *take(uint64_t bytes)
{
    void *memory = calloc(1, bytes + 64);
    if (memory == NULL) {
        fprintf(stderr, "ops_device: no memory\n");
        exit(1);
    }
    return memory;
}

static hr_status run(const bench *b, hr_device *device, const job *j, const hr_op_plan *plan, void *out,
                     hr_result *result, hr_error *error)
{
    hr_source source[2];
    hr_sink sink;
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = j->op;
    options.params = &j->params;
    options.devices = &device;
    options.device_count = 1;
    options.chunk_bytes = j->chunk_bytes;
    options.depth = 3;
    options.cost_file = b->costs;
    for (uint32_t i = 0; i < j->op->inputs; i++) {
        source[i] = hr_source_from_memory(j->in[i], bytes_of(&j->shape[i], j->dtype));
        options.in[i].source = &source[i];
        options.in[i].dtype = j->dtype;
        options.in[i].shape = j->shape[i];
    }
    if (plan->outputs > 0) {
        sink = hr_sink_to_memory(out, bytes_of(&plan->shape[0], plan->dtype[0]));
        options.out[0].sink = &sink;
    }
    hr_pipeline *pipeline;
    hr_status status = hr_pipeline_open(&options, &pipeline, error);
    if (status != HR_OK) {
        return status;
    }
    hr_report report = HR_REPORT_INIT;
    status = hr_pipeline_run(pipeline, &report, error);
    *result = report.result;
    hr_error ignored = HR_ERROR_INIT;
    const hr_status closed = hr_pipeline_close(&pipeline, &ignored);
    return status != HR_OK ? status : closed;
}

/* What the cpu makes of the magnitudes of data and weights. */
static void *magnitudes(bench *b, const job *j, const hr_op_plan *plan, hr_error *error)
{
    job m = *j;
    void *out = take(bytes_of(&plan->shape[0], plan->dtype[0]));
    for (uint32_t i = 0; i < j->op->inputs; i++) {
        const uint64_t bytes = bytes_of(&j->shape[i], j->dtype);
        m.in[i] = take(bytes);
        memcpy(m.in[i], j->in[i], bytes);
        make_positive(m.in[i], j->dtype, bytes / hr_dtype_bytes(j->dtype));
    }
    if (strcmp(j->op->name, "conv2d") == 0) {
        for (size_t i = 0; i < sizeof m.params.conv2d.weight / sizeof(double); i++) {
            m.params.conv2d.weight[i] = fabs(m.params.conv2d.weight[i]);
        }
    }
    hr_result result;
    const hr_status status = run(b, b->cpu, &m, plan, out, &result, error);
    for (uint32_t i = 0; i < j->op->inputs; i++) {
        free(m.in[i]);
    }
    if (status != HR_OK) {
        free(out);
        return NULL;
    }
    return out;
}

static void compare_result(const hr_result *found, const hr_result *wanted, difference *d)
{
    const bool nan = wanted->kind == HR_RESULT_F64 && isnan(wanted->as.f64) && isnan(found->as.f64);
    if (found->kind != wanted->kind || (found->as.u64 != wanted->as.u64 && !nan)) {
        d->count++;
        d->found = wanted->kind == HR_RESULT_F64 ? found->as.f64 : (double)found->as.u64;
        d->wanted = wanted->kind == HR_RESULT_F64 ? wanted->as.f64 : (double)wanted->as.u64;
    }
}

static hr_status compare_outputs(bench *b, const job *j, const hr_op_plan *plan, const void *found,
                                 const void *wanted, difference *d, hr_error *error)
{
    const hr_dtype dtype = plan->dtype[0];
    const uint64_t n = bytes_of(&plan->shape[0], dtype) / hr_dtype_bytes(dtype);
    if (j->op->bound == 0.0 || !is_float(dtype)) {
        compare_bits(found, wanted, dtype, n, d);
        return HR_OK;
    }
    void *sums = magnitudes(b, j, plan, error);
    if (sums == NULL) {
        return error->status;
    }
    compare_near(found, wanted, sums, dtype, n, dtype == HR_F64 ? j->op->bound * 1e-8 : j->op->bound, d);
    free(sums);
    return HR_OK;
}

/* Runs the job on both devices and adds to *d what differs. */
static hr_status try_job(bench *b, const job *j, difference *d, hr_error *error)
{
    const hr_dtype dtypes[2] = {j->dtype, j->dtype};
    hr_op_plan plan;
    hr_status status = hr_op_make_plan(j->op, &j->params, dtypes, j->shape, &plan, error);
    if (status != HR_OK) {
        return status;
    }
    const uint64_t bytes = plan.outputs > 0 ? bytes_of(&plan.shape[0], plan.dtype[0]) : 0;
    unsigned char *found = take(bytes);
    void *wanted = take(bytes);
    memset(found, 0x5a, bytes + 1);
    hr_result result = {HR_RESULT_NONE, {0}};
    hr_result expected = {HR_RESULT_NONE, {0}};
    status = run(b, b->device, j, &plan, found, &result, error);
    if (status == HR_OK) {
        status = run(b, b->cpu, j, &plan, wanted, &expected, error);
    }
    if (status == HR_OK && plan.outputs > 0) {
        status = compare_outputs(b, j, &plan, found, wanted, d, error);
        d->count += found[bytes] != 0x5a; /* the guard */
    } else if (status == HR_OK) {
        compare_result(&result, &expected, d);
    }
    free(found);
    free(wanted);
    return status;
}

static void report(bench *b, const char *what, const char *where, hr_status status, const difference *d,
                   const hr_error *error)
{
    b->cases++;
    if (status != HR_OK) {
        printf("FAIL %s, %s: %s\n", what, where, error->text);
    } else if (d->count > 0) {
        printf("FAIL %s, %s: %llu elements differ, the first is %llu: %.17g, wanted %.17g\n", what, where,
               (unsigned long long)d->count, (unsigned long long)d->first, d->found, d->wanted);
    } else if (d->largest > 0) {
        printf("ok %s, apart by %.2g of the magnitudes at most\n", what, d->largest);
    } else {
        printf("ok %s\n", what);
    }
    b->failed += status != HR_OK || d->count > 0;
    fflush(stdout);
}

static void fill(const job *j, uint32_t i, uint64_t seed)
{
    const uint64_t n = bytes_of(&j->shape[i], j->dtype) / hr_dtype_bytes(j->dtype);
    if (j->op->bound > 0.0 || strcmp(j->op->name, "sum") == 0) {
        fill_plain(j->in[i], j->dtype, n, seed);
        if (strcmp(j->op->name, "sum") == 0 && hr_dtype_bytes(j->dtype) == 8) {
            /* A sum of 64-bit integers has to fit. */
            for (uint64_t k = 0; k < n && !is_float(j->dtype); k++) {
                ((uint64_t *)j->in[i])[k] >>= 24;
            }
        }
    } else {
        fill_awkward(j->in[i], j->dtype, n, seed);
    }
}

/* One case over several shapes, each in small chunks and in large ones. */
static void try_shapes(bench *b, const char *what, job j, const hr_shape (*shapes)[2], size_t count)
{
    difference d = {0};
    hr_error error = HR_ERROR_INIT;
    hr_status status = HR_OK;
    char where[96] = "";
    for (size_t s = 0; s < count && status == HR_OK && d.count == 0; s++) {
        for (uint32_t i = 0; i < j.op->inputs; i++) {
            j.shape[i] = shapes[s][i];
            j.in[i] = take(bytes_of(&j.shape[i], j.dtype));
            fill(&j, i, s * 2 + i + 1);
        }
        static const uint64_t chunks[] = {64 * 1024, 4 * 1024 * 1024};
        for (int c = 0; c < 2 && status == HR_OK && d.count == 0; c++) {
            j.chunk_bytes = chunks[c];
            snprintf(where, sizeof where, "shape %llu x %llu x %llu, chunks of %llu bytes",
                     (unsigned long long)j.shape[0].extent[0], (unsigned long long)j.shape[0].extent[1],
                     (unsigned long long)j.shape[0].extent[2], (unsigned long long)j.chunk_bytes);
            status = try_job(b, &j, &d, &error);
        }
        for (uint32_t i = 0; i < j.op->inputs; i++) {
            free(j.in[i]);
        }
    }
    report(b, what, where, status, &d, &error);
}

#define ROW(n)    \
    {             \
        {1, {n}}, \
        {         \
            1,    \
            {     \
                n \
            }     \
        }         \
    }
static const hr_shape rows[][2] = {ROW(70001), ROW(0),    ROW(1),    ROW(2),     ROW(7),
                                   ROW(33),    ROW(1023), ROW(1025), ROW(300007)};
#define ROWS (sizeof rows / sizeof rows[0])

static size_t rows_here(const bench *b)
{
    return b->quick ? 4 : ROWS;
}

static void element_wise(bench *b, const char *name)
{
    job j;
    memset(&j, 0, sizeof j);
    j.op = hr_op_find(name);
    char what[96];
    for (int d = 1; d < HR_DTYPE_COUNT; d++) {
        j.dtype = (hr_dtype)d;
        if (hr_op_takes(j.op, j.dtype)) {
            snprintf(what, sizeof what, "%s %s", name, hr_dtype_name(j.dtype));
            try_shapes(b, what, j, rows, rows_here(b));
        }
    }
}

static void scale(bench *b)
{
    static const char *const factors[][2] = {
        {"2.5", "-1"}, {"-0.3333333333", "100.5"}, {"3", "7"}, {"1e6", "1e-3"}};
    char what[96];
    for (int d = 1; d < HR_DTYPE_COUNT; d++) {
        for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
            job j;
            hr_error error = HR_ERROR_INIT;
            memset(&j, 0, sizeof j);
            j.op = hr_op_find("scale");
            j.dtype = (hr_dtype)d;
            snprintf(what, sizeof what, "scale %s by %s plus %s", hr_dtype_name(j.dtype), factors[f][0],
                     factors[f][1]);
            if (hr_op_params_set(j.op, &j.params, "by", factors[f][0], &error) != HR_OK ||
                hr_op_params_set(j.op, &j.params, "plus", factors[f][1], &error) != HR_OK) {
                report(b, what, "parameters", HR_E_INVALID, NULL, &error);
                continue;
            }
            try_shapes(b, what, j, rows, b->quick ? 1 : 3);
        }
    }
}

static void convert(bench *b)
{
    char what[96];
    for (int from = 1; from < HR_DTYPE_COUNT; from++) {
        for (int to = 1; to < HR_DTYPE_COUNT; to++) {
            job j;
            memset(&j, 0, sizeof j);
            j.op = hr_op_find("convert");
            j.dtype = (hr_dtype)from;
            j.params.convert.to = (hr_dtype)to;
            snprintf(what, sizeof what, "convert %s to %s", hr_dtype_name(j.dtype),
                     hr_dtype_name((hr_dtype)to));
            try_shapes(b, what, j, rows, b->quick ? 1 : 3);
        }
    }
}

static void normalize(bench *b)
{
    char what[96];
    for (uint32_t channels = 1; channels <= HR_MAX_CHANNELS; channels += b->quick ? 2 : 1) {
        job j;
        memset(&j, 0, sizeof j);
        j.op = hr_op_find("normalize");
        j.dtype = HR_U8;
        j.params.normalize.channels = channels;
        for (uint32_t i = 0; i < channels; i++) {
            j.params.normalize.mean[i] = 0.1f * (float)i;
            j.params.normalize.std_dev[i] = 0.2f + 0.03f * (float)i;
        }
        const hr_shape shapes[][2] = {{{2, {10007, channels}}, {0, {0}}},
                                      {{2, {1, channels}}, {0, {0}}},
                                      {{3, {0, 3, channels}}, {0, {0}}},
                                      {{3, {301, 77, channels}}, {0, {0}}}};
        snprintf(what, sizeof what, "normalize of %u channels", channels);
        try_shapes(b, what, j, shapes, 4);
    }
}

static void conv2d(bench *b)
{
    static const uint32_t edges[][2] = {{3, 3}, {5, 5}, {7, 7}, {1, 9}, {11, 1}, {31, 31}};
    static const char *const borders[] = {"reflect", "zero", "replicate"};
#define IMAGE(...)                                              \
    {                                                           \
        {sizeof((uint64_t[]){__VA_ARGS__}) / 8, {__VA_ARGS__}}, \
        {                                                       \
            0,                                                  \
            {                                                   \
                0                                               \
            }                                                   \
        }                                                       \
    }
    static const hr_shape shapes[][2] = {IMAGE(37, 129), IMAGE(33, 40, 3), IMAGE(1, 1),
                                         IMAGE(1, 50),   IMAGE(50, 1),     IMAGE(2, 2, 4),
                                         IMAGE(0, 5),    IMAGE(200, 515),  IMAGE(64, 31, 7)};
    char what[96];
    for (int d = 1; d < HR_DTYPE_COUNT; d++) {
        for (size_t e = 0; e < sizeof edges / sizeof edges[0]; e++) {
            for (int border = 0; border < 3; border++) {
                job j;
                memset(&j, 0, sizeof j);
                j.op = hr_op_find("conv2d");
                j.dtype = (hr_dtype)d;
                hr_conv2d_params *p = &j.params.conv2d;
                p->rows = edges[e][0];
                p->columns = edges[e][1];
                p->border = (hr_border)border;
                fill_plain(p->weight, HR_F64, (uint64_t)p->rows * p->columns, e + 1);
                if (!hr_op_takes(j.op, j.dtype) || (b->quick && border > 0 && e > 1)) {
                    continue;
                }
                snprintf(what, sizeof what, "conv2d %s %ux%u %s", hr_dtype_name(j.dtype), p->rows, p->columns,
                         borders[border]);
                try_shapes(b, what, j, shapes, b->quick ? 3 : sizeof shapes / sizeof shapes[0]);
            }
        }
    }
}

/* Filters of bytes that a device may make in another order, and one that it may not; with ties to round and sums to cut off. */
static void conv2d_of_bytes(bench *b)
{
    static const hr_shape shapes[][2] = {IMAGE(37, 129), IMAGE(200, 515), IMAGE(64, 1040)};
    static const char *const kinds[] = {"means", "quarters", "thirds"};
    for (uint32_t edge = 3; edge <= 7; edge += 2) {
        for (int kind = 0; kind < 3; kind++) {
            char what[96];
            job j;
            memset(&j, 0, sizeof j);
            j.op = hr_op_find("conv2d");
            j.dtype = HR_U8;
            hr_conv2d_params *p = &j.params.conv2d;
            p->rows = p->columns = edge;
            p->border = (hr_border)kind;
            for (uint32_t i = 0; i < edge * edge; i++) {
                p->weight[i] = kind == 0   ? 1.0 / (edge * edge)
                               : kind == 1 ? ((int)(i * 7 % 9) - 3) / 4.0
                                           : ((int)(i * 7 % 9) - 3) / 3.0;
            }
            snprintf(what, sizeof what, "conv2d of bytes, %ux%u, %s", edge, edge, kinds[kind]);
            try_shapes(b, what, j, shapes, b->quick ? 1 : 3);
        }
    }
}

static void matmul(bench *b)
{
#define PRODUCT(m, k, n) \
    {                    \
        {2, {m, k}},     \
        {                \
            2,           \
            {            \
                k, n     \
            }            \
        }                \
    }
    static const hr_shape shapes[][2] = {PRODUCT(33, 65, 17),    PRODUCT(64, 64, 64),    PRODUCT(1, 1, 1),
                                         PRODUCT(0, 4, 4),       PRODUCT(4, 0, 4),       PRODUCT(4, 4, 0),
                                         PRODUCT(129, 257, 130), PRODUCT(200, 1000, 96), PRODUCT(1, 3000, 1),
                                         PRODUCT(300, 1, 300)};
    job j;
    char what[96];
    memset(&j, 0, sizeof j);
    j.op = hr_op_find("matmul");
    for (int d = 1; d < HR_DTYPE_COUNT; d++) {
        j.dtype = (hr_dtype)d;
        if (hr_op_takes(j.op, j.dtype)) {
            snprintf(what, sizeof what, "matmul %s", hr_dtype_name(j.dtype));
            try_shapes(b, what, j, shapes, sizeof shapes / sizeof shapes[0]);
        }
    }
}

static void run_all(bench *b)
{
    element_wise(b, "add");
    element_wise(b, "copy");
    element_wise(b, "sum");
    element_wise(b, "checksum");
    scale(b);
    convert(b);
    normalize(b);
    conv2d(b);
    conv2d_of_bytes(b);
    matmul(b);
}

int main(int argc, char **argv)
{
    bench b = {0};
    hr_runtime_options runtime_options = HR_RUNTIME_OPTIONS_INIT;
    const char *spec = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--modules") == 0 && i + 1 < argc) {
            runtime_options.module_path = argv[++i];
        } else if (strcmp(argv[i], "--quick") == 0) {
            b.quick = true;
        } else {
            spec = argv[i];
        }
    }
    if (spec == NULL) {
        fprintf(stderr, "usage: ops_device SPEC [--modules FOLDER] [--quick]\n");
        return 2;
    }
    hr_error error = HR_ERROR_INIT;
    hr_runtime *runtime = NULL;
    hr_status status = hr_runtime_open(&runtime_options, &runtime, &error);
    if (status == HR_OK) {
        status = hr_device_open(runtime, spec, &b.device, &error);
        if (status != HR_OK) {
            printf("skipped: %s\n", error.text);
            return hr_runtime_close(&runtime, &error) == HR_OK ? 77 : 1;
        }
        status = hr_device_open(runtime, "cpu", &b.cpu, &error);
    }
    if (status != HR_OK) {
        fprintf(stderr, "ops_device: %s\n", error.text);
        return 1;
    }
    snprintf(b.costs, sizeof b.costs, "/tmp/ops_device-%ld", (long)getpid());
    run_all(&b);
    unlink(b.costs);
    printf("%d cases, %d failed\n", b.cases, b.failed);
    if (hr_device_close(&b.device, &error) != HR_OK || hr_device_close(&b.cpu, &error) != HR_OK ||
        hr_runtime_close(&runtime, &error) != HR_OK) {
        fprintf(stderr, "ops_device: %s\n", error.text);
        return 1;
    }
    return b.failed > 0 ? 1 : 0;
}
