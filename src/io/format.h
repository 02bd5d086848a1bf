/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a file has, by its first bytes or its name. */
#ifndef HR_IO_FORMAT_H
#define HR_IO_FORMAT_H

#include <headrace/io.h>

#define HR_FORMAT_PROBE_BYTES 8

/* HR_FORMAT_AUTO if the content is none of the known ones. */
hr_format hr_format_of_content(const unsigned char *start, uint64_t have);
/* By the ending; HR_FORMAT_AUTO for "-" and names without a known one, HR_FORMAT_RAW for .raw and .bin. */
hr_format hr_format_of_name(const char *path);
/* HR_E_INVALID if an option names no format at all. `name`: the file's, for the text. */
HR_CHECKED hr_status hr_format_check(const char *name, hr_format format, hr_error *error);

#endif
