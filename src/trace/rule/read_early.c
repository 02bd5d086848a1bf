/* SPDX-License-Identifier: Apache-2.0 */
/* read-early: a host buffer is read while a copy still writes it. Design note: docs/audit/read-early.md. */
#include "trace/rule/order.h"
#include "trace/rule/rules.h"

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    return hr_order_judge(
        trace, HR_HAZARD_EARLY, "read-early",
        "a host buffer is read by one copy while an earlier one still writes it",
        "let the second stream wait for an event recorded after the first copy, or wait for it on the host",
        findings, error);
}

const hr_rule hr_rule_read_early = {
    .name = "read-early",
    .meaning = "a host buffer is read while a copy still writes it",
    .needs = "the addresses that copies touch, calls, streams and events",
    .lacks = hr_order_lacks,
    .check = check,
};
