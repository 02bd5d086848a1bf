/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of matrix products, replayed step by step on an imagined device. */
#include "pipeline/tile_plan.h"
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hr_tile_problem problem_of(uint64_t m, uint64_t n, uint64_t k, uint64_t memory)
{
    return (hr_tile_problem){.m = m,
                             .n = n,
                             .k = k,
                             .a_bytes = 4,
                             .b_bytes = 4,
                             .c_bytes = 4,
                             .memory_bytes = memory,
                             .h2d_bytes_per_s = 53e9,
                             .d2h_bytes_per_s = 54e9,
                             .flops_per_s = 350e12,
                             .launch_s = 5e-6};
}

/* Every place holds what the schedule says; nothing is overwritten that is still needed; every panel of every
 * tile of C is added exactly once. */
static void replay(const hr_tile_problem *p, const hr_tile_plan *plan)
{
    const hr_tile_layout *l = &plan->layout;
    assert_true(hr_tile_layout_bytes(p, l) <= p->memory_bytes);
    uint32_t *in_a = malloc(l->a_places * sizeof *in_a), *in_b = malloc(l->b_places * sizeof *in_b);
    uint32_t *in_c = malloc(l->c_places * sizeof *in_c);
    uint32_t *added = calloc((size_t)l->rows * l->columns, sizeof *added);
    uint32_t *last_use_a = malloc(l->a_places * sizeof *last_use_a);
    uint32_t *last_use_b = malloc(l->b_places * sizeof *last_use_b);
    memset(in_a, 0xff, l->a_places * sizeof *in_a);
    memset(in_b, 0xff, l->b_places * sizeof *in_b);
    memset(in_c, 0xff, l->c_places * sizeof *in_c);
    memset(last_use_a, 0xff, l->a_places * sizeof *last_use_a);
    memset(last_use_b, 0xff, l->b_places * sizeof *last_use_b);
    uint32_t load = 0, stores = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const hr_tile_step *step = &plan->steps[i];
        for (; load < plan->load_count && plan->loads[load].for_step == i; load++) {
            const hr_tile_load *one = &plan->loads[load];
            uint32_t *last_use = one->is_b ? last_use_b : last_use_a;
            assert_int_equal(one->after_step, last_use[one->place]);
            (one->is_b ? in_b : in_a)[one->place] = load;
        }
        const hr_tile_load *a = &plan->loads[step->a_load], *b = &plan->loads[step->b_load];
        assert_true(!a->is_b && a->row == step->row && a->column == step->panel);
        assert_true(b->is_b && b->row == step->panel && b->column == step->column);
        assert_int_equal(in_a[a->place], step->a_load);
        assert_int_equal(in_b[b->place], step->b_load);
        last_use_a[a->place] = i;
        last_use_b[b->place] = i;
        uint32_t tile = step->row * l->columns + step->column;
        if (step->first) {
            assert_int_equal(added[tile], 0);
            if (step->after_store != HR_TILE_NONE) {
                assert_true(step->after_store < stores);
                assert_int_equal(plan->steps[plan->store_steps[step->after_store]].c_place, step->c_place);
            } else {
                assert_int_equal(in_c[step->c_place], HR_TILE_NONE);
            }
            in_c[step->c_place] = tile;
        }
        assert_int_equal(in_c[step->c_place], tile);
        added[tile]++;
        if (step->last) {
            assert_int_equal(added[tile], l->panels);
            assert_int_equal(step->store, stores);
            assert_int_equal(plan->store_steps[stores], i);
            stores++;
        }
    }
    assert_int_equal(load, plan->load_count);
    assert_int_equal(stores, plan->store_count);
    assert_int_equal(stores, l->rows * l->columns);
    free(in_a);
    free(in_b);
    free(in_c);
    free(added);
    free(last_use_a);
    free(last_use_b);
}

static void every_schedule_can_be_replayed(void **state)
{
    (void)state;
    unsigned seed = 11;
    for (int round = 0; round < 60; round++) {
        hr_tile_problem p =
            problem_of(1 + (uint64_t)rand_r(&seed) % 300, 1 + (uint64_t)rand_r(&seed) % 300,
                       1 + (uint64_t)rand_r(&seed) % 300, 8192 + (uint64_t)rand_r(&seed) % 400000);
        p.in_row_order = round % 5 == 0;
        p.accumulator_bytes = round % 3 == 0 ? 4 : 0;
        hr_tile_plan plan;
        hr_error error = HR_ERROR_INIT;
        hr_status status = hr_tile_plan_make(&p, &plan, &error);
        if (status == HR_E_DEVICE_MEMORY) {
            continue;
        }
        assert_int_equal(status, HR_OK);
        replay(&p, &plan);
        if (p.in_row_order) {
            assert_int_equal(plan.layout.columns, 1);
        }
        hr_tile_plan_free(&plan);
    }
}

static void given_layouts_can_be_replayed(void **state)
{
    (void)state;
    unsigned seed = 4;
    for (int round = 0; round < 300; round++) {
        hr_tile_problem p = problem_of(70, 50, 90, 1 << 30);
        hr_tile_layout l = {.tm = 16, .tn = 16, .tk = 16, .rows = 5, .columns = 4, .panels = 6};
        l.block_rows = 1 + (uint32_t)rand_r(&seed) % 5;
        l.block_columns = 1 + (uint32_t)rand_r(&seed) % 4;
        l.a_places = 1 + (uint32_t)rand_r(&seed) % 30;
        l.b_places = 1 + (uint32_t)rand_r(&seed) % 24;
        l.c_places = l.block_rows * l.block_columns + (uint32_t)rand_r(&seed) % 3;
        hr_tile_plan plan;
        assert_int_equal(hr_tile_plan_schedule(&p, &l, &plan, NULL), HR_OK);
        replay(&p, &plan);
        hr_tile_plan_free(&plan);
    }
}

static void what_fits_is_loaded_once(void **state)
{
    (void)state;
    hr_tile_problem p = problem_of(32768, 32768, 32768, UINT64_C(100) << 30);
    hr_tile_plan plan;
    assert_int_equal(hr_tile_plan_make(&p, &plan, NULL), HR_OK);
    replay(&p, &plan);
    assert_true(plan.load_bytes == 2.0 * 32768 * 32768 * 4);
    /* Not slower than a quarter over the largest of computing, loading and storing alone. */
    double compute = 2.0 * 32768.0 * 32768.0 * 32768.0 / 350e12;
    assert_true(plan.predicted_s >= compute);
    assert_true(plan.predicted_s < 1.25 * compute);
    hr_tile_plan_free(&plan);
}

static void little_memory_costs_more_loads_but_never_fails_needlessly(void **state)
{
    (void)state;
    hr_tile_problem p = problem_of(4096, 4096, 4096, UINT64_C(24) << 20);
    hr_tile_plan plan;
    assert_int_equal(hr_tile_plan_make(&p, &plan, NULL), HR_OK);
    replay(&p, &plan);
    double once = 2.0 * 4096 * 4096 * 4;
    assert_true(plan.load_bytes >= once && plan.load_bytes < 8 * once);
    hr_tile_plan_free(&plan);
    p.memory_bytes = 500;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_tile_plan_make(&p, &plan, &error), HR_E_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "500 bytes"));
}

static void empty_products_have_no_steps_or_one_panel(void **state)
{
    (void)state;
    hr_tile_plan plan;
    hr_tile_problem p = problem_of(0, 10, 10, 1 << 20);
    assert_int_equal(hr_tile_plan_make(&p, &plan, NULL), HR_OK);
    assert_int_equal(plan.step_count, 0);
    hr_tile_plan_free(&plan);
    p = problem_of(10, 10, 0, 1 << 20);
    assert_int_equal(hr_tile_plan_make(&p, &plan, NULL), HR_OK);
    assert_true(plan.step_count >= 1);
    assert_int_equal(plan.load_count, 0);
    for (uint32_t i = 0; i < plan.step_count; i++) {
        assert_true(plan.steps[i].first && plan.steps[i].last);
    }
    hr_tile_plan_free(&plan);
}

/* Blocks of all steps, rounded up to whole rounds of the units, over the blocks that there are. */
static double rounding(const hr_tile_problem *p, const hr_tile_plan *plan)
{
    double all = 0.0, needed = 0.0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const hr_tile_layout *l = &plan->layout;
        double m = (double)hr_tile_extent(p->m, l->tm, plan->steps[i].row);
        double n = (double)hr_tile_extent(p->n, l->tn, plan->steps[i].column);
        double k = (double)hr_tile_extent(p->k, l->tk, plan->steps[i].panel);
        double blocks = ceil(m / p->unit_rows) * ceil(n / p->unit_columns);
        all += ceil(blocks / 132.0) * 132.0 * k;
        needed += m * n / ((double)p->unit_rows * p->unit_columns) * k;
    }
    return all / needed;
}

static void steps_fill_the_units_of_a_gpu(void **state)
{
    (void)state;
    static const struct {
        uint32_t rows, columns;
    } unit[] = {{128, 256}, {192, 128}};
    for (unsigned i = 0; i < 2; i++) {
        for (double flops = 40e12; flops < 130e12; flops += 35e12) {
            for (uint64_t edge = 16384; edge <= 32768; edge *= 2) {
                hr_tile_problem p = problem_of(edge, edge, edge, UINT64_C(100) << 30);
                p.flops_per_s = flops;
                p.units = 132;
                p.unit_rows = unit[i].rows;
                p.unit_columns = unit[i].columns;
                hr_tile_plan plan;
                assert_int_equal(hr_tile_plan_make(&p, &plan, NULL), HR_OK);
                replay(&p, &plan);
                assert_int_equal(plan.layout.tm % p.unit_rows, 0);
                assert_int_equal(plan.layout.tn % p.unit_columns, 0);
                double lost = rounding(&p, &plan);
                if (lost > 1.1) {
                    fail_msg("%g flops, edge %llu, blocks of %u rows: steps take %.3f of what they need",
                             flops, (unsigned long long)edge, p.unit_rows, lost);
                }
                double needed = 2.0 * (double)edge * (double)edge * (double)edge;
                assert_true(fabs(hr_tile_plan_work(&p, &plan) / needed - lost) < 1e-9);
                hr_tile_plan_free(&plan);
            }
        }
    }
}

static void without_units_the_work_is_the_products(void **state)
{
    (void)state;
    hr_tile_problem p = problem_of(1000, 700, 300, UINT64_C(1) << 20);
    hr_tile_plan plan;
    assert_int_equal(hr_tile_plan_make(&p, &plan, NULL), HR_OK);
    assert_true(fabs(hr_tile_plan_work(&p, &plan) / (2.0 * 1000 * 700 * 300) - 1.0) < 1e-12);
    hr_tile_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_can_be_replayed),
        cmocka_unit_test(given_layouts_can_be_replayed),
        cmocka_unit_test(what_fits_is_loaded_once),
        cmocka_unit_test(little_memory_costs_more_loads_but_never_fails_needlessly),
        cmocka_unit_test(steps_fill_the_units_of_a_gpu),
        cmocka_unit_test(without_units_the_work_is_the_products),
        cmocka_unit_test(empty_products_have_no_steps_or_one_panel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
