/* SPDX-License-Identifier: Apache-2.0 */
/* How arrays are cut, against plain loops over every unit. */
#include "pipeline/cut.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

static const hr_op elements_op = {.size = sizeof(hr_op), .name = "e", .inputs = 1, .rule = HR_CHUNK_ELEMENTS};
static const hr_op rows_op = {.size = sizeof(hr_op), .name = "r", .inputs = 1, .rule = HR_CHUNK_ROWS};

static hr_cut make(const hr_op *op, hr_shape shape, uint64_t halo, uint64_t align, uint64_t chunk_bytes)
{
    const hr_dtype dtype = HR_U8;
    hr_op_plan plan = {
        .outputs = 1, .dtype = {HR_F32}, .shape = {shape}, .halo_rows = halo, .align_elements = align};
    hr_cut cut;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_cut_make(op, &plan, &dtype, &shape, &cut, &error), HR_OK);
    assert_int_equal(hr_cut_set_chunk(&cut, chunk_bytes, &error), HR_OK);
    return cut;
}

static void every_element_is_written_once_and_read_once(void **state)
{
    (void)state;
    unsigned seed = 5;
    for (int round = 0; round < 300; round++) {
        uint64_t count = (uint64_t)rand_r(&seed) % 500;
        uint64_t align = 1 + (uint64_t)rand_r(&seed) % 5;
        uint64_t chunk = 4 * align + (uint64_t)rand_r(&seed) % 200;
        hr_cut cut = make(&elements_op, (hr_shape){1, {count}}, 0, align, chunk);
        unsigned char read[500] = {0}, written[500] = {0};
        for (uint64_t k = 0; k < hr_cut_chunks(&cut); k++) {
            hr_range in = hr_cut_in(&cut, 0, k), out = hr_cut_out(&cut, 0, k);
            assert_int_equal(in.first % align, 0);
            assert_true(out.bytes <= chunk && out.bytes <= hr_cut_out_bytes(&cut, 0));
            assert_int_equal(in.offset_bytes, in.first);
            assert_int_equal(out.offset_bytes, 4 * out.first);
            for (uint64_t i = 0; i < in.units; i++) {
                read[in.first + i]++;
            }
            for (uint64_t i = 0; i < out.units; i++) {
                written[out.first + i]++;
            }
        }
        for (uint64_t i = 0; i < count; i++) {
            assert_int_equal(read[i], 1);
            assert_int_equal(written[i], 1);
        }
    }
}

static void rows_bring_exactly_the_halo_that_exists(void **state)
{
    (void)state;
    unsigned seed = 9;
    for (int round = 0; round < 300; round++) {
        uint64_t rows = 1 + (uint64_t)rand_r(&seed) % 60;
        uint64_t halo = (uint64_t)rand_r(&seed) % 12;
        uint64_t per_chunk = 1 + (uint64_t)rand_r(&seed) % 20;
        hr_cut cut = make(&rows_op, (hr_shape){2, {rows, 10}}, halo, 0, per_chunk * 40 + 39);
        uint64_t next = 0;
        for (uint64_t k = 0; k < hr_cut_chunks(&cut); k++) {
            hr_range in = hr_cut_in(&cut, 0, k), out = hr_cut_out(&cut, 0, k);
            assert_int_equal(out.first, next);
            next += out.units;
            uint64_t first = out.first > halo ? out.first - halo : 0;
            uint64_t end = out.first + out.units + halo < rows ? out.first + out.units + halo : rows;
            assert_int_equal(in.first, first);
            assert_int_equal(in.units, end - first);
            assert_int_equal(in.bytes, 10 * in.units);
            assert_true(in.bytes <= hr_cut_in_bytes(&cut, 0));
            hr_view view = hr_cut_view(&cut, &cut.out[0], &out, NULL);
            assert_int_equal(view.shape.rank, 2);
            assert_int_equal(view.shape.extent[0], out.units);
            assert_int_equal(view.shape.extent[1], 10);
            assert_int_equal(view.row_pitch_bytes, 40);
            assert_int_equal(view.whole.extent[0], rows);
        }
        assert_int_equal(next, rows);
    }
}

/* Chunks of any taper follow each other without a gap, begin aligned, fit the slots and end where the array does. */
static void check_tapered(const hr_cut *cut, uint64_t halo)
{
    uint64_t next = 0, largest = 0, chunks = hr_cut_chunks(cut);
    for (uint64_t k = 0; k < chunks; k++) {
        hr_range in = hr_cut_in(cut, 0, k), out = hr_cut_out(cut, 0, k);
        assert_int_equal(out.first, next);
        assert_true(out.units > 0);
        assert_int_equal(out.units, hr_cut_units(cut, k));
        assert_int_equal(out.first % cut->align_units, 0);
        assert_true(in.bytes <= hr_cut_in_bytes(cut, 0) && out.bytes <= hr_cut_out_bytes(cut, 0));
        uint64_t before = out.first < halo ? out.first : halo;
        uint64_t behind = cut->units - out.first - out.units;
        assert_int_equal(in.first, out.first - before);
        assert_int_equal(in.units, before + out.units + (behind < halo ? behind : halo));
        next += out.units;
        largest = out.units > largest ? out.units : largest;
    }
    assert_int_equal(next, cut->units);
    assert_true(largest <= cut->chunk_units);
}

static void tapered_chunks_cover_all_once(void **state)
{
    (void)state;
    unsigned seed = 21;
    for (int round = 0; round < 3000; round++) {
        bool rows = round % 2 == 0;
        uint64_t units = (uint64_t)rand_r(&seed) % 5000;
        uint64_t halo = rows ? (uint64_t)rand_r(&seed) % 12 : 0;
        uint64_t align = rows ? 1 : 1 + (uint64_t)rand_r(&seed) % 5;
        uint64_t chunk = align * (1 + (uint64_t)rand_r(&seed) % 400);
        hr_shape shape = rows ? (hr_shape){2, {units, 10}} : (hr_shape){1, {units}};
        hr_cut cut = make(rows ? &rows_op : &elements_op, shape, halo, align, chunk * (rows ? 40 : 4));
        hr_cut_set_taper(&cut, (uint64_t)rand_r(&seed) % 500, (uint64_t)rand_r(&seed) % 500);
        check_tapered(&cut, halo < units ? halo : units);
    }
}

static void a_taper_grows_at_the_head_and_halves_at_the_tail(void **state)
{
    (void)state;
    hr_cut cut = make(&elements_op, (hr_shape){1, {128}}, 0, 1, 4 * 16);
    assert_int_equal(hr_cut_chunks(&cut), 8);
    hr_cut_set_taper(&cut, 4, 2);
    const uint64_t expected[] = {4, 8, 16, 16, 16, 16, 16, 16, 10, 4, 2, 2, 2};
    assert_int_equal(hr_cut_chunks(&cut), sizeof expected / sizeof *expected);
    for (uint64_t k = 0; k < hr_cut_chunks(&cut); k++) {
        assert_int_equal(hr_cut_units(&cut, k), expected[k]);
    }
    hr_cut_set_taper(&cut, 0, 0);
    assert_int_equal(hr_cut_chunks(&cut), 8);
    /* No smaller than a chunk: as it was. */
    hr_cut_set_taper(&cut, 16, 16);
    assert_int_equal(hr_cut_chunks(&cut), 8);
}

static void an_open_end_has_no_taper(void **state)
{
    (void)state;
    hr_cut cut = make(&elements_op, (hr_shape){1, {HR_LENGTH_UNKNOWN}}, 0, 1, 400);
    hr_cut_set_taper(&cut, 10, 10);
    assert_true(hr_cut_chunks(&cut) == UINT64_MAX);
    assert_int_equal(hr_cut_units(&cut, 0), 100);
    assert_int_equal(hr_cut_in(&cut, 0, 7).first, 700);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    const hr_dtype dtype = HR_F64;
    hr_shape huge = {2, {UINT64_C(1) << 40, UINT64_C(1) << 40}};
    hr_op_plan plan = {.outputs = 0};
    hr_cut cut;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_cut_make(&elements_op, &plan, &dtype, &huge, &cut, &error), HR_E_RANGE);
    hr_shape wide = {2, {1, UINT64_C(1) << 62}};
    assert_int_equal(hr_cut_make(&rows_op, &plan, &dtype, &wide, &cut, &error), HR_E_RANGE);
    hr_shape scalar = {0, {0}};
    assert_int_equal(hr_cut_make(&rows_op, &plan, &dtype, &scalar, &cut, &error), HR_E_INVALID);
    hr_shape open_ended = {2, {HR_LENGTH_UNKNOWN, 3}};
    assert_int_equal(hr_cut_make(&rows_op, &plan, &dtype, &open_ended, &cut, &error), HR_E_UNSUPPORTED);
    assert_int_equal(hr_cut_make(&elements_op, &plan, &dtype, &open_ended, &cut, &error), HR_OK);
    assert_true(hr_cut_chunks(&cut) == UINT64_MAX);
}

static void a_chunk_below_one_row_is_refused_by_name(void **state)
{
    (void)state;
    const hr_dtype dtype = HR_F32;
    hr_shape shape = {2, {8, 1000}};
    hr_op_plan plan = {.outputs = 1, .dtype = {HR_F32}, .shape = {shape}};
    hr_cut cut;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_cut_make(&rows_op, &plan, &dtype, &shape, &cut, &error), HR_OK);
    assert_int_equal(hr_cut_set_chunk(&cut, 3999, &error), HR_E_RANGE);
    assert_non_null(strstr(error.text, "3999"));
    assert_non_null(strstr(error.text, "4000"));
    assert_int_equal(hr_cut_set_chunk(&cut, 4000, &error), HR_OK);
    assert_int_equal(cut.chunk_units, 1);
}

static void empty_arrays_have_no_chunks(void **state)
{
    (void)state;
    hr_cut flat = make(&elements_op, (hr_shape){1, {0}}, 0, 0, 100);
    assert_int_equal(hr_cut_chunks(&flat), 0);
    hr_cut no_columns = make(&rows_op, (hr_shape){2, {7, 0}}, 2, 0, 100);
    assert_int_equal(hr_cut_chunks(&no_columns), 0);
    hr_cut no_rows = make(&rows_op, (hr_shape){2, {0, 7}}, 2, 0, 100);
    assert_int_equal(hr_cut_chunks(&no_rows), 0);
}

static void ports_of_different_length_are_refused(void **state)
{
    (void)state;
    const hr_op two = {.size = sizeof(hr_op), .name = "two", .inputs = 2, .rule = HR_CHUNK_ELEMENTS};
    const hr_dtype dtypes[] = {HR_F32, HR_F32};
    const hr_shape shapes[] = {{1, {10}}, {1, {11}}};
    hr_op_plan plan = {.outputs = 0};
    hr_cut cut;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_cut_make(&two, &plan, dtypes, shapes, &cut, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "10"));
    assert_non_null(strstr(error.text, "11"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_written_once_and_read_once),
        cmocka_unit_test(rows_bring_exactly_the_halo_that_exists),
        cmocka_unit_test(tapered_chunks_cover_all_once),
        cmocka_unit_test(a_taper_grows_at_the_head_and_halves_at_the_tail),
        cmocka_unit_test(an_open_end_has_no_taper),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(a_chunk_below_one_row_is_refused_by_name),
        cmocka_unit_test(empty_arrays_have_no_chunks),
        cmocka_unit_test(ports_of_different_length_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
