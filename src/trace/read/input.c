/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PACKED_BYTES = 256 * 1024, HEAD_BYTES = 64 };

struct hr_trace_input {
    char *path;
    int fd; /* −1: memory */
    const unsigned char *memory;
    size_t memory_left;
    unsigned char *packed; /* what was read and not yet unpacked or handed on */
    size_t packed_at, packed_end;
    unsigned char head[HEAD_BYTES];
    size_t head_bytes;
    uint64_t offset; /* of the file, behind what was read */
    bool gzip;
    bool between_members; /* a gzip stream may end here */
    z_stream unpack;
};

static hr_status read_file(hr_trace_input *input, void *at, size_t room, size_t *got, hr_error *error)
{
    ssize_t bytes;
    do
        bytes = read(input->fd, at, room);
    while (bytes < 0 && errno == EINTR);
    if (bytes < 0)
        return hr_fail(error, HR_E_IO, "%s: reading at byte %llu: %s", input->path,
                       (unsigned long long)input->offset, strerror(errno));
    input->offset += (uint64_t)bytes;
    *got = (size_t)bytes;
    return HR_OK;
}

/* Fills `packed` when it is empty; at the end it stays empty. */
static hr_status refill(hr_trace_input *input, hr_error *error)
{
    if (input->packed_at < input->packed_end)
        return HR_OK;
    size_t got = 0;
    if (input->fd >= 0) {
        hr_status status = read_file(input, input->packed, PACKED_BYTES, &got, error);
        if (status != HR_OK)
            return status;
    } else {
        got = input->memory_left < PACKED_BYTES ? input->memory_left : PACKED_BYTES;
        if (got != 0)
            memcpy(input->packed, input->memory, got);
        input->memory += got;
        input->memory_left -= got;
        input->offset += got;
    }
    input->packed_at = 0;
    input->packed_end = got;
    return HR_OK;
}

/* Looks at the first bytes and decides whether they are packed. */
static hr_status look_at_head(hr_trace_input *input, hr_error *error)
{
    hr_status status = refill(input, error);
    if (status != HR_OK)
        return status;
    input->head_bytes = input->packed_end < HEAD_BYTES ? input->packed_end : HEAD_BYTES;
    memcpy(input->head, input->packed, input->head_bytes);
    input->gzip = input->head_bytes >= 2 && input->head[0] == 0x1F && input->head[1] == 0x8B;
    input->between_members = true;
    /* 16: a gzip header is expected. */
    if (input->gzip && inflateInit2(&input->unpack, 15 + 16) != Z_OK) {
        input->gzip = false;
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to unpack it", input->path);
    }
    return HR_OK;
}

static hr_status make(const char *path, hr_trace_input **input, hr_error *error)
{
    hr_trace_input *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->fd = -1;
        made->path = strdup(path);
        made->packed = malloc(PACKED_BYTES);
    }
    if (made == NULL || made->path == NULL || made->packed == NULL) {
        hr_trace_input_close(&made);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to read it", path);
    }
    *input = made;
    return HR_OK;
}

hr_status hr_trace_input_open(const char *path, hr_trace_input **input, hr_error *error)
{
    hr_trace_input *made = NULL;
    hr_status status = make(path, &made, error);
    if (status != HR_OK)
        return status;
    made->fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (made->fd < 0) {
        int code = errno;
        status = hr_fail(error, code == ENOENT ? HR_E_NOT_FOUND : HR_E_IO, "%s: %s", path, strerror(code));
        if (error != NULL)
            error->code = code;
    }
    struct stat about;
    if (status == HR_OK && fstat(made->fd, &about) == 0 && S_ISDIR(about.st_mode))
        status = hr_fail(error, HR_E_FORMAT, "%s: is a folder, and a trace file is needed", path);
    if (status == HR_OK)
        status = look_at_head(made, error);
    if (status != HR_OK) {
        hr_trace_input_close(&made);
        return status;
    }
    *input = made;
    return HR_OK;
}

hr_status hr_trace_input_open_memory(const void *data, size_t bytes, const char *path, hr_trace_input **input,
                                     hr_error *error)
{
    hr_trace_input *made = NULL;
    hr_status status = make(path, &made, error);
    if (status != HR_OK)
        return status;
    made->memory = data;
    made->memory_left = bytes;
    status = look_at_head(made, error);
    if (status != HR_OK) {
        hr_trace_input_close(&made);
        return status;
    }
    *input = made;
    return HR_OK;
}

void hr_trace_input_close(hr_trace_input **input)
{
    hr_trace_input *old = *input;
    if (old == NULL)
        return;
    if (old->gzip)
        inflateEnd(&old->unpack);
    if (old->fd >= 0)
        close(old->fd);
    free(old->packed);
    free(old->path);
    free(old);
    *input = NULL;
}

bool hr_trace_input_is_file(const hr_trace_input *input)
{
    struct stat about;
    return input->fd >= 0 && strcmp(input->path, "-") != 0 && fstat(input->fd, &about) == 0 &&
           S_ISREG(about.st_mode);
}

const char *hr_trace_input_path(const hr_trace_input *input)
{
    return input->path;
}

size_t hr_trace_input_head(const hr_trace_input *input, const unsigned char **head)
{
    *head = input->head;
    return input->head_bytes;
}

/* What was read ahead first; after that straight to where it is wanted. */
static hr_status read_plain(hr_trace_input *input, char *at, size_t room, size_t *got, hr_error *error)
{
    size_t have = input->packed_end - input->packed_at;
    if (have == 0 && input->fd >= 0)
        return read_file(input, at, room, got, error);
    hr_status status = refill(input, error);
    if (status != HR_OK)
        return status;
    have = input->packed_end - input->packed_at;
    size_t bytes = have < room ? have : room;
    if (bytes != 0)
        memcpy(at, input->packed + input->packed_at, bytes);
    input->packed_at += bytes;
    *got = bytes;
    return HR_OK;
}

static hr_status damaged(hr_trace_input *input, hr_error *error)
{
    return hr_fail(error, HR_E_FORMAT, "%s: gzip data damaged near byte %llu: %s", input->path,
                   (unsigned long long)(input->offset - (input->packed_end - input->packed_at)),
                   input->unpack.msg != NULL ? input->unpack.msg : "not a gzip stream");
}

hr_status hr_trace_input_read(hr_trace_input *input, char *at, size_t room, size_t *got, hr_error *error)
{
    if (!input->gzip)
        return read_plain(input, at, room, got, error);
    z_stream *unpack = &input->unpack;
    unpack->next_out = (unsigned char *)at;
    unpack->avail_out = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
    uInt wanted = unpack->avail_out;
    while (unpack->avail_out == wanted) {
        hr_status status = refill(input, error);
        if (status != HR_OK)
            return status;
        if (input->packed_at == input->packed_end) {
            if (input->between_members)
                break;
            return hr_fail(error, HR_E_FORMAT, "%s: the gzip stream ends at byte %llu before its data does",
                           input->path, (unsigned long long)input->offset);
        }
        unpack->next_in = input->packed + input->packed_at;
        unpack->avail_in = (uInt)(input->packed_end - input->packed_at);
        input->between_members = false;
        int code = inflate(unpack, Z_NO_FLUSH);
        input->packed_at = input->packed_end - unpack->avail_in;
        if (code == Z_STREAM_END) {
            input->between_members = true;
            if (inflateReset(unpack) != Z_OK)
                return damaged(input, error);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            return damaged(input, error);
        }
    }
    *got = wanted - unpack->avail_out;
    return HR_OK;
}
