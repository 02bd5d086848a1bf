/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/report.h"

#include "base/clock.h"
#include "cost/cost.h"

/* What the stage could do alone: measured before the run, or shown by it, whichever is more. The larger figure makes
 * the floor lower and the efficiency smaller. */
static double ceiling(hr_pipeline *pipeline, int stage)
{
    double shown = hr_gauge_ceiling(&pipeline->gauge[stage]);
    return shown > pipeline->ceiling[stage] ? shown : pipeline->ceiling[stage];
}

void hr_report_fill(hr_pipeline *pipeline, uint64_t end_ns, hr_report *report)
{
    hr_report made = {.size = report->size};
    double busy[HR_STAGE_COUNT];
    made.wall_s = (double)(end_ns - pipeline->begin_ns) / (double)HR_NS_PER_S;
    for (int i = 0; i < HR_STAGE_COUNT; i++) {
        hr_stage_report *stage = &made.stage[i];
        stage->busy_s = busy[i] = hr_gauge_busy_s(&pipeline->gauge[i]);
        stage->bytes = hr_gauge_bytes(&pipeline->gauge[i]);
        double rate = ceiling(pipeline, i);
        stage->ceiling_gbps = rate / 1e9;
        double floor_s = rate > 0.0 ? (double)stage->bytes / rate : 0.0;
        if (floor_s > made.floor_s) {
            made.floor_s = floor_s;
            made.bottleneck = (hr_stage)i;
        }
    }
    const hr_cut *cut = &pipeline->cut;
    made.chunk_bytes =
        pipeline->chunk_bytes > 0 ? pipeline->chunk_bytes : cut->chunk_units * hr_cut_unit_bytes(cut);
    made.chunks = atomic_load(&pipeline->chunks);
    made.depth = pipeline->depth;
    made.pinned_bytes = pipeline->pinned_bytes;
    made.device_bytes = pipeline->device_bytes;
    made.setup_s = pipeline->setup_s;
    made.efficiency = made.wall_s > 0.0 ? made.floor_s / made.wall_s : 0.0;
    made.overlap = hr_cost_overlap(busy, HR_STAGE_COUNT, made.wall_s);
    made.predicted_s = pipeline->predicted_s;
    made.done_bytes = atomic_load(&pipeline->done_bytes);
    *report = made;
}
