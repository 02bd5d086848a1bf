/* SPDX-License-Identifier: Apache-2.0 */
/* missing-dependency: two copies use the same device memory and nothing puts them in order. Design note:
 * docs/audit/missing-dependency.md. */
#include "trace/rule/order.h"
#include "trace/rule/rules.h"

static hr_status check(const hr_trace *trace, hr_findings *findings, hr_error *error)
{
    return hr_order_judge(
        trace, HR_HAZARD_DEVICE, "missing-dependency",
        "device memory is written by one copy while another reads or writes it, on another stream",
        "record an event after the first copy and let the second stream wait for it (cudaStreamWaitEvent)",
        findings, error);
}

const hr_rule hr_rule_missing_dependency = {
    .name = "missing-dependency",
    .meaning = "two copies use the same device memory and nothing puts them in order",
    .needs = "the addresses that copies touch, calls, streams and events",
    .lacks = hr_order_lacks,
    .check = check,
};
