/* SPDX-License-Identifier: Apache-2.0 */
/* The record as a file of Chrome's trace format, which headrace audit reads. */
#ifndef HR_TRACE_RECORD_WRITE_H
#define HR_TRACE_RECORD_WRITE_H

#include <stdbool.h>

/* Writes beside `path` and renames. False: the system refused; errno says why. */
bool hr_record_write(const char *path);

#endif
