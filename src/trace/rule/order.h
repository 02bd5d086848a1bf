/* SPDX-License-Identifier: Apache-2.0 */
/* Which copies on the same memory nothing puts in order: what the rules on wrong data have in common. */
#ifndef HR_TRACE_RULE_ORDER_H
#define HR_TRACE_RULE_ORDER_H

#include "trace/rule/support.h"

typedef enum hr_hazard {
    HR_HAZARD_DEVICE = 0, /* device memory: one writes what the other reads or writes */
    HR_HAZARD_REFILL,     /* host memory: written while an earlier copy still reads or writes it */
    HR_HAZARD_EARLY       /* host memory: read while an earlier copy still writes it */
} hr_hazard;

/*
 * Finds pairs of copies on overlapping memory with no path from the first to the second by streams, events,
 * waits of the host and the default stream's rules. Host threads count as ordered by time, since what they
 * tell each other is not in a trace: this can miss a race between threads and never invents one. Calls `each`
 * for every pair of the kind `hazard`; a failure that it returns ends the search.
 */
HR_CHECKED hr_status hr_order_hazards(const hr_trace *trace, hr_hazard hazard,
                                      hr_status (*each)(void *user, uint32_t first, uint32_t second),
                                      void *user);

/* What the three rules do with the pairs: one finding, with `what` in its text and `fix`. */
HR_CHECKED hr_status hr_order_judge(const hr_trace *trace, hr_hazard hazard, const char *rule,
                                    const char *what, const char *fix, hr_findings *findings,
                                    hr_error *error);
/* Null when the trace names the memory that copies touch. */
const char *hr_order_lacks(const hr_trace *trace);

#endif
