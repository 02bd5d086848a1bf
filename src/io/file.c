/* SPDX-License-Identifier: Apache-2.0 */
#include "io/file.h"

#include "base/checked.h"
#include "io/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* Linux moves at most 0x7ffff000 bytes a call. */
#define CALL_LIMIT (UINT64_C(1) << 30)

struct hr_file {
    const char *name;
    int fd;
    uint64_t bytes;
};

int hr_pread_all(int fd, void *buffer, uint64_t bytes, uint64_t offset, uint64_t *got)
{
    uint64_t done = 0;
    while (done < bytes) {
        ssize_t n = pread(fd, (unsigned char *)buffer + done, hr_min_u64(bytes - done, CALL_LIMIT),
                          (off_t)(offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno;
        }
        if (n == 0) {
            break;
        }
        done += (uint64_t)n;
    }
    *got = done;
    return 0;
}

hr_status hr_file_open(const char *name, int fd, uint64_t bytes, uint64_t direct_above, hr_file **file,
                       hr_error *error)
{
    (void)direct_above;
    hr_file *f = calloc(1, sizeof *f);
    if (f == NULL) {
        close(fd);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for a reader", name);
    }
    f->name = name;
    f->fd = fd;
    f->bytes = bytes;
    *file = f;
    return HR_OK;
}

hr_status hr_file_read(hr_file *file, uint64_t offset, void *buffer, uint64_t bytes, hr_error *error)
{
    uint64_t got = 0;
    int errnum = hr_pread_all(file->fd, buffer, bytes, offset, &got);
    if (errnum != 0) {
        return hr_io_fail(error, errnum, file->name, "read");
    }
    if (got < bytes) {
        return hr_fail(error, HR_E_FORMAT,
                       "%s: the file became shorter while it was read: %" PRIu64
                       " bytes are needed, it ends at %" PRIu64,
                       file->name, file->bytes, offset + got);
    }
    return HR_OK;
}

void hr_file_prepare(hr_file *file, void *const *buffers, const uint64_t *bytes, uint32_t count)
{
    (void)file;
    (void)buffers;
    (void)bytes;
    (void)count;
}

void hr_file_will_need(hr_file *file, uint64_t offset, uint64_t bytes)
{
    (void)posix_fadvise(file->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}

uint64_t hr_file_bytes(const hr_file *file)
{
    return file->bytes;
}

const char *hr_file_method(const hr_file *file)
{
    (void)file;
    return "pread threads";
}

void hr_file_close(hr_file **file)
{
    if (*file != NULL) {
        close((*file)->fd);
        free(*file);
        *file = NULL;
    }
}
