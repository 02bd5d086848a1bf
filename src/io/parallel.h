/* SPDX-License-Identifier: Apache-2.0 */
/* A loop whose rounds run on several threads. */
#ifndef HR_IO_PARALLEL_H
#define HR_IO_PARALLEL_H

#include <headrace/status.h>

typedef hr_status (*hr_parallel_body)(void *user, uint64_t index, hr_error *error);

/*
 * Runs body(user, 0 … count − 1) on up to `threads` threads, the caller's among them, and waits for all.
 * After a failure no further round starts; the failure of the lowest index that failed is returned. Threads
 * that cannot be started are done without.
 */
hr_status hr_parallel(uint32_t threads, uint64_t count, hr_parallel_body body, void *user, hr_error *error);

#endif
