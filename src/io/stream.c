/* SPDX-License-Identifier: Apache-2.0 */
#include "io/stream.h"

#include "base/checked.h"
#include "io/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_LIMIT (UINT64_C(1) << 30)
/* What pipes may be given without privileges; fewer switches between writer and reader. */
#define PIPE_BYTES (1 << 20)

struct hr_io_stream {
    const char *name;
    int fd;
    int interrupt_fd; /* readable once interrupted */
    bool blocking;    /* a write of more than PIPE_BUF could block for ever */
    uint64_t at;      /* ahead[at … have) was peeked at and not taken */
    uint64_t have;
    unsigned char ahead[HR_STREAM_PEEK_LIMIT];
};

/*
 * A write to a pipe blocks until all of it is taken, which could not be cancelled. Its non-blocking mode
 * belongs to everybody who shares the open file, so a second opening of the same pipe is made for it.
 */
static int without_blocking(int fd, bool *blocking)
{
    int flags = fcntl(fd, F_GETFL);
    *blocking = flags >= 0 && (flags & O_NONBLOCK) == 0;
    struct stat st;
    if (!*blocking || (flags & O_ACCMODE) != O_WRONLY || fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode)) {
        return fd;
    }
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (own < 0) {
        return fd;
    }
    close(fd);
    *blocking = false;
    return own;
}

hr_status hr_io_stream_open(const char *name, int fd, hr_io_stream **stream, hr_error *error)
{
    hr_io_stream *s = malloc(sizeof *s);
    if (s == NULL) {
        close(fd);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for a stream", name);
    }
    s->name = name;
    s->fd = without_blocking(fd, &s->blocking);
    s->at = 0;
    s->have = 0;
    s->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->interrupt_fd < 0) {
        int errnum = errno;
        close(s->fd);
        free(s);
        return hr_io_fail(error, errnum, name, "open an event");
    }
    /* Refused for anything but a pipe, and for pipes over the user's limit: either is fine. */
    (void)fcntl(s->fd, F_SETPIPE_SZ, PIPE_BYTES);
    *stream = s;
    return HR_OK;
}

void hr_io_stream_close(hr_io_stream **stream)
{
    if (*stream != NULL) {
        close((*stream)->fd);
        close((*stream)->interrupt_fd);
        free(*stream);
        *stream = NULL;
    }
}

void hr_io_stream_interrupt(hr_io_stream *stream)
{
    uint64_t one = 1;
    ssize_t n = write(stream->interrupt_fd, &one, sizeof one);
    (void)n; /* full means that it is readable already */
}

/* Waits until the file is ready for `events`, or the stream is cancelled. */
static hr_status wait_ready(hr_io_stream *stream, short events, hr_error *error)
{
    struct pollfd fds[2] = {{stream->fd, events, 0}, {stream->interrupt_fd, POLLIN, 0}};
    for (;;) {
        int n = poll(fds, 2, -1);
        if (n < 0 && errno != EINTR) {
            return hr_io_fail(error, errno, stream->name, "wait");
        }
        if (n > 0 && fds[1].revents != 0) {
            return hr_fail(error, HR_E_CANCELLED, "%s: cancelled", stream->name);
        }
        if (n > 0 && fds[0].revents != 0) {
            return HR_OK;
        }
    }
}

/* One read(2) of what is there; *got = 0 at the end. */
static hr_status read_some(hr_io_stream *stream, void *buffer, uint64_t bytes, uint64_t *got, hr_error *error)
{
    for (;;) {
        hr_status status = wait_ready(stream, POLLIN, error);
        if (status != HR_OK) {
            return status;
        }
        ssize_t n = read(stream->fd, buffer, hr_min_u64(bytes, CALL_LIMIT));
        if (n >= 0) {
            *got = (uint64_t)n;
            return HR_OK;
        }
        if (errno != EINTR && errno != EAGAIN) {
            return hr_io_fail(error, errno, stream->name, "read");
        }
    }
}

hr_status hr_io_stream_peek(hr_io_stream *stream, uint64_t bytes, const unsigned char **ahead, uint64_t *have,
                            hr_error *error)
{
    if (bytes > HR_STREAM_PEEK_LIMIT) {
        return hr_fail(error, HR_E_INTERNAL, "%s: looks ahead too far", stream->name);
    }
    if (stream->at > 0) {
        memmove(stream->ahead, stream->ahead + stream->at, stream->have - stream->at);
        stream->have -= stream->at;
        stream->at = 0;
    }
    while (stream->have < bytes) {
        uint64_t got = 0;
        hr_status status =
            read_some(stream, stream->ahead + stream->have, HR_STREAM_PEEK_LIMIT - stream->have, &got, error);
        if (status != HR_OK) {
            return status;
        }
        if (got == 0) {
            break;
        }
        stream->have += got;
    }
    *ahead = stream->ahead;
    *have = stream->have;
    return HR_OK;
}

hr_status hr_io_stream_read(hr_io_stream *stream, void *buffer, uint64_t bytes, uint64_t *got,
                            hr_error *error)
{
    uint64_t done = hr_min_u64(bytes, stream->have - stream->at);
    if (done > 0) {
        memcpy(buffer, stream->ahead + stream->at, done);
        stream->at += done;
    }
    while (done < bytes) {
        uint64_t n = 0;
        hr_status status = read_some(stream, (unsigned char *)buffer + done, bytes - done, &n, error);
        if (status != HR_OK) {
            return status;
        }
        if (n == 0) {
            break;
        }
        done += n;
    }
    *got = done;
    return HR_OK;
}

hr_status hr_io_stream_read_to_end(hr_io_stream *stream, uint64_t limit, void **data, uint64_t *bytes,
                                   hr_error *error)
{
    uint64_t room = UINT64_C(1) << 20;
    uint64_t have = 0;
    unsigned char *memory = NULL;
    for (;;) {
        unsigned char *grown = realloc(memory, room);
        if (grown == NULL) {
            free(memory);
            return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for more than %" PRIu64 " bytes",
                           stream->name, have);
        }
        memory = grown;
        uint64_t got = 0;
        hr_status status = hr_io_stream_read(stream, memory + have, room - have, &got, error);
        if (status != HR_OK) {
            free(memory);
            return status;
        }
        have += got;
        if (have > limit) {
            free(memory);
            return hr_fail(error, HR_E_RANGE, "%s: more than %" PRIu64 " bytes, the most that is read whole",
                           stream->name, limit);
        }
        if (have < room) {
            *data = memory;
            *bytes = have;
            return HR_OK;
        }
        room *= 2;
    }
}

hr_status hr_io_stream_write(hr_io_stream *stream, const void *buffer, uint64_t bytes, hr_error *error)
{
    uint64_t limit = stream->blocking ? PIPE_BUF : CALL_LIMIT;
    uint64_t done = 0;
    while (done < bytes) {
        hr_status status = wait_ready(stream, POLLOUT, error);
        if (status != HR_OK) {
            return status;
        }
        ssize_t n = write(stream->fd, (const unsigned char *)buffer + done, hr_min_u64(bytes - done, limit));
        if (n < 0 && errno == EPIPE) {
            (void)hr_fail(error, HR_E_IO, "%s: the reader closed the pipe", stream->name);
            if (error != NULL) {
                error->code = EPIPE;
            }
            return HR_E_IO;
        }
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return hr_io_fail(error, errno, stream->name, "write");
        }
        done += n > 0 ? (uint64_t)n : 0;
    }
    return HR_OK;
}
