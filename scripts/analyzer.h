/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every file that clang-tidy looks at. hr_fail() returns the status that it is given; an
 * analyzer that does not know that believes that a failing call may report success with nothing set.
 */
#ifndef HR_SCRIPTS_ANALYZER_H
#define HR_SCRIPTS_ANALYZER_H

#include <headrace/status.h>

/* The text is used, and not looked at. */
int hr_analyzed_text(const char *format, ...);
static inline hr_status hr_analyzed_fail(hr_error *error, hr_status status)
{
    (void)error;
    return status;
}
#define hr_fail(error, status, ...) ((void)hr_analyzed_text(__VA_ARGS__), hr_analyzed_fail(error, status))

#endif
