/* SPDX-License-Identifier: Apache-2.0 */
#include "op_support.h"

#include "base/partial.h"

#include <float.h>
#include <math.h>

static const hr_dtype floats[] = {HR_F16, HR_BF16, HR_F32, HR_F64};

/* Reduces in chunks of `chunk` elements, as a pipeline would. */
static hr_status reduce(const char *name, const void *data, hr_dtype dtype, uint64_t n, uint64_t chunk,
                        uint32_t threads, hr_result *result, hr_error *error)
{
    const hr_op *op = hr_op_find(name);
    hr_op_plan plan;
    const hr_shape shape = {1, {n}};
    assert_int_equal(hr_op_make_plan(op, NULL, &dtype, &shape, &plan, NULL), HR_OK);
    void *total = calloc(1, plan.partial_bytes);
    void *partial = malloc(plan.partial_bytes);
    if (total == NULL || partial == NULL) {
        abort();
    }
    for (uint64_t first = 0; first < n; first += chunk) {
        const uint64_t count = n - first < chunk ? n - first : chunk;
        hr_launch launch;
        memset(&launch, 0, sizeof launch);
        launch.inputs = 1;
        launch.in[0] =
            test_view((const char *)data + first * hr_dtype_bytes(dtype), dtype, (hr_shape){1, {count}});
        launch.in[0].first = first;
        memset(partial, 0xee, plan.partial_bytes);
        launch.partial = partial;
        test_launch(op, &launch, threads);
        op->combine(op, NULL, total, partial, count);
    }
    memset(result, 0, sizeof *result);
    const hr_status status = op->result(op, NULL, dtype, total, result, error);
    free(total);
    free(partial);
    return status;
}

static hr_result reduced(const char *name, const void *data, hr_dtype dtype, uint64_t n, uint64_t chunk,
                         uint32_t threads)
{
    hr_result result;
    hr_error error = HR_ERROR_INIT;
    if (reduce(name, data, dtype, n, chunk, threads, &result, &error) != HR_OK) {
        fail_msg("%s", error.text);
    }
    return result;
}

static void float_sums_are_near_the_exact_sum_and_the_same_in_any_chunks(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {0, 1, 31, 33, 1023, 1024, 1025, 100001, 300000};
    for (size_t d = 0; d < 4; d++) {
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            const uint64_t n = lengths[l];
            void *data = malloc(n * 8 + 1);
            assert_non_null(data);
            fill_plain(data, floats[d], n, n + d);
            long double exact = 0;
            double magnitude = 0;
            for (uint64_t i = 0; i < n; i++) {
                exact += (long double)element(data, floats[d], i);
                magnitude += fabs(element(data, floats[d], i));
            }
            const hr_result whole = reduced("sum", data, floats[d], n, n + 1, 1);
            assert_int_equal(whole.kind, HR_RESULT_F64);
            if (!(fabs(whole.as.f64 - (double)exact) <= magnitude * 0x1p-50)) {
                fail_msg("%s, %llu elements: %.17g, wanted %.17g", hr_dtype_name(floats[d]),
                         (unsigned long long)n, whole.as.f64, (double)exact);
            }
            static const uint64_t chunks[] = {1024, 7 * 1024, 65536, 200 * 1024};
            for (size_t c = 0; c < sizeof chunks / sizeof chunks[0]; c++) {
                const hr_result again = reduced("sum", data, floats[d], n, chunks[c], 1 + (uint32_t)c);
                assert_memory_equal(&again.as.f64, &whole.as.f64, sizeof(double));
            }
            free(data);
        }
    }
}

/* A block's additions are those that the header of base/exact_sum.h describes, whatever the vector units. */
static void float_sums_have_the_bits_of_the_described_order(void **state)
{
    (void)state;
    enum { N = 5 * HR_SUM_BLOCK + 77 };
    static float data[N];
    fill_plain(data, HR_F32, N, 3);
    hr_exact_sum sum;
    memset(&sum, 0, sizeof sum);
    for (int block = 0; block < N; block += HR_SUM_BLOCK) {
        double lane[HR_SUM_LANES] = {0};
        for (int i = block; i < N && i < block + HR_SUM_BLOCK; i++) {
            lane[i % HR_SUM_LANES] += (double)data[i];
        }
        for (int half = HR_SUM_LANES / 2; half > 0; half /= 2) {
            for (int k = 0; k < half; k++) {
                lane[k] += lane[k + half];
            }
        }
        hr_exact_sum_add(&sum, lane[0]);
    }
    hr_exact_sum_carry(&sum);
    assert_true(reduced("sum", data, HR_F32, N, N, 2).as.f64 == hr_exact_sum_value(&sum));
    /* A chunk that starts within a block is still right, if not to the same bits. */
    const double cut = reduced("sum", data, HR_F32, N, 100, 1).as.f64;
    assert_true(fabs(cut - hr_exact_sum_value(&sum)) < 1e-9);
}

static void cancelling_between_blocks_loses_nothing(void **state)
{
    (void)state;
    static double data[3 * HR_SUM_BLOCK];
    data[0] = 1e300;
    data[HR_SUM_BLOCK] = 1;
    data[2 * HR_SUM_BLOCK] = -1e300;
    assert_true(reduced("sum", data, HR_F64, 3 * HR_SUM_BLOCK, HR_SUM_BLOCK, 1).as.f64 == 1.0);
}

static void nan_and_infinity_come_through(void **state)
{
    (void)state;
    float data[3] = {1, (float)INFINITY, 2};
    assert_true(reduced("sum", data, HR_F32, 3, 8, 1).as.f64 == (double)INFINITY);
    data[0] = -(float)INFINITY;
    assert_true(isnan(reduced("sum", data, HR_F32, 3, 1024, 1).as.f64));
    data[0] = NAN;
    assert_true(isnan(reduced("sum", data, HR_F32, 3, 1024, 1).as.f64));
}

static void integer_sums_are_exact(void **state)
{
    (void)state;
    enum { N = 100003 };
    static unsigned char data[N * 8];
    for (int d = HR_I8; d < HR_DTYPE_COUNT; d++) {
        const hr_dtype dtype = (hr_dtype)d;
        fill_plain(data, dtype, N, (uint64_t)d);
        uint64_t wanted = 0;
        for (int i = 0; i < N; i++) {
            /* 64-bit ones small enough that the total fits. */
            if (dtype == HR_I64) {
                ((int64_t *)(void *)data)[i] /= 1 << 20;
                wanted += (uint64_t)((int64_t *)(void *)data)[i];
            } else if (dtype == HR_U64) {
                ((uint64_t *)(void *)data)[i] >>= 20;
                wanted += ((uint64_t *)(void *)data)[i];
            } else {
                wanted += (uint64_t)(int64_t)element(data, dtype, (uint64_t)i);
            }
        }
        const bool is_signed = dtype <= HR_I64;
        for (uint64_t chunk = 1000; chunk < 200000; chunk *= 7) {
            const hr_result found = reduced("sum", data, dtype, N, chunk, 3);
            assert_int_equal(found.kind, is_signed ? HR_RESULT_I64 : HR_RESULT_U64);
            assert_true((is_signed ? (uint64_t)found.as.i64 : found.as.u64) == wanted);
        }
    }
}

static void integer_sums_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    hr_result result;
    hr_error error = HR_ERROR_INIT;
    const int64_t high[] = {INT64_MAX, INT64_MAX, -INT64_MAX};
    assert_true(reduced("sum", high, HR_I64, 3, 1, 1).as.i64 == INT64_MAX);
    assert_int_equal(reduce("sum", high, HR_I64, 2, 8, 1, &result, &error), HR_E_RANGE);
    assert_non_null(strstr(error.text, "at least 2^63"));
    assert_int_equal(result.kind, HR_RESULT_NONE);
    const int64_t low[] = {INT64_MIN, 0, -1};
    assert_true(reduced("sum", low, HR_I64, 2, 1, 1).as.i64 == INT64_MIN);
    assert_int_equal(reduce("sum", low, HR_I64, 3, 8, 1, &result, &error), HR_E_RANGE);
    assert_non_null(strstr(error.text, "below -2^63"));
    const uint64_t wide[] = {UINT64_MAX, 0, 1};
    assert_true(reduced("sum", wide, HR_U64, 2, 1, 1).as.u64 == UINT64_MAX);
    assert_int_equal(reduce("sum", wide, HR_U64, 3, 8, 1, &result, &error), HR_E_RANGE);
    assert_non_null(strstr(error.text, "at least 2^64"));
}

static void checksums_are_the_same_in_any_chunks(void **state)
{
    (void)state;
    assert_true(reduced("checksum", "123456789", HR_U8, 9, 4, 1).as.hex32 == 0xe3069283u);
    enum { N = 1000003 };
    unsigned char *data = malloc(N);
    assert_non_null(data);
    fill_plain(data, HR_U8, N, 9);
    /* Bit by bit, from the definition. */
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < N; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    static const uint64_t chunks[] = {N, 1001, 65536, 333333};
    for (size_t c = 0; c < sizeof chunks / sizeof chunks[0]; c++) {
        const hr_result found = reduced("checksum", data, HR_U8, N, chunks[c], 1 + (uint32_t)c);
        assert_int_equal(found.kind, HR_RESULT_HEX32);
        assert_true(found.as.hex32 == ~crc);
    }
    assert_true(reduced("checksum", data, HR_F64, N / 8, 1000, 2).as.hex32 ==
                reduced("checksum", data, HR_U8, N / 8 * 8, 777, 1).as.hex32);
    assert_true(reduced("checksum", data, HR_U8, 0, 1, 1).as.hex32 == 0);
    free(data);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_sums_are_near_the_exact_sum_and_the_same_in_any_chunks),
        cmocka_unit_test(float_sums_have_the_bits_of_the_described_order),
        cmocka_unit_test(cancelling_between_blocks_loses_nothing),
        cmocka_unit_test(nan_and_infinity_come_through),
        cmocka_unit_test(integer_sums_are_exact),
        cmocka_unit_test(integer_sums_that_do_not_fit_are_refused),
        cmocka_unit_test(checksums_are_the_same_in_any_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_each_level(run);
}
