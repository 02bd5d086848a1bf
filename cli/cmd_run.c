/* SPDX-License-Identifier: Apache-2.0 */
/* headrace run: arrays through an op. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* What listens to the pipeline while it runs. */
typedef struct run_listener {
    const run_job *job;
    bool progress;
    bool quiet;
} run_listener;

static void on_span(void *self, const hr_span *span)
{
    const run_listener *listener = self;
    const hr_observer *log = hr_span_log_observer(listener->job->log);
    log->span(log->self, span);
}

static void on_progress(void *self, uint64_t done_bytes, uint64_t total_bytes, uint64_t elapsed_ns)
{
    const run_listener *listener = self;
    progress_show(listener->job->op->name, done_bytes, total_bytes, elapsed_ns);
}

static void on_note(void *self, const char *text)
{
    const run_listener *listener = self;
    if (!listener->quiet)
        cli_note("%s", text);
}

static int read_size(const cli_args *args, const char *name, uint64_t *bytes)
{
    const char *text = cli_get(args, name);
    char flag[32];
    snprintf(flag, sizeof flag, "--%s", name);
    if (text && (!cli_parse_size(text, bytes) || *bytes == 0))
        return cli_fail(CLI_UNUSABLE, flag,
                        "\"%s\" is no size; give bytes, or a number with K, M or G, from 1 to 8589934591G",
                        text);
    return CLI_DONE;
}

/* Before any input is waited for. */
static int read_numbers(run_job *job)
{
    const cli_args *args = job->args;
    int exit = read_size(args, "chunk", &job->chunk_bytes);
    if (exit == CLI_DONE)
        exit = read_size(args, "pinned", &job->pinned_bytes);
    if (exit == CLI_DONE && cli_has(args, "depth") &&
        !cli_parse_count(cli_get(args, "depth"), 1, 1024, &job->depth))
        exit =
            cli_fail(CLI_UNUSABLE, "--depth", "\"%s\" is no number from 1 to 1024", cli_get(args, "depth"));
    return exit;
}

static void fill_options(run_job *job, hr_pipeline_options *options)
{
    hr_pipeline_options_init(options);
    options->chunk_bytes = job->chunk_bytes;
    options->pinned_bytes = job->pinned_bytes;
    options->depth = (uint32_t)job->depth;
    options->op = job->op;
    options->params = &job->params;
    options->devices = job->devices;
    options->device_count = job->device_count;
    for (uint32_t i = 0; i < job->in_count; i++) {
        options->in[i].source = hr_input_source(job->in[i]);
        options->in[i].dtype = job->in_info[i].dtype;
        options->in[i].shape = job->in_info[i].shape;
    }
    if (job->out) {
        options->out[0].sink = hr_output_sink(job->out);
        options->out[0].dtype = job->plan.dtype[0];
        options->out[0].shape = job->plan.shape[0];
    }
}

/* How long what came from a pipe was, and with it what was written. Inputs of unknown length are alike. */
static void settle_lengths(run_job *job)
{
    if (job->out)
        hr_output_info(job->out, &job->out_info);
    for (uint32_t i = 0; i < job->in_count; i++) {
        hr_array_info *info = &job->in_info[i];
        hr_shape row = info->shape;
        uint64_t row_bytes;
        if (info->bytes != HR_LENGTH_UNKNOWN || !row.rank)
            continue;
        row.extent[0] = 1;
        if (hr_shape_bytes(&row, info->dtype, &row_bytes) != HR_OK || !row_bytes)
            continue;
        info->bytes = job->report.stage[HR_STAGE_READ].bytes / job->in_count;
        info->shape.extent[0] = info->bytes / row_bytes;
    }
}

int run_execute(run_job *job)
{
    hr_pipeline_options options;
    hr_error error = HR_ERROR_INIT;
    fill_options(job, &options);
    run_listener listener = {job, progress_wanted(job->args), cli_has(job->args, "quiet")};
    hr_observer observer = HR_OBSERVER_INIT;
    observer.self = &listener;
    observer.note = on_note;
    if (listener.progress)
        observer.progress = on_progress;
    if (job->log)
        observer.span = on_span;
    options.observer = &observer;
    hr_status status = hr_pipeline_open(&options, &job->pipeline, &error);
    if (status != HR_OK)
        return interrupted() ? CLI_INTERRUPTED : cli_fail_error(run_exit_of(status), &error);
    interrupt_set_target(job->pipeline);
    job->report = (hr_report)HR_REPORT_INIT;
    status = hr_pipeline_run(job->pipeline, &job->report, &error);
    interrupt_set_target(NULL);
    if (listener.progress)
        progress_clear();
    if (status != HR_OK && interrupted())
        return CLI_INTERRUPTED;
    if (status != HR_OK)
        return cli_fail_error(status == HR_E_FORMAT ? CLI_UNUSABLE : CLI_FAILED, &error);
    hr_error closing = HR_ERROR_INIT;
    if (hr_pipeline_close(&job->pipeline, &closing) != HR_OK)
        return cli_fail_error(CLI_FAILED, &closing);
    settle_lengths(job);
    job->done = true;
    return CLI_DONE;
}

int run_job_close(run_job *job, int exit)
{
    hr_error error = HR_ERROR_INIT;
    hr_status status = hr_pipeline_close(&job->pipeline, &error);
    hr_output_close(&job->out);
    for (uint32_t i = 0; i < job->in_count; i++)
        hr_input_close(&job->in[i]);
    for (uint32_t i = 0; i < job->device_count; i++) {
        hr_error closing = HR_ERROR_INIT;
        if (hr_device_close(&job->devices[i], &closing) != HR_OK && status == HR_OK) {
            status = closing.status;
            error = closing;
        }
    }
    /* A device that did not close keeps the runtime; the process ends now anyway. */
    if (status == HR_OK)
        status = hr_runtime_close(&job->runtime, &error);
    hr_span_log_close(&job->log);
    return status != HR_OK && exit == CLI_DONE ? cli_fail_error(CLI_FAILED, &error) : exit;
}

/* What was asked for beside the result. */
static int show(run_job *job)
{
    const cli_args *args = job->args;
    if (cli_has(args, "trace")) {
        hr_span_log_about about = HR_SPAN_LOG_ABOUT_INIT;
        hr_error error = HR_ERROR_INIT;
        about.title = job->op->name;
        about.device_name = job->device_info.name;
        if (hr_span_log_write(job->log, cli_get(args, "trace"), &about, &error) != HR_OK)
            return cli_fail_error(CLI_FAILED, &error);
    }
    if (!cli_has(args, "quiet"))
        run_print_report(job);
    if (cli_has(args, "timeline")) {
        size_t count;
        const hr_span *spans = hr_span_log_spans(job->log, &count);
        timeline_print(stderr, spans, count, timeline_columns(), timeline_utf8());
    }
    if (cli_has(args, "json"))
        run_print_json(job);
    else
        run_print_result(job);
    return CLI_DONE;
}

/* From the arguments to open inputs: files are looked at, and nothing is written. */
static int prepare(run_job *job, const cli_args *args)
{
    interrupt_at_once("headrace: interrupted: the run had not begun; nothing was written\n");
    int exit = run_choose_op(job, args);
    if (exit == CLI_DONE)
        exit = read_numbers(job);
    if (exit == CLI_DONE)
        exit = run_open_inputs(job);
    interrupt_at_once(NULL);
    return exit;
}

static int run_steps(run_job *job, const cli_args *args)
{
    static int (*const steps[])(run_job *) = {run_open_devices, run_open_output, run_execute};
    hr_error error = HR_ERROR_INIT;
    int exit = prepare(job, args);
    if (exit == CLI_DONE && (cli_has(args, "trace") || cli_has(args, "timeline")) &&
        hr_span_log_open(&job->log, &error) != HR_OK)
        exit = cli_fail_error(CLI_FAILED, &error);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && exit == CLI_DONE; i++) {
        exit = interrupted() ? CLI_INTERRUPTED : steps[i](job);
    }
    if (exit == CLI_DONE && cli_has(args, "verify"))
        exit = run_verify(job);
    /* A failed check still shows its run. */
    if (exit == CLI_DONE || (exit == CLI_FAILED && job->verified)) {
        int shown = show(job);
        exit = exit == CLI_DONE ? shown : exit;
    }
    return exit;
}

int cmd_run(const cli_args *args)
{
    if (cli_has(args, "list")) {
        run_print_ops(cli_has(args, "json"));
        return cli_end_output(CLI_DONE);
    }
    run_job *job = calloc(1, sizeof *job);
    if (!job)
        return cli_fail(CLI_FAILED, "run", "out of memory");
    interrupt_watch();
    int exit = run_job_close(job, run_steps(job, args));
    bool done = job->done;
    free(job);
    if (exit == CLI_INTERRUPTED)
        return cli_fail(exit, "interrupted",
                        done ? "the check was ended; the run itself was done, and its result is not checked"
                             : "the run was ended; what it had written is removed");
    return cli_end_output(exit);
}
