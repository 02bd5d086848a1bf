/* SPDX-License-Identifier: Apache-2.0 */
/* A pipe, terminal or other file without positions: read once, front to back, or written so. One thread at a
 * time, except for interrupt. */
#ifndef HR_IO_STREAM_H
#define HR_IO_STREAM_H

#include <headrace/status.h>
#include <stdbool.h>

typedef struct hr_io_stream hr_io_stream;

/* Takes over `fd`, also on failure. `name` must outlive the stream. HR_E_HOST_MEMORY, HR_E_IO. */
hr_status hr_io_stream_open(const char *name, int fd, hr_io_stream **stream, hr_error *error);
void hr_io_stream_close(hr_io_stream **stream);

/* Looks ahead, without taking, at up to `bytes` bytes (at most HR_STREAM_PEEK_LIMIT); fewer only at the end.
 */
#define HR_STREAM_PEEK_LIMIT (UINT64_C(128) << 10)
hr_status hr_io_stream_peek(hr_io_stream *stream, uint64_t bytes, const unsigned char **ahead, uint64_t *have,
                            hr_error *error);
/* Takes up to `bytes`, blocking; fewer only at the end. HR_E_IO, HR_E_CANCELLED. */
hr_status hr_io_stream_read(hr_io_stream *stream, void *buffer, uint64_t bytes, uint64_t *got,
                            hr_error *error);
/* Reads to the end into memory that the caller frees. HR_E_RANGE if there is more than `limit`. */
hr_status hr_io_stream_read_to_end(hr_io_stream *stream, uint64_t limit, void **data, uint64_t *bytes,
                                   hr_error *error);
/* Writes all, blocking. HR_E_IO (a reader that went away, too), HR_E_CANCELLED. */
hr_status hr_io_stream_write(hr_io_stream *stream, const void *buffer, uint64_t bytes, hr_error *error);
/* Ends calls that block, and all later ones, with HR_E_CANCELLED. Any thread. */
void hr_io_stream_interrupt(hr_io_stream *stream);

#endif
