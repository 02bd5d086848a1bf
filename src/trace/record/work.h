/* SPDX-License-Identifier: Apache-2.0 */
/* Device work, as CUPTI hands it over in buffers. */
#ifndef HR_TRACE_RECORD_WORK_H
#define HR_TRACE_RECORD_WORK_H

#include "trace/record/cupti_api.h"

/* A stream's flag and a device's name, for the file. */
typedef struct hr_stream_record {
    uint32_t context, stream;
    const char *flag; /* "blocking", "non-blocking", "null" */
} hr_stream_record;

typedef struct hr_device_record {
    uint32_t device;
    const char *name;
} hr_device_record;

enum { HR_RECORD_STREAMS = 1024, HR_RECORD_DEVICES = 64 };

typedef struct hr_work_facts {
    hr_stream_record streams[HR_RECORD_STREAMS];
    hr_device_record devices[HR_RECORD_DEVICES];
    uint32_t stream_count, device_count;
    uint64_t dropped;
} hr_work_facts;

/* Starts recording device work. `cupti` must live on. False: CUPTI refused. */
bool hr_work_start(const hr_cupti *cupti);
/* Waits until CUPTI has handed over everything. */
void hr_work_flush(void);
const hr_work_facts *hr_work_get_facts(void);

#endif
