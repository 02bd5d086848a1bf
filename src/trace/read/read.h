/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: a file becomes a finished trace. */
#ifndef HR_TRACE_READ_READ_H
#define HR_TRACE_READ_READ_H

#include "trace/model/trace.h"
#include "trace/read/input.h"

/*
 * Reads any trace that this library knows: Chrome JSON (Kineto's, Headrace's own), plain or gzip, or an
 * SQLite export of Nsight Systems. Memory is bounded by the events that are kept. HR_E_NOT_FOUND, HR_E_IO:
 * the system refused; HR_E_FORMAT: damaged, truncated, foreign, or without GPU work; HR_E_UNSUPPORTED: known
 * and not readable as it is (the text says how to export it); HR_E_HOST_MEMORY.
 */
HR_CHECKED hr_status hr_read_trace(const char *path, hr_trace **trace, hr_error *error);

/* The readers behind it. Each fills an empty trace and leaves hr_trace_finish() to the caller. */
HR_CHECKED hr_status hr_read_chrome(hr_trace_input *input, hr_trace *trace, hr_error *error);
HR_CHECKED hr_status hr_read_nsight(const char *path, hr_trace *trace, hr_error *error);
/* The same from a file's bytes: of a pipe, or of a test. The bytes are copied. */
HR_CHECKED hr_status hr_read_nsight_memory(const void *data, size_t bytes, const char *path, hr_trace *trace,
                                           hr_error *error);

#endif
