/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tile_plan.h"

#include "base/checked.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tiles are cut at multiples of this, so that their rows begin where vectors do; those of several blocks of a unit, or of
 * many steps of k, at multiples of these. */
#define TILE_GRAIN   UINT64_C(16)
#define TILE_K_GRAIN UINT64_C(256)
#define TILE_LARGE   8
/* No schedule that is tried for its speed has more steps; one that is needed for its small memory may. */
#define STEPS_TRIED UINT64_C(4096)
#define STEPS_MOST  UINT64_C(4000000)
#define NEVER       UINT32_MAX

/* Into how many tiles a side may be cut. */
static const uint32_t cuts[] = {1,  2,  3,  4,   5,   6,   8,   10,  12,   16,   20,   24,   32,
                                48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192, 16384};
enum { CUTS = sizeof cuts / sizeof cuts[0] };
static const uint32_t blocks[] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64};
enum { BLOCKS = sizeof blocks / sizeof blocks[0] };

static uint64_t tile_size(uint64_t whole, uint32_t pieces, uint64_t large_grain)
{
    uint64_t size = hr_div_up(whole, pieces);
    uint64_t grain = size >= TILE_LARGE * large_grain ? hr_max_u64(large_grain, TILE_GRAIN) : TILE_GRAIN;
    return size == 0 ? 1 : hr_min_u64(hr_round_up(size, grain), whole);
}

/* Room is kept at multiples of 256 bytes, as pools hand it out. */
static uint64_t place_bytes(uint64_t rows, uint64_t columns, uint64_t element)
{
    uint64_t bytes;
    if (hr_mul_overflows(rows, columns, &bytes) || hr_mul_overflows(bytes, element, &bytes) ||
        bytes > INT64_MAX) {
        return INT64_MAX;
    }
    return hr_round_up(bytes, 256);
}

static uint64_t times(uint64_t count, uint64_t bytes)
{
    uint64_t product;
    return hr_mul_overflows(count, bytes, &product) ? UINT64_MAX : product;
}

static uint64_t a_place(const hr_tile_problem *p, const hr_tile_layout *l)
{
    return place_bytes(l->tm, l->tk, p->a_bytes);
}

static uint64_t b_place(const hr_tile_problem *p, const hr_tile_layout *l)
{
    return place_bytes(l->tk, l->tn, p->b_bytes);
}

static uint64_t c_place(const hr_tile_problem *p, const hr_tile_layout *l)
{
    uint64_t bytes = place_bytes(l->tm, l->tn, p->c_bytes);
    return l->panels > 1 && p->accumulator_bytes > 0 ? bytes + place_bytes(l->tm, l->tn, p->accumulator_bytes)
                                                     : bytes;
}

uint64_t hr_tile_layout_bytes(const hr_tile_problem *problem, const hr_tile_layout *layout)
{
    uint64_t a = times(layout->a_places, a_place(problem, layout));
    uint64_t b = times(layout->b_places, b_place(problem, layout));
    uint64_t c = times(layout->c_places, c_place(problem, layout));
    uint64_t sum;
    return hr_add_overflows(a, b, &sum) || hr_add_overflows(sum, c, &sum) ? UINT64_MAX : sum;
}

/* Raises *places towards `wanted` as far as the free memory goes. */
static void widen(uint32_t *places, uint64_t wanted, uint64_t place, uint64_t *free_bytes)
{
    if (wanted <= *places) {
        return;
    }
    uint64_t more = hr_min_u64(wanted - *places, place > 0 ? *free_bytes / place : UINT32_MAX);
    *places += (uint32_t)more;
    *free_bytes -= more * place;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return hr_min_u64(hr_min_u64(a, b), NEVER - 1);
}

/* Gives out the memory: first what the blocks cannot do without, then room to load ahead, then room to keep.
 */
static bool give_places(const hr_tile_problem *problem, hr_tile_layout *l)
{
    uint64_t all_a = (uint64_t)l->rows * l->panels, all_b = (uint64_t)l->panels * l->columns;
    uint64_t all_c = (uint64_t)l->rows * l->columns, block = (uint64_t)l->block_rows * l->block_columns;
    l->a_places = l->b_places = 1;
    l->c_places = (uint32_t)at_most(all_c, block);
    uint64_t least = hr_tile_layout_bytes(problem, l);
    if (least > problem->memory_bytes) {
        return false;
    }
    uint64_t left = problem->memory_bytes - least;
    uint64_t a = a_place(problem, l), b = b_place(problem, l), c = c_place(problem, l);
    widen(&l->a_places, at_most(all_a, l->block_rows + 1u), a, &left);
    widen(&l->b_places, at_most(all_b, l->block_columns + 1u), b, &left);
    widen(&l->c_places, at_most(all_c, block + 1), c, &left);
    widen(&l->a_places, at_most(all_a, 2u * l->block_rows), a, &left);
    widen(&l->b_places, at_most(all_b, 2u * l->block_columns), b, &left);
    widen(&l->c_places, at_most(all_c, 2 * block), c, &left);
    widen(&l->a_places, at_most(all_a, (uint64_t)l->block_rows * (l->panels + 1)), a, &left);
    widen(&l->b_places, at_most(all_b, UINT32_MAX), b, &left);
    widen(&l->a_places, at_most(all_a, UINT32_MAX), a, &left);
    return true;
}

/* A choice is one index into each table. */
typedef struct choice {
    int rows, columns, panels, block_rows, block_columns;
} choice;

static bool make_layout(const hr_tile_problem *p, const choice *c, hr_tile_layout *layout)
{
    hr_tile_layout l = {.tm = tile_size(p->m, cuts[c->rows], p->unit_rows),
                        .tn = p->in_row_order ? hr_max_u64(p->n, 1)
                                              : tile_size(p->n, cuts[c->columns], p->unit_columns),
                        .tk = tile_size(p->k, cuts[c->panels], TILE_K_GRAIN)};
    uint64_t rows = hr_div_up(p->m, l.tm), columns = hr_div_up(p->n, l.tn);
    uint64_t panels = p->k == 0 ? 1 : hr_div_up(p->k, l.tk);
    uint64_t steps = times(times(rows, columns), panels);
    if (steps > STEPS_MOST) {
        return false;
    }
    l.rows = (uint32_t)rows;
    l.columns = (uint32_t)columns;
    l.panels = (uint32_t)panels;
    l.block_rows = blocks[c->block_rows] < l.rows ? blocks[c->block_rows] : l.rows;
    l.block_columns = blocks[c->block_columns] < l.columns ? blocks[c->block_columns] : l.columns;
    if (p->in_row_order) {
        l.block_rows = 1;
    }
    if (!give_places(p, &l)) {
        return false;
    }
    *layout = l;
    return true;
}

static double seconds_of(const hr_tile_problem *problem, const hr_tile_layout *layout)
{
    if ((uint64_t)layout->rows * layout->columns * layout->panels > STEPS_TRIED) {
        return INFINITY;
    }
    hr_tile_plan plan;
    if (hr_tile_plan_schedule(problem, layout, &plan, NULL) != HR_OK) {
        return INFINITY;
    }
    double seconds = plan.predicted_s;
    hr_tile_plan_free(&plan);
    return seconds;
}

/* One step along each table, as long as that is faster. */
static hr_tile_layout climb(const hr_tile_problem *problem, choice at, hr_tile_layout layout)
{
    double best = seconds_of(problem, &layout);
    for (bool better = true; better;) {
        better = false;
        for (int move = 0; move < 10; move++) {
            choice next = at;
            int *index[] = {&next.rows, &next.columns, &next.panels, &next.block_rows, &next.block_columns};
            int limit = move / 2 < 3 ? CUTS : BLOCKS;
            *index[move / 2] += move % 2 == 0 ? 1 : -1;
            hr_tile_layout tried;
            if (*index[move / 2] < 0 || *index[move / 2] >= limit || !make_layout(problem, &next, &tried)) {
                continue;
            }
            double seconds = seconds_of(problem, &tried);
            if (seconds < best * 0.999) {
                best = seconds;
                at = next;
                layout = tried;
                better = true;
            }
        }
    }
    return layout;
}

hr_status hr_tile_plan_make(const hr_tile_problem *problem, hr_tile_plan *plan, hr_error *error)
{
    /* From the coarsest cut that fits; a climb from there, and one from a cut of eight where that fits. */
    hr_tile_layout best = {0};
    bool found = false;
    for (int start = 0; start < CUTS && !found; start++) {
        choice at = {start, start, start, 0, 0};
        found = make_layout(problem, &at, &best);
        if (found) {
            best = climb(problem, at, best);
        }
    }
    if (!found) {
        return hr_fail(error, HR_E_DEVICE_MEMORY,
                       "matrix product: %" PRIu64 " × %" PRIu64 " by %" PRIu64 " × %" PRIu64
                       " cannot be cut into tiles that fit in %" PRIu64 " bytes",
                       problem->m, problem->k, problem->k, problem->n, problem->memory_bytes);
    }
    choice second = {6, 6, 6, 1, 1};
    hr_tile_layout other;
    if (make_layout(problem, &second, &other)) {
        other = climb(problem, second, other);
        best = seconds_of(problem, &other) < seconds_of(problem, &best) ? other : best;
    }
    return hr_tile_plan_schedule(problem, &best, plan, error);
}

void hr_tile_plan_free(hr_tile_plan *plan)
{
    free(plan->loads);
    free(plan->steps);
    free(plan->store_steps);
    memset(plan, 0, sizeof *plan);
}
