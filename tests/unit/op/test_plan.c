/* SPDX-License-Identifier: Apache-2.0 */
#include "op_support.h"

static hr_status plan(const char *name, const void *params, hr_dtype a, hr_shape sa, hr_dtype b, hr_shape sb,
                      hr_op_plan *made, hr_error *error)
{
    const hr_dtype dtypes[] = {a, b};
    const hr_shape shapes[] = {sa, sb};
    return hr_op_make_plan(hr_op_find(name), params, dtypes, shapes, made, error);
}

#define SHAPE(...)                             \
    (hr_shape)                                 \
    {                                          \
        sizeof((uint64_t[]){__VA_ARGS__}) / 8, \
        {                                      \
            __VA_ARGS__                        \
        }                                      \
    }

/* Refused with this status, a text that has both parts in it, and the plan left alone. */
static void refused(hr_status wanted, const char *part, const char *other, const char *name,
                    const void *params, hr_dtype a, hr_shape sa, hr_dtype b, hr_shape sb)
{
    hr_error error = HR_ERROR_INIT;
    hr_op_plan made;
    memset(&made, 0x77, sizeof made);
    assert_int_equal(plan(name, params, a, sa, b, sb, &made, &error), wanted);
    if (strstr(error.text, part) == NULL || strstr(error.text, other) == NULL) {
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.text, part, other);
    }
    assert_int_equal(made.outputs, 0x77777777);
}

static void the_list_is_that_of_the_documentation(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t inputs, params;
        const char *takes;
    } wanted[] = {
        {"add", 2, 0, "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"},
        {"scale", 1, 2, "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"},
        {"normalize", 1, 2, "u8"},
        {"convert", 1, 1, "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"},
        {"conv2d", 1, 3, "f16 bf16 f32 f64 i8 i16 u8 u16"},
        {"matmul", 2, 0, "f16 bf16 f32 f64"},
        {"sum", 1, 0, "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"},
        {"checksum", 1, 0, "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"},
        {"copy", 1, 0, "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"},
    };
    uint32_t count = 0;
    while (hr_op_at(count) != NULL) {
        count++;
    }
    assert_int_equal(count, sizeof wanted / sizeof wanted[0]);
    for (uint32_t i = 0; i < count; i++) {
        const hr_op *op = hr_op_at(i);
        assert_string_equal(op->name, wanted[i].name);
        assert_ptr_equal(hr_op_find(wanted[i].name), op);
        assert_int_equal(op->inputs, wanted[i].inputs);
        assert_true(strlen(op->summary) > 10);
        char takes[96] = "";
        for (int d = 0; d <= HR_DTYPE_COUNT; d++) {
            if (hr_op_takes(op, (hr_dtype)d)) {
                snprintf(takes + strlen(takes), sizeof takes - strlen(takes), "%s%s", takes[0] ? " " : "",
                         hr_dtype_name((hr_dtype)d));
            }
        }
        assert_string_equal(takes, wanted[i].takes);
        uint32_t params = 0;
        for (const hr_op_param *p; (p = hr_op_param_at(op, params)) != NULL; params++) {
            assert_true(p->name[0] != '\0' && p->type[0] != '\0' && p->help[0] != '\0');
        }
        assert_int_equal(params, wanted[i].params);
    }
    assert_null(hr_op_find("subtract"));
    assert_null(hr_op_find(NULL));
}

static void element_wise_ops_need_inputs_alike(void **state)
{
    (void)state;
    hr_op_plan made;
    assert_int_equal(plan("add", NULL, HR_F32, SHAPE(4, 7), HR_F32, SHAPE(4, 7), &made, NULL), HR_OK);
    assert_int_equal(made.outputs, 1);
    assert_int_equal(made.dtype[0], HR_F32);
    assert_int_equal(made.shape[0].rank, 2);
    assert_int_equal(made.shape[0].extent[1], 7);
    assert_int_equal(plan("add", NULL, HR_U8, SHAPE(UINT64_MAX, 3), HR_U8, SHAPE(UINT64_MAX, 3), &made, NULL),
                     HR_OK);
    assert_true(made.shape[0].extent[0] == UINT64_MAX);
    refused(HR_E_INVALID, "(4, 8)", "(4, 7)", "add", NULL, HR_F32, SHAPE(4, 7), HR_F32, SHAPE(4, 8));
    refused(HR_E_INVALID, "(28,)", "(4, 7)", "add", NULL, HR_F32, SHAPE(4, 7), HR_F32, SHAPE(28));
    refused(HR_E_INVALID, "f64", "f32", "add", NULL, HR_F32, SHAPE(4), HR_F64, SHAPE(4));
    refused(HR_E_RANGE, "2^63 bytes", "(2305843009213693952, 4)", "copy", NULL, HR_F32,
            SHAPE(UINT64_C(1) << 61, 4), HR_F32, SHAPE(0));
    refused(HR_E_UNSUPPORTED, "none", "f32", "copy", NULL, HR_DTYPE_NONE, SHAPE(4), HR_F32, SHAPE(4));
}

static void ops_with_parameters_check_them(void **state)
{
    (void)state;
    hr_op_plan made;
    const hr_convert_params to = {HR_F16};
    assert_int_equal(plan("convert", &to, HR_I64, SHAPE(5), HR_I64, SHAPE(5), &made, NULL), HR_OK);
    assert_int_equal(made.dtype[0], HR_F16);
    const hr_convert_params nothing = {HR_DTYPE_NONE};
    refused(HR_E_INVALID, "convert", "dtype", "convert", &nothing, HR_F32, SHAPE(5), HR_F32, SHAPE(5));

    hr_normalize_params normalize;
    memset(&normalize, 0, sizeof normalize);
    normalize.channels = 3;
    assert_int_equal(plan("normalize", &normalize, HR_U8, SHAPE(8, 9, 3), HR_U8, SHAPE(1), &made, NULL),
                     HR_OK);
    assert_int_equal(made.align_elements, 3);
    assert_int_equal(made.dtype[0], HR_F32);
    refused(HR_E_INVALID, "3 channels", "(8, 4)", "normalize", &normalize, HR_U8, SHAPE(8, 4), HR_U8,
            SHAPE(1));
    refused(HR_E_UNSUPPORTED, "f32", "takes u8", "normalize", &normalize, HR_F32, SHAPE(3), HR_U8, SHAPE(1));
    normalize.channels = 1;
    assert_int_equal(plan("normalize", &normalize, HR_U8, SHAPE(8, 4), HR_U8, SHAPE(1), &made, NULL), HR_OK);
}

static void conv2d_needs_an_image_and_an_odd_filter(void **state)
{
    (void)state;
    hr_op_plan made;
    hr_conv2d_params p;
    memset(&p, 0, sizeof p);
    p.rows = 5;
    p.columns = 3;
    assert_int_equal(plan("conv2d", &p, HR_U8, SHAPE(10, 20, 3), HR_U8, SHAPE(1), &made, NULL), HR_OK);
    assert_int_equal(made.halo_rows, 2);
    assert_int_equal(made.shape[0].rank, 3);
    refused(HR_E_INVALID, "(10,)", "rows x columns", "conv2d", &p, HR_U8, SHAPE(10), HR_U8, SHAPE(1));
    refused(HR_E_UNSUPPORTED, "i32", "f32", "conv2d", &p, HR_I32, SHAPE(10, 10), HR_U8, SHAPE(1));
    refused(HR_E_UNSUPPORTED, "rows is not known", "border", "conv2d", &p, HR_U8, SHAPE(UINT64_MAX, 10),
            HR_U8, SHAPE(1));
    p.rows = 4;
    refused(HR_E_INVALID, "4 x 3", "odd", "conv2d", &p, HR_U8, SHAPE(10, 10), HR_U8, SHAPE(1));
    p.rows = 33;
    refused(HR_E_INVALID, "33 x 3", "31", "conv2d", &p, HR_U8, SHAPE(10, 10), HR_U8, SHAPE(1));
}

static void matmul_needs_matrices_that_fit(void **state)
{
    (void)state;
    hr_op_plan made;
    assert_int_equal(plan("matmul", NULL, HR_BF16, SHAPE(3, 4), HR_BF16, SHAPE(4, 5), &made, NULL), HR_OK);
    assert_int_equal(made.shape[0].extent[0], 3);
    assert_int_equal(made.shape[0].extent[1], 5);
    assert_int_equal(made.accumulator_bytes, 4);
    assert_int_equal(plan("matmul", NULL, HR_F64, SHAPE(3, 0), HR_F64, SHAPE(0, 5), &made, NULL), HR_OK);
    assert_int_equal(made.accumulator_bytes, 0);
    refused(HR_E_INVALID, "(3, 4)", "(5, 4)", "matmul", NULL, HR_F32, SHAPE(3, 4), HR_F32, SHAPE(5, 4));
    refused(HR_E_INVALID, "(3, 4)", "(4,)", "matmul", NULL, HR_F32, SHAPE(3, 4), HR_F32, SHAPE(4));
    refused(HR_E_INVALID, "f64", "f32", "matmul", NULL, HR_F32, SHAPE(3, 4), HR_F64, SHAPE(4, 4));
    refused(HR_E_UNSUPPORTED, "i32", "bf16", "matmul", NULL, HR_I32, SHAPE(3, 4), HR_I32, SHAPE(4, 4));
    refused(HR_E_UNSUPPORTED, "(?, 4)", "known", "matmul", NULL, HR_F32, SHAPE(UINT64_MAX, 4), HR_F32,
            SHAPE(4, 4));
    refused(HR_E_RANGE, "2^63", "(4294967296, 4294967296)", "matmul", NULL, HR_F32,
            SHAPE(UINT64_C(1) << 32, 1), HR_F32, SHAPE(1, UINT64_C(1) << 32));
}

static hr_status answer;

static hr_status mute_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                           const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    (void)op;
    (void)params;
    (void)dtypes;
    (void)shapes;
    (void)plan;
    (void)error;
    return answer;
}

static void a_plan_of_ones_own_fails_with_a_reason(void **state)
{
    (void)state;
    const hr_op op = {
        .size = sizeof op, .name = "own", .inputs = 1, .rule = HR_CHUNK_ELEMENTS, .plan = mute_plan};
    const hr_dtype dtype = HR_U8;
    const hr_shape shape = SHAPE(4);
    hr_op_plan made;
    hr_error error = HR_ERROR_INIT;
    answer = HR_AGAIN;
    assert_int_equal(hr_op_make_plan(&op, NULL, &dtype, &shape, &made, &error), HR_E_INVALID);
    assert_non_null(strstr(error.text, "own: its plan answered 2"));
    assert_int_equal(error.status, HR_E_INVALID);
    answer = HR_E_FORMAT;
    assert_int_equal(hr_op_make_plan(&op, NULL, &dtype, &shape, &made, &error), HR_E_FORMAT);
    assert_string_equal(error.text, hr_status_text(HR_E_FORMAT));
    assert_int_equal(hr_op_make_plan(&op, NULL, &dtype, &shape, &made, NULL), HR_E_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_that_of_the_documentation),
        cmocka_unit_test(element_wise_ops_need_inputs_alike),
        cmocka_unit_test(ops_with_parameters_check_them),
        cmocka_unit_test(conv2d_needs_an_image_and_an_odd_filter),
        cmocka_unit_test(matmul_needs_matrices_that_fit),
        cmocka_unit_test(a_plan_of_ones_own_fails_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
