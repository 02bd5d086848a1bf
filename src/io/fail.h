/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the system, told with the file's name. */
#ifndef HR_IO_FAIL_H
#define HR_IO_FAIL_H

#include <headrace/status.h>

/* The status that an errno of a file call stands for. */
hr_status hr_io_status_of(int errnum);

/* "NAME: DOING: what the system says", with error->code = errnum. Returns the status that errnum stands for.
 */
hr_status hr_io_fail(hr_error *error, int errnum, const char *name, const char *doing);

/* What messages call a path: "standard input" for "-", the path otherwise. */
const char *hr_io_input_name(const char *path);
const char *hr_io_output_name(const char *path);

#endif
