/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses chunk and depth before anything is taken. */
#ifndef HR_PIPELINE_PLAN_H
#define HR_PIPELINE_PLAN_H

#include "base/checked.h"
#include "pipeline/run.h"

/* Blocks of slots start at multiples of this. */
#define HR_SLOT_ALIGN UINT64_C(256)

/* Room that a block takes in a pool; none for a block that is not there. */
static inline uint64_t hr_slot_round(uint64_t bytes)
{
    return hr_round_up(bytes, HR_SLOT_ALIGN);
}

/* Host memory of one lane at the cut's chunk. */
uint64_t hr_lane_slot_bytes(const hr_pipeline *pipeline);

/* Chooses chunk_units and depth for lanes. HR_E_RANGE: what the options fix does not fit. */
HR_CHECKED hr_status hr_plan_lanes(hr_pipeline *pipeline, hr_error *error);

/* Chooses chunk_units and depth for a flow whose ports' ways are known. */
HR_CHECKED hr_status hr_plan_flow(hr_pipeline *pipeline, hr_error *error);

/* Rounds a planned chunk down to what files like. */
uint64_t hr_plan_round_chunk(uint64_t bytes);

/*
 * Sets the cut's chunk: the planned one, halved until `slots` slots of it fit; where they never do, until fewer do. The
 * smallest chunk is set where not even one fits. `fitting` tells how many slots of the cut's chunk there is room for.
 */
HR_CHECKED hr_status hr_plan_fit_chunk(hr_pipeline *pipeline, uint64_t chunk, uint64_t slots,
                                       uint64_t (*fitting)(const hr_pipeline *pipeline), hr_error *error);

/* Cores that the host may use. */
uint64_t hr_plan_cores(const hr_pipeline *pipeline);

/* Threads that read and write pieces. */
uint32_t hr_plan_readers(const hr_pipeline *pipeline);
uint32_t hr_plan_writers(const hr_pipeline *pipeline);

/* Ceiling for slots in host memory that the options or the machine set. */
uint64_t hr_plan_pinned_limit(const hr_pipeline *pipeline);

/* The same for memory of the device. */
uint64_t hr_plan_device_limit(const hr_pipeline *pipeline);

/* What a stage costs on one device: as measured, else as assumed. */
hr_cost_stage hr_plan_cost(const hr_pipeline *pipeline, hr_stage stage);

#endif
