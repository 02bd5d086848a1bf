/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule's arithmetic against a simulation and against trying every chunk. */
#include "cost/cost.h"
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

/* When each chunk leaves the last stage, stage by stage, chunk by chunk. */
static double simulate(const hr_cost_stage *stages, size_t count, uint64_t chunks, double chunk_bytes)
{
    double free_at[8] = {0};
    double done = 0.0;
    for (uint64_t k = 0; k < chunks; k++) {
        double ready = 0.0;
        for (size_t i = 0; i < count; i++) {
            double begin = fmax(ready, free_at[i]);
            ready = begin + stages[i].start_s + chunk_bytes / stages[i].bytes_per_s;
            free_at[i] = ready;
        }
        done = ready;
    }
    return done;
}

static double random_between(unsigned *seed, double low, double high)
{
    return low + (high - low) * ((double)rand_r(seed) / RAND_MAX);
}

static void random_stages(unsigned *seed, hr_cost_stage *stages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        stages[i].start_s = random_between(seed, 0.0, 50e-6);
        stages[i].bytes_per_s = random_between(seed, 1e9, 60e9);
    }
}

static void pipeline_time_is_what_a_simulation_says(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int round = 0; round < 200; round++) {
        hr_cost_stage stages[6];
        size_t count = 1 + (size_t)round % 6;
        random_stages(&seed, stages, count);
        uint64_t chunks = 1 + (uint64_t)rand_r(&seed) % 40;
        double chunk = random_between(&seed, 1e4, 1e8);
        double expected = simulate(stages, count, chunks, chunk);
        double said = hr_cost_pipeline_s(stages, count, chunk * (double)chunks, chunk);
        assert_true(fabs(said - expected) <= 1e-9 * expected);
    }
}

static void best_chunk_is_not_beaten_by_any_other(void **state)
{
    (void)state;
    unsigned seed = 7;
    for (int round = 0; round < 50; round++) {
        hr_cost_stage stages[6];
        random_stages(&seed, stages, 6);
        double total = random_between(&seed, 1e6, 1e10);
        double best = hr_cost_best_chunk(stages, 6, total, 65536.0, 256e6);
        assert_true(best >= 65536.0 && best <= 256e6);
        double least = hr_cost_pipeline_s(stages, 6, total, best);
        for (double chunk = 65536.0; chunk <= fmin(256e6, total); chunk *= 1.01) {
            assert_true(least <= hr_cost_pipeline_s(stages, 6, total, chunk) * (1.0 + 1e-6));
        }
    }
}

static void best_chunk_is_near_the_square_root(void **state)
{
    (void)state;
    const hr_cost_stage stages[] = {{10e-6, 50e9}, {20e-6, 25e9}, {10e-6, 50e9}};
    double total = 4e9;
    double root = sqrt(total * 20e-6 / (1.0 / 50e9 + 1.0 / 50e9));
    double best = hr_cost_best_chunk(stages, 3, total, 4096.0, 1e9);
    assert_true(fabs(best - root) < 0.01 * root);
}

static void best_chunk_respects_its_limits(void **state)
{
    (void)state;
    const hr_cost_stage stages[] = {{0.0, 1e9}, {1e-3, 1e9}};
    assert_true(hr_cost_best_chunk(stages, 2, 1e12, 1e6, 2e6) <= 2e6);
    const hr_cost_stage no_start[] = {{0.0, 1e9}, {0.0, 2e9}};
    assert_true(hr_cost_best_chunk(no_start, 2, 1e9, 1e6, 2e8) < 1.1e6);
    /* Less data than the smallest chunk: the smallest chunk. */
    assert_true(hr_cost_best_chunk(stages, 2, 10.0, 4096.0, 1e9) == 4096.0);
}

/* With as many slots as depth says, a ring runs as fast as one without a limit. */
static double simulate_ring(const hr_cost_stage *stages, size_t count, uint64_t chunks, double bytes,
                            uint32_t depth, double return_s)
{
    double free_at[8] = {0};
    double left[1024] = {0};
    for (uint64_t k = 0; k < chunks; k++) {
        double ready = k >= depth ? left[k - depth] + return_s : 0.0;
        for (size_t i = 0; i < count; i++) {
            ready = fmax(ready, free_at[i]) + stages[i].start_s + bytes / stages[i].bytes_per_s;
            free_at[i] = ready;
        }
        left[k] = ready;
    }
    return left[chunks - 1];
}

static void depth_keeps_the_slowest_stage_busy(void **state)
{
    (void)state;
    unsigned seed = 3;
    for (int round = 0; round < 100; round++) {
        hr_cost_stage stages[6];
        random_stages(&seed, stages, 6);
        double chunk = random_between(&seed, 1e5, 1e7);
        double return_s = round % 2 == 0 ? 0.0 : random_between(&seed, 0.0, 200e-6);
        uint32_t depth = hr_cost_depth(stages, 6, chunk, return_s);
        if (return_s == 0.0) {
            assert_in_range(depth, 3, 7);
        }
        double limited = simulate_ring(stages, 6, 500, chunk, depth, return_s);
        double unlimited = simulate(stages, 6, 500, chunk);
        assert_true(limited <= unlimited * 1.0001);
        /* Two fewer and the ring cannot hold all stages' chunks at once. */
        if (depth >= 5) {
            assert_true(simulate_ring(stages, 6, 500, chunk, depth - 3, return_s) > unlimited * 1.001);
        }
    }
}

static void absent_stages_cost_nothing(void **state)
{
    (void)state;
    const hr_cost_stage stages[] = {{0.0, 1e9}, {5.0, 0.0}, {0.0, 2e9}};
    const hr_cost_stage without[] = {{0.0, 1e9}, {0.0, 2e9}};
    assert_true(hr_cost_pipeline_s(stages, 3, 1e9, 1e7) == hr_cost_pipeline_s(without, 2, 1e9, 1e7));
    assert_true(hr_cost_floor_s(stages, 3, 1e9) == 1.0);
    assert_int_equal(hr_cost_slowest(stages, 3, 1e6), 0);
    assert_int_equal(hr_cost_slowest(&stages[1], 1, 1e6), 1);
    assert_int_equal(hr_cost_depth(&stages[1], 1, 1e6, 0.0), 2);
    assert_true(hr_cost_pipeline_s(stages, 3, 0.0, 1e7) == 0.0);
}

static void overlap_is_one_when_hidden_and_zero_in_turns(void **state)
{
    (void)state;
    const double busy[] = {2.0, 3.0, 1.0};
    assert_true(hr_cost_overlap(busy, 3, 3.0) == 1.0);
    assert_true(hr_cost_overlap(busy, 3, 6.0) == 0.0);
    assert_true(fabs(hr_cost_overlap(busy, 3, 4.5) - 0.5) < 1e-12);
    assert_true(hr_cost_overlap(busy, 3, 9.0) == 0.0);
    const double alone[] = {0.0, 3.0};
    assert_true(hr_cost_overlap(alone, 2, 5.0) == 1.0);
}

static void a_line_of_equal_chunks_is_a_ring(void **state)
{
    (void)state;
    unsigned seed = 13;
    for (int round = 0; round < 100; round++) {
        hr_cost_stage stages[6];
        random_stages(&seed, stages, 6);
        double chunk = random_between(&seed, 1e5, 1e7), last = 0.0;
        uint32_t depth = 1 + (uint32_t)rand_r(&seed) % 8;
        uint64_t chunks = 1 + (uint64_t)rand_r(&seed) % 100;
        hr_cost_line line = {.chunks = 0};
        for (uint64_t k = 0; k < chunks; k++) {
            last = hr_cost_line_add(&line, stages, 6, depth, chunk);
        }
        double expected = simulate_ring(stages, 6, chunks, chunk, depth, 0.0);
        assert_true(fabs(last - expected) <= 1e-9 * expected);
    }
}

static void a_smaller_last_chunk_shortens_the_line(void **state)
{
    (void)state;
    /* In at 50 GB/s, out at 100: what is left to do behind the last chunk in is half of what it took. */
    const hr_cost_stage stages[] = {{0.0, 50e9}, {0.0, 100e9}};
    hr_cost_line even = {.chunks = 0}, tapered = {.chunks = 0};
    hr_cost_line_add(&even, stages, 2, 4, 1e9);
    assert_true(fabs(hr_cost_line_add(&even, stages, 2, 4, 1e9) - 0.05) < 1e-9);
    hr_cost_line_add(&tapered, stages, 2, 4, 1e9);
    hr_cost_line_add(&tapered, stages, 2, 4, 0.5e9);
    assert_true(fabs(hr_cost_line_add(&tapered, stages, 2, 4, 0.5e9) - 0.045) < 1e-9);
}

static void a_link_takes_the_better_of_at_once_and_in_turn(void **state)
{
    (void)state;
    const hr_cost_duplex link = {.in = 55e9, .out = 55e9, .in_with_out = 51e9, .out_with_in = 51e9};
    /* Half a unit out: meanwhile as much comes in, and the other half alone. */
    double expected = 0.5e9 / 51e9 + 0.5e9 / 55e9;
    assert_true(fabs(hr_cost_duplex_s(&link, 1e9, 0.5e9) - expected) < 1e-12);
    assert_true(fabs(hr_cost_duplex_s(&link, 0.5e9, 1e9) - expected) < 1e-12);
    assert_true(fabs(hr_cost_duplex_s(&link, 1e9, 0.0) - 1e9 / 55e9) < 1e-12);
    const hr_cost_duplex half = {.in = 50e9, .out = 50e9, .in_with_out = 10e9, .out_with_in = 10e9};
    assert_true(fabs(hr_cost_duplex_s(&half, 1e9, 1e9) - 2e9 / 50e9) < 1e-12);
    /* What was not measured changes nothing. */
    const hr_cost_duplex unknown = {.in = 50e9, .out = 25e9};
    assert_true(fabs(hr_cost_duplex_s(&unknown, 1e9, 1e9) - 1e9 / 25e9) < 1e-12);
    const hr_cost_duplex none = {0};
    assert_true(hr_cost_duplex_s(&none, 1e9, 1e9) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_time_is_what_a_simulation_says),
        cmocka_unit_test(best_chunk_is_not_beaten_by_any_other),
        cmocka_unit_test(best_chunk_is_near_the_square_root),
        cmocka_unit_test(best_chunk_respects_its_limits),
        cmocka_unit_test(depth_keeps_the_slowest_stage_busy),
        cmocka_unit_test(absent_stages_cost_nothing),
        cmocka_unit_test(overlap_is_one_when_hidden_and_zero_in_turns),
        cmocka_unit_test(a_line_of_equal_chunks_is_a_ring),
        cmocka_unit_test(a_smaller_last_chunk_shortens_the_line),
        cmocka_unit_test(a_link_takes_the_better_of_at_once_and_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
