/* SPDX-License-Identifier: Apache-2.0 */
/* One `headrace run`, from its arguments to its report. */
#ifndef HR_CLI_RUN_H
#define HR_CLI_RUN_H

#include "cli.h"

#include <headrace/span_log.h>

enum { RUN_MAX_DEVICES = 64 };

/* Filled step by step; what is null was not reached. run_job_close() undoes it from any state. */
typedef struct run_job {
    const cli_args *args;
    const hr_op *op;
    hr_op_params params;

    uint64_t chunk_bytes, pinned_bytes, depth; /* 0: planned */
    uint32_t in_count;
    const char *in_path[HR_MAX_PORTS];
    hr_input *in[HR_MAX_PORTS];
    hr_array_info in_info[HR_MAX_PORTS];

    hr_op_plan plan;
    const char *out_path; /* null: the op gives a result and no array */
    hr_output *out;
    hr_array_info out_info;

    hr_runtime *runtime;
    hr_device *devices[RUN_MAX_DEVICES];
    uint32_t device_count;
    hr_device_info device_info; /* of the first */
    char device_text[256];      /* "cuda:0,cuda:1" */

    hr_span_log *log; /* where --trace or --timeline ask for it */
    hr_pipeline *pipeline;
    hr_report report;
    bool done; /* the run itself: its output is written and has its name */
    bool verified;
    double max_abs_diff;
} run_job;

/* Each returns CLI_DONE, or says its line and returns the status to end with. */
int run_choose_op(run_job *job, const cli_args *args);
int run_open_inputs(run_job *job);
int run_open_devices(run_job *job);
int run_open_output(run_job *job);
/* Can these paths be read and written together? Of the inputs, and, once the op's plan is known, of all. */
int run_check_inputs(const run_job *job);
int run_check_outputs(const run_job *job);
/* Opens the pipeline, runs it, shows progress, obeys signals. */
int run_execute(run_job *job);
/* Computes again on the CPU and compares with what was written. */
int run_verify(run_job *job);
/* Closes everything that is open; an output that was not committed leaves nothing behind. */
int run_job_close(run_job *job, int exit);

/* How the n-th input is to be opened: dtype and shape of raw data. */
int run_open_options(const run_job *job, uint32_t nth, hr_open_options *options);
/* The exit status for a failure that says something about arguments or input, or else about the work. */
int run_exit_of(hr_status status);

void run_print_report(const run_job *job); /* prose, on standard error */
void run_print_json(const run_job *job);
void run_print_result(const run_job *job);
void run_print_ops(bool as_json);

/* A picture of spans, one row a stage, `columns` wide; with plain letters where the terminal has no UTF-8. */
void timeline_print(FILE *to, const hr_span *spans, size_t count, int columns, bool utf8);
int timeline_columns(void);
bool timeline_utf8(void);

/* Signals: the first SIGINT, SIGTERM or SIGHUP cancels the pipeline, the second one kills. */
void interrupt_watch(void);
void interrupt_set_target(hr_pipeline *pipeline); /* null: only remember */
bool interrupted(void);
/* From now on a signal ends the process at once, with this line; null: no longer. For waits that know no cancel, such as
 * for the first byte of a pipe, while nothing is written yet. Static storage. */
void interrupt_at_once(const char *line);

/* A line with speed and time left, where standard error is a terminal. */
bool progress_wanted(const cli_args *args);
void progress_show(const char *title, uint64_t done_bytes, uint64_t total_bytes, uint64_t elapsed_ns);
void progress_clear(void);

#endif
