/* SPDX-License-Identifier: Apache-2.0 */
/* A regular file that several threads read at once, anywhere. */
#ifndef HR_IO_FILE_H
#define HR_IO_FILE_H

#include <headrace/status.h>
#include <stdbool.h>

typedef struct hr_file hr_file;

/*
 * Takes over `fd` (closed by hr_file_close(), and on failure). `bytes` is the file's length; files longer
 * than `direct_above` are read past the page cache where the file system can. `name` must outlive the file.
 * HR_E_HOST_MEMORY.
 */
hr_status hr_file_open(const char *name, int fd, uint64_t bytes, uint64_t direct_above, hr_file **file,
                       hr_error *error);
/* Reads exactly `bytes` at `offset`, blocking; any thread. HR_E_IO; HR_E_FORMAT if the file became shorter.
 */
hr_status hr_file_read(hr_file *file, uint64_t offset, void *buffer, uint64_t bytes, hr_error *error);
/* The buffers that reads will use. Before the first read; one thread. */
void hr_file_prepare(hr_file *file, void *const *buffers, const uint64_t *bytes, uint32_t count);
void hr_file_will_need(hr_file *file, uint64_t offset, uint64_t bytes);
uint64_t hr_file_bytes(const hr_file *file);
/* "io_uring", "pread threads"; static storage. */
const char *hr_file_method(const hr_file *file);
void hr_file_close(hr_file **file);

/* pread until all is there or the file ends; *got tells how much. Interruptions are retried. Returns an
 * errno. */
int hr_pread_all(int fd, void *buffer, uint64_t bytes, uint64_t offset, uint64_t *got);

#endif
