/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a matrix product is cut when it does not fit on the device: C (m × n) = A (m × k) · B (k × n). Pure
 * arithmetic, worked out whole before the run, so that every tile's place on the device and everything it has
 * to wait for is known when the run starts.
 *
 * C is computed in blocks of tiles. A block stays on the device while the panels of k come in: with a block
 * of gi × gj tiles, gi tiles of A and gj tiles of B serve gi · gj steps. Tiles of A and B stay as long as
 * there is room; the one that is needed latest is given up first, which is the best that can be done when the
 * order of use is known.
 */
#ifndef HR_PIPELINE_TILE_PLAN_H
#define HR_PIPELINE_TILE_PLAN_H

#include <headrace/status.h>
#include <stdbool.h>

#define HR_TILE_NONE UINT32_MAX

typedef struct hr_tile_problem {
    uint64_t m, n, k;
    uint64_t a_bytes, b_bytes, c_bytes; /* of an element */
    uint64_t accumulator_bytes;         /* of an element of C, where there are several panels */
    uint64_t memory_bytes;              /* of the device */
    bool in_row_order;                  /* C must leave in order of rows: whole rows, top down */
    double h2d_bytes_per_s, d2h_bytes_per_s, flops_per_s, launch_s;
    /* Each unit works at a block of C, so that a step takes whole rounds of blocks. 0 units: it takes no rounds. */
    uint32_t units, unit_rows, unit_columns;
} hr_tile_problem;

/* Sizes of tiles (the last of each kind may be smaller), how many there are, and how many have a place. */
typedef struct hr_tile_layout {
    uint64_t tm, tn, tk;
    uint32_t rows, columns, panels; /* tiles along m, n, k */
    uint32_t block_rows, block_columns;
    uint32_t a_places, b_places, c_places;
} hr_tile_layout;

/* A tile of A or B comes to a place on the device. */
typedef struct hr_tile_load {
    bool is_b;
    uint32_t row, column; /* tile of the matrix */
    uint32_t place;
    uint32_t after_step; /* the last step that uses what was there before, or HR_TILE_NONE */
    uint32_t for_step;   /* the first step that needs it */
} hr_tile_load;

/* One launch: a panel's contribution to a tile of C. */
typedef struct hr_tile_step {
    uint32_t row, column, panel;
    bool first, last;        /* of the tile's panels */
    uint32_t a_load, b_load; /* HR_TILE_NONE where k is 0 */
    uint32_t c_place;
    uint32_t after_store; /* first: the store that must have left c_place, or HR_TILE_NONE */
    uint32_t store;       /* last: the store that takes the tile out */
} hr_tile_step;

typedef struct hr_tile_plan {
    hr_tile_layout layout;
    uint32_t load_count, step_count, store_count;
    hr_tile_load *loads;
    hr_tile_step *steps;
    uint32_t *store_steps; /* the last step of each store's tile */
    double predicted_s;
    double load_bytes; /* of A and B, as often as they are loaded */
} hr_tile_plan;

/* Chooses tiles and works out the schedule. HR_E_DEVICE_MEMORY: not even the smallest tiles fit;
 * HR_E_HOST_MEMORY. An empty C has no steps. */
HR_CHECKED hr_status hr_tile_plan_make(const hr_tile_problem *problem, hr_tile_plan *plan, hr_error *error);
void hr_tile_plan_free(hr_tile_plan *plan);

/* Multiplications and additions of a plan's steps, those that units could have done that have no block in a step's last round
 * among them: over the seconds that the steps took, this is problem->flops_per_s. */
double hr_tile_plan_work(const hr_tile_problem *problem, const hr_tile_plan *plan);

/* Works out the schedule of a given layout; for tests, and for sizes that the options fix. */
HR_CHECKED hr_status hr_tile_plan_schedule(const hr_tile_problem *problem, const hr_tile_layout *layout,
                                           hr_tile_plan *plan, hr_error *error);

/* Device memory that a layout takes. */
uint64_t hr_tile_layout_bytes(const hr_tile_problem *problem, const hr_tile_layout *layout);

/* Rows and columns of one tile: the layout's, or what is left at the edge. */
static inline uint64_t hr_tile_extent(uint64_t whole, uint64_t tile, uint32_t index)
{
    uint64_t begin = (uint64_t)index * tile;
    return whole - begin < tile ? whole - begin : tile;
}

#endif
