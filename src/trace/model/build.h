/* SPDX-License-Identifier: Apache-2.0 */
/* Look-up tables that live while a trace is read. */
#ifndef HR_TRACE_MODEL_BUILD_H
#define HR_TRACE_MODEL_BUILD_H

#include "trace/model/trace.h"

typedef struct hr_table_slot {
    uint64_t hash;
    uint32_t value; /* 0: empty; otherwise the index plus one */
} hr_table_slot;

typedef struct hr_table {
    hr_table_slot *at;
    size_t slots, count; /* slots: a power of two */
} hr_table;

struct hr_trace_index {
    hr_table strings, things;
};

void hr_trace_index_free(hr_trace *trace);

#endif
