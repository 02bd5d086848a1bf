/* SPDX-License-Identifier: Apache-2.0 */
/* buffer-reuse: a host buffer is written while a copy still uses it. Design note: docs/audit/buffer-reuse.md.
 */
#include "trace/rule/order.h"
#include "trace/rule/rules.h"

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    return hr_order_judge(trace, HR_HAZARD_REFILL, "buffer-reuse",
                          "a host buffer is written by one copy while an earlier one still uses it",
                          "wait for the event recorded after the first copy before the buffer is used again, "
                          "or take one more buffer",
                          findings, error);
}

const hr_rule hr_rule_buffer_reuse = {
    .name = "buffer-reuse",
    .meaning = "a host buffer is written while a copy still uses it",
    .needs = "the addresses that copies touch, calls, streams and events",
    .lacks = hr_order_lacks,
    .check = check,
};
