/* SPDX-License-Identifier: Apache-2.0 */
/* Where an output's bytes go: a new file that takes its name when it is whole, a file that is open already, a
 * pipe. */
#ifndef HR_IO_TARGET_H
#define HR_IO_TARGET_H

#include <headrace/status.h>
#include <stdbool.h>

typedef struct hr_target hr_target;

/*
 * `path` "-" is standard output. A regular or new file is made beside its name, under a hidden one or none at
 * all; symbolic links are followed first. HR_E_NOT_FOUND (the folder), HR_E_IO, HR_E_HOST_MEMORY.
 */
hr_status hr_target_open(const char *path, bool no_sync, hr_target **target, hr_error *error);
/* Must it be written front to back, by one thread at a time? */
bool hr_target_sequential(const hr_target *target);
/* Takes the room for `bytes` now, where the file system can. HR_E_NO_SPACE. */
hr_status hr_target_reserve(hr_target *target, uint64_t bytes, hr_error *error);
/* Writes all, blocking. Any thread unless sequential. HR_E_IO, HR_E_NO_SPACE, HR_E_CANCELLED. */
hr_status hr_target_write(hr_target *target, uint64_t offset, const void *buffer, uint64_t bytes,
                          hr_error *error);
/* `bytes` long, synced unless told otherwise, and under its name. Once. */
hr_status hr_target_commit(hr_target *target, uint64_t bytes, hr_error *error);
void hr_target_interrupt(hr_target *target);
/* Without a commit before, nothing is left of it. */
void hr_target_close(hr_target **target);
const char *hr_target_name(const hr_target *target);

#endif
