/* SPDX-License-Identifier: Apache-2.0 */
/* The list of rules. Each stands in a file of its own, named after it, with its design note in docs/audit/.
 */
#ifndef HR_TRACE_RULE_RULES_H
#define HR_TRACE_RULE_RULES_H

#include "trace/model/model.h"

/* In the order of the documentation; *count of them. Static storage. */
const hr_rule *const *hr_rules(uint32_t *count);
/* Null if there is none of that name. */
const hr_rule *hr_rule_find(const char *name);

extern const hr_rule hr_rule_pageable_copy;
extern const hr_rule hr_rule_sync_copy;
extern const hr_rule hr_rule_sync_call;
extern const hr_rule hr_rule_same_stream;
extern const hr_rule hr_rule_alloc_in_loop;
extern const hr_rule hr_rule_tiny_copies;
extern const hr_rule hr_rule_cpu_feeder;
extern const hr_rule hr_rule_copy_shape;
extern const hr_rule hr_rule_driver_lock;
extern const hr_rule hr_rule_false_dependency;
extern const hr_rule hr_rule_head_of_line;
extern const hr_rule hr_rule_host_staging;
extern const hr_rule hr_rule_issue_order;
extern const hr_rule hr_rule_lazy_load;
extern const hr_rule hr_rule_link_slow;
extern const hr_rule hr_rule_managed_fault;
extern const hr_rule hr_rule_null_stream;
extern const hr_rule hr_rule_peer_via_host;
extern const hr_rule hr_rule_pin_churn;
extern const hr_rule hr_rule_profiler;
extern const hr_rule hr_rule_queue_full;
extern const hr_rule hr_rule_resource_churn;
extern const hr_rule hr_rule_sm_full;
extern const hr_rule hr_rule_sync_memset;
extern const hr_rule hr_rule_event_misuse;
extern const hr_rule hr_rule_missing_dependency;
extern const hr_rule hr_rule_buffer_reuse;
extern const hr_rule hr_rule_read_early;

#endif
