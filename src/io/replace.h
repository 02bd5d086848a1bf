/* SPDX-License-Identifier: Apache-2.0 */
/* A new file that takes the place of another, or of none, in one step: whole or not at all. */
#ifndef HR_IO_REPLACE_H
#define HR_IO_REPLACE_H

#include <headrace/status.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct hr_replace {
    const char *name; /* for messages */
    int fd;           /* read and write */
    int folder_fd;
    char base[256];      /* the name in its folder */
    char temporary[256]; /* its hidden name there; empty while it has none */
    bool exists;         /* there is a file at `base` to take mode and owner from */
    mode_t mode;
    uid_t owner;
    gid_t group;
} hr_replace;

/* `path` names no symbolic link. With `hidden_name` it has one from the start, as where the file system knows
 * no files without names. Sets nothing on failure. HR_E_NOT_FOUND, HR_E_IO, HR_E_HOST_MEMORY. */
hr_status hr_replace_open(const char *name, const char *path, bool hidden_name, hr_replace *replace,
                          hr_error *error);
/* Syncs (unless no_sync), gives it the name, syncs the folder. On failure the old file is still there. */
hr_status hr_replace_commit(hr_replace *replace, bool no_sync, hr_error *error);
/* Closes, and removes what has not been committed. */
void hr_replace_close(hr_replace *replace);

#endif
