/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --verify: the same op on the CPU, and every element compared.
 *
 * An op says how far another device's answer may be from the CPU's, relative to the sum of magnitudes that
 * went into an element. To know that sum for each element, the op runs a third time on magnitudes: inputs and
 * parameters without their signs. That run is needed only where the first comparison found a difference.
 */
#include "run.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE = 1 << 22 };

/* ---- scratch memory for a whole array ---- */

typedef struct scratch {
    void *data;
    uint64_t bytes; /* mapped */
} scratch;

static uint64_t free_memory(void)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* Memory where it fits into half of what is free, else a nameless file in `folder`. */
static bool scratch_open(scratch *made, uint64_t bytes, const char *folder)
{
    int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint64_t mapped = bytes ? bytes : 1;
    if (bytes > free_memory() / 2) {
        fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, (off_t)mapped) != 0) {
            if (fd >= 0)
                close(fd);
            cli_fail(CLI_FAILED, "--verify", "no room for %llu bytes, neither in memory nor in %s",
                     (unsigned long long)bytes, folder);
            return false;
        }
        flags = MAP_SHARED;
    }
    void *data = mmap(NULL, mapped, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (fd >= 0)
        close(fd);
    if (data == MAP_FAILED || !data) {
        cli_fail(CLI_FAILED, "--verify", "no memory for %llu bytes", (unsigned long long)bytes);
        return false;
    }
    *made = (scratch){data, mapped};
    return true;
}

static void scratch_close(scratch *made)
{
    if (made->data)
        munmap(made->data, made->bytes);
    *made = (scratch){0};
}

/* ---- elements as numbers ---- */

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 0    ? ldexp(fraction, -24)
                       : exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                                        : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

#define LOAD(type)                        \
    {                                     \
        type value;                       \
        memcpy(&value, at, sizeof value); \
        return (double)value;             \
    }

static double element_value(hr_dtype dtype, const void *at)
{
    uint16_t half;
    uint32_t bits;
    float single;
    switch (dtype) {
    case HR_F16:
        memcpy(&half, at, sizeof half);
        return half_value(half);
    case HR_BF16:
        memcpy(&half, at, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    case HR_F32:
        LOAD(float)
    case HR_F64:
        LOAD(double)
    case HR_I8:
        LOAD(int8_t)
    case HR_I16:
        LOAD(int16_t)
    case HR_I32:
        LOAD(int32_t)
    case HR_I64:
        LOAD(int64_t)
    case HR_U8:
        LOAD(uint8_t)
    case HR_U16:
        LOAD(uint16_t)
    case HR_U32:
        LOAD(uint32_t)
    case HR_U64:
        LOAD(uint64_t)
    default:
        return (double)NAN;
    }
}

static bool is_float(hr_dtype dtype)
{
    return dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F32 || dtype == HR_F64;
}

/* How far two elements are apart; NaN equals NaN whatever its payload. */
static double element_difference(hr_dtype dtype, const void *a, const void *b)
{
    if (!memcmp(a, b, hr_dtype_bytes(dtype)))
        return 0;
    if (dtype == HR_I64 || dtype == HR_U64) {
        /* Doubles cannot hold these, their difference modulo 2^64 can be taken. */
        uint64_t left, right;
        memcpy(&left, a, sizeof left);
        memcpy(&right, b, sizeof right);
        bool less = dtype == HR_I64 ? (int64_t)left < (int64_t)right : left < right;
        return (double)(less ? right - left : left - right);
    }
    double left = element_value(dtype, a), right = element_value(dtype, b);
    if (isnan(left) && isnan(right))
        return 0;
    double far = fabs(left - right);
    return isnan(far) ? (double)INFINITY : far;
}

/* Bytes without signs. */
static void drop_signs(hr_dtype dtype, void *data, uint64_t bytes)
{
    uint64_t width = hr_dtype_bytes(dtype);
    unsigned char *at = data;
    for (uint64_t i = width - 1; is_float(dtype) && i < bytes; i += width)
        at[i] &= 0x7F; /* little-endian: the sign is the last byte's highest bit */
}

/* ---- a source that hands out magnitudes ---- */

typedef struct magnitude_source {
    hr_source *inner;
    hr_dtype dtype;
} magnitude_source;

static hr_status read_inner(hr_source *inner, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                            hr_error *error)
{
    if (inner->read)
        return inner->read(inner->self, offset, buffer, bytes, got, error);
    memcpy(buffer, (const char *)inner->data + offset, bytes);
    *got = bytes;
    return HR_OK;
}

static hr_status read_magnitudes(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                                 hr_error *error)
{
    magnitude_source *source = self;
    hr_status status = read_inner(source->inner, offset, buffer, bytes, got, error);
    if (status == HR_OK)
        drop_signs(source->dtype, buffer, *got);
    return status;
}

/* The parameters with which an op on magnitudes gives the sum of magnitudes. */
static void drop_parameter_signs(const hr_op *op, hr_op_params *params)
{
    if (!strcmp(op->name, "scale")) {
        params->scale.by = fabs(params->scale.by);
        params->scale.plus = fabs(params->scale.plus);
    } else if (!strcmp(op->name, "normalize")) {
        for (size_t i = 0; i < HR_MAX_CHANNELS; i++) {
            params->normalize.mean[i] = -fabsf(params->normalize.mean[i]);
            params->normalize.std_dev[i] = fabsf(params->normalize.std_dev[i]);
        }
    } else if (!strcmp(op->name, "conv2d")) {
        for (size_t i = 0; i < HR_MAX_KERNEL_EDGE * HR_MAX_KERNEL_EDGE; i++)
            params->conv2d.weight[i] = fabs(params->conv2d.weight[i]);
    }
}

/* ---- the op on the CPU ---- */

typedef struct cpu_run {
    hr_op_params params;
    hr_device *device;
    hr_input *in[HR_MAX_PORTS];
    hr_source source[HR_MAX_PORTS];
    magnitude_source magnitude[HR_MAX_PORTS];
    hr_sink sink;
    hr_pipeline *pipeline;
    hr_report report;
} cpu_run;

static int cpu_open_inputs(const run_job *job, cpu_run *run, bool magnitudes, hr_pipeline_options *options)
{
    hr_error error = HR_ERROR_INIT;
    for (uint32_t i = 0; i < job->in_count; i++) {
        hr_open_options opening;
        int exit = run_open_options(job, i, &opening);
        if (exit != CLI_DONE)
            return exit;
        if (hr_input_open(job->in_path[i], &opening, &run->in[i], &error) != HR_OK)
            return cli_fail_error(CLI_FAILED, &error);
        options->in[i].source = hr_input_source(run->in[i]);
        options->in[i].dtype = job->in_info[i].dtype;
        options->in[i].shape = job->in_info[i].shape;
        if (magnitudes) {
            run->magnitude[i] = (magnitude_source){options->in[i].source, job->in_info[i].dtype};
            run->source[i] = (hr_source)HR_SOURCE_INIT;
            run->source[i].self = &run->magnitude[i];
            run->source[i].bytes = job->in_info[i].bytes;
            run->source[i].read = read_magnitudes;
            options->in[i].source = &run->source[i];
        }
    }
    return CLI_DONE;
}

static int cpu_execute(const run_job *job, cpu_run *run, bool magnitudes, const scratch *into)
{
    hr_error error = HR_ERROR_INIT;
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    run->params = job->params;
    if (magnitudes)
        drop_parameter_signs(job->op, &run->params);
    if (hr_device_open(job->runtime, "cpu", &run->device, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    options.op = job->op;
    options.params = &run->params;
    options.devices = &run->device;
    options.device_count = 1;
    int exit = cpu_open_inputs(job, run, magnitudes, &options);
    if (exit != CLI_DONE)
        return exit;
    if (job->out) {
        run->sink = hr_sink_to_memory(into->data, job->out_info.bytes);
        options.out[0].sink = &run->sink;
        options.out[0].dtype = job->plan.dtype[0];
        options.out[0].shape = job->plan.shape[0];
    }
    if (hr_pipeline_open(&options, &run->pipeline, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    run->report = (hr_report)HR_REPORT_INIT;
    interrupt_set_target(run->pipeline);
    hr_status status = hr_pipeline_run(run->pipeline, &run->report, &error);
    interrupt_set_target(NULL);
    if (status != HR_OK)
        return interrupted() ? CLI_INTERRUPTED : cli_fail_error(CLI_FAILED, &error);
    return CLI_DONE;
}

/* Runs the op on the CPU; an array goes to `into`, a result to *result. */
static int cpu_compute(const run_job *job, bool magnitudes, const scratch *into, hr_result *result)
{
    cpu_run *run = calloc(1, sizeof *run);
    if (!run)
        return cli_fail(CLI_FAILED, "--verify", "out of memory");
    hr_error error = HR_ERROR_INIT;
    int exit = cpu_execute(job, run, magnitudes, into);
    hr_status closed = hr_pipeline_close(&run->pipeline, &error);
    for (uint32_t i = 0; i < job->in_count; i++)
        hr_input_close(&run->in[i]);
    if (closed == HR_OK)
        closed = hr_device_close(&run->device, &error);
    if (exit == CLI_DONE && closed != HR_OK)
        exit = cli_fail_error(CLI_FAILED, &error);
    *result = run->report.result;
    free(run);
    return exit;
}

/* ---- comparing ---- */

typedef struct comparison {
    hr_dtype dtype;
    double bound;
    double largest;     /* difference */
    uint64_t worst;     /* the first element that is over the bound */
    double worst_value; /* its difference */
    bool over;
} comparison;

static void compare_piece(comparison *found, const char *ours, const char *reference, const char *magnitude,
                          uint64_t first, uint64_t bytes)
{
    uint64_t width = hr_dtype_bytes(found->dtype);
    for (uint64_t at = 0; at + width <= bytes; at += width) {
        double far = element_difference(found->dtype, ours + at, reference + at);
        if (far == 0)
            continue;
        found->largest = far > found->largest ? far : found->largest;
        double allowed = magnitude ? found->bound * fabs(element_value(found->dtype, magnitude + at)) : 0;
        if (!found->over && !(far <= allowed)) {
            found->over = true;
            found->worst = first + at / width;
            found->worst_value = far;
        }
    }
}

static int read_piece(hr_source *source, uint64_t offset, void *buffer, uint64_t bytes)
{
    hr_error error = HR_ERROR_INIT;
    while (bytes) {
        uint64_t got = 0;
        hr_status status = read_inner(source, offset, buffer, bytes, &got, &error);
        if (status != HR_OK || got == 0)
            return status < HR_OK ? cli_fail_error(CLI_FAILED, &error)
                                  : cli_fail(CLI_FAILED, "--verify", "the output ends at byte %llu",
                                             (unsigned long long)offset);
        offset += got;
        buffer = (char *)buffer + got;
        bytes -= got;
    }
    return CLI_DONE;
}

/* Compares the whole output file with the reference. */
static int compare_all(hr_source *ours, uint64_t bytes, const scratch *reference, const scratch *magnitude,
                       comparison *found)
{
    char *piece = malloc(PIECE);
    if (!piece)
        return cli_fail(CLI_FAILED, "--verify", "out of memory");
    int exit = CLI_DONE;
    for (uint64_t at = 0; at < bytes && exit == CLI_DONE && !interrupted(); at += PIECE) {
        uint64_t length = bytes - at < PIECE ? bytes - at : PIECE;
        exit = read_piece(ours, at, piece, length);
        const char *beside = magnitude ? (const char *)magnitude->data + at : NULL;
        if (exit == CLI_DONE && memcmp(piece, (const char *)reference->data + at, length) != 0)
            compare_piece(found, piece, (const char *)reference->data + at, beside,
                          at / hr_dtype_bytes(found->dtype), length);
    }
    free(piece);
    return interrupted() ? CLI_INTERRUPTED : exit;
}

static int judge(run_job *job, const comparison *found)
{
    job->verified = true;
    job->max_abs_diff = found->largest;
    if (!found->over)
        return CLI_DONE;
    return cli_fail(
        CLI_FAILED, job->out_path,
        "element %llu differs from the CPU's by %.6g, more than %s allows (largest difference %.6g)",
        (unsigned long long)found->worst, found->worst_value, job->op->name, found->largest);
}

static int open_written(const run_job *job, hr_input **written)
{
    hr_error error = HR_ERROR_INIT;
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    hr_array_info info = HR_ARRAY_INFO_INIT;
    options.format = job->out_info.format;
    if (options.format == HR_FORMAT_RAW) {
        options.dtype = job->out_info.dtype;
        options.shape = job->out_info.shape;
    }
    if (hr_input_open(job->out_path, &options, written, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    hr_input_info(*written, &info);
    if (info.bytes != job->out_info.bytes || info.dtype != job->out_info.dtype)
        return cli_fail(CLI_FAILED, job->out_path,
                        "holds %llu bytes of %s, and %llu bytes of %s were written",
                        (unsigned long long)info.bytes, hr_dtype_name(info.dtype),
                        (unsigned long long)job->out_info.bytes, hr_dtype_name(job->out_info.dtype));
    return CLI_DONE;
}

static void folder_of(const char *path, char *folder, size_t room)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, room, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
}

static int verify_array(run_job *job)
{
    char folder[4096];
    hr_input *written = NULL;
    scratch reference = {0}, magnitude = {0};
    hr_result unused;
    comparison found = {.dtype = job->out_info.dtype,
                        .bound = is_float(job->out_info.dtype) ? job->op->bound : 0};
    folder_of(job->out_path, folder, sizeof folder);
    int exit = scratch_open(&reference, job->out_info.bytes, folder) ? CLI_DONE : CLI_FAILED;
    if (exit == CLI_DONE)
        exit = cpu_compute(job, false, &reference, &unused);
    if (exit == CLI_DONE)
        exit = open_written(job, &written);
    if (exit == CLI_DONE)
        exit = compare_all(hr_input_source(written), job->out_info.bytes, &reference, NULL, &found);
    if (exit == CLI_DONE && found.over && found.bound > 0) {
        found.over = false;
        exit = scratch_open(&magnitude, job->out_info.bytes, folder) ? CLI_DONE : CLI_FAILED;
        if (exit == CLI_DONE)
            exit = cpu_compute(job, true, &magnitude, &unused);
        if (exit == CLI_DONE)
            exit = compare_all(hr_input_source(written), job->out_info.bytes, &reference, &magnitude, &found);
    }
    if (exit == CLI_DONE)
        exit = judge(job, &found);
    hr_input_close(&written);
    scratch_close(&reference);
    scratch_close(&magnitude);
    return exit;
}

static int verify_result(run_job *job)
{
    hr_result reference = {HR_RESULT_NONE, {0}}, magnitude = reference;
    const hr_result *ours = &job->report.result;
    int exit = cpu_compute(job, false, NULL, &reference);
    if (exit != CLI_DONE)
        return exit;
    bool same = ours->kind == reference.kind;
    job->verified = true;
    job->max_abs_diff = 0;
    if (same && ours->kind == HR_RESULT_F64) {
        job->max_abs_diff = element_difference(HR_F64, &ours->as.f64, &reference.as.f64);
        if (job->max_abs_diff > 0) {
            exit = cpu_compute(job, true, NULL, &magnitude);
            same = job->max_abs_diff <= job->op->bound * magnitude.as.f64;
        }
    } else if (same && ours->kind == HR_RESULT_HEX32) {
        same = ours->as.hex32 == reference.as.hex32;
    } else if (same) {
        same = ours->as.u64 == reference.as.u64;
        job->max_abs_diff =
            element_difference(ours->kind == HR_RESULT_I64 ? HR_I64 : HR_U64, &ours->as, &reference.as);
    }
    if (exit == CLI_DONE && !same)
        exit = cli_fail(CLI_FAILED, job->op->name,
                        "the result differs from the CPU's by %.6g, more than %s allows", job->max_abs_diff,
                        job->op->name);
    return exit;
}

int run_verify(run_job *job)
{
    return job->out ? verify_array(job) : verify_result(job);
}
