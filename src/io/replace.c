/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file without a name (O_TMPFILE) vanishes with the process, whatever ends it; it gets a hidden name only
 * for the instant between linkat and rename, because linkat cannot replace. Where the file system has no such
 * files, the hidden name is there from the start, and a killed process leaves it behind.
 */
#include "io/replace.h"

#include "io/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 100

/* ".NAME.headrace-0123abcd.tmp"; a long NAME is cut. */
static void make_temporary_name(hr_replace *replace)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
        random = (uint32_t)getpid() * 2654435761u ^ (uint32_t)(uintptr_t)replace;
    }
    snprintf(replace->temporary, sizeof replace->temporary, ".%.200s.headrace-%08x.tmp", replace->base,
             random);
}

static int open_named(hr_replace *replace)
{
    for (int i = 0; i < TRIES; i++) {
        make_temporary_name(replace);
        int fd = openat(replace->folder_fd, replace->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

static int open_nameless(hr_replace *replace)
{
    int fd = openat(replace->folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    /* The errors by which file systems and kernels say that they have no such files. */
    bool unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL;
    return fd < 0 && unknown ? open_named(replace) : fd;
}

static hr_status look_at_old(hr_replace *replace, hr_error *error)
{
    struct stat st;
    if (fstatat(replace->folder_fd, replace->base, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? HR_OK : hr_io_fail(error, errno, replace->name, "look at");
    }
    /* Renaming needs no right to write the old file, but a file made read-only is meant to stay. */
    if (faccessat(replace->folder_fd, replace->base, W_OK, AT_EACCESS) != 0) {
        return hr_io_fail(error, errno, replace->name, "replace");
    }
    replace->exists = true;
    replace->mode = st.st_mode & 07777;
    replace->owner = st.st_uid;
    replace->group = st.st_gid;
    return HR_OK;
}

static hr_status open_folder(const char *path, hr_replace *replace, hr_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) {
        return hr_fail(error, HR_E_INVALID, "%s: a folder; a file is needed", replace->name);
    }
    if (strlen(base) >= sizeof replace->base) {
        return hr_io_fail(error, ENAMETOOLONG, replace->name, "create");
    }
    memcpy(replace->base, base, strlen(base) + 1);
    char *folder = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (folder == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for its name", replace->name);
    }
    hr_status status = HR_OK;
    replace->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (replace->folder_fd < 0) {
        char doing[300];
        snprintf(doing, sizeof doing, "open its folder %.250s", folder);
        status = hr_io_fail(error, errno, replace->name, doing);
    }
    free(folder);
    return status;
}

hr_status hr_replace_open(const char *name, const char *path, bool hidden_name, hr_replace *replace,
                          hr_error *error)
{
    hr_replace r = {.name = name, .fd = -1, .folder_fd = -1};
    hr_status status = open_folder(path, &r, error);
    if (status == HR_OK) {
        status = look_at_old(&r, error);
    }
    if (status == HR_OK) {
        r.fd = hidden_name ? open_named(&r) : open_nameless(&r);
        if (r.fd < 0) {
            status = hr_io_fail(error, errno, name, "create");
            r.temporary[0] = '\0';
        }
    }
    if (status != HR_OK) {
        hr_replace_close(&r);
        return status;
    }
    *replace = r;
    return HR_OK;
}

/* By number where the kernel lets this process; through /proc otherwise. */
static int link_open_file(const hr_replace *replace)
{
    if (linkat(replace->fd, "", replace->folder_fd, replace->temporary, AT_EMPTY_PATH) == 0) {
        return 0;
    }
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", replace->fd);
    return errno == EEXIST
               ? -1
               : linkat(AT_FDCWD, self, replace->folder_fd, replace->temporary, AT_SYMLINK_FOLLOW);
}

/* Gives a file without a name its hidden one. */
static int link_hidden(hr_replace *replace)
{
    for (int i = 0; i < TRIES; i++) {
        make_temporary_name(replace);
        if (link_open_file(replace) == 0) {
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    int errnum = errno;
    replace->temporary[0] = '\0';
    errno = errnum;
    return -1;
}

hr_status hr_replace_commit(hr_replace *replace, bool no_sync, hr_error *error)
{
    if (replace->exists) {
        /* The owner is kept where this process may; the mode after it, because chown clears bits of it. */
        int ignored = fchown(replace->fd, replace->owner, replace->group);
        (void)ignored;
        if (fchmod(replace->fd, replace->mode) != 0) {
            return hr_io_fail(error, errno, replace->name, "set the mode");
        }
    }
    if (!no_sync && fsync(replace->fd) != 0) {
        return hr_io_fail(error, errno, replace->name, "sync");
    }
    if (replace->temporary[0] == '\0' && link_hidden(replace) != 0) {
        return hr_io_fail(error, errno, replace->name, "name");
    }
    if (renameat(replace->folder_fd, replace->temporary, replace->folder_fd, replace->base) != 0) {
        return hr_io_fail(error, errno, replace->name, "rename");
    }
    replace->temporary[0] = '\0';
    if (!no_sync && fsync(replace->folder_fd) != 0 && errno != EINVAL) {
        return hr_io_fail(error, errno, replace->name, "sync its folder");
    }
    return HR_OK;
}

void hr_replace_close(hr_replace *replace)
{
    if (replace->temporary[0] != '\0') {
        (void)unlinkat(replace->folder_fd, replace->temporary, 0);
        replace->temporary[0] = '\0';
    }
    if (replace->fd >= 0) {
        close(replace->fd);
    }
    if (replace->folder_fd >= 0) {
        close(replace->folder_fd);
    }
    *replace = (hr_replace){.fd = -1, .folder_fd = -1};
}
