/* SPDX-License-Identifier: Apache-2.0 */
/* What several rules ask of a trace. */
#ifndef HR_TRACE_RULE_SUPPORT_H
#define HR_TRACE_RULE_SUPPORT_H

#include "trace/model/model.h"

#define HR_RULE_US INT64_C(1000)
#define HR_RULE_MS INT64_C(1000000)

/* A growing list of durations, for medians and percentiles. Zeroed memory is the empty list. */
typedef struct hr_durations {
    int64_t *at;
    size_t count, capacity;
} hr_durations;
HR_CHECKED hr_status hr_durations_add(hr_durations *list, int64_t ns);
/* Sorts; `percent` from 0 to 100; 0 for the empty list. */
int64_t hr_durations_percentile(hr_durations *list, double percent);
int64_t hr_durations_sum(const hr_durations *list);
void hr_durations_free(hr_durations *list);

/* Nanoseconds in words: "1.2 s", "3.4 ms", "56 µs". At least 24 bytes of room. Returns `text`. */
const char *hr_rule_time(int64_t ns, char text[24]);
/* Bytes in words, powers of 1000. Returns `text`. */
const char *hr_rule_bytes(uint64_t bytes, char text[24]);

/* Adds the event to the finding's repair and to its places. */
HR_CHECKED hr_status hr_rule_take(hr_finding *finding, const hr_trace *trace, uint32_t event,
                                  int64_t blocked_ns);
/* Adds an event to what a report highlights, beyond the repair. */
HR_CHECKED hr_status hr_rule_show(hr_finding *finding, uint32_t event);
/* The failure that every rule ends with when memory runs out. */
hr_status hr_rule_no_memory(const hr_trace *trace, hr_error *error);

/* Earliest time at which device work could have run: its call had submitted it and the work before it in its
 * stream was done. */
int64_t hr_rule_ready_ns(const hr_trace *trace, uint32_t work);
/* The work before it in its stream, or HR_NONE. */
uint32_t hr_rule_before_in_stream(const hr_trace *trace, uint32_t work);
/* The union of all device work. */
HR_CHECKED hr_status hr_rule_busy(const hr_trace *trace, hr_intervals *busy);
/* Do not judge one kind of missing fact twice: common answers for hr_rule.lacks. */
const char *hr_rule_lacks_calls(const hr_trace *trace);
const char *hr_rule_lacks_nothing(const hr_trace *trace);

#endif
