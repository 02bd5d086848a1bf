/* SPDX-License-Identifier: Apache-2.0 */
#include "io/ring.h"

#include "base/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef HR_HAVE_URING
#include <liburing.h>

/* Buffers that can be registered at once, the stage among them. */
#define REGISTERED_MAX 65
/* Where direct reads that are not aligned land first. */
#define STAGE_BYTES (HR_RING_DEPTH * HR_RING_PIECE_BYTES)

typedef struct registered {
    const unsigned char *base;
    uint64_t bytes;
} registered;

struct hr_ring {
    struct io_uring uring;
    unsigned char *stage; /* null in rings for buffered reads */
    registered fixed[REGISTERED_MAX];
    uint32_t fixed_count;
};

/* One request's share of a read. It may take several rounds when the kernel reads less than it was asked for.
 */
typedef struct piece {
    uint64_t at; /* file position of the next byte that is missing */
    uint64_t end;
    unsigned char *to;
} piece;

/* A read in progress. Its life: while there are pieces to start, start them; wait for one; finish or repeat
 * it. After a failure nothing is started, and the read ends when nothing is in flight: the kernel still
 * writes to the buffers until then. */
typedef struct reading {
    hr_ring *ring;
    int fd;
    uint64_t align;         /* 1 for buffered reads */
    uint64_t next;          /* file position of the next piece to start */
    uint64_t stop;          /* where the last piece ends */
    uint64_t wanted, until; /* what the caller asked for; [next, stop) may be wider, to be aligned */
    unsigned char *buffer;  /* of `wanted` */
    bool staged;
    unsigned flying;
    uint64_t file_end; /* the least position at which the file was found to end */
    int errnum;
    piece pieces[HR_RING_DEPTH];
    bool used[HR_RING_DEPTH];
} reading;

int hr_ring_open(bool direct, hr_ring **ring)
{
    hr_ring *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return ENOMEM;
    }
    int error = io_uring_queue_init(HR_RING_DEPTH, &r->uring, 0);
    if (error == 0 && direct) {
        r->stage = aligned_alloc(HR_RING_ALIGN_MAX, STAGE_BYTES);
        if (r->stage == NULL) {
            io_uring_queue_exit(&r->uring);
            error = -ENOMEM;
        }
    }
    if (error < 0) {
        free(r);
        return -error;
    }
    *ring = r;
    return 0;
}

void hr_ring_close(hr_ring **ring)
{
    if (*ring != NULL) {
        io_uring_queue_exit(&(*ring)->uring);
        free((*ring)->stage);
        free(*ring);
        *ring = NULL;
    }
}

void hr_ring_register(hr_ring *ring, void *const *buffers, const uint64_t *bytes, uint32_t count)
{
    struct iovec vectors[REGISTERED_MAX];
    uint32_t n = 0;
    if (ring->stage != NULL) {
        vectors[n++] = (struct iovec){ring->stage, STAGE_BYTES};
    }
    for (uint32_t i = 0; i < count && n < REGISTERED_MAX; i++) {
        vectors[n++] = (struct iovec){buffers[i], bytes[i]};
    }
    /* Where all of it is too much to lock, the stage alone may still go. */
    while (n > 0 && io_uring_register_buffers(&ring->uring, vectors, n) != 0) {
        n = n > 1 && ring->stage != NULL ? 1 : 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        ring->fixed[i] = (registered){vectors[i].iov_base, vectors[i].iov_len};
    }
    ring->fixed_count = n;
}

static int registered_index(const hr_ring *ring, const unsigned char *to, uint64_t bytes)
{
    for (uint32_t i = 0; i < ring->fixed_count; i++) {
        const registered *r = &ring->fixed[i];
        if (to >= r->base && to + bytes <= r->base + r->bytes) {
            return (int)i;
        }
    }
    return -1;
}

static void ask(reading *r, unsigned slot)
{
    const piece *p = &r->pieces[slot];
    unsigned bytes = (unsigned)(p->end - p->at);
    /* There is always an entry: no more pieces than entries, and each is submitted before it is waited for.
     */
    struct io_uring_sqe *entry = io_uring_get_sqe(&r->ring->uring);
    int index = registered_index(r->ring, p->to, bytes);
    if (index >= 0) {
        io_uring_prep_read_fixed(entry, r->fd, p->to, bytes, p->at, index);
    } else {
        io_uring_prep_read(entry, r->fd, p->to, bytes, p->at);
    }
    io_uring_sqe_set_data64(entry, slot);
    r->used[slot] = true;
    r->flying++;
}

static void start_pieces(reading *r)
{
    for (unsigned slot = 0; slot < HR_RING_DEPTH && r->next < r->stop && r->errnum == 0; slot++) {
        if (r->used[slot]) {
            continue;
        }
        uint64_t end = hr_min_u64(r->stop, r->next + HR_RING_PIECE_BYTES);
        r->pieces[slot] = (piece){r->next, end,
                                  r->staged ? r->ring->stage + slot * HR_RING_PIECE_BYTES
                                            : r->buffer + (r->next - r->wanted)};
        r->next = end;
        ask(r, slot);
    }
}

/* A piece is as complete as it gets: takes what belongs to the caller out of the staging buffer. */
static void finish_piece(reading *r, unsigned slot)
{
    const piece *p = &r->pieces[slot];
    r->used[slot] = false;
    if (r->staged) {
        unsigned char *stage = r->ring->stage + slot * HR_RING_PIECE_BYTES;
        uint64_t begin = p->at - (uint64_t)(p->to - stage);
        uint64_t from = hr_max_u64(begin, r->wanted);
        uint64_t to = hr_min_u64(p->at, r->until);
        if (from < to) {
            memcpy(r->buffer + (from - r->wanted), stage + (from - begin), to - from);
        }
    }
}

static void take_answer(reading *r, unsigned slot, int result)
{
    piece *p = &r->pieces[slot];
    r->flying--;
    if (result == -EINTR || result == -EAGAIN) {
        if (r->errnum == 0) {
            ask(r, slot);
        }
        return;
    }
    if (result < 0) {
        r->errnum = r->errnum != 0 ? r->errnum : -result;
        r->used[slot] = false;
        return;
    }
    p->at += (uint64_t)result;
    p->to += result;
    /* A direct read that stops between two blocks has met the end; so has one that brings nothing. */
    if (result == 0 || p->at % r->align != 0) {
        r->file_end = hr_min_u64(r->file_end, p->at);
    } else if (p->at < p->end) {
        if (r->errnum == 0) {
            ask(r, slot);
        }
        return;
    }
    finish_piece(r, slot);
}

static int run(reading *r)
{
    struct io_uring *uring = &r->ring->uring;
    for (;;) {
        start_pieces(r);
        if (r->flying == 0) {
            return r->errnum;
        }
        int error = io_uring_submit_and_wait(uring, 1);
        if (error < 0 && error != -EINTR && error != -EAGAIN && error != -EBUSY) {
            r->errnum = r->errnum != 0 ? r->errnum : -error;
        }
        struct io_uring_cqe *answer;
        while (io_uring_peek_cqe(uring, &answer) == 0) {
            unsigned slot = (unsigned)io_uring_cqe_get_data64(answer);
            int result = answer->res;
            io_uring_cqe_seen(uring, answer);
            take_answer(r, slot, result);
        }
    }
}

static int finish_reading(reading *r, uint64_t *got)
{
    int errnum = run(r);
    if (errnum == 0) {
        uint64_t end = hr_min_u64(r->until, r->file_end);
        *got = end > r->wanted ? end - r->wanted : 0;
    }
    return errnum;
}

int hr_ring_read(hr_ring *ring, int fd, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got)
{
    reading r = {.ring = ring, .fd = fd, .align = 1, .next = offset, .stop = offset + bytes};
    r.wanted = offset;
    r.until = offset + bytes;
    r.buffer = buffer;
    r.file_end = UINT64_MAX;
    return finish_reading(&r, got);
}

int hr_ring_read_direct(hr_ring *ring, int fd, uint64_t align, uint64_t offset, void *buffer, uint64_t bytes,
                        uint64_t *got)
{
    reading r = {.ring = ring, .fd = fd, .align = align};
    r.next = offset / align * align;
    r.stop = hr_round_up(offset + bytes, align);
    r.wanted = offset;
    r.until = offset + bytes;
    r.buffer = buffer;
    r.file_end = UINT64_MAX;
    r.staged = offset % align != 0 || bytes % align != 0 || (uintptr_t)buffer % align != 0;
    if (r.staged && ring->stage == NULL) {
        return EINVAL;
    }
    return finish_reading(&r, got);
}

#else

int hr_ring_open(bool direct, hr_ring **ring)
{
    (void)direct;
    (void)ring;
    return ENOSYS;
}

void hr_ring_close(hr_ring **ring)
{
    *ring = NULL;
}

void hr_ring_register(hr_ring *ring, void *const *buffers, const uint64_t *bytes, uint32_t count)
{
    (void)ring;
    (void)buffers;
    (void)bytes;
    (void)count;
}

int hr_ring_read(hr_ring *ring, int fd, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got)
{
    (void)ring;
    (void)fd;
    (void)offset;
    (void)buffer;
    (void)bytes;
    (void)got;
    return ENOSYS;
}

int hr_ring_read_direct(hr_ring *ring, int fd, uint64_t align, uint64_t offset, void *buffer, uint64_t bytes,
                        uint64_t *got)
{
    (void)align;
    return hr_ring_read(ring, fd, offset, buffer, bytes, got);
}

#endif
