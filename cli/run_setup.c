/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to open inputs, devices and output. */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

int run_exit_of(hr_status status)
{
    switch (status) {
    case HR_E_INVALID:
    case HR_E_RANGE:
    case HR_E_FORMAT:
    case HR_E_UNSUPPORTED:
    case HR_E_NOT_FOUND:
        return CLI_UNUSABLE;
    default:
        return CLI_FAILED;
    }
}

/* The values of a filter, from a file. */
static int load_kernel(run_job *job, const char *path)
{
    enum { MAX_BYTES = HR_MAX_KERNEL_EDGE * HR_MAX_KERNEL_EDGE * 8 };
    hr_input *input = NULL;
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.format = HR_FORMAT_NPY;
    if (!path[0])
        return cli_fail(CLI_UNUSABLE, "--kernel", "needs the name of a file, found an empty one");
    if (hr_input_open(path, &options, &input, &error) != HR_OK)
        return cli_fail_error(error.status == HR_E_HOST_MEMORY ? CLI_FAILED : CLI_UNUSABLE, &error);
    hr_input_info(input, &info);
    int exit = CLI_DONE;
    void *values = NULL;
    if (info.bytes > MAX_BYTES)
        exit =
            cli_fail(CLI_UNUSABLE, path, "a kernel has at most %d × %d values, and this array has %llu bytes",
                     HR_MAX_KERNEL_EDGE, HR_MAX_KERNEL_EDGE, (unsigned long long)info.bytes);
    else if (!(values = malloc(MAX_BYTES)))
        exit = cli_fail(CLI_FAILED, path, "no memory for the kernel");
    else if (hr_input_read_all(input, values, &error) != HR_OK ||
             hr_conv2d_set_kernel(&job->params.conv2d, values, info.dtype, &info.shape, &error) != HR_OK)
        exit = cli_fail_error(CLI_UNUSABLE, &error);
    free(values);
    hr_input_close(&input);
    return exit;
}

static const hr_op_param *find_param(const hr_op *op, const char *name)
{
    const hr_op_param *param;
    for (uint32_t i = 0; (param = hr_op_param_at(op, i)) != NULL; i++) {
        if (!strcmp(param->name, name))
            return param;
    }
    return NULL;
}

static bool is_run_option(const run_job *job, const char *name)
{
    for (const cli_option *option = job->args->verb->options; option->name; option++) {
        if (!strcmp(option->name, name))
            return true;
    }
    return false;
}

static int refuse_param(const run_job *job, const char *name)
{
    char known[256] = "", flag[80];
    const hr_op_param *param;
    for (uint32_t i = 0; (param = hr_op_param_at(job->op, i)) != NULL; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s--%s", i ? ", " : "", param->name);
    }
    snprintf(flag, sizeof flag, "--%s", name);
    return cli_fail(CLI_UNUSABLE, flag, "%s has no such parameter; it takes %s", job->op->name,
                    known[0] ? known : "none");
}

static int set_params(run_job *job)
{
    const cli_args *args = job->args;
    hr_error error = HR_ERROR_INIT;
    for (size_t i = 0; i < args->given_count; i++) {
        const char *name = args->given[i].name, *value = args->given[i].value;
        if (is_run_option(job, name))
            continue;
        const hr_op_param *param = find_param(job->op, name);
        if (!param)
            return refuse_param(job, name);
        if (!strcmp(param->type, "file")) {
            int exit = load_kernel(job, value);
            if (exit != CLI_DONE)
                return exit;
        } else if (hr_op_params_set(job->op, &job->params, name, value, &error) != HR_OK) {
            return cli_fail_error(CLI_UNUSABLE, &error);
        }
    }
    if (hr_op_params_finish(job->op, &job->params, &error) != HR_OK)
        return cli_fail_error(CLI_UNUSABLE, &error);
    return CLI_DONE;
}

int run_choose_op(run_job *job, const cli_args *args)
{
    job->args = args;
    if (!args->word_count)
        return cli_fail(CLI_UNUSABLE, "run", "needs an OP; headrace run --list shows them");
    if (args->word_count > 1)
        return cli_fail(CLI_UNUSABLE, args->words[1], "one OP a run; inputs are given by --in");
    job->op = hr_op_find(args->words[0]);
    if (!job->op)
        return cli_fail(CLI_UNUSABLE, args->words[0], "no such op; headrace run --list shows them");
    if (cli_has(args, "kernel") && cli_has(args, "filter"))
        return cli_fail(CLI_UNUSABLE, "--filter",
                        "given together with --kernel; one of them says what to convolve with");
    return set_params(job);
}

/* The n-th value of a repeated option; the last one stands for the rest. */
static const char *nth_or_last(const cli_args *args, const char *name, uint32_t nth)
{
    const char *value = NULL;
    for (uint32_t i = 0; i <= nth; i++) {
        const char *next = cli_get_nth(args, name, i);
        value = next ? next : value;
    }
    return value;
}

int run_open_options(const run_job *job, uint32_t nth, hr_open_options *options)
{
    char why[256];
    *options = (hr_open_options)HR_OPEN_OPTIONS_INIT;
    const char *dtype = nth_or_last(job->args, "dtype", nth), *shape = nth_or_last(job->args, "shape", nth);
    if (dtype && hr_dtype_from_name(dtype, &options->dtype) != HR_OK)
        return cli_fail(CLI_UNUSABLE, "--dtype",
                        "\"%s\" is no dtype; there are f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64",
                        dtype);
    if (shape && !dtype)
        return cli_fail(CLI_UNUSABLE, "--shape", "needs --dtype too; both describe raw data");
    if (shape && !cli_parse_shape(shape, &options->shape, why, sizeof why))
        return cli_fail(CLI_UNUSABLE, "--shape", "%s", why);
    return CLI_DONE;
}

static int check_input_count(const run_job *job)
{
    uint32_t count = 0;
    while (cli_get_nth(job->args, "in", count) != NULL)
        count++;
    if (count != job->op->inputs)
        return cli_fail(CLI_UNUSABLE, job->op->name, "needs %u input%s (--in), found %u", job->op->inputs,
                        job->op->inputs == 1 ? "" : "s", count);
    return run_check_inputs(job);
}

static const char *shape_text(const hr_shape *shape, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "(");
    for (uint32_t i = 0; i < shape->rank && used < room; i++) {
        used += shape->extent[i] == HR_LENGTH_UNKNOWN
                    ? (size_t)snprintf(text + used, room - used, "%s?", i ? ", " : "")
                    : (size_t)snprintf(text + used, room - used, "%s%llu", i ? ", " : "",
                                       (unsigned long long)shape->extent[i]);
    }
    if (used < room)
        snprintf(text + used, room - used, shape->rank == 1 ? ",)" : ")");
    return text;
}

static bool has_shape(const hr_array_info *info, const hr_shape *shape)
{
    bool same = shape->rank == info->shape.rank;
    for (uint32_t i = 0; same && i < shape->rank; i++)
        same = shape->extent[i] == HR_LENGTH_UNKNOWN || shape->extent[i] == info->shape.extent[i];
    return same;
}

/* --dtype and --shape describe raw data; a file that says something else of itself is not what was meant. One --shape
 * may be for a raw input beside this one. */
static int check_descriptions(const run_job *job)
{
    bool any_raw = false;
    for (uint32_t i = 0; i < job->in_count; i++)
        any_raw = any_raw || job->in_info[i].format == HR_FORMAT_RAW;
    for (uint32_t i = 0; i < job->in_count; i++) {
        const hr_array_info *info = &job->in_info[i];
        hr_open_options options;
        char text[200];
        int exit = run_open_options(job, i, &options);
        if (exit != CLI_DONE)
            return exit;
        if (options.dtype != HR_DTYPE_NONE && options.dtype != info->dtype)
            return cli_fail(CLI_UNUSABLE, "--dtype", "describes raw data as %s, and %s holds %s",
                            hr_dtype_name(options.dtype), job->in_path[i], hr_dtype_name(info->dtype));
        if (!any_raw && options.shape.rank > 0 && !has_shape(info, &options.shape))
            return cli_fail(CLI_UNUSABLE, "--shape", "describes raw data, and %s holds shape %s",
                            job->in_path[i], shape_text(&info->shape, text, sizeof text));
    }
    return CLI_DONE;
}

int run_open_inputs(run_job *job)
{
    hr_error error = HR_ERROR_INIT;
    int exit = check_input_count(job);
    if (exit != CLI_DONE)
        return exit;
    hr_dtype dtypes[HR_MAX_PORTS];
    hr_shape shapes[HR_MAX_PORTS];
    for (uint32_t i = 0; i < job->op->inputs; i++) {
        hr_open_options options;
        job->in_path[i] = cli_get_nth(job->args, "in", i);
        exit = run_open_options(job, i, &options);
        if (exit != CLI_DONE)
            return exit;
        if (hr_input_open(job->in_path[i], &options, &job->in[i], &error) != HR_OK) {
            bool ours = error.status == HR_E_HOST_MEMORY || error.status == HR_E_THREAD;
            return cli_fail_error(ours ? CLI_FAILED : CLI_UNUSABLE, &error);
        }
        job->in_count = i + 1;
        job->in_info[i] = (hr_array_info)HR_ARRAY_INFO_INIT;
        hr_input_info(job->in[i], &job->in_info[i]);
        dtypes[i] = job->in_info[i].dtype;
        shapes[i] = job->in_info[i].shape;
    }
    exit = check_descriptions(job);
    if (exit != CLI_DONE)
        return exit;
    if (hr_op_make_plan(job->op, &job->params, dtypes, shapes, &job->plan, &error) != HR_OK)
        return cli_fail_error(run_exit_of(error.status), &error);
    return CLI_DONE;
}

static hr_status open_device(void *user, const char *spec)
{
    run_job *job = user;
    hr_error error = HR_ERROR_INIT;
    if (job->device_count == RUN_MAX_DEVICES)
        return HR_E_RANGE;
    hr_status status = hr_device_open(job->runtime, spec, &job->devices[job->device_count], &error);
    if (status != HR_OK) {
        cli_fail_error(0, &error);
        return status;
    }
    size_t used = strlen(job->device_text);
    snprintf(job->device_text + used, sizeof job->device_text - used, "%s%s", used ? "," : "", spec);
    job->device_count++;
    return HR_OK;
}

/* Says why no GPU was chosen, once, where the user left the choice to us and looks at the terminal. */
static void note_absent(const run_job *job)
{
    const char *reason;
    for (uint32_t i = 0; (reason = hr_runtime_absent(job->runtime, i)) != NULL; i++)
        cli_note("%s", reason);
}

int run_open_devices(run_job *job)
{
    hr_error error = HR_ERROR_INIT;
    const char *spec = cli_has(job->args, "device") ? cli_get(job->args, "device") : "auto";
    if (hr_runtime_open(NULL, &job->runtime, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    hr_status status = hr_device_expand(job->runtime, spec, open_device, job, &error);
    if (status != HR_OK) {
        /* open_device() has spoken already where opening failed. */
        if (error.text[0])
            cli_fail_error(0, &error);
        return status == HR_E_NOT_FOUND || status == HR_E_INVALID || status == HR_E_RANGE ? CLI_UNUSABLE
                                                                                          : CLI_FAILED;
    }
    if (!job->device_count)
        return cli_fail(CLI_UNUSABLE, spec, "names no device");
    job->device_info = (hr_device_info)HR_DEVICE_INFO_INIT;
    if (hr_device_get_info(job->devices[0], &job->device_info, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    /* The device's own name for itself: "cuda:0" where "auto" or "cuda" was asked for. */
    if (job->device_count == 1)
        snprintf(job->device_text, sizeof job->device_text, "%s", job->device_info.spec);
    if (cli_has(job->args, "verbose") && !cli_has(job->args, "quiet") && !strcmp(spec, "auto"))
        note_absent(job);
    return CLI_DONE;
}

/* A file whose name promises nothing, or another format, gets the bytes alone; whoever reads it has to know what they are. */
static void note_raw_output(const run_job *job)
{
    const char *dot = strrchr(job->out_path, '.');
    struct stat st;
    bool file = strcmp(job->out_path, "-") != 0 && (stat(job->out_path, &st) != 0 || S_ISREG(st.st_mode));
    bool named = dot && (!strcasecmp(dot, ".raw") || !strcasecmp(dot, ".bin"));
    if (job->out_info.format == HR_FORMAT_RAW && file && !named && !cli_has(job->args, "quiet"))
        cli_note("%s: its ending names no format; written raw, %s in C order", job->out_path,
                 hr_dtype_name(job->out_info.dtype));
}

int run_open_output(run_job *job)
{
    hr_error error = HR_ERROR_INIT;
    job->out_path = cli_get(job->args, "out");
    int exit = run_check_outputs(job);
    if (exit != CLI_DONE || job->plan.outputs == 0)
        return exit;
    hr_status status =
        hr_output_create(job->out_path, job->plan.dtype[0], &job->plan.shape[0], NULL, &job->out, &error);
    if (status != HR_OK && interrupted())
        return CLI_INTERRUPTED;
    if (status != HR_OK)
        return cli_fail_error(
            status == HR_E_UNSUPPORTED || status == HR_E_INVALID ? CLI_UNUSABLE : CLI_FAILED, &error);
    job->out_info = (hr_array_info)HR_ARRAY_INFO_INIT;
    hr_output_info(job->out, &job->out_info);
    if (job->out_info.format == HR_FORMAT_JPEG && cli_has(job->args, "verify"))
        return cli_fail(CLI_UNUSABLE, job->out_path,
                        "JPEG does not keep what was computed, so it cannot be verified; write .png or .npy");
    note_raw_output(job);
    return CLI_DONE;
}
