/* SPDX-License-Identifier: Apache-2.0 */
#include "op_support.h"

#include <float.h>
#include <math.h>

/* Tails of every length, one piece and several. */
static const uint64_t lengths[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 1023, 1024, 1025, 70001, 200003};
#define LENGTHS (sizeof lengths / sizeof lengths[0])

static hr_shape flat(uint64_t n)
{
    return (hr_shape){1, {n}};
}

/* Memory with a guard on both sides; `skew` bytes off what malloc aligns to. */
typedef struct guarded {
    unsigned char *memory, *data;
    uint64_t bytes;
} guarded;

static guarded take(uint64_t bytes, uint64_t skew)
{
    guarded g = {malloc(bytes + skew + 128), NULL, bytes};
    assert_non_null(g.memory);
    memset(g.memory, 0xa5, bytes + skew + 128);
    g.data = g.memory + 64 + skew;
    return g;
}

static void give(guarded g)
{
    for (const unsigned char *at = g.memory; at < g.data; at++) {
        assert_int_equal(*at, 0xa5);
    }
    for (int i = 0; i < 32; i++) {
        assert_int_equal(g.data[g.bytes + (uint64_t)i], 0xa5);
    }
    free(g.memory);
}

static void launch_flat(const char *name, const void *params, const void *a, const void *b, hr_dtype from,
                        void *c, hr_dtype to, uint64_t n, uint32_t threads)
{
    hr_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.inputs = b != NULL ? 2 : 1;
    launch.outputs = 1;
    launch.params = params;
    launch.in[0] = test_view(a, from, flat(n));
    launch.in[1] = test_view(b, from, flat(n));
    launch.out[0] = test_view(c, to, flat(n));
    test_launch(hr_op_find(name), &launch, threads);
}

static void equal_or_both_nan(const char *what, hr_dtype dtype, const void *found, const void *wanted,
                              uint64_t n)
{
    const uint64_t bytes = hr_dtype_bytes(dtype);
    for (uint64_t i = 0; i < n; i++) {
        if (memcmp((const char *)found + i * bytes, (const char *)wanted + i * bytes, bytes) == 0) {
            continue;
        }
        const double x = element(found, dtype, i);
        const double y = element(wanted, dtype, i);
        if (!(isnan(x) && isnan(y))) {
            fail_msg("%s %s: element %llu is %.17g, wanted %.17g", what, hr_dtype_name(dtype),
                     (unsigned long long)i, x, y);
        }
    }
}

/* Random bits: for floats these are NaN, infinities and subnormals too. */
static void fill_bits(void *data, uint64_t bytes, uint64_t seed)
{
    uint64_t state = seed + 88172645463325252u;
    for (uint64_t i = 0; i < bytes; i++) {
        ((unsigned char *)data)[i] = (unsigned char)(next_random(&state) >> 24);
    }
}

static void plain_add(const void *a, const void *b, void *c, hr_dtype dtype, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t x = 0;
        uint64_t y = 0;
        const uint64_t bytes = hr_dtype_bytes(dtype);
        memcpy(&x, (const char *)a + i * bytes, bytes);
        memcpy(&y, (const char *)b + i * bytes, bytes);
        switch (dtype) {
        case HR_F16:
            /* f64 holds the sum of two f16 exactly, and that of two bf16 well enough to round once. */
            ((uint16_t *)c)[i] = hr_half_from_double(element(a, dtype, i) + element(b, dtype, i));
            break;
        case HR_BF16:
            ((uint16_t *)c)[i] = hr_bf16_from_double(element(a, dtype, i) + element(b, dtype, i));
            break;
        case HR_F32:
            ((float *)c)[i] = (float)(element(a, dtype, i) + element(b, dtype, i));
            break;
        case HR_F64:
            ((double *)c)[i] = ((const double *)a)[i] + ((const double *)b)[i];
            break;
        default:
            x += y;
            memcpy((char *)c + i * bytes, &x, bytes);
        }
    }
}

static void add_wraps_and_rounds_once(void **state)
{
    (void)state;
    for (int d = 1; d < HR_DTYPE_COUNT; d++) {
        const hr_dtype dtype = (hr_dtype)d;
        const uint64_t size = hr_dtype_bytes(dtype);
        for (size_t l = 0; l < LENGTHS; l++) {
            const uint64_t n = lengths[l];
            const uint64_t skew = l % 3 * size;
            guarded a = take(n * size, skew);
            guarded b = take(n * size, 0);
            guarded c = take(n * size, 2 * skew);
            void *wanted = malloc(n * size + 1);
            assert_non_null(wanted);
            fill_bits(a.data, n * size, n + (uint64_t)d);
            fill_bits(b.data, n * size, n + (uint64_t)d + 1000);
            plain_add(a.data, b.data, wanted, dtype, n);
            launch_flat("add", NULL, a.data, b.data, dtype, c.data, dtype, n, 3);
            equal_or_both_nan("add", dtype, c.data, wanted, n);
            free(wanted);
            give(a);
            give(b);
            give(c);
        }
    }
}

/* The largest and smallest of an integer dtype. */
static int64_t lowest(hr_dtype dtype)
{
    return dtype == HR_I8    ? INT8_MIN
           : dtype == HR_I16 ? INT16_MIN
           : dtype == HR_I32 ? INT32_MIN
           : dtype == HR_I64 ? INT64_MIN
                             : 0;
}

static uint64_t highest(hr_dtype dtype)
{
    switch (dtype) {
    case HR_I8:
        return INT8_MAX;
    case HR_I16:
        return INT16_MAX;
    case HR_I32:
        return INT32_MAX;
    case HR_I64:
        return INT64_MAX;
    case HR_U8:
        return UINT8_MAX;
    case HR_U16:
        return UINT16_MAX;
    case HR_U32:
        return UINT32_MAX;
    default:
        return UINT64_MAX;
    }
}

/* An f64 to an integer dtype by the C library's rounding. */
static void put_integer(void *c, hr_dtype to, uint64_t i, double x)
{
    const double r = nearbyint(x);
    uint64_t bits;
    if (isnan(x)) {
        bits = 0;
    } else if (r <= (double)lowest(to)) {
        bits = (uint64_t)lowest(to);
    } else if (r >= (double)highest(to)) {
        bits = highest(to);
    } else {
        bits = r < 0 ? (uint64_t)(int64_t)r : (uint64_t)r;
    }
    memcpy((char *)c + i * hr_dtype_bytes(to), &bits, hr_dtype_bytes(to));
}

static void put_float(void *c, hr_dtype to, uint64_t i, double x)
{
    if (to == HR_F16) {
        ((uint16_t *)c)[i] = hr_half_from_double(x);
    } else if (to == HR_BF16) {
        ((uint16_t *)c)[i] = hr_bf16_from_double(x);
    } else if (to == HR_F32) {
        ((float *)c)[i] = (float)x;
    } else {
        ((double *)c)[i] = x;
    }
}

static int64_t get_i64(const void *a, hr_dtype from, uint64_t i)
{
    switch (from) {
    case HR_I8:
        return ((const int8_t *)a)[i];
    case HR_I16:
        return ((const int16_t *)a)[i];
    case HR_I32:
        return ((const int32_t *)a)[i];
    default:
        return ((const int64_t *)a)[i];
    }
}

static void plain_convert(const void *a, hr_dtype from, void *c, hr_dtype to, uint64_t i)
{
    if (is_float(from)) {
        if (is_float(to)) {
            put_float(c, to, i, element(a, from, i));
        } else {
            put_integer(c, to, i, element(a, from, i));
        }
        return;
    }
    const bool is_signed = from == HR_I8 || from == HR_I16 || from == HR_I32 || from == HR_I64;
    uint64_t bits = 0;
    memcpy(&bits, (const char *)a + i * hr_dtype_bytes(from), hr_dtype_bytes(from));
    const int64_t value = is_signed ? get_i64(a, from, i) : 0;
    const bool negative = is_signed && value < 0;
    if (!is_float(to)) {
        uint64_t out;
        if (negative) {
            out = (uint64_t)(value < lowest(to) ? lowest(to) : value);
        } else {
            out = bits > highest(to) ? highest(to) : bits;
        }
        memcpy((char *)c + i * hr_dtype_bytes(to), &out, hr_dtype_bytes(to));
        return;
    }
    if (to == HR_F32) {
        ((float *)c)[i] = negative ? (float)value : (float)bits;
    } else if (to == HR_F64) {
        ((double *)c)[i] = negative ? (double)value : (double)bits;
    } else {
        const float odd = negative ? hr_float_from_i64_to_odd(value) : hr_float_from_u64_to_odd(bits);
        ((uint16_t *)c)[i] = to == HR_F16 ? hr_half_from_float(odd) : hr_bf16_from_float(odd);
    }
}

static void convert_from_all_to_all(void **state)
{
    (void)state;
    for (int f = 1; f < HR_DTYPE_COUNT; f++) {
        for (int t = 1; t < HR_DTYPE_COUNT; t++) {
            const hr_dtype from = (hr_dtype)f;
            const hr_dtype to = (hr_dtype)t;
            for (size_t l = 0; l < LENGTHS; l += 1 + (l > 9)) {
                const uint64_t n = lengths[l];
                guarded a = take(n * hr_dtype_bytes(from), hr_dtype_bytes(from));
                guarded c = take(n * hr_dtype_bytes(to), 0);
                void *wanted = malloc(n * hr_dtype_bytes(to) + 1);
                assert_non_null(wanted);
                fill_awkward(a.data, from, n, n);
                for (uint64_t i = 0; i < n; i++) {
                    plain_convert(a.data, from, wanted, to, i);
                }
                const hr_convert_params params = {to};
                launch_flat("convert", &params, a.data, NULL, from, c.data, to, n, 2);
                char what[64];
                snprintf(what, sizeof what, "convert from %s to", hr_dtype_name(from));
                equal_or_both_nan(what, to, c.data, wanted, n);
                free(wanted);
                give(a);
                give(c);
            }
        }
    }
}

static void try_scale(hr_dtype dtype, double by, double plus, uint64_t n)
{
    const uint64_t size = hr_dtype_bytes(dtype);
    guarded a = take(n * size, size);
    guarded c = take(n * size, 0);
    void *wanted = malloc(n * size + 1);
    assert_non_null(wanted);
    fill_awkward(a.data, dtype, n, n);
    for (uint64_t i = 0; i < n; i++) {
        /* volatile: each operation rounds by itself. */
        if (dtype == HR_F64 || !is_float(dtype)) {
            volatile double product = element(a.data, dtype, i) * by;
            volatile double sum = product + plus;
            if (is_float(dtype)) {
                put_float(wanted, dtype, i, sum);
            } else {
                put_integer(wanted, dtype, i, sum);
            }
        } else {
            volatile float product = (float)element(a.data, dtype, i) * (float)by;
            volatile float sum = product + (float)plus;
            put_float(wanted, dtype, i, (double)sum);
        }
    }
    hr_scale_params params = {by, plus, 0, 0, false, false, false};
    launch_flat("scale", &params, a.data, NULL, dtype, c.data, dtype, n, 2);
    equal_or_both_nan("scale", dtype, c.data, wanted, n);
    free(wanted);
    give(a);
    give(c);
}

static void scale_rounds_and_saturates(void **state)
{
    (void)state;
    static const double factors[][2] = {{1, 0},         {2.5, -1},   {-0.5, 0.25},
                                        {1.0 / 3, 100}, {1e6, 1e-3}, {0, 7.5}};
    for (int d = 1; d < HR_DTYPE_COUNT; d++) {
        if (d == HR_I64 || d == HR_U64) {
            continue; /* these are exact: below */
        }
        for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
            for (size_t l = 0; l < LENGTHS; l++) {
                try_scale((hr_dtype)d, factors[f][0], factors[f][1], lengths[l]);
            }
        }
    }
}

static void scale_of_64_bits_is_exact(void **state)
{
    (void)state;
    const int64_t a[] = {INT64_C(9007199254740993), INT64_MAX, INT64_MIN, -5, 5, 7};
    int64_t c[6];
    hr_scale_params params = {0.5, 0, 0, 0, false, false, false};
    launch_flat("scale", &params, a, NULL, HR_I64, c, HR_I64, 6, 1);
    /* 4503599627370496.5 goes to the even neighbour, as do ±2.5 and 3.5. */
    const int64_t halves[] = {
        INT64_C(4503599627370496), INT64_C(4611686018427387904), INT64_MIN / 2, -2, 2, 4};
    assert_memory_equal(c, halves, sizeof halves);

    hr_scale_params whole = {3, -1, 3, -1, true, false, false};
    launch_flat("scale", &whole, a, NULL, HR_I64, c, HR_I64, 6, 1);
    const int64_t tripled[] = {INT64_C(27021597764222978), INT64_MAX, INT64_MIN, -16, 14, 20};
    assert_memory_equal(c, tripled, sizeof tripled);

    const uint64_t u[] = {UINT64_MAX, UINT64_MAX - 1, 0, 1, UINT64_C(1) << 63};
    uint64_t v[5];
    hr_scale_params minus = {1, -1, 1, -1, true, false, false};
    launch_flat("scale", &minus, u, NULL, HR_U64, v, HR_U64, 5, 1);
    const uint64_t lowered[] = {UINT64_MAX - 1, UINT64_MAX - 2, 0, 0, (UINT64_C(1) << 63) - 1};
    assert_memory_equal(v, lowered, sizeof lowered);

    /* The same factors as f64 take the other way to the same answer. */
    minus.is_integer = false;
    uint64_t w[5];
    launch_flat("scale", &minus, u, NULL, HR_U64, w, HR_U64, 5, 1);
    assert_memory_equal(v, w, sizeof w);
}

static void normalize_channel_by_channel(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= HR_MAX_CHANNELS; channels++) {
        hr_normalize_params params;
        memset(&params, 0, sizeof params);
        params.channels = channels;
        for (uint32_t i = 0; i < channels; i++) {
            params.mean[i] = 0.1f * (float)i;
            params.std_dev[i] = 0.2f + 0.01f * (float)i;
        }
        for (uint64_t pixels = 0; pixels < 70000; pixels = pixels * 3 + 1) {
            const uint64_t n = pixels * channels;
            guarded a = take(n, 1);
            guarded c = take(n * 4, 0);
            fill_bits(a.data, n, n);
            launch_flat("normalize", &params, a.data, NULL, HR_U8, c.data, HR_F32, n, 2);
            for (uint64_t i = 0; i < n; i++) {
                volatile float share = (float)a.data[i] / 255.0f;
                volatile float centred = share - params.mean[i % channels];
                const float wanted = centred / params.std_dev[i % channels];
                assert_memory_equal(c.data + i * 4, &wanted, 4);
            }
            give(a);
            give(c);
        }
    }
}

static void copy_keeps_every_bit(void **state)
{
    (void)state;
    for (int d = 1; d < HR_DTYPE_COUNT; d++) {
        for (size_t l = 0; l < LENGTHS; l++) {
            const uint64_t bytes = lengths[l] * hr_dtype_bytes((hr_dtype)d);
            guarded a = take(bytes, 1);
            guarded c = take(bytes, 3);
            fill_bits(a.data, bytes, bytes);
            launch_flat("copy", NULL, a.data, NULL, (hr_dtype)d, c.data, (hr_dtype)d, lengths[l], 4);
            assert_memory_equal(a.data, c.data, bytes);
            give(a);
            give(c);
        }
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_wraps_and_rounds_once),    cmocka_unit_test(convert_from_all_to_all),
        cmocka_unit_test(scale_rounds_and_saturates),   cmocka_unit_test(scale_of_64_bits_is_exact),
        cmocka_unit_test(normalize_channel_by_channel), cmocka_unit_test(copy_keeps_every_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_each_level(run);
}
