/* SPDX-License-Identifier: Apache-2.0 */
/* A listener that keeps what a pipeline tells, and writes it as a trace. Part of the trace library. */
#ifndef HEADRACE_SPAN_LOG_H
#define HEADRACE_SPAN_LOG_H

#include <headrace/observe.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_span_log hr_span_log;

/* An empty log. The caller owns *log. HR_E_HOST_MEMORY. */
HR_API HR_CHECKED hr_status hr_span_log_open(hr_span_log **log, hr_error *error);
/* Clears *log. Null is accepted. Not while a pipeline still tells it something. */
HR_API void hr_span_log_close(hr_span_log **log);
/*
 * What to hand to a pipeline as its observer, or to forward spans to. Lives as long as the log. Takes spans
 * from several threads at once; when memory runs out later spans are dropped, and hr_span_log_write() says
 * so.
 */
HR_API const hr_observer *hr_span_log_observer(hr_span_log *log);
/* The spans so far, in the order in which they were told; owned by the log, valid until the next one. Not
 * while a pipeline runs. */
HR_API const hr_span *hr_span_log_spans(const hr_span_log *log, size_t *count);

typedef struct hr_span_log_about {
    size_t size;             /* sizeof(hr_span_log_about) */
    const char *title;       /* the op; null: none */
    const char *device_name; /* "NVIDIA H200"; null: not known */
} hr_span_log_about;
#define HR_SPAN_LOG_ABOUT_INIT          \
    {                                   \
        sizeof(hr_span_log_about), 0, 0 \
    }

/*
 * Writes the log as Chrome JSON, which Perfetto and `headrace audit` open: host work by thread, device work
 * by device and stream. The file appears under its name when it is whole; a symbolic link is followed, and a
 * device or a pipe is written as it is. `about` may be null. Blocks.
 * HR_E_IO, HR_E_NO_SPACE, HR_E_HOST_MEMORY (spans were dropped; nothing is written).
 */
HR_API HR_CHECKED hr_status hr_span_log_write(const hr_span_log *log, const char *path,
                                              const hr_span_log_about *about, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
