/* SPDX-License-Identifier: Apache-2.0 */
/* Reads through io_uring, several requests in flight. One thread at a time; hr_file keeps one a reading
 * thread. */
#ifndef HR_IO_RING_H
#define HR_IO_RING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hr_ring hr_ring;

/* The most that one request reads, and how many are in flight. */
#define HR_RING_PIECE_BYTES (UINT64_C(512) << 10)
#define HR_RING_DEPTH       8
#define HR_RING_ALIGN_MAX   (UINT64_C(64) << 10)

/*
 * A ring for direct reads has staging memory of its own. Returns 0 or an errno: ENOSYS where this build or
 * kernel has no io_uring, EPERM where it is forbidden, ENOMEM.
 */
int hr_ring_open(bool direct, hr_ring **ring);
void hr_ring_close(hr_ring **ring);

/*
 * Registers the staging memory, and the buffers that reads will use, with the kernel. Once, before the first
 * read. Without effect where the kernel refuses (it locks them, and there is a limit on that).
 */
void hr_ring_register(hr_ring *ring, void *const *buffers, const uint64_t *bytes, uint32_t count);

/* Reads [offset, offset + bytes) into `buffer`, blocking; *got is less only where the file ends. Returns an
 * errno. */
int hr_ring_read(hr_ring *ring, int fd, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got);

/*
 * The same for a file opened with O_DIRECT, whose requests must start and end at multiples of `align` (a
 * power of two of at most HR_RING_ALIGN_MAX). Goes straight into `buffer` where that is aligned as the file
 * is, and through the staging memory otherwise.
 */
int hr_ring_read_direct(hr_ring *ring, int fd, uint64_t align, uint64_t offset, void *buffer, uint64_t bytes,
                        uint64_t *got);

#endif
