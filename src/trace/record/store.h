/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was recorded, until the program ends. Every thread of the program writes calls to chunks of its own;
 * device work comes from CUPTI's thread. Nothing is freed before the file is written, so a chunk may be read
 * once its `count` is seen.
 */
#ifndef HR_TRACE_RECORD_STORE_H
#define HR_TRACE_RECORD_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct hr_call_record {
    uint64_t begin_ns, end_ns;
    uint64_t correlation;
    uint64_t object; /* event handle, or an address that was taken or freed */
    uint64_t bytes;  /* of an allocation */
    uint64_t source_address, sink_address;
    const char *name; /* static storage, CUPTI's */
    uint32_t stream, device, context;
    bool has_stream, driver;
} hr_call_record;

typedef struct hr_work_record {
    uint64_t begin_ns, end_ns;
    uint64_t bytes;
    const char *name; /* of a kernel; owned by the store */
    uint32_t correlation;
    uint32_t device, context, stream;
    uint8_t kind; /* CUpti_ActivityKind, which fits */
    uint8_t copy_kind, source, sink;
} hr_work_record;

enum { HR_RECORD_CHUNK = 1024 };

typedef struct hr_call_chunk {
    struct hr_call_chunk *next;
    pid_t thread;
    atomic_uint count;
    hr_call_record at[HR_RECORD_CHUNK];
} hr_call_chunk;

typedef struct hr_work_chunk {
    struct hr_work_chunk *next;
    unsigned count;
    hr_work_record at[HR_RECORD_CHUNK];
} hr_work_chunk;

/* A place for one more call of this thread, to be followed by hr_store_call_done(). Null: the limit is
 * reached or memory ran out; it is counted as lost. */
hr_call_record *hr_store_call(void);
void hr_store_call_done(void);
/* From CUPTI's thread only. Null as above. */
hr_work_record *hr_store_work(void);
/* A copy of `name` that lives as long as the store. Never null. CUPTI's thread only. */
const char *hr_store_name(const char *name);

/* For the writer. */
hr_call_chunk *hr_store_calls(void);
hr_work_chunk *hr_store_works(void);
uint64_t hr_store_lost(void);
/* Events kept at most; beyond it they are counted as lost. */
void hr_store_limit(uint64_t events);

#endif
