/* SPDX-License-Identifier: Apache-2.0 */
#include "op_support.h"

#include <math.h>

static hr_op_params params;

static hr_status set(const char *op, const char *name, const char *value, hr_error *error)
{
    return hr_op_params_set(hr_op_find(op), &params, name, value, error);
}

static void ok(const char *op, const char *name, const char *value)
{
    hr_error error = HR_ERROR_INIT;
    if (set(op, name, value, &error) != HR_OK) {
        fail_msg("%s", error.text);
    }
}

/* Refused with this status and a text that has `part` in it; the parameters stay as they were. */
static void refused(const char *op, const char *name, const char *value, hr_status wanted, const char *part)
{
    hr_error error = HR_ERROR_INIT;
    const hr_op_params before = params;
    assert_int_equal(set(op, name, value, &error), wanted);
    if (strstr(error.text, part) == NULL) {
        fail_msg("\"%s\" has no \"%s\" in it", error.text, part);
    }
    assert_memory_equal(&before, &params, sizeof params);
}

static int fresh(void **state)
{
    (void)state;
    memset(&params, 0, sizeof params);
    return 0;
}

static void numbers_are_read_strictly(void **state)
{
    (void)state;
    ok("scale", "by", "-1.5e3");
    assert_true(params.scale.by == -1500.0);
    static const char *const wrong[] = {"",    " 1", "1 ", "1x", "nan", "inf", "0x10", "1e",
                                        "--1", "1,", ".",  "e5", "1 2", "+-1", "1..2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        refused("scale", "by", wrong[i], HR_E_INVALID, "is not a number");
    }
    refused("scale", "plus", "1e999", HR_E_RANGE, "beyond the largest f64");
    refused("scale", "minus", "1", HR_E_NOT_FOUND, "has no parameter \"minus\"");
    refused("add", "by", "1", HR_E_NOT_FOUND, "add");
}

static void integers_stay_exact_while_both_are(void **state)
{
    (void)state;
    ok("scale", "by", "3");
    ok("scale", "plus", "9223372036854775807");
    assert_true(params.scale.is_integer);
    assert_true(params.scale.plus_integer == INT64_MAX);
    ok("scale", "plus", "0.5");
    assert_false(params.scale.is_integer);
    memset(&params, 0, sizeof params);
    ok("scale", "plus", "1.5");
    ok("scale", "by", "2");
    assert_false(params.scale.is_integer);
    memset(&params, 0, sizeof params);
    ok("scale", "plus", "7");
    assert_int_equal(hr_op_params_finish(hr_op_find("scale"), &params, NULL), HR_OK);
    assert_true(params.scale.by == 1.0 && params.scale.by_integer == 1 && params.scale.is_integer);
    memset(&params, 0, sizeof params);
    ok("scale", "by", "0");
    assert_int_equal(hr_op_params_finish(hr_op_find("scale"), &params, NULL), HR_OK);
    assert_true(params.scale.by == 0.0);
}

static void lists_of_means_and_deviations(void **state)
{
    (void)state;
    const hr_op *op = hr_op_find("normalize");
    ok("normalize", "mean", "0.1,0.2,0.3");
    ok("normalize", "std", "2");
    assert_int_equal(hr_op_params_finish(op, &params, NULL), HR_OK);
    assert_int_equal(params.normalize.channels, 3);
    assert_true(params.normalize.mean[2] == 0.3f && params.normalize.std_dev[2] == 2.0f);
    refused("normalize", "std", "1,0,1", HR_E_RANGE, "value 2 is 0");
    refused("normalize", "mean", "1,,2", HR_E_INVALID, "is not a number");
    refused("normalize", "mean", "1,2,", HR_E_INVALID, "is not a number");
    refused("normalize", "mean", "1e39", HR_E_RANGE, "beyond the largest f32");
    refused("normalize", "mean", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", HR_E_RANGE, "more than 16");
    ok("normalize", "std", "1,2");
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_op_params_finish(op, &params, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "3 means and 2 standard deviations"));
    memset(&params, 0, sizeof params);
    assert_int_equal(hr_op_params_finish(op, &params, NULL), HR_OK);
    assert_int_equal(params.normalize.channels, 1);
    assert_true(params.normalize.std_dev[0] == 1.0f);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_op_params_finish(hr_op_find("convert"), &params, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "--to is missing"));
    assert_int_equal(hr_op_params_finish(hr_op_find("conv2d"), &params, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "--filter NAME is missing"));
    refused("convert", "to", "f33", HR_E_INVALID, "no dtype \"f33\"");
    ok("convert", "to", "bf16");
    assert_int_equal(params.convert.to, HR_BF16);
}

static void named_filters_have_their_weights(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t edge;
        double total, first, centre;
    } wanted[] = {{"box3", 3, 1, 1.0 / 9, 1.0 / 9},
                  {"box5", 5, 1, 0.04, 0.04},
                  {"gauss3", 3, 1, 0.0625, 0.25},
                  {"gauss5", 5, 1, 1.0 / 256, 36.0 / 256},
                  {"gauss7", 7, 1, 4.0 / 4096, 324.0 / 4096},
                  {"sobelx", 3, 0, -1, 0},
                  {"sobely", 3, 0, -1, 0},
                  {"sharpen", 3, 1, 0, 5}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        memset(&params, 0, sizeof params);
        ok("conv2d", "filter", wanted[i].name);
        const uint32_t taps = params.conv2d.rows * params.conv2d.columns;
        double total = 0;
        for (uint32_t t = 0; t < taps; t++) {
            total += params.conv2d.weight[t];
        }
        assert_int_equal(params.conv2d.rows, wanted[i].edge);
        assert_int_equal(params.conv2d.columns, wanted[i].edge);
        assert_true(fabs(total - wanted[i].total) < 1e-15);
        assert_true(params.conv2d.weight[0] == wanted[i].first);
        assert_true(params.conv2d.weight[taps / 2] == wanted[i].centre);
    }
    /* sobelx is the derivative along the columns: its middle row is −2 0 2. */
    memset(&params, 0, sizeof params);
    ok("conv2d", "filter", "sobelx");
    assert_true(params.conv2d.weight[3] == -2 && params.conv2d.weight[5] == 2);
    refused("conv2d", "filter", "gauss9", HR_E_INVALID, "no filter \"gauss9\"; there are box3");
    refused("conv2d", "border", "wrap", HR_E_INVALID, "no border \"wrap\"");
    ok("conv2d", "border", "replicate");
    assert_int_equal(params.conv2d.border, HR_BORDER_REPLICATE);
    memset(&params, 0, sizeof params);
    assert_int_equal(params.conv2d.border, HR_BORDER_REFLECT);
}

static hr_status kernel(const void *values, hr_dtype dtype, uint64_t rows, uint64_t columns, hr_error *error)
{
    const hr_shape shape = {2, {rows, columns}};
    return hr_conv2d_set_kernel(&params.conv2d, values, dtype, &shape, error);
}

static void kernels_from_values(void **state)
{
    (void)state;
    hr_error error = HR_ERROR_INIT;
    const float weights[3] = {1, 2, 3};
    assert_int_equal(kernel(weights, HR_F32, 1, 3, &error), HR_OK);
    assert_true(params.conv2d.rows == 1 && params.conv2d.columns == 3 && params.conv2d.weight[2] == 3.0);
    refused("conv2d", "filter", "box3", HR_E_INVALID, "one of the two");
    assert_int_equal(kernel(weights, HR_F32, 2, 1, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "(2, 1)"));
    assert_int_equal(kernel(weights, HR_F32, 33, 1, &error), HR_E_INVALID);
    assert_int_equal(kernel(weights, HR_I32, 1, 3, &error), HR_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "i32"));
    const double bad[1] = {(double)NAN};
    assert_int_equal(kernel(bad, HR_F64, 1, 1, &error), HR_E_INVALID);
    assert_true(params.conv2d.columns == 3);
    memset(&params, 0, sizeof params);
    ok("conv2d", "filter", "box3");
    assert_int_equal(kernel(weights, HR_F32, 1, 3, &error), HR_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(numbers_are_read_strictly, fresh),
        cmocka_unit_test_setup(integers_stay_exact_while_both_are, fresh),
        cmocka_unit_test_setup(lists_of_means_and_deviations, fresh),
        cmocka_unit_test_setup(what_is_missing_is_named, fresh),
        cmocka_unit_test_setup(named_filters_have_their_weights, fresh),
        cmocka_unit_test_setup(kernels_from_values, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
