/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tune.h"

#include "pipeline/plan.h"

#include <stdio.h>

/* Files, streams and memory are read and written at different speeds. */
static const char *read_kind(const hr_pipeline *pipeline)
{
    const hr_source *source = pipeline->options.in[0].source;
    return source->data != NULL ? "memory" : source->sequential ? "stream" : "file";
}

static const char *write_kind(const hr_pipeline *pipeline)
{
    if (pipeline->cut.outputs == 0) {
        return "nothing";
    }
    const hr_sink *sink = pipeline->options.out[0].sink;
    return sink->data != NULL ? "memory" : sink->sequential ? "stream" : "file";
}

/* The name of a stage's rate: "lanes.write.file", "flow.compute.add.f32". Empty where the rate says nothing
 * of other runs. */
static void rate_name(const hr_pipeline *pipeline, hr_stage stage, char name[HR_COSTS_NAME])
{
    const char *how = pipeline->executor->name;
    int length = 0;
    name[0] = '\0';
    switch (stage) {
    case HR_STAGE_READ:
    case HR_STAGE_STAGE:
        length = snprintf(name, HR_COSTS_NAME, "%s.%s.%s", how, hr_stage_name(stage), read_kind(pipeline));
        break;
    case HR_STAGE_COMPUTE:
        length = snprintf(name, HR_COSTS_NAME, "%s.compute.%s.%s", how, pipeline->options.op->name,
                          hr_dtype_name(pipeline->in_dtype[0]));
        break;
    case HR_STAGE_WRITE:
        length = snprintf(name, HR_COSTS_NAME, "%s.write.%s", how, write_kind(pipeline));
        break;
    default:
        break;
    }
    if (length >= HR_COSTS_NAME) {
        name[0] = '\0';
    }
}

static void flops_name(const hr_pipeline *pipeline, char name[HR_COSTS_NAME])
{
    int length = snprintf(name, HR_COSTS_NAME, "flops.%s.%s", pipeline->options.op->name,
                          hr_dtype_name(pipeline->in_dtype[0]));
    if (length >= HR_COSTS_NAME) {
        name[0] = '\0';
    }
}

static void know_link(hr_pipeline *pipeline)
{
    hr_costs *costs = &pipeline->costs;
    if (costs->h2d.count == 0 || costs->d2h.count == 0 || costs->h2d_with_d2h <= 0.0) {
        hr_error error = HR_ERROR_INIT;
        if (hr_costs_probe(pipeline->options.devices[0], costs, &error) != HR_OK) {
            hr_run_note(pipeline, "%s: the link's speed is assumed, not measured: %s", pipeline->info.spec,
                        error.text);
            return;
        }
    }
    pipeline->cost[HR_STAGE_H2D] = hr_cost_link_fit(&costs->h2d);
    pipeline->cost[HR_STAGE_D2H] = hr_cost_link_fit(&costs->d2h);
    pipeline->ceiling[HR_STAGE_H2D] = hr_cost_link_rate(&costs->h2d) * pipeline->options.device_count;
    pipeline->ceiling[HR_STAGE_D2H] = hr_cost_link_rate(&costs->d2h) * pipeline->options.device_count;
    pipeline->h2d_with_d2h = costs->h2d_with_d2h * pipeline->options.device_count;
    pipeline->d2h_with_h2d = costs->d2h_with_h2d * pipeline->options.device_count;
}

void hr_tune_begin(hr_pipeline *pipeline)
{
    hr_costs_load(&pipeline->info, pipeline->options.cost_file, &pipeline->costs);
    if (!pipeline->info.shares_host_memory) {
        know_link(pipeline);
    }
    for (int stage = 0; stage < HR_STAGE_COUNT; stage++) {
        char name[HR_COSTS_NAME];
        rate_name(pipeline, (hr_stage)stage, name);
        double rate = hr_costs_rate(&pipeline->costs, name);
        if (rate > 0.0) {
            pipeline->cost[stage].start_s = hr_plan_cost(pipeline, (hr_stage)stage).start_s;
            pipeline->cost[stage].bytes_per_s = rate;
        }
    }
    char name[HR_COSTS_NAME];
    flops_name(pipeline, name);
    pipeline->flops_per_s = hr_costs_rate(&pipeline->costs, name);
}

/* What one lane does of a stage, or what all threads of a flow's stage do together. */
static double learned_rate(hr_pipeline *pipeline, hr_stage stage)
{
    double one = hr_gauge_mean_rate(&pipeline->gauge[stage]);
    bool together = pipeline->executor != &hr_lane_executor && stage != HR_STAGE_COMPUTE;
    return together ? one * pipeline->width[stage] : one;
}

void hr_tune_learn(hr_pipeline *pipeline)
{
    for (int stage = 0; stage < HR_STAGE_COUNT; stage++) {
        char name[HR_COSTS_NAME];
        rate_name(pipeline, (hr_stage)stage, name);
        if (name[0] != '\0') {
            hr_costs_set_rate(&pipeline->costs, name, learned_rate(pipeline, (hr_stage)stage));
        }
    }
    char name[HR_COSTS_NAME];
    flops_name(pipeline, name);
    double seconds = (double)pipeline->gauge[HR_STAGE_COMPUTE].span_ns / 1e9;
    if (pipeline->device_work > 0.0 && seconds > 0.0 && name[0] != '\0') {
        hr_costs_set_rate(&pipeline->costs, name, pipeline->device_work / seconds);
    }
}

void hr_tune_end(hr_pipeline *pipeline)
{
    hr_error error = HR_ERROR_INIT;
    hr_status status = hr_costs_save(&pipeline->costs, &error);
    (void)status;
}
