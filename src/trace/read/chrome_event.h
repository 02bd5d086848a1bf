/* SPDX-License-Identifier: Apache-2.0 */
/* One event of a Chrome JSON trace: scanned, told what it is, and kept when it matters. */
#ifndef HR_TRACE_READ_CHROME_EVENT_H
#define HR_TRACE_READ_CHROME_EVENT_H

#include "trace/model/trace.h"
#include "trace/read/json.h"

/* A range that was begun ("B") and not ended yet; `event` is HR_NONE where it is of no interest. */
typedef struct hr_chrome_open {
    uint64_t pid, tid;
    uint32_t event;
} hr_chrome_open;

typedef struct hr_chrome_args {
    hr_json_text name, kind, sync_kind;
    uint64_t device, context, stream, correlation, bytes, event_id, waits_for, source_address, sink_address;
    uint64_t process; /* the host process whose stream it is, which "pid" does not say of device work */
    bool has_device, has_stream, has_process;
} hr_chrome_args;

typedef struct hr_chrome {
    hr_trace *trace;
    hr_chrome_open *open;
    size_t open_count, open_capacity;
    /* The event that was scanned last; its texts point into the window. */
    char phase;
    uint8_t kind; /* hr_event_kind, or HR_CHROME_UNKNOWN, HR_CHROME_SKIPPED */
    hr_json_text category, name, id, pid, tid, begin, duration;
    hr_chrome_args args;
} hr_chrome;

enum { HR_CHROME_UNKNOWN = 100, HR_CHROME_SKIPPED };

/* Scans an event into *chrome. False as the functions of json.h: cut off, or no event. */
bool hr_chrome_scan(hr_json *json, hr_chrome *chrome);
/* Keeps the scanned event, if it is of interest. HR_E_FORMAT names what is wrong with it; HR_E_HOST_MEMORY.
 */
HR_CHECKED hr_status hr_chrome_keep(hr_chrome *chrome, uint64_t offset, hr_error *error);
/* Kineto's list of devices. */
bool hr_chrome_scan_devices(hr_json *json, hr_chrome *chrome);
/* Closes ranges that were never ended, and frees what scanning needed. */
void hr_chrome_end(hr_chrome *chrome);

#endif
