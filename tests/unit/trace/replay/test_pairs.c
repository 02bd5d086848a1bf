/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predictions against what the repaired program really took, on the same machine: median wall time of seven
 * runs without a profiler, and where a trace of the repaired program exists also its own span.
 */
#include "support/traces.h"

#include "trace/read/read.h"
#include "trace/replay/replay.h"

#include <math.h>

typedef struct hr_loaded {
    hr_trace *trace;
    hr_graph *graph;
    hr_replay *replay;
    hr_findings findings;
} hr_loaded;

static void load(const char *name, hr_loaded *loaded)
{
    hr_error error = HR_ERROR_INIT;
    hr_link link;
    *loaded = (hr_loaded){0};
    const char *path = trace_path_or_skip(name);
    if (hr_read_trace(path, &loaded->trace, &error) != HR_OK ||
        hr_graph_build(loaded->trace, &loaded->graph, &error) != HR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(hr_link_of_trace(loaded->trace, &link), HR_OK);
    if (hr_replay_new(loaded->graph, &link, &loaded->replay, &error) != HR_OK)
        fail_msg("%s", error.text);
}

static void unload(hr_loaded *loaded)
{
    hr_findings_free(&loaded->findings);
    hr_replay_free(&loaded->replay);
    hr_graph_free(&loaded->graph);
    hr_trace_free(&loaded->trace);
}

static void repair(hr_loaded *loaded, hr_repair_kind kind, bool (*wanted)(const hr_event *event))
{
    hr_finding *finding = hr_findings_add(&loaded->findings, "test");
    assert_non_null(finding);
    finding->repair.kind = kind;
    finding->repair.buffers = 3;
    for (uint32_t i = 0; i < loaded->trace->event_count; i++) {
        if (wanted(&loaded->trace->events[i]))
            assert_int_equal(hr_repair_add(&finding->repair, i), HR_OK);
    }
    assert_true(finding->repair.count > 0);
}

static double replayed_ms(hr_loaded *loaded, bool repaired)
{
    bool use[4] = {repaired, repaired, repaired, repaired};
    hr_error error = HR_ERROR_INIT;
    hr_replay_result result;
    if (hr_replay_run(loaded->replay, &loaded->findings, repaired ? use : NULL, &result, NULL, NULL,
                      &error) != HR_OK)
        fail_msg("%s", error.text);
    return (double)result.span_ns / 1e6;
}

static void within(double found, double wanted, double percent)
{
    if (fabs(found - wanted) > wanted * percent / 100.0)
        fail_msg("%.3f ms is more than %g %% from %.3f ms", found, percent, wanted);
}

static bool upload(const hr_event *event)
{
    return hr_event_is_upload(event);
}

static bool device_sync(const hr_event *event)
{
    return event->kind == HR_EVENT_CALL && event->call == HR_CALL_DEVICE_SYNC && !event->nested;
}

static bool allocation(const hr_event *event)
{
    return event->kind == HR_EVENT_CALL &&
           (event->call == HR_CALL_DEVICE_ALLOC || event->call == HR_CALL_DEVICE_FREE);
}

static void a_trace_replayed_unchanged_takes_what_it_took(void **state)
{
    hr_loaded loaded;
    load(*state, &loaded);
    double measured = (double)(loaded.trace->work_end_ns - loaded.trace->work_begin_ns) / 1e6;
    within(replayed_ms(&loaded, false), measured, 2.0);
    unload(&loaded);
}

static void pinned_memory_instead_of_pageable(void **state)
{
    (void)state;
    hr_loaded loaded;
    load("h200_in_pageable_one_stream.json.gz", &loaded);
    repair(&loaded, HR_REPAIR_PIN, upload);
    double foreseen = replayed_ms(&loaded, true);
    within(foreseen, 103.9, 5.0);
    within(foreseen, 103.734, 5.0);
    unload(&loaded);
}

static void pinned_memory_and_copies_on_their_own_stream(void **state)
{
    (void)state;
    hr_loaded loaded;
    load("h200_in_pageable_one_stream.json.gz", &loaded);
    repair(&loaded, HR_REPAIR_PIN, upload);
    repair(&loaded, HR_REPAIR_OWN_STREAM, upload);
    double foreseen = replayed_ms(&loaded, true);
    within(foreseen, 56.4, 5.0);
    within(foreseen, 56.132, 5.0);
    unload(&loaded);
}

static void copies_on_their_own_stream(void **state)
{
    (void)state;
    hr_loaded loaded;
    load("h200_in_pinned_one_stream.json.gz", &loaded);
    repair(&loaded, HR_REPAIR_OWN_STREAM, upload);
    within(replayed_ms(&loaded, true), 56.4, 5.0);
    unload(&loaded);
}

static void one_buffer_leaves_nothing_to_overlap(void **state)
{
    (void)state;
    hr_loaded loaded;
    load("h200_in_pinned_one_stream.json.gz", &loaded);
    repair(&loaded, HR_REPAIR_OWN_STREAM, upload);
    loaded.findings.at[0].repair.buffers = 1;
    within(replayed_ms(&loaded, true), 103.9, 5.0);
    unload(&loaded);
}

static void without_the_wait_after_each_batch(void **state)
{
    (void)state;
    hr_loaded loaded;
    load("h200_in_pinned_ring_sync_each.json.gz", &loaded);
    repair(&loaded, HR_REPAIR_DROP_CALL, device_sync);
    within(replayed_ms(&loaded, true), 56.4, 5.0);
    unload(&loaded);
}

static void a_wait_that_costs_nothing_gains_nothing(void **state)
{
    (void)state;
    hr_loaded loaded;
    load("h200_in_pinned_one_stream.json.gz", &loaded);
    repair(&loaded, HR_REPAIR_DROP_CALL, device_sync);
    within(replayed_ms(&loaded, true), replayed_ms(&loaded, false), 0.1);
    unload(&loaded);
}

static void memory_that_is_kept(void **state)
{
    (void)state;
    hr_loaded loaded;
    load("h200_alloc_churn.json.gz", &loaded);
    repair(&loaded, HR_REPAIR_DROP_CALL, allocation);
    within(replayed_ms(&loaded, true), 145.3, 5.0);
    unload(&loaded);
}

#define UNCHANGED(file)                                                                        \
    {                                                                                          \
        .name = "unchanged " file, .test_func = a_trace_replayed_unchanged_takes_what_it_took, \
        .initial_state = (void *)(file)                                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNCHANGED("h200_in_pageable_one_stream.json.gz"),
        UNCHANGED("h200_in_pinned_one_stream.json.gz"),
        UNCHANGED("h200_in_pinned_ring.json.gz"),
        UNCHANGED("h200_in_pinned_ring_sync_each.json.gz"),
        UNCHANGED("h200_alloc_churn.json.gz"),
        UNCHANGED("h200_tiny_copies.json.gz"),
        UNCHANGED("alexnet_pageable_malloc_sync.json.gz"),
        UNCHANGED("pinned_h2d_pageable_d2h.json.gz"),
        UNCHANGED("h100_owlv2.json.gz"),
        UNCHANGED("mi300_qwen.json.gz"),
        UNCHANGED("h100x2_pinned_offload.sqlite"),
        UNCHANGED("rtx4060ti_4streams_pinned.sqlite"),
        cmocka_unit_test(pinned_memory_instead_of_pageable),
        cmocka_unit_test(pinned_memory_and_copies_on_their_own_stream),
        cmocka_unit_test(copies_on_their_own_stream),
        cmocka_unit_test(one_buffer_leaves_nothing_to_overlap),
        cmocka_unit_test(without_the_wait_after_each_batch),
        cmocka_unit_test(a_wait_that_costs_nothing_gains_nothing),
        cmocka_unit_test(memory_that_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
