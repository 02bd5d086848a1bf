/* SPDX-License-Identifier: Apache-2.0 */
#include "op_support.h"

#include <math.h>

static const hr_dtype dtypes[] = {HR_F16, HR_BF16, HR_F32, HR_F64};

typedef struct product_case {
    hr_dtype dtype;
    uint64_t m, n, k;
    uint64_t panel;   /* of k in one launch */
    uint64_t padding; /* elements between rows */
    uint32_t threads;
} product_case;

static hr_view pitched(const void *data, hr_dtype dtype, uint64_t rows, uint64_t columns, uint64_t pitch)
{
    hr_view view = test_view(data, dtype, (hr_shape){2, {rows, columns}});
    view.row_pitch_bytes = pitch * hr_dtype_bytes(dtype);
    return view;
}

static void launch_panels(const product_case *t, const char *a, const char *b, char *c, void *accumulator)
{
    const uint64_t size = hr_dtype_bytes(t->dtype);
    const uint64_t lda = t->k + t->padding;
    const uint64_t ldb = t->n + t->padding;
    const bool several = t->panel < t->k;
    uint64_t p = 0;
    do {
        const uint64_t depth = t->k - p < t->panel ? t->k - p : t->panel;
        hr_launch launch;
        memset(&launch, 0, sizeof launch);
        launch.inputs = 2;
        launch.outputs = 1;
        launch.in[0] = pitched(a + p * size, t->dtype, t->m, depth, lda);
        launch.in[1] = pitched(b + p * ldb * size, t->dtype, depth, t->n, ldb);
        launch.out[0] = pitched(c, t->dtype, t->m, t->n, ldb);
        launch.accumulate = p > 0;
        launch.last = p + depth == t->k;
        launch.accumulator = several ? accumulator : NULL;
        test_launch(hr_op_find("matmul"), &launch, t->threads);
        p += depth;
    } while (p < t->k);
}

static double half_place(hr_dtype dtype, double value)
{
    if (dtype == HR_F16) {
        return fmax(fabs(value) * 0x1p-11, 0x1p-25);
    }
    return dtype == HR_BF16 ? fabs(value) * 0x1p-8 : 0;
}

static void check(const product_case *t, const void *a, const void *b, const void *c)
{
    const uint64_t ldb = t->n + t->padding;
    for (uint64_t i = 0; i < t->m; i++) {
        for (uint64_t j = 0; j < t->n; j++) {
            double wanted = 0;
            double magnitude = 0;
            for (uint64_t p = 0; p < t->k; p++) {
                const double term =
                    element(a, t->dtype, i * (t->k + t->padding) + p) * element(b, t->dtype, p * ldb + j);
                wanted += term;
                magnitude += fabs(term);
            }
            const double found = element(c, t->dtype, i * ldb + j);
            const double epsilon = t->dtype == HR_F64 ? 0x1p-52 : 0x1p-23;
            const double bound =
                magnitude * epsilon * (8 + sqrt((double)t->k)) + half_place(t->dtype, wanted);
            if (!(fabs(found - wanted) <= bound)) {
                fail_msg("%s %llux%llux%llu: (%llu, %llu) is %.9g, wanted %.9g within %g",
                         hr_dtype_name(t->dtype), (unsigned long long)t->m, (unsigned long long)t->k,
                         (unsigned long long)t->n, (unsigned long long)i, (unsigned long long)j, found,
                         wanted, bound);
            }
        }
    }
}

static void try_case(product_case t)
{
    const uint64_t size = hr_dtype_bytes(t.dtype);
    const uint64_t a_count = t.m * (t.k + t.padding);
    const uint64_t b_count = t.k * (t.n + t.padding);
    const uint64_t c_count = t.m * (t.n + t.padding);
    char *a = malloc(a_count * size + 1);
    char *b = malloc(b_count * size + 1);
    char *c = malloc(c_count * size + 1);
    void *accumulator = malloc(t.m * t.n * 4 + 1);
    assert_true(a != NULL && b != NULL && c != NULL && accumulator != NULL);
    fill_plain(a, t.dtype, a_count, 1);
    fill_plain(b, t.dtype, b_count, 2);
    /* NaN everywhere: what is not set shows, and so does padding that is touched. */
    memset(c, 0xff, c_count * size);
    launch_panels(&t, a, b, c, size == 2 ? accumulator : NULL);
    check(&t, a, b, c);
    for (uint64_t i = 0; i < t.m; i++) {
        for (uint64_t j = t.n; j < t.n + t.padding; j++) {
            assert_true(isnan(element(c, t.dtype, i * (t.n + t.padding) + j)));
        }
    }
    free(a);
    free(b);
    free(c);
    free(accumulator);
}

static void awkward_sizes(void **state)
{
    (void)state;
    static const uint64_t sizes[][3] = {{1, 1, 1},     {0, 4, 4},      {4, 0, 4},     {4, 4, 0},
                                        {1, 300, 7},   {7, 3, 33},     {33, 65, 17},  {241, 13, 65},
                                        {64, 256, 64}, {65, 257, 130}, {5, 600, 513}, {250, 31, 530}};
    for (size_t d = 0; d < 4; d++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const uint64_t m = sizes[s][0];
            const uint64_t k = sizes[s][1];
            const uint64_t n = sizes[s][2];
            try_case((product_case){dtypes[d], m, n, k, k + 1, 0, 1});
            try_case((product_case){dtypes[d], m, n, k, k + 1, 5, 3});
        }
    }
}

/* Sums of a 16-bit output stay in the accumulator: the answer has one rounding, not one a panel. */
static void panels_accumulate_without_rounding_between(void **state)
{
    (void)state;
    for (size_t d = 0; d < 4; d++) {
        try_case((product_case){dtypes[d], 20, 37, 1000, 64, 0, 2});
        try_case((product_case){dtypes[d], 37, 20, 500, 1, 3, 1});
    }
}

/* The bits do not depend on the number of threads. */
static void threads_do_not_change_the_bits(void **state)
{
    (void)state;
    enum { M = 300, N = 300, K = 300 };
    static float a[M * K];
    static float b[K * N];
    static float c[M * N];
    static float again[M * N];
    fill_plain(a, HR_F32, M * K, 1);
    fill_plain(b, HR_F32, K * N, 2);
    product_case t = {HR_F32, M, N, K, K, 0, 1};
    launch_panels(&t, (const char *)a, (const char *)b, (char *)c, NULL);
    t.threads = 7;
    launch_panels(&t, (const char *)a, (const char *)b, (char *)again, NULL);
    assert_memory_equal(c, again, sizeof c);
}

static void nan_stays_in_its_row_and_column(void **state)
{
    (void)state;
    enum { N = 40 };
    static double a[N * N];
    static double b[N * N];
    static double c[N * N];
    for (int i = 0; i < N * N; i++) {
        a[i] = b[i] = 1;
    }
    a[3 * N + 5] = NAN;
    const product_case t = {HR_F64, N, N, N, N, 0, 1};
    launch_panels(&t, (const char *)a, (const char *)b, (char *)c, NULL);
    for (int i = 0; i < N * N; i++) {
        assert_true(i / N == 3 ? isnan(c[i]) : c[i] == N);
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(awkward_sizes),
        cmocka_unit_test(panels_accumulate_without_rounding_between),
        cmocka_unit_test(threads_do_not_change_the_bits),
        cmocka_unit_test(nan_stays_in_its_row_and_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_each_level(run);
}
