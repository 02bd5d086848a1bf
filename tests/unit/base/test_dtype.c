/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <headrace/dtype.h>

static void names_and_sizes_match_the_documentation(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t bytes;
    } documented[] = {{"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"i8", 1},  {"i16", 2},
                      {"i32", 4}, {"i64", 8},  {"u8", 1},  {"u16", 2}, {"u32", 4}, {"u64", 8}};
    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++) {
        hr_dtype dtype = HR_DTYPE_NONE;
        assert_int_equal(hr_dtype_from_name(documented[i].name, &dtype), HR_OK);
        assert_int_equal(hr_dtype_bytes(dtype), documented[i].bytes);
        assert_string_equal(hr_dtype_name(dtype), documented[i].name);
    }
}

static void an_unknown_name_leaves_the_output_alone(void **state)
{
    (void)state;
    hr_dtype dtype = HR_I16;
    assert_int_equal(hr_dtype_from_name("f33", &dtype), HR_E_NOT_FOUND);
    assert_int_equal(dtype, HR_I16);
    assert_int_equal(hr_dtype_bytes((hr_dtype)-1), 0);
    assert_string_equal(hr_dtype_name((hr_dtype)999), "none");
}

static void products_that_overflow_are_refused(void **state)
{
    (void)state;
    uint64_t out = 7;
    hr_shape huge = {3, {UINT64_C(1) << 40, UINT64_C(1) << 20, 16}};
    assert_int_equal(hr_shape_elements(&huge, &out), HR_E_RANGE);
    assert_int_equal(out, 7);
    hr_shape large = {1, {UINT64_C(1) << 61}};
    assert_int_equal(hr_shape_bytes(&large, HR_F64, &out), HR_E_RANGE);
    assert_int_equal(hr_shape_bytes(&large, HR_U8, &out), HR_OK);
    assert_int_equal(out, UINT64_C(1) << 61);
}

static void a_zero_extent_makes_the_array_empty_and_rank_zero_one_element(void **state)
{
    (void)state;
    uint64_t out = 7;
    hr_shape empty = {3, {UINT64_C(1) << 40, 0, UINT64_C(1) << 40}};
    assert_int_equal(hr_shape_elements(&empty, &out), HR_OK);
    assert_int_equal(out, 0);
    hr_shape scalar = {0, {0}};
    assert_int_equal(hr_shape_bytes(&scalar, HR_F64, &out), HR_OK);
    assert_int_equal(out, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_sizes_match_the_documentation),
        cmocka_unit_test(an_unknown_name_leaves_the_output_alone),
        cmocka_unit_test(products_that_overflow_are_refused),
        cmocka_unit_test(a_zero_extent_makes_the_array_empty_and_rank_zero_one_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
