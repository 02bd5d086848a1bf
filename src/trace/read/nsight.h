/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of the Nsight reader share. */
#ifndef HR_TRACE_READ_NSIGHT_H
#define HR_TRACE_READ_NSIGHT_H

#include "trace/model/trace.h"

#include <sqlite3.h>

enum { HR_NSIGHT_ENUM = 32 };

/* CUDA_VISIBLE_DEVICES gives each process numbers of its own: which GPU a process means by a number. */
typedef struct hr_nsight_map {
    uint64_t pid, cuda_id, gpu_id;
} hr_nsight_map;

typedef struct hr_nsight {
    hr_trace *trace;
    sqlite3 *db;
    sqlite3_stmt *find_string;
    uint32_t *known; /* StringIds.id → string of the trace, HR_NONE: not looked up yet */
    size_t known_count;
    uint8_t memory[HR_NSIGHT_ENUM];    /* hr_memory by the file's number */
    uint8_t direction[HR_NSIGHT_ENUM]; /* hr_direction by the file's number */
    hr_nsight_map *map;
    size_t map_count;
} hr_nsight;

/* Takes one row; false: out of memory. */
typedef bool (*hr_nsight_row)(hr_nsight *from, sqlite3_stmt *row);

bool hr_nsight_has_table(hr_nsight *from, const char *table);
/* A statement that yields these columns in this order; those that the table lacks are NULL. */
HR_CHECKED hr_status hr_nsight_select(hr_nsight *from, const char *table, const char *const *columns,
                                      size_t count, sqlite3_stmt **statement, hr_error *error);
/* Hands every row to `row`. `timed`: the first two columns are a begin and an end, which must be times. HR_E_FORMAT: they are
 * not; the text names the table, the row and the value. */
HR_CHECKED hr_status hr_nsight_timed_rows(hr_nsight *from, const char *table, const char *const *columns,
                                          size_t count, bool timed, hr_nsight_row row, hr_error *error);
HR_CHECKED hr_status hr_nsight_rows(hr_nsight *from, const char *table, const char *const *columns,
                                    size_t count, hr_nsight_row row, hr_error *error);

/* What numbers mean in this file. */
HR_CHECKED hr_status hr_nsight_enums(hr_nsight *from, hr_error *error);
HR_CHECKED hr_status hr_nsight_devices(hr_nsight *from, hr_error *error);
/* Flags of streams, and which are default streams. */
HR_CHECKED hr_status hr_nsight_streams(hr_nsight *from, hr_error *error);
/* Names of processes and threads. */
HR_CHECKED hr_status hr_nsight_names(hr_nsight *from, hr_error *error);

#endif
