/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ways lead to a file's bytes, and a read takes the first that fits:
 *
 *   direct    Files larger than the memory that is free are read past the page cache, which they would only
 * empty: O_DIRECT through a ring, or by pread into staging memory where there is no io_uring. cached Whatever
 * the page cache holds is copied at once, in the reading thread (RWF_NOWAIT). Nothing is faster, and several
 * threads do it at once. missing   From the first byte that is not cached, the rest of the read goes through
 * a ring, in pieces that are all in flight together, and the kernel is asked to fetch what follows.
 *
 * Rings are made as threads need them and kept in a list until the file is closed. HEADRACE_IO=pread does
 * without rings, HEADRACE_IO=uring sends every read through one.
 */
#include "io/file.h"

#include "base/checked.h"
#include "host/topology.h"
#include "io/fail.h"
#include "io/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Linux moves at most 0x7ffff000 bytes a call. */
#define CALL_LIMIT (UINT64_C(1) << 30)
/* Smaller files are not worth a ring. */
#define RING_ABOVE_BYTES (UINT64_C(1) << 20)
#define RINGS_MAX        64
#define BUFFERS_MAX      64
/* What any device's blocks divide, for file systems that do not tell. */
#define DIRECT_ALIGN UINT64_C(4096)
/* Blocks larger than this are not read directly; staging memory starts at a multiple of it. */
#define DIRECT_ALIGN_MAX HR_RING_ALIGN_MAX
/* What is fetched ahead of a read that was not cached. */
#define AHEAD_BYTES (UINT64_C(8) << 20)

struct hr_file {
    const char *name;
    int fd;
    int direct_fd; /* −1: through the page cache */
    uint64_t direct_align;
    uint64_t bytes;
    bool use_rings;
    bool all_by_ring; /* what HEADRACE_IO=uring asks for */
    pthread_mutex_t lock;
    hr_ring *idle[RINGS_MAX]; /* the rings that no thread uses now */
    uint32_t idle_count;
    uint32_t ring_count;
    void *buffers[BUFFERS_MAX];
    uint64_t buffer_bytes[BUFFERS_MAX];
    uint32_t buffer_count;
    atomic_uint_fast64_t ahead; /* how far the kernel was asked to fetch */
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

/* ---- rings ---- */

/* A ring that this thread has for itself until it is put back; null where there is none to be had. */
static hr_ring *take_ring(hr_file *file)
{
    pthread_mutex_lock(&file->lock);
    hr_ring *ring = file->idle_count > 0 ? file->idle[--file->idle_count] : NULL;
    bool make = ring == NULL && file->use_rings && file->ring_count < RINGS_MAX;
    file->ring_count += make;
    pthread_mutex_unlock(&file->lock);
    if (!make) {
        return ring;
    }
    bool direct = file->direct_fd >= 0;
    if (hr_ring_open(direct, &ring) != 0) {
        pthread_mutex_lock(&file->lock);
        file->ring_count--;
        file->use_rings = false;
        pthread_mutex_unlock(&file->lock);
        return NULL;
    }
    if (direct) {
        hr_ring_register(ring, file->buffers, file->buffer_bytes, file->buffer_count);
    }
    return ring;
}

static void put_ring(hr_file *file, hr_ring *ring)
{
    pthread_mutex_lock(&file->lock);
    file->idle[file->idle_count++] = ring;
    pthread_mutex_unlock(&file->lock);
}

/* ---- direct ---- */

/* A second opening of the same file, since O_DIRECT belongs to the opening. −1 where the file system has
 * none. */
static int open_direct(int fd, uint64_t *align)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    int direct = open(self, O_RDONLY | O_DIRECT | O_CLOEXEC);
    *align = DIRECT_ALIGN;
#ifdef STATX_DIOALIGN
    struct statx st;
    if (direct >= 0 && statx(direct, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) == 0 &&
        (st.stx_mask & STATX_DIOALIGN) != 0 && st.stx_dio_offset_align != 0) {
        *align = hr_max_u64(st.stx_dio_offset_align, st.stx_dio_mem_align);
    }
#endif
    if (direct >= 0 && *align > DIRECT_ALIGN_MAX) {
        close(direct);
        return -1;
    }
    return direct;
}

/* Without io_uring: one request after the other, through staging memory. */
static int pread_direct(const hr_file *file, uint64_t offset, unsigned char *buffer, uint64_t bytes,
                        uint64_t *got)
{
    unsigned char *stage = aligned_alloc(DIRECT_ALIGN_MAX, HR_RING_PIECE_BYTES);
    if (stage == NULL) {
        return ENOMEM;
    }
    uint64_t done = 0;
    int errnum = 0;
    while (done < bytes && errnum == 0) {
        uint64_t start = (offset + done) / file->direct_align * file->direct_align;
        uint64_t skip = offset + done - start;
        uint64_t ask = hr_min_u64(HR_RING_PIECE_BYTES, hr_round_up(skip + bytes - done, file->direct_align));
        ssize_t n = pread(file->direct_fd, stage, ask, (off_t)start);
        if (n < 0) {
            errnum = errno == EINTR ? 0 : errno;
        } else if ((uint64_t)n <= skip) {
            break;
        } else {
            uint64_t take = hr_min_u64((uint64_t)n - skip, bytes - done);
            memcpy(buffer + done, stage + skip, take);
            done += take;
        }
    }
    free(stage);
    *got = done;
    return errnum;
}

static int read_direct(hr_file *file, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got)
{
    hr_ring *ring = take_ring(file);
    if (ring == NULL) {
        return pread_direct(file, offset, buffer, bytes, got);
    }
    int errnum = hr_ring_read_direct(ring, file->direct_fd, file->direct_align, offset, buffer, bytes, got);
    put_ring(file, ring);
    return errnum;
}

/* ---- through the page cache ---- */

/* Copies what is cached, from the start of the range up to the first byte that is not. */
static uint64_t read_cached(const hr_file *file, uint64_t offset, unsigned char *buffer, uint64_t bytes)
{
    uint64_t done = 0;
    while (done < bytes) {
        struct iovec vector = {buffer + done, hr_min_u64(bytes - done, CALL_LIMIT)};
        ssize_t n = preadv2(file->fd, &vector, 1, (off_t)(offset + done), RWF_NOWAIT);
        if (n <= 0) {
            break;
        }
        done += (uint64_t)n;
    }
    return done;
}

/* The file is not cached here, so it will not be further on: lets the device work while this read is waited
 * for. */
static void fetch_ahead(hr_file *file, uint64_t from)
{
    uint64_t ahead = atomic_load(&file->ahead);
    uint64_t until = hr_min_u64(from + AHEAD_BYTES, file->bytes);
    if (ahead >= from + AHEAD_BYTES / 2 && ahead <= from + 4 * AHEAD_BYTES) {
        return;
    }
    if (until > from && atomic_compare_exchange_strong(&file->ahead, &ahead, until)) {
        (void)posix_fadvise(file->fd, (off_t)from, (off_t)(until - from), POSIX_FADV_WILLNEED);
    }
}

static int read_buffered(hr_file *file, uint64_t offset, unsigned char *buffer, uint64_t bytes, uint64_t *got)
{
    uint64_t done = 0;
    if (!file->all_by_ring) {
        done = read_cached(file, offset, buffer, bytes);
        if (done == bytes) {
            *got = done;
            return 0;
        }
        fetch_ahead(file, offset + bytes);
    }
    hr_ring *ring = take_ring(file);
    uint64_t rest = 0;
    int errnum;
    if (ring == NULL) {
        errnum = hr_pread_all(file->fd, buffer + done, bytes - done, offset + done, &rest);
    } else {
        errnum = hr_ring_read(ring, file->fd, offset + done, buffer + done, bytes - done, &rest);
        put_ring(file, ring);
    }
    *got = done + rest;
    return errnum;
}

/* ---- the interface ---- */

hr_status hr_file_open(const char *name, int fd, uint64_t bytes, uint64_t direct_above, hr_file **file,
                       hr_error *error)
{
    hr_file *f = calloc(1, sizeof *f);
    if (f == NULL) {
        close(fd);
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for a reader", name);
    }
    const char *wish = getenv("HEADRACE_IO");
    f->name = name;
    f->fd = fd;
    f->direct_fd = -1;
    f->bytes = bytes;
    f->all_by_ring = wish != NULL && strcmp(wish, "uring") == 0;
    f->use_rings =
        f->all_by_ring || (bytes >= RING_ABOVE_BYTES && (wish == NULL || strcmp(wish, "pread") != 0));
    atomic_init(&f->ahead, 0);
    pthread_mutex_init(&f->lock, NULL);
    if (direct_above == 0) {
        uint64_t total_bytes;
        hr_host_memory_room(&total_bytes, &direct_above);
    }
    if (bytes > direct_above) {
        f->direct_fd = open_direct(fd, &f->direct_align);
    }
    if (f->use_rings) {
        /* Tells whether there is io_uring at all. */
        hr_ring *ring = take_ring(f);
        if (ring != NULL) {
            put_ring(f, ring);
        }
    }
    *file = f;
    return HR_OK;
}

hr_status hr_file_read(hr_file *file, uint64_t offset, void *buffer, uint64_t bytes, hr_error *error)
{
    uint64_t got = 0;
    int errnum = EINVAL;
    if (file->direct_fd >= 0) {
        errnum = read_direct(file, offset, buffer, bytes, &got);
    }
    /* Some file systems open files for direct reads and refuse them later. */
    if (errnum == EINVAL) {
        errnum = read_buffered(file, offset, buffer, bytes, &got);
    }
    if (errnum != 0) {
        char doing[64];
        snprintf(doing, sizeof doing, "read at offset %" PRIu64, offset);
        return hr_io_fail(error, errnum, file->name, doing);
    }
    if (got < bytes) {
        return hr_fail(error, HR_E_FORMAT,
                       "%s: the file became shorter while it was read: it had %" PRIu64
                       " bytes and ends at %" PRIu64,
                       file->name, file->bytes, offset + got);
    }
    return HR_OK;
}

void hr_file_prepare(hr_file *file, void *const *buffers, const uint64_t *bytes, uint32_t count)
{
    pthread_mutex_lock(&file->lock);
    file->buffer_count = count < BUFFERS_MAX ? count : BUFFERS_MAX;
    for (uint32_t i = 0; i < file->buffer_count; i++) {
        file->buffers[i] = buffers[i];
        file->buffer_bytes[i] = bytes[i];
    }
    /* Rings from before know nothing of these buffers. */
    while (file->idle_count > 0) {
        hr_ring_close(&file->idle[--file->idle_count]);
        file->ring_count--;
    }
    pthread_mutex_unlock(&file->lock);
}

void hr_file_will_need(hr_file *file, uint64_t offset, uint64_t bytes)
{
    if (file->direct_fd < 0) {
        (void)posix_fadvise(file->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
    }
}

uint64_t hr_file_bytes(const hr_file *file)
{
    return file->bytes;
}

const char *hr_file_method(const hr_file *file)
{
    if (file->direct_fd >= 0) {
        return file->use_rings ? "io_uring, direct" : "pread threads, direct";
    }
    return file->use_rings ? "io_uring" : "pread threads";
}

void hr_file_close(hr_file **file)
{
    hr_file *f = *file;
    if (f == NULL) {
        return;
    }
    for (uint32_t i = 0; i < f->idle_count; i++) {
        hr_ring_close(&f->idle[i]);
    }
    if (f->direct_fd >= 0) {
        close(f->direct_fd);
    }
    close(f->fd);
    pthread_mutex_destroy(&f->lock);
    free(f);
    *file = NULL;
}
