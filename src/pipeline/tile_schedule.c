/* SPDX-License-Identifier: Apache-2.0 */
/* The order of steps of a layout, which tile lies where when, and how long it all takes. */
#include "pipeline/tile_plan.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT32_MAX

/* A place on the device for tiles of one matrix. */
typedef struct place {
    uint32_t tile; /* number of the tile, or HR_TILE_NONE */
    uint32_t load;
    uint32_t last_use, next_use; /* steps */
} place;

/* One matrix's places, and for each step when the tile it uses is used next. */
typedef struct shelf {
    place *places;
    uint32_t count;
    uint32_t *next_use;
} shelf;

static uint32_t a_tile(const hr_tile_layout *l, const hr_tile_step *step)
{
    return step->row * l->panels + step->panel;
}

static uint32_t b_tile(const hr_tile_layout *l, const hr_tile_step *step)
{
    return step->panel * l->columns + step->column;
}

/* Blocks of C from the top, left to right and back; in a block the panels forth and back, so that the last
 * panel of one block is the first of the next and need not come again. */
static void order_steps(const hr_tile_layout *l, hr_tile_step *steps)
{
    uint32_t at = 0, turn = 0;
    uint32_t across = (uint32_t)hr_div_up(l->columns, l->block_columns);
    for (uint32_t top = 0; top < l->rows; top += l->block_rows) {
        for (uint32_t visit = 0; visit < across; visit++, turn++) {
            uint32_t block = (top / l->block_rows) % 2 == 0 ? visit : across - 1 - visit;
            uint32_t left = block * l->block_columns;
            uint32_t bottom = (uint32_t)hr_min_u64(l->rows, (uint64_t)top + l->block_rows);
            uint32_t right = (uint32_t)hr_min_u64(l->columns, (uint64_t)left + l->block_columns);
            for (uint32_t p = 0; p < l->panels; p++) {
                for (uint32_t row = top; row < bottom; row++) {
                    for (uint32_t column = left; column < right; column++) {
                        steps[at++] = (hr_tile_step){.row = row,
                                                     .column = column,
                                                     .panel = turn % 2 == 0 ? p : l->panels - 1 - p,
                                                     .first = p == 0,
                                                     .last = p == l->panels - 1};
                    }
                }
            }
        }
    }
}

static hr_status make_shelf(shelf *s, uint32_t places, uint32_t steps)
{
    s->count = places;
    s->places = calloc(places, sizeof *s->places);
    s->next_use = calloc(steps, sizeof *s->next_use);
    if (s->places == NULL || s->next_use == NULL) {
        return HR_E_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < places; i++) {
        s->places[i] = (place){HR_TILE_NONE, HR_TILE_NONE, HR_TILE_NONE, NEVER};
    }
    return HR_OK;
}

/* For each step, the next one that uses the same tile. */
static hr_status find_next_uses(shelf *s, const hr_tile_layout *l, const hr_tile_step *steps, uint32_t count,
                                uint32_t tiles,
                                uint32_t (*tile_of)(const hr_tile_layout *, const hr_tile_step *))
{
    uint32_t *next = calloc(tiles > 0 ? tiles : 1, sizeof *next);
    if (next == NULL) {
        return HR_E_HOST_MEMORY;
    }
    memset(next, 0xff, tiles * sizeof *next);
    for (uint32_t i = count; i-- > 0;) {
        uint32_t tile = tile_of(l, &steps[i]);
        s->next_use[i] = next[tile];
        next[tile] = i;
    }
    free(next);
    return HR_OK;
}

/* Is `a` a better place to give up than `b` at this step? The one that is needed later, but rather not one
 * that the step before still works on: its load could not begin ahead. */
static bool gives_way(const place *a, const place *b, uint32_t step)
{
    if ((a->tile == HR_TILE_NONE) != (b->tile == HR_TILE_NONE)) {
        return a->tile == HR_TILE_NONE;
    }
    bool a_busy = step > 0 && a->last_use == step - 1, b_busy = step > 0 && b->last_use == step - 1;
    if (a_busy != b_busy) {
        return b_busy;
    }
    if (a->next_use != b->next_use) {
        return a->next_use > b->next_use;
    }
    return a->last_use < b->last_use;
}

/* The load that brings a tile for this step: an earlier one if it is still there, else a new one. */
static uint32_t provide(shelf *s, hr_tile_plan *plan, uint32_t tile, uint32_t step, hr_tile_load load)
{
    place *chosen = &s->places[0];
    for (uint32_t i = 0; i < s->count; i++) {
        place *candidate = &s->places[i];
        if (candidate->tile == tile) {
            candidate->last_use = step;
            candidate->next_use = s->next_use[step];
            return candidate->load;
        }
        chosen = gives_way(candidate, chosen, step) ? candidate : chosen;
    }
    load.place = (uint32_t)(chosen - s->places);
    load.after_step = chosen->tile == HR_TILE_NONE ? HR_TILE_NONE : chosen->last_use;
    load.for_step = step;
    *chosen = (place){tile, plan->load_count, step, s->next_use[step]};
    plan->loads[plan->load_count] = load;
    return plan->load_count++;
}

static void place_c(hr_tile_plan *plan, uint32_t *c_of_tile, uint32_t *c_store, uint32_t *next_free,
                    uint32_t index)
{
    hr_tile_step *step = &plan->steps[index];
    uint32_t tile = step->row * plan->layout.columns + step->column;
    if (step->first) {
        /* Places are taken in turn: tiles leave in the order in which they came. */
        c_of_tile[tile] = *next_free;
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
        *next_free = (*next_free + 1) % plan->layout.c_places;
        step->after_store = c_store[c_of_tile[tile]];
    } else {
        step->after_store = HR_TILE_NONE;
    }
    step->c_place = c_of_tile[tile];
    step->store = HR_TILE_NONE;
    if (step->last) {
        step->store = plan->store_count;
        c_store[step->c_place] = plan->store_count;
        plan->store_steps[plan->store_count++] = index;
    }
}

typedef struct step_size {
    double m, n, k;
} step_size;

static step_size size_of(const hr_tile_problem *p, const hr_tile_layout *l, const hr_tile_step *step)
{
    return (step_size){.m = (double)hr_tile_extent(p->m, l->tm, step->row),
                       .n = (double)hr_tile_extent(p->n, l->tn, step->column),
                       .k = p->k == 0 ? 0.0 : (double)hr_tile_extent(p->k, l->tk, step->panel)};
}

/* A step of few blocks leaves units idle in its last round, and steps do not overlap. */
static double work_of(const hr_tile_problem *p, step_size s)
{
    if (p->units == 0) {
        return 2.0 * s.m * s.n * s.k;
    }
    double blocks = ceil(s.m / p->unit_rows) * ceil(s.n / p->unit_columns);
    double rounds = ceil(blocks / p->units);
    return rounds * p->units * 2.0 * p->unit_rows * p->unit_columns * s.k;
}

double hr_tile_plan_work(const hr_tile_problem *problem, const hr_tile_plan *plan)
{
    double work = 0.0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        work += work_of(problem, size_of(problem, &plan->layout, &plan->steps[i]));
    }
    return work;
}

/* Runs the schedule on three engines: in, compute, out. */
static double simulate(const hr_tile_problem *p, hr_tile_plan *plan, double *loaded, double *stepped,
                       double *stored)
{
    const hr_tile_layout *l = &plan->layout;
    double in = 0.0, compute = 0.0, out = 0.0;
    uint32_t load = 0;
    plan->load_bytes = 0.0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const hr_tile_step *step = &plan->steps[i];
        step_size s = size_of(p, l, step);
        for (; load < plan->load_count && plan->loads[load].for_step == i; load++) {
            const hr_tile_load *one = &plan->loads[load];
            double bytes = one->is_b ? s.k * s.n * (double)p->b_bytes : s.m * s.k * (double)p->a_bytes;
            double begin = one->after_step == HR_TILE_NONE ? in : fmax(in, stepped[one->after_step]);
            in = loaded[load] = begin + p->launch_s + bytes / p->h2d_bytes_per_s;
            plan->load_bytes += bytes;
        }
        double begin = compute;
        begin = step->a_load != HR_TILE_NONE ? fmax(begin, loaded[step->a_load]) : begin;
        begin = step->b_load != HR_TILE_NONE ? fmax(begin, loaded[step->b_load]) : begin;
        begin = step->after_store != HR_TILE_NONE ? fmax(begin, stored[step->after_store]) : begin;
        compute = stepped[i] = begin + p->launch_s + work_of(p, s) / p->flops_per_s;
        if (step->last) {
            out = fmax(out, compute) + p->launch_s + s.m * s.n * (double)p->c_bytes / p->d2h_bytes_per_s;
            stored[step->store] = out;
        }
    }
    return fmax(compute, out);
}

static hr_status fill(const hr_tile_problem *problem, hr_tile_plan *plan, shelf *a, shelf *b)
{
    const hr_tile_layout *l = &plan->layout;
    uint32_t tiles = l->rows * l->columns;
    order_steps(l, plan->steps);
    hr_status status = find_next_uses(a, l, plan->steps, plan->step_count, l->rows * l->panels, a_tile);
    if (status == HR_OK) {
        status = find_next_uses(b, l, plan->steps, plan->step_count, l->panels * l->columns, b_tile);
    }
    uint32_t *c_of_tile = calloc(tiles > 0 ? tiles : 1, sizeof *c_of_tile);
    uint32_t *c_store = calloc(l->c_places > 0 ? l->c_places : 1, sizeof *c_store);
    if (status == HR_OK && c_of_tile != NULL && c_store != NULL) {
        uint32_t next_free = 0;
        memset(c_store, 0xff, l->c_places * sizeof *c_store);
        for (uint32_t i = 0; i < plan->step_count; i++) {
            hr_tile_step *step = &plan->steps[i];
            hr_tile_load load_a = {.row = step->row, .column = step->panel};
            hr_tile_load load_b = {.is_b = true, .row = step->panel, .column = step->column};
            step->a_load = problem->k == 0 ? HR_TILE_NONE : provide(a, plan, a_tile(l, step), i, load_a);
            step->b_load = problem->k == 0 ? HR_TILE_NONE : provide(b, plan, b_tile(l, step), i, load_b);
            place_c(plan, c_of_tile, c_store, &next_free, i);
        }
    } else {
        status = HR_E_HOST_MEMORY;
    }
    free(c_of_tile);
    free(c_store);
    return status;
}

static hr_status predict(const hr_tile_problem *problem, hr_tile_plan *plan)
{
    double *times = calloc((size_t)plan->load_count + plan->step_count + plan->store_count, sizeof *times);
    if (times == NULL) {
        return HR_E_HOST_MEMORY;
    }
    plan->predicted_s =
        simulate(problem, plan, times, times + plan->load_count, times + plan->load_count + plan->step_count);
    free(times);
    return HR_OK;
}

hr_status hr_tile_plan_schedule(const hr_tile_problem *problem, const hr_tile_layout *layout,
                                hr_tile_plan *plan, hr_error *error)
{
    hr_tile_plan made = {.layout = *layout};
    uint32_t steps = layout->rows * layout->columns * layout->panels;
    if (steps == 0) {
        *plan = made;
        return HR_OK;
    }
    made.step_count = steps;
    made.steps = calloc(steps, sizeof *made.steps);
    made.loads = calloc(2 * (size_t)steps, sizeof *made.loads);
    made.store_steps = calloc((size_t)layout->rows * layout->columns, sizeof *made.store_steps);
    shelf a = {0}, b = {0};
    hr_status status =
        made.steps == NULL || made.loads == NULL || made.store_steps == NULL ? HR_E_HOST_MEMORY : HR_OK;
    if (status == HR_OK) {
        status = make_shelf(&a, layout->a_places, steps);
    }
    if (status == HR_OK) {
        status = make_shelf(&b, layout->b_places, steps);
    }
    if (status == HR_OK) {
        status = fill(problem, &made, &a, &b);
    }
    if (status == HR_OK) {
        status = predict(problem, &made);
    }
    free(a.places);
    free(a.next_use);
    free(b.places);
    free(b.next_use);
    if (status != HR_OK) {
        hr_tile_plan_free(&made);
        return hr_fail(error, status, "matrix product: no memory for the schedule of %u steps", steps);
    }
    *plan = made;
    return HR_OK;
}
