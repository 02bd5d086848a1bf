/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a trace: a file, standard input or memory, plain or gzip, in order, in bounded memory. */
#ifndef HR_TRACE_READ_INPUT_H
#define HR_TRACE_READ_INPUT_H

#include <headrace/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hr_trace_input hr_trace_input;

/* "-" is standard input. HR_E_NOT_FOUND, HR_E_IO, HR_E_HOST_MEMORY; the text names the path. */
HR_CHECKED hr_status hr_trace_input_open(const char *path, hr_trace_input **input, hr_error *error);
/* Reads from memory that outlives the input; `path` is what failures are called by. */
HR_CHECKED hr_status hr_trace_input_open_memory(const void *data, size_t bytes, const char *path,
                                                hr_trace_input **input, hr_error *error);
void hr_trace_input_close(hr_trace_input **input);

/* Can the same bytes be had again by the path? Not those of standard input, of a pipe, or of memory. */
bool hr_trace_input_is_file(const hr_trace_input *input);
const char *hr_trace_input_path(const hr_trace_input *input);
/* The first bytes of the file as it lies there (not unpacked), at most 64; for telling formats apart. */
size_t hr_trace_input_head(const hr_trace_input *input, const unsigned char **head);
/*
 * Up to `room` unpacked bytes into `at`; *got is 0 only at the end. HR_E_IO; HR_E_FORMAT for a damaged or
 * truncated gzip stream.
 */
HR_CHECKED hr_status hr_trace_input_read(hr_trace_input *input, char *at, size_t room, size_t *got,
                                         hr_error *error);

#endif
