/* SPDX-License-Identifier: Apache-2.0 */
/* The version, and what marks a symbol as exported. */
#ifndef HEADRACE_VERSION_H
#define HEADRACE_VERSION_H

#define HR_VERSION_MAJOR  0
#define HR_VERSION_MINOR  1
#define HR_VERSION_PATCH  0
#define HR_VERSION_STRING "0.1.0"

#if defined(__GNUC__) || defined(__clang__)
#define HR_API __attribute__((visibility("default")))
#else
#define HR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is loaded, "MAJOR.MINOR.PATCH"; static storage; any thread. */
HR_API const char *hr_version(void);

#ifdef __cplusplus
}
#endif
#endif
