/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What repairs gain. Costs are marginal: repairs are added one after the other, the most useful first, and each is charged what it
 * gains on top of those before it. So they add up to what all of them gain.
 */
#include "trace/audit/audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the repairs gain, found by replaying. */
typedef struct hr_gains {
    hr_replay *replay;
    bool *use;       /* by finding */
    uint32_t *order; /* findings with a repair, by what each gains alone */
    uint32_t count;
    uint32_t *left; /* those that gain too little, alone and on top of the others */
    uint32_t left_count;
    int64_t now_ns; /* the span with the repairs in use */
} hr_gains;

bool hr_audit_has_repair(const hr_finding *finding)
{
    return finding->kind == HR_FINDING_DEFECT && finding->repair.kind != HR_REPAIR_NONE &&
           finding->repair.count != 0;
}

/*
 * A time of the replay as a time of the trace. The two differ by what the replay is off when nothing is changed; a prediction
 * must not be shorter, or longer, than the run for that reason alone.
 */
static int64_t as_measured(const hr_report *report, int64_t replayed_ns)
{
    if (report->replayed_ns == report->span_ns || report->replayed_ns <= 0)
        return replayed_ns;
    return (int64_t)((double)replayed_ns * ((double)report->span_ns / (double)report->replayed_ns));
}

/* Replays the repairs in gains->use; times in the result are as measured. */
static hr_status replay(hr_audit *audit, const hr_findings *findings, const hr_gains *gains,
                        hr_replay_result *result, int64_t *begin_ns, int64_t *end_ns, hr_error *error)
{
    hr_status status = hr_replay_run(gains->replay, findings, gains->use, result, begin_ns, end_ns, error);
    /* A trace that contradicts itself may leave no order in which a repaired run could happen: nothing is foreseen of it, and the
     * report counts it among the contradictions. The unrepaired run has been replayed before. */
    if (status == HR_E_INTERNAL) {
        audit->report.contradictions++;
        *result = (hr_replay_result){INT64_MAX, "", 0};
        return HR_OK;
    }
    if (status != HR_OK)
        return status;
    result->span_ns = as_measured(&audit->report, result->span_ns);
    result->bound_ns = as_measured(&audit->report, result->bound_ns);
    return HR_OK;
}

/*
 * Which repair is tried first: the one that gains more alone; but streams of their own for copies come behind all others, since
 * they gain only what a host that runs ahead can use, and a copy that holds the host cannot be put on another stream at all.
 */
static bool goes_before(const hr_finding *a, const hr_finding *b)
{
    bool a_last = a->repair.kind == HR_REPAIR_OWN_STREAM, b_last = b->repair.kind == HR_REPAIR_OWN_STREAM;
    return a_last != b_last ? b_last : a->after_ns < b->after_ns;
}

/* after_ns of each finding: with this repair and no other. */
static hr_status replay_each(hr_audit *audit, const hr_findings *findings, hr_gains *gains, hr_error *error)
{
    int64_t today = audit->report.span_ns;
    for (uint32_t i = 0; i < findings->count; i++) {
        hr_finding *finding = &findings->at[i];
        finding->after_ns = today;
        if (!hr_audit_has_repair(finding))
            continue;
        hr_replay_result result;
        gains->use[i] = true;
        hr_status status = replay(audit, findings, gains, &result, NULL, NULL, error);
        gains->use[i] = false;
        if (status != HR_OK)
            return status;
        finding->after_ns = result.span_ns < today ? result.span_ns : today;
        uint32_t at = gains->count++;
        for (; at > 0 && goes_before(finding, &findings->at[gains->order[at - 1]]); at--)
            gains->order[at] = gains->order[at - 1];
        gains->order[at] = i;
    }
    return HR_OK;
}

/* A repair that gains little, whatever it is combined with, makes no defect. */
static void demote(hr_finding *finding)
{
    if (finding->bound_text[0] == '\0') {
        finding->repair.count = 0;
        finding->count = 0;
        return;
    }
    finding->kind = HR_FINDING_INFORMATION;
    memcpy(finding->proof, finding->bound_text, sizeof finding->proof);
}

static int64_t least_gain(const hr_audit *audit, const hr_finding *finding)
{
    return (int64_t)(finding->little * (double)audit->report.span_ns);
}

/* Adds repairs one after the other; those that gain too little are put aside. */
static hr_status add_each(hr_audit *audit, const hr_findings *findings, hr_gains *gains, hr_error *error)
{
    int64_t today = audit->report.span_ns;
    gains->now_ns = today;
    for (uint32_t i = 0; i < gains->count; i++) {
        hr_finding *finding = &findings->at[gains->order[i]];
        hr_replay_result result;
        gains->use[gains->order[i]] = true;
        hr_status status = replay(audit, findings, gains, &result, NULL, NULL, error);
        if (status != HR_OK)
            return status;
        int64_t gain = gains->now_ns - result.span_ns;
        int64_t alone = today - finding->after_ns;
        int64_t least = least_gain(audit, finding);
        if (gain <= 0 || (gain < least && alone < least)) {
            gains->use[gains->order[i]] = false;
            gains->left[gains->left_count++] = gains->order[i];
            continue;
        }
        finding->cost_ns = gain;
        finding->masked = alone < least;
        gains->now_ns = result.span_ns;
    }
    return HR_OK;
}

/*
 * Two faults can hide each other, so that neither gains anything alone: the same one on each of two GPUs, whichever is repaired,
 * the other one takes as long as before. What was put aside is tried together; what the gain does not need is left out again, the
 * least useful first; the rest share what they gain.
 */
static hr_status add_rest_together(hr_audit *audit, const hr_findings *findings, hr_gains *gains,
                                   hr_error *error)
{
    hr_replay_result result = {0};
    uint32_t kept = gains->left_count;
    int64_t least = 0;
    if (kept < 2)
        return HR_OK;
    for (uint32_t i = 0; i < kept; i++)
        gains->use[gains->left[i]] = true;
    hr_status status = replay(audit, findings, gains, &result, NULL, NULL, error);
    int64_t together = result.span_ns;
    for (uint32_t i = gains->left_count; status == HR_OK && i-- > 0;) {
        gains->use[gains->left[i]] = false;
        status = replay(audit, findings, gains, &result, NULL, NULL, error);
        bool needed = status == HR_OK && result.span_ns - together > audit->report.span_ns / 1000;
        gains->use[gains->left[i]] = needed;
        kept -= !needed;
        together = needed ? together : result.span_ns;
    }
    if (status != HR_OK)
        return status;
    for (uint32_t i = 0; i < gains->left_count; i++) {
        if (gains->use[gains->left[i]] && least_gain(audit, &findings->at[gains->left[i]]) > least)
            least = least_gain(audit, &findings->at[gains->left[i]]);
    }
    int64_t gain = gains->now_ns - together;
    bool worth = kept != 0 && gain > 0 && gain >= least;
    int64_t share = worth ? gain / kept : 0;
    for (uint32_t i = 0; i < gains->left_count; i++) {
        hr_finding *finding = &findings->at[gains->left[i]];
        gains->use[gains->left[i]] &= worth;
        if (!gains->use[gains->left[i]])
            continue;
        finding->cost_ns = share;
        finding->masked = true;
    }
    gains->now_ns = worth ? together : gains->now_ns;
    return HR_OK;
}

/*
 * What is lost again when one repair is left out and all others are made: more than its own cost where others need it. A blocking
 * copy may cost next to nothing by itself, and yet streams of their own gain nothing as long as it blocks.
 */
static hr_status weigh_each(hr_audit *audit, const hr_findings *findings, hr_gains *gains, hr_error *error)
{
    for (uint32_t i = 0; i < gains->count; i++) {
        hr_finding *finding = &findings->at[gains->order[i]];
        hr_replay_result result;
        if (!gains->use[gains->order[i]])
            continue;
        gains->use[gains->order[i]] = false;
        hr_status status = replay(audit, findings, gains, &result, NULL, NULL, error);
        gains->use[gains->order[i]] = true;
        if (status != HR_OK)
            return status;
        int64_t without = result.span_ns < audit->report.span_ns ? result.span_ns : audit->report.span_ns;
        int64_t lost = without - gains->now_ns;
        finding->together_ns = lost > finding->cost_ns ? lost : 0;
    }
    return HR_OK;
}

/*
 * What reading results later would gain on top of all repairs. Nobody knows whether the program can, so it is no defect and no part
 * of the prediction; where it gains little, nothing is said.
 */
static hr_status bound_read_backs(hr_audit *audit, const hr_findings *findings, hr_gains *gains,
                                  hr_error *error)
{
    for (uint32_t i = 0; i < findings->count; i++) {
        hr_finding *finding = &findings->at[i];
        hr_replay_result result;
        if (finding->kind != HR_FINDING_INFORMATION || finding->repair.kind != HR_REPAIR_READ_LATER)
            continue;
        gains->use[i] = true;
        hr_status status = replay(audit, findings, gains, &result, NULL, NULL, error);
        gains->use[i] = false;
        if (status != HR_OK)
            return status;
        finding->most_ns = gains->now_ns > result.span_ns ? gains->now_ns - result.span_ns : 0;
        if (finding->most_ns < least_gain(audit, finding)) {
            finding->count = 0;
            continue;
        }
        char most[32];
        snprintf(most, sizeof most, "%.1f", (double)finding->most_ns / 1e6);
        snprintf(finding->proof, sizeof finding->proof,
                 "looking at each result one step later gains at most %s ms%s; nothing, where the next step "
                 "needs the result",
                 most, gains->now_ns < audit->report.span_ns ? " more" : "");
    }
    return HR_OK;
}

static hr_status replay_together(hr_audit *audit, const hr_findings *findings, hr_gains *gains,
                                 hr_error *error)
{
    hr_report *report = &audit->report;
    hr_replay_result result;
    hr_status status = add_each(audit, findings, gains, error);
    if (status == HR_OK)
        status = add_rest_together(audit, findings, gains, error);
    if (status == HR_OK)
        status = weigh_each(audit, findings, gains, error);
    if (status == HR_OK)
        status = bound_read_backs(audit, findings, gains, error);
    if (status == HR_OK)
        status = replay(audit, findings, gains, &result, audit->fixed_begin_ns, audit->fixed_end_ns, error);
    if (status != HR_OK)
        return status;
    report->all_fixed_ns = result.span_ns;
    report->bound = result.bound;
    report->bound_ns = result.bound_ns;
    for (uint32_t i = 0; i < gains->left_count; i++) {
        if (!gains->use[gains->left[i]])
            demote(&findings->at[gains->left[i]]);
    }
    /* A repair that was left out would have gained a little: that is not foreseen, so it is not told. */
    for (uint32_t i = 0; i < findings->count; i++) {
        hr_finding *finding = &findings->at[i];
        finding->after_ns = finding->after_ns > result.span_ns ? finding->after_ns : result.span_ns;
    }
    return HR_OK;
}

hr_status hr_audit_foresee(hr_audit *audit, hr_error *error)
{
    const hr_findings *findings = &audit->findings;
    const hr_trace *trace = audit->trace;
    hr_graph *graph = NULL;
    hr_gains gains = {0};
    hr_replay_result today;
    gains.use = calloc((size_t)findings->count + 1, sizeof *gains.use);
    gains.order = calloc((size_t)findings->count + 1, sizeof *gains.order);
    gains.left = calloc((size_t)findings->count + 1, sizeof *gains.left);
    audit->fixed_begin_ns = malloc(((size_t)trace->event_count + 1) * sizeof *audit->fixed_begin_ns);
    audit->fixed_end_ns = malloc(((size_t)trace->event_count + 1) * sizeof *audit->fixed_end_ns);
    hr_status status = HR_OK;
    if (gains.use == NULL || gains.order == NULL || gains.left == NULL || audit->fixed_begin_ns == NULL ||
        audit->fixed_end_ns == NULL)
        status = hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to judge it", trace->path);
    if (status == HR_OK)
        status = hr_graph_build(trace, &graph, error);
    if (status == HR_OK)
        status = hr_replay_new(graph, &audit->link, &gains.replay, error);
    if (status == HR_OK)
        status = hr_replay_run(gains.replay, findings, NULL, &today, NULL, NULL, error);
    if (status == HR_OK) {
        audit->report.replayed_ns = today.span_ns;
        audit->report.unexplained_ns = graph->unexplained_ns;
        audit->report.guessed = graph->guessed;
        audit->report.contradictions = graph->contradictions;
        status = replay_each(audit, findings, &gains, error);
    }
    if (status == HR_OK)
        status = replay_together(audit, findings, &gains, error);
    hr_replay_free(&gains.replay);
    hr_graph_free(&graph);
    free(gains.use);
    free(gains.order);
    free(gains.left);
    return status;
}
