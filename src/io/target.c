/* SPDX-License-Identifier: Apache-2.0 */
#include "io/target.h"

#include "base/checked.h"
#include "io/fail.h"
#include "io/replace.h"
#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CALL_LIMIT (UINT64_C(1) << 30)
/* Writing back starts each time that so much has been written, so that little is left for the final sync. */
#define WRITEBACK_BYTES (UINT64_C(32) << 20)
#define LINKS_MAX       40

struct hr_target {
    char *path;
    const char *name;
    bool no_sync;
    bool replaces; /* `replace` is in use */
    hr_replace replace;
    int fd;        /* of a regular file, also of the replacement's; −1 otherwise */
    uint64_t base; /* where the first byte goes, in a file that was open already */
    hr_io_stream *stream;
    uint64_t streamed;
    atomic_uint_fast64_t written;
};

/* "/dev/stdout", "/dev/fd/3", "/proc/self/fd/3": a file that is open already, named by its number. */
static bool is_open_file(const char *path, int *fd)
{
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0) {
        *fd = STDOUT_FILENO;
        return true;
    }
    if (strcmp(path, "/dev/stderr") == 0) {
        *fd = STDERR_FILENO;
        return true;
    }
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) == 0 && path[length] != '\0') {
            char *end;
            long number = strtol(path + length, &end, 10);
            if (*end == '\0' && number >= 0 && number <= INT_MAX) {
                *fd = (int)number;
                return true;
            }
        }
    }
    return false;
}

/* The name at the end of the symbolic links, whether a file is there or not. The caller frees it. */
static hr_status follow_links(const char *name, const char *path, char **followed, hr_error *error)
{
    char *at = strdup(path);
    for (int i = 0; at != NULL; i++) {
        char link[PATH_MAX];
        ssize_t length = readlink(at, link, sizeof link - 1);
        if (length < 0) {
            *followed = at;
            return HR_OK;
        }
        if (i == LINKS_MAX) {
            free(at);
            return hr_io_fail(error, ELOOP, name, "follow its links");
        }
        link[length] = '\0';
        const char *slash = strrchr(at, '/');
        char *next = NULL;
        if (link[0] == '/' || slash == NULL) {
            next = strdup(link);
        } else if (asprintf(&next, "%.*s/%s", (int)(slash - at), at, link) < 0) {
            next = NULL;
        }
        free(at);
        at = next;
    }
    return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for its name", name);
}

/* A file that is open already: written in place if it has positions and they are ours to choose. */
static hr_status use_open(hr_target *target, int fd, hr_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int errnum = errno;
        close(fd);
        return hr_io_fail(error, errnum, target->name, "look at");
    }
    off_t base = lseek(fd, 0, SEEK_CUR);
    int flags = fcntl(fd, F_GETFL);
    /* Opened again by its name, as pipes are, it could be written; that is not what it was given for. */
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) {
        close(fd);
        return hr_io_fail(error, EBADF, target->name, "write");
    }
    if (!S_ISREG(st.st_mode) || base < 0 || flags < 0 || (flags & O_APPEND) != 0) {
        return hr_io_stream_open(target->name, fd, &target->stream, error);
    }
    target->fd = fd;
    target->base = (uint64_t)base;
    return HR_OK;
}

static hr_status open_file(hr_target *target, hr_error *error)
{
    struct stat st;
    bool exists = stat(target->path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) {
        return hr_fail(error, HR_E_INVALID, "%s: a folder; a file is needed", target->name);
    }
    if (exists && !S_ISREG(st.st_mode)) {
        int fd = open(target->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? hr_io_fail(error, errno, target->name, "open") : use_open(target, fd, error);
    }
    char *followed;
    hr_status status = follow_links(target->name, target->path, &followed, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_replace_open(target->name, followed, false, &target->replace, error);
    free(followed);
    if (status == HR_OK) {
        target->replaces = true;
        target->fd = target->replace.fd;
    }
    return status;
}

hr_status hr_target_open(const char *path, bool no_sync, hr_target **target, hr_error *error)
{
    hr_target *t = calloc(1, sizeof *t);
    char *copy = strdup(path);
    if (t == NULL || copy == NULL) {
        free(t);
        free(copy);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to open it", hr_io_output_name(path));
    }
    t->path = copy;
    t->name = hr_io_output_name(copy);
    t->no_sync = no_sync;
    t->fd = -1;
    atomic_init(&t->written, 0);
    int open_fd;
    hr_status status;
    if (is_open_file(path, &open_fd)) {
        int fd = fcntl(open_fd, F_DUPFD_CLOEXEC, 0);
        status = fd < 0 ? hr_io_fail(error, errno, t->name, "open") : use_open(t, fd, error);
    } else {
        status = open_file(t, error);
    }
    if (status != HR_OK) {
        hr_target_close(&t);
        return status;
    }
    *target = t;
    return HR_OK;
}

bool hr_target_sequential(const hr_target *target)
{
    return target->stream != NULL;
}

const char *hr_target_name(const hr_target *target)
{
    return target->name;
}

/* Reserving room takes it and clears it, page by page and in one thread, where files are memory; writing does that anyway, in several. */
static bool is_memory(const struct statfs *system)
{
    return system->f_type == TMPFS_MAGIC || system->f_type == RAMFS_MAGIC;
}

/* 0, or why there will be no room for the file: errno's values. */
static int reserve(int fd, uint64_t begin, uint64_t bytes)
{
    struct statfs system;
    if (fstatfs(fd, &system) == 0 && is_memory(&system)) {
        uint64_t free_bytes = (uint64_t)system.f_bavail * (uint64_t)system.f_bsize;
        /* A tmpfs without a limit has no blocks at all. */
        return system.f_blocks != 0 && bytes > free_bytes ? ENOSPC : 0;
    }
    int errnum;
    do {
        errnum = fallocate(fd, 0, (off_t)begin, (off_t)bytes) == 0 ? 0 : errno;
    } while (errnum == EINTR);
    return errnum;
}

hr_status hr_target_reserve(hr_target *target, uint64_t bytes, hr_error *error)
{
    if (target->fd < 0 || bytes == 0) {
        return HR_OK;
    }
    if (bytes > INT64_MAX - target->base) {
        return hr_fail(error, HR_E_RANGE, "%s: %" PRIu64 " bytes are more than a file can have", target->name,
                       bytes);
    }
    int errnum = reserve(target->fd, target->base, bytes);
    if (errnum == 0 || errnum == EOPNOTSUPP || errnum == ENOSYS || errnum == EINVAL) {
        return HR_OK;
    }
    char doing[64];
    snprintf(doing, sizeof doing, "reserve %" PRIu64 " bytes", bytes);
    return hr_io_fail(error, errnum, target->name, doing);
}

static hr_status write_at(hr_target *target, uint64_t offset, const void *buffer, uint64_t bytes,
                          hr_error *error)
{
    uint64_t done = 0;
    while (done < bytes) {
        ssize_t n = pwrite(target->fd, (const unsigned char *)buffer + done,
                           hr_min_u64(bytes - done, CALL_LIMIT), (off_t)(target->base + offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            /* A write that takes nothing and says nothing: the disk is full. */
            return hr_io_fail(error, n < 0 ? errno : ENOSPC, target->name, "write");
        }
        done += (uint64_t)n;
    }
    if (!target->no_sync && target->replaces) {
        uint64_t before = atomic_fetch_add(&target->written, bytes);
        if (before / WRITEBACK_BYTES != (before + bytes) / WRITEBACK_BYTES) {
            /* Only a hint: errors of the device come out at the final sync. */
            (void)sync_file_range(target->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        }
    }
    return HR_OK;
}

hr_status hr_target_write(hr_target *target, uint64_t offset, const void *buffer, uint64_t bytes,
                          hr_error *error)
{
    if (target->stream == NULL) {
        return write_at(target, offset, buffer, bytes, error);
    }
    if (offset != target->streamed) {
        return hr_fail(error, HR_E_INVALID,
                       "%s: a stream is written front to back; it stands at %" PRIu64 ", not at %" PRIu64,
                       target->name, target->streamed, offset);
    }
    hr_status status = hr_io_stream_write(target->stream, buffer, bytes, error);
    if (status == HR_OK) {
        target->streamed += bytes;
    }
    return status;
}

hr_status hr_target_commit(hr_target *target, uint64_t bytes, hr_error *error)
{
    if (target->stream != NULL) {
        return HR_OK;
    }
    if (target->replaces) {
        if (ftruncate(target->fd, (off_t)bytes) != 0) {
            return hr_io_fail(error, errno, target->name, "set the length");
        }
        return hr_replace_commit(&target->replace, target->no_sync, error);
    }
    /* Whoever shares the open file goes on after what was written. */
    (void)lseek(target->fd, (off_t)(target->base + bytes), SEEK_SET);
    if (!target->no_sync && fsync(target->fd) != 0 && errno != EINVAL) {
        return hr_io_fail(error, errno, target->name, "sync");
    }
    return HR_OK;
}

void hr_target_interrupt(hr_target *target)
{
    if (target->stream != NULL) {
        hr_io_stream_interrupt(target->stream);
    }
}

void hr_target_close(hr_target **target)
{
    hr_target *t = *target;
    if (t == NULL) {
        return;
    }
    if (t->replaces) {
        hr_replace_close(&t->replace);
    } else if (t->fd >= 0) {
        close(t->fd);
    }
    hr_io_stream_close(&t->stream);
    free(t->path);
    free(t);
    *target = NULL;
}
