/* SPDX-License-Identifier: Apache-2.0 */
/* Recording other people's CUDA programs: the module that the CUDA driver loads into them. */
#ifndef HEADRACE_RECORD_H
#define HEADRACE_RECORD_H

#include <headrace/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The path of the recorder, "headrace/recorder.so" beside the library, or what the environment's
 * HEADRACE_RECORDER names. A program that is started with CUDA_INJECTION64_PATH set to it and HEADRACE_RECORD
 * to a folder leaves one trace a process there, "<process>.json", when it ends normally;
 * HEADRACE_RECORD_EVENTS bounds how many events it keeps (8 million; about 100 bytes each). Any thread, does
 * not block. HR_E_UNSUPPORTED: this build has no recorder; HR_E_RANGE: `room` is too small.
 */
HR_API HR_CHECKED hr_status hr_record_module(char *path, size_t room, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
