/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/report.h"

#include "base/clock.h"
#include "cost/cost.h"

#include <math.h>

/* What the stage could do alone: measured before the run, or shown by it, whichever is more. The larger figure makes
 * the floor lower and the efficiency smaller. */
static double ceiling(hr_pipeline *pipeline, int stage)
{
    double shown = hr_gauge_ceiling(&pipeline->gauge[stage]);
    return shown > pipeline->ceiling[stage] ? shown : pipeline->ceiling[stage];
}

/*
 * The link's floor: a direction is slower while the other is busy too, as was measured of this very link. It is never more
 * than what the slower direction took in this run.
 */
static double link_floor_s(const hr_pipeline *pipeline, const hr_report *report)
{
    const hr_stage_report *in = &report->stage[HR_STAGE_H2D], *out = &report->stage[HR_STAGE_D2H];
    hr_cost_duplex link = {.in = in->ceiling_gbps * 1e9,
                           .out = out->ceiling_gbps * 1e9,
                           .in_with_out = pipeline->h2d_with_d2h,
                           .out_with_in = pipeline->d2h_with_h2d};
    double floor_s = hr_cost_duplex_s(&link, (double)in->bytes, (double)out->bytes);
    return fmin(floor_s, fmax(in->busy_s, out->busy_s));
}

void hr_report_fill(hr_pipeline *pipeline, uint64_t end_ns, hr_report *report)
{
    hr_report made = {.size = report->size};
    double busy[HR_STAGE_COUNT], alone_s[HR_STAGE_COUNT];
    made.wall_s = (double)(end_ns - pipeline->begin_ns) / (double)HR_NS_PER_S;
    for (int i = 0; i < HR_STAGE_COUNT; i++) {
        hr_stage_report *stage = &made.stage[i];
        stage->busy_s = busy[i] = hr_gauge_busy_s(&pipeline->gauge[i]);
        stage->bytes = hr_gauge_bytes(&pipeline->gauge[i]);
        double rate = ceiling(pipeline, i);
        stage->ceiling_gbps = rate / 1e9;
        alone_s[i] = rate > 0.0 && stage->bytes > 0 ? (double)stage->bytes / rate
                                                    : hr_gauge_alone_s(&pipeline->gauge[i]);
        if (alone_s[i] > made.floor_s) {
            made.floor_s = alone_s[i];
            made.bottleneck = (hr_stage)i;
        }
    }
    double link_s = link_floor_s(pipeline, &made);
    if (link_s > made.floor_s) {
        made.floor_s = link_s;
        made.bottleneck = alone_s[HR_STAGE_H2D] >= alone_s[HR_STAGE_D2H] ? HR_STAGE_H2D : HR_STAGE_D2H;
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
