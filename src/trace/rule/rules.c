/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/rule/rules.h"

#include <string.h>

/* The environment first, then lost time, then wrong data: the order in which they are told. */
static const hr_rule *const rules[] = {
    &hr_rule_profiler,           &hr_rule_pageable_copy, &hr_rule_sync_copy,
    &hr_rule_sync_call,          &hr_rule_same_stream,   &hr_rule_alloc_in_loop,
    &hr_rule_tiny_copies,        &hr_rule_sync_memset,   &hr_rule_null_stream,
    &hr_rule_pin_churn,          &hr_rule_copy_shape,    &hr_rule_head_of_line,
    &hr_rule_host_staging,       &hr_rule_cpu_feeder,    &hr_rule_lazy_load,
    &hr_rule_resource_churn,     &hr_rule_queue_full,    &hr_rule_driver_lock,
    &hr_rule_false_dependency,   &hr_rule_issue_order,   &hr_rule_sm_full,
    &hr_rule_managed_fault,      &hr_rule_peer_via_host, &hr_rule_link_slow,
    &hr_rule_missing_dependency, &hr_rule_event_misuse,  &hr_rule_buffer_reuse,
    &hr_rule_read_early,
};

const hr_rule *const *hr_rules(uint32_t *count)
{
    *count = sizeof rules / sizeof rules[0];
    return rules;
}

const hr_rule *hr_rule_find(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i]->name, name) == 0)
            return rules[i];
    }
    return NULL;
}
