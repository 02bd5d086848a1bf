/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit must say of real traces, and must not. Through the public interface. */
#include "support/traces.h"

#include <headrace/trace.h>

#include <math.h>
#include <string.h>

static hr_audit *open_audit(const char *name)
{
    hr_error error = HR_ERROR_INIT;
    hr_audit *audit = NULL;
    const char *path = trace_path_or_skip(name);
    if (hr_audit_open(path, NULL, &audit, &error) != HR_OK)
        fail_msg("%s", error.text);
    return audit;
}

static hr_audit_summary summary_of(const hr_audit *audit)
{
    hr_audit_summary summary = {.size = sizeof summary};
    hr_audit_get_summary(audit, &summary);
    return summary;
}

/* The first finding of the rule. False: there is none. */
static bool find(const hr_audit *audit, const char *rule, hr_audit_finding *finding)
{
    for (uint32_t i = 0; i < hr_audit_finding_count(audit); i++) {
        finding->size = sizeof *finding;
        assert_int_equal(hr_audit_get_finding(audit, i, finding), HR_OK);
        if (strcmp(finding->rule, rule) == 0)
            return true;
    }
    return false;
}

static bool has_defect(const hr_audit *audit, const char *rule)
{
    hr_audit_finding finding;
    return find(audit, rule, &finding) && finding.kind == HR_AUDIT_DEFECT;
}

static uint32_t defects(const hr_audit *audit)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < hr_audit_finding_count(audit); i++) {
        hr_audit_finding finding = {.size = sizeof finding};
        assert_int_equal(hr_audit_get_finding(audit, i, &finding), HR_OK);
        count += finding.kind == HR_AUDIT_DEFECT;
    }
    return count;
}

static void near_ms(int64_t found_ns, double wanted_ms, double percent)
{
    if (fabs((double)found_ns / 1e6 - wanted_ms) > wanted_ms * percent / 100.0)
        fail_msg("%.3f ms is more than %g %% from %.3f ms", (double)found_ns / 1e6, percent, wanted_ms);
}

/* Of every trace: the replay is right to 2 %, costs add up to what is gained, and nothing gets slower. */
static void costs_never_exceed_what_is_gained(void **state)
{
    hr_audit *audit = open_audit(*state);
    hr_audit_summary summary = summary_of(audit);
    near_ms(summary.replayed_ns, (double)summary.span_ns / 1e6, 2.0);
    assert_true(summary.all_fixed_ns <= summary.span_ns);
    assert_true(summary.bound_ns <= summary.all_fixed_ns);
    int64_t sum = 0;
    for (uint32_t i = 0; i < hr_audit_finding_count(audit); i++) {
        hr_audit_finding finding = {.size = sizeof finding};
        assert_int_equal(hr_audit_get_finding(audit, i, &finding), HR_OK);
        assert_true(finding.cost_ns >= 0);
        assert_true(finding.after_ns >= summary.all_fixed_ns && finding.after_ns <= summary.span_ns);
        sum += finding.cost_ns;
    }
    assert_true(sum <= summary.span_ns - summary.all_fixed_ns);
    hr_audit_close(&audit);
    assert_null(audit);
}

static void pageable_input_is_named_with_both_its_repairs(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h200_in_pageable_one_stream.json.gz");
    hr_audit_finding finding;
    hr_audit_summary summary = summary_of(audit);
    assert_int_equal(summary.verdict, HR_AUDIT_FOUND);
    assert_true(find(audit, "pageable-copy", &finding));
    assert_int_equal(finding.kind, HR_AUDIT_DEFECT);
    assert_int_equal(finding.count, 40);
    assert_int_equal(finding.bytes, UINT64_C(40) * 67108864);
    near_ms(finding.after_ns, 103.9, 5.0);
    assert_non_null(strstr(finding.fix, "pin_memory"));
    assert_true(has_defect(audit, "same-stream"));
    near_ms(summary.all_fixed_ns, 56.4, 5.0);
    assert_string_equal(summary.bound, "compute");
    hr_audit_close(&audit);
}

static void one_stream_is_named(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h200_in_pinned_one_stream.json.gz");
    hr_audit_finding finding;
    assert_true(find(audit, "same-stream", &finding));
    assert_int_equal(finding.kind, HR_AUDIT_DEFECT);
    near_ms(finding.after_ns, 56.4, 5.0);
    assert_int_equal(defects(audit), 1);
    hr_audit_close(&audit);
}

static void a_good_ring_is_clean(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h200_in_pinned_ring.json.gz");
    assert_int_equal(summary_of(audit).verdict, HR_AUDIT_CLEAN);
    assert_int_equal(defects(audit), 0);
    hr_audit_close(&audit);
}

static void a_wait_after_each_batch_is_named(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h200_in_pinned_ring_sync_each.json.gz");
    hr_audit_finding finding;
    assert_true(find(audit, "sync-call", &finding));
    assert_int_equal(finding.kind, HR_AUDIT_DEFECT);
    near_ms(finding.after_ns, 56.4, 5.0);
    assert_int_equal(defects(audit), 1);
    hr_audit_close(&audit);
}

static void allocation_churn_is_named_and_does_not_claim_the_rest(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h200_alloc_churn.json.gz");
    hr_audit_finding finding;
    assert_true(find(audit, "alloc-in-loop", &finding));
    near_ms(finding.after_ns, 145.3, 5.0);
    assert_false(finding.masked);
    /* Copies could overlap too, and do only once the releases no longer wait. */
    assert_true(find(audit, "same-stream", &finding));
    assert_true(finding.masked);
    hr_audit_close(&audit);
}

static void tiny_copies_are_named(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h200_tiny_copies.json.gz");
    hr_audit_finding finding;
    assert_true(find(audit, "tiny-copies", &finding));
    assert_int_equal(finding.count, 2000);
    assert_false(has_defect(audit, "same-stream"));
    assert_false(has_defect(audit, "sync-call"));
    hr_audit_close(&audit);
}

static void pinned_offloading_is_bound_by_copies(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h100x2_pinned_offload.sqlite");
    hr_audit_finding finding;
    hr_audit_summary summary = summary_of(audit);
    assert_int_equal(summary.gpus, 2);
    assert_int_equal(summary.verdict, HR_AUDIT_CLEAN);
    assert_true(summary.overlap_pct < 0.5);
    assert_string_equal(summary.bound, "copies in");
    assert_true(find(audit, "same-stream", &finding));
    assert_int_equal(finding.kind, HR_AUDIT_INFORMATION);
    assert_non_null(strstr(finding.text, "at most 2.3 %"));
    assert_non_null(strstr(finding.text, "the copies bind"));
    /* 446 of 450 uploads are pinned. */
    assert_false(find(audit, "pageable-copy", &finding));
    hr_audit_close(&audit);
}

static void short_kernels_leave_nothing_to_overlap(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("rtx4060ti_4streams_pinned.sqlite");
    hr_audit_finding finding;
    assert_int_equal(defects(audit), 0);
    assert_true(find(audit, "same-stream", &finding));
    assert_non_null(strstr(finding.text, "the copies bind"));
    /* The card has one engine for both directions: 92 of 102 ms. */
    assert_string_equal(summary_of(audit).bound, "copies");
    near_ms(summary_of(audit).bound_ns, 91.742, 0.1);
    hr_audit_close(&audit);
}

static void downloads_that_hold_the_host_are_told_and_no_defect(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("pinned_h2d_pageable_d2h.json.gz");
    hr_audit_finding finding;
    assert_int_equal(defects(audit), 0);
    assert_true(find(audit, "pageable-copy", &finding));
    assert_int_equal(finding.kind, HR_AUDIT_INFORMATION);
    assert_int_equal(finding.count, 60);
    assert_true(summary_of(audit).overlap_pct > 60.0);
    hr_audit_close(&audit);
}

static void a_host_that_does_not_keep_up_is_no_fault_of_copies(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h100_owlv2.json.gz");
    hr_audit_finding finding;
    assert_int_equal(defects(audit), 0);
    assert_true(find(audit, "cpu-feeder", &finding));
    hr_audit_close(&audit);
}

static void without_memory_kinds_nobody_can_tell(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("mi300_qwen.json.gz");
    hr_error error = HR_ERROR_INIT;
    hr_audit_summary summary = summary_of(audit);
    assert_int_equal(summary.verdict, HR_AUDIT_CANNOT_TELL);
    assert_non_null(strstr(summary.reason, "memory kinds"));
    assert_int_equal(hr_audit_check(audit, "pageable-copy", &error), HR_E_UNSUPPORTED);
    assert_int_equal(hr_audit_check(audit, "tiny-copies", &error), HR_OK);
    hr_audit_close(&audit);
}

/* headrace run --trace, on the CPU device with copies of its own. */
static void a_run_of_headrace_itself_is_clean(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("headrace_add.json.gz");
    hr_audit_summary summary = summary_of(audit);
    assert_int_equal(summary.verdict, HR_AUDIT_CLEAN);
    assert_int_equal(defects(audit), 0);
    assert_int_equal(summary.kernels, 147);
    assert_int_equal(summary.copies, 441);
    assert_string_equal(summary.bound, "compute");
    hr_audit_close(&audit);
}

static void conditions_have_three_outcomes_and_mistakes_a_fourth(void **state)
{
    (void)state;
    hr_audit *audit = open_audit("h200_in_pageable_one_stream.json.gz");
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_audit_check(audit, "pageable-copy", &error), HR_END);
    assert_non_null(strstr(error.text, "pageable-copy"));
    assert_int_equal(hr_audit_check(audit, "tiny-copies,pageable-copy", &error), HR_END);
    assert_int_equal(hr_audit_check(audit, "tiny-copies", &error), HR_OK);
    assert_int_equal(hr_audit_check(audit, "null-stream", &error), HR_E_UNSUPPORTED);
    assert_int_equal(hr_audit_check(audit, "null-stream,pageable-copy", &error), HR_END);
    assert_int_equal(hr_audit_check(audit, "overlap<80", &error), HR_END);
    assert_int_equal(hr_audit_check(audit, "overlap<0", &error), HR_OK);
    static const char *const mistakes[] = {
        "", "pagable-copy", "overlap<", "overlap<x", "overlap<101", "tiny-copies,", ","};
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        assert_int_equal(hr_audit_check(audit, mistakes[i], &error), HR_E_INVALID);
    hr_audit_close(&audit);
}

static void a_least_cost_hides_what_costs_less(void **state)
{
    (void)state;
    hr_audit_options options = HR_AUDIT_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_audit *audit = NULL;
    options.min_cost_pct = 50.0;
    const char *path = trace_path_or_skip("h200_in_pageable_one_stream.json.gz");
    assert_int_equal(hr_audit_open(path, &options, &audit, &error), HR_OK);
    assert_true(has_defect(audit, "pageable-copy"));
    assert_false(has_defect(audit, "same-stream"));
    hr_audit_close(&audit);
    options.min_cost_pct = -1.0;
    assert_int_equal(hr_audit_open(path, &options, &audit, &error), HR_E_INVALID);
    assert_null(audit);
}

static void a_given_link_speed_is_what_predictions_use(void **state)
{
    (void)state;
    hr_audit_options options = HR_AUDIT_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_audit *audit = NULL;
    hr_audit_finding finding;
    options.h2d_gbps = 25.0;
    const char *path = trace_path_or_skip("h200_in_pageable_one_stream.json.gz");
    assert_int_equal(hr_audit_open(path, &options, &audit, &error), HR_OK);
    assert_true(find(audit, "pageable-copy", &finding));
    /* 40 copies of 64 MiB at 25 GB/s and 40 kernels of 1.373 ms, one after the other. */
    near_ms(finding.after_ns, 40 * (67.108864 / 25.0 + 1.373), 2.0);
    hr_audit_close(&audit);
}

#define SOUND(file)                                                            \
    {                                                                          \
        .name = "costs " file, .test_func = costs_never_exceed_what_is_gained, \
        .initial_state = (void *)(file)                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOUND("h200_in_pageable_one_stream.json.gz"),
        SOUND("h200_in_pinned_one_stream.json.gz"),
        SOUND("h200_in_pinned_ring.json.gz"),
        SOUND("h200_in_pinned_ring_sync_each.json.gz"),
        SOUND("h200_alloc_churn.json.gz"),
        SOUND("h200_tiny_copies.json.gz"),
        SOUND("alexnet_pageable_malloc_sync.json.gz"),
        SOUND("pinned_h2d_pageable_d2h.json.gz"),
        SOUND("h100_owlv2.json.gz"),
        SOUND("mi300_qwen.json.gz"),
        SOUND("h100x2_pinned_offload.sqlite"),
        SOUND("rtx4060ti_4streams_pinned.sqlite"),
        cmocka_unit_test(pageable_input_is_named_with_both_its_repairs),
        cmocka_unit_test(one_stream_is_named),
        cmocka_unit_test(a_good_ring_is_clean),
        cmocka_unit_test(a_wait_after_each_batch_is_named),
        cmocka_unit_test(allocation_churn_is_named_and_does_not_claim_the_rest),
        cmocka_unit_test(tiny_copies_are_named),
        cmocka_unit_test(pinned_offloading_is_bound_by_copies),
        cmocka_unit_test(short_kernels_leave_nothing_to_overlap),
        cmocka_unit_test(downloads_that_hold_the_host_are_told_and_no_defect),
        cmocka_unit_test(a_host_that_does_not_keep_up_is_no_fault_of_copies),
        cmocka_unit_test(without_memory_kinds_nobody_can_tell),
        cmocka_unit_test(a_run_of_headrace_itself_is_clean),
        cmocka_unit_test(conditions_have_three_outcomes_and_mistakes_a_fourth),
        cmocka_unit_test(a_least_cost_hides_what_costs_less),
        cmocka_unit_test(a_given_link_speed_is_what_predictions_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
