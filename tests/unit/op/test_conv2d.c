/* SPDX-License-Identifier: Apache-2.0 */
#include "op_support.h"

#include <math.h>

static const hr_dtype dtypes[] = {HR_U8, HR_I8, HR_U16, HR_I16, HR_F16, HR_BF16, HR_F32, HR_F64};
#define DTYPES (sizeof dtypes / sizeof dtypes[0])

/* The index that a border stands for, or -1, by walking there step by step. */
static int64_t walk(int64_t index, int64_t n, hr_border border)
{
    if (index >= 0 && index < n) {
        return index;
    }
    if (border == HR_BORDER_ZERO) {
        return -1;
    }
    if (border == HR_BORDER_REPLICATE) {
        return index < 0 ? 0 : n - 1;
    }
    const int64_t step = index < 0 ? -1 : 1;
    int64_t at = index < 0 ? 0 : n - 1;
    int64_t direction = index < 0 ? 1 : -1;
    for (int64_t left = index < 0 ? -index : index - (n - 1); left > 0 && n > 1; left--) {
        if (at + direction < 0 || at + direction >= n) {
            direction = -direction;
        }
        at += direction;
    }
    (void)step;
    return at;
}

typedef struct image {
    int64_t rows, columns, channels;
} image;

/* One output element and the sum of magnitudes that it is made of, in f64. */
static double plain(const void *data, hr_dtype dtype, image s, const hr_conv2d_params *p, int64_t y,
                    int64_t x, int64_t ch, double *magnitude)
{
    double sum = 0;
    *magnitude = 0;
    for (int64_t i = 0; i < p->rows; i++) {
        for (int64_t j = 0; j < p->columns; j++) {
            const int64_t r = walk(y + i - p->rows / 2, s.rows, p->border);
            const int64_t c = walk(x + j - p->columns / 2, s.columns, p->border);
            if (r < 0 || c < 0) {
                continue;
            }
            const double a = element(data, dtype, (uint64_t)((r * s.columns + c) * s.channels + ch));
            sum += a * p->weight[i * p->columns + j];
            *magnitude += fabs(a * p->weight[i * p->columns + j]);
        }
    }
    return sum;
}

/* Half a unit in the last place of a 16-bit float of this size. */
static double half_place(hr_dtype dtype, double value)
{
    if (dtype == HR_F16) {
        return fmax(fabs(value) * 0x1p-11, 0x1p-25);
    }
    return dtype == HR_BF16 ? fabs(value) * 0x1p-8 : 0;
}

static void range_of(hr_dtype dtype, double *low, double *high)
{
    *low = dtype == HR_I8 ? -128 : dtype == HR_I16 ? -32768 : 0;
    *high = dtype == HR_I8 ? 127 : dtype == HR_I16 ? 32767 : dtype == HR_U8 ? 255 : 65535;
}

static void check(const void *in, const void *out, hr_dtype dtype, image s, const hr_conv2d_params *p)
{
    for (int64_t i = 0; i < s.rows * s.columns * s.channels; i++) {
        const int64_t ch = i % s.channels;
        const int64_t x = i / s.channels % s.columns;
        const int64_t y = i / s.channels / s.columns;
        double magnitude;
        double wanted = plain(in, dtype, s, p, y, x, ch, &magnitude);
        const double found = element(out, dtype, (uint64_t)i);
        const double epsilon = dtype == HR_F64 ? 0x1p-52 : 0x1p-23;
        double bound = magnitude * epsilon * (p->rows * p->columns + 1);
        if (!is_float(dtype)) {
            double low;
            double high;
            range_of(dtype, &low, &high);
            wanted = fmin(fmax(wanted, low), high);
            bound += 0.5;
        } else {
            bound += half_place(dtype, wanted);
        }
        if (!(fabs(found - wanted) <= bound)) {
            fail_msg("%s %ldx%ldx%ld filter %ux%u border %d: (%ld, %ld, %ld) is %.9g, wanted %.9g within %g",
                     hr_dtype_name(dtype), (long)s.rows, (long)s.columns, (long)s.channels, p->rows,
                     p->columns, (int)p->border, (long)y, (long)x, (long)ch, found, wanted, bound);
        }
    }
}

static void random_filter(hr_conv2d_params *p, uint32_t rows, uint32_t columns, hr_border border)
{
    memset(p, 0, sizeof *p);
    p->rows = rows;
    p->columns = columns;
    p->border = border;
    fill_plain(p->weight, HR_F64, (uint64_t)rows * columns, rows * 31 + columns);
}

static hr_shape shape_of(image s)
{
    return s.channels > 1 ? (hr_shape){3, {(uint64_t)s.rows, (uint64_t)s.columns, (uint64_t)s.channels}}
                          : (hr_shape){2, {(uint64_t)s.rows, (uint64_t)s.columns}};
}

/* Runs the op in chunks of `chunk` rows, each given no more rows than its halo. */
static void run_chunks(const void *in, void *out, hr_dtype dtype, image s, const hr_conv2d_params *p,
                       int64_t chunk, uint32_t threads)
{
    const uint64_t pitch = (uint64_t)(s.columns * s.channels) * hr_dtype_bytes(dtype);
    const int64_t halo = p->rows / 2;
    for (int64_t y = 0; y < s.rows; y += chunk) {
        const int64_t end = y + chunk < s.rows ? y + chunk : s.rows;
        const int64_t top = y - halo > 0 ? y - halo : 0;
        const int64_t bottom = end + halo < s.rows ? end + halo : s.rows;
        hr_launch launch;
        memset(&launch, 0, sizeof launch);
        launch.inputs = launch.outputs = 1;
        launch.params = p;
        /* A copy of just the rows that the chunk may see, so that a sanitizer sees a read beyond them. */
        void *rows = malloc((uint64_t)(bottom - top) * pitch + 1);
        assert_non_null(rows);
        memcpy(rows, (const char *)in + (uint64_t)top * pitch, (uint64_t)(bottom - top) * pitch);
        launch.in[0] = test_view(rows, dtype, shape_of((image){bottom - top, s.columns, s.channels}));
        launch.in[0].first = (uint64_t)top;
        launch.in[0].whole = shape_of(s);
        launch.out[0] = test_view((char *)out + (uint64_t)y * pitch, dtype,
                                  shape_of((image){end - y, s.columns, s.channels}));
        launch.out[0].first = (uint64_t)y;
        launch.out[0].whole = shape_of(s);
        test_launch(hr_op_find("conv2d"), &launch, threads);
        free(rows);
    }
}

static void try_size(image s, uint32_t rows, uint32_t columns, hr_border border)
{
    hr_conv2d_params p;
    random_filter(&p, rows, columns, border);
    const uint64_t n = (uint64_t)(s.rows * s.columns * s.channels);
    for (size_t d = 0; d < DTYPES; d++) {
        const uint64_t bytes = n * hr_dtype_bytes(dtypes[d]);
        void *in = malloc(bytes + 1);
        unsigned char *out = malloc(bytes + 1);
        unsigned char *again = malloc(bytes + 1);
        assert_true(in != NULL && out != NULL && again != NULL);
        fill_plain(in, dtypes[d], n, n + d);
        out[bytes] = 0x5a;
        run_chunks(in, out, dtypes[d], s, &p, s.rows > 0 ? s.rows : 1, 1);
        check(in, out, dtypes[d], s, &p);
        assert_int_equal(out[bytes], 0x5a);
        /* The same bits in any chunks and on any number of threads. */
        run_chunks(in, again, dtypes[d], s, &p, 3, 1);
        assert_memory_equal(out, again, bytes);
        run_chunks(in, again, dtypes[d], s, &p, s.rows > 0 ? s.rows : 1, 5);
        assert_memory_equal(out, again, bytes);
        free(in);
        free(out);
        free(again);
    }
}

static void every_border_on_awkward_sizes(void **state)
{
    (void)state;
    static const image sizes[] = {{1, 1, 1},  {1, 7, 1},   {7, 1, 1},    {2, 2, 3},  {5, 5, 1},
                                  {9, 67, 1}, {13, 33, 3}, {37, 129, 1}, {6, 40, 4}, {3, 3, 90}};
    static const uint32_t edges[][2] = {{1, 1}, {3, 3}, {5, 5}, {7, 7}, {3, 1}, {1, 9}, {11, 5}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t e = 0; e < sizeof edges / sizeof edges[0]; e++) {
            for (int border = 0; border < 3; border++) {
                try_size(sizes[i], edges[e][0], edges[e][1], (hr_border)border);
            }
        }
    }
}

static void filters_as_large_as_allowed_and_rows_longer_than_a_strip(void **state)
{
    (void)state;
    try_size((image){35, 40, 1}, 31, 31, HR_BORDER_REFLECT);
    try_size((image){4, 3, 5}, 31, 31, HR_BORDER_REFLECT);
    try_size((image){6, 9001, 1}, 5, 5, HR_BORDER_REFLECT);
    try_size((image){5, 1300, 3}, 3, 31, HR_BORDER_REPLICATE);
    try_size((image){3, 20, 700}, 3, 31, HR_BORDER_ZERO);
}

static void nothing_to_do_is_done(void **state)
{
    (void)state;
    try_size((image){0, 5, 1}, 3, 3, HR_BORDER_ZERO);
    try_size((image){5, 0, 1}, 3, 3, HR_BORDER_REFLECT);
    try_size((image){0, 0, 2}, 3, 3, HR_BORDER_REPLICATE);
}

/* Every level gives the same integers to the bit. */
static void integers_do_not_depend_on_the_vector_units(void **state)
{
    (void)state;
    const hr_kernels *base = hr_kernels_named("baseline");
    enum { COLUMNS = 203, ROWS = 9, TAPS = 25 };
    float in[ROWS][COLUMNS + 4];
    float weight[TAPS];
    fill_plain(in, HR_F32, sizeof in / sizeof(float), 5);
    fill_plain(weight, HR_F32, TAPS, 6);
    const void *row[ROWS];
    float first[4][COLUMNS];
    float other[4][COLUMNS];
    void *out[4];
    for (int i = 0; i < ROWS; i++) {
        row[i] = in[i];
    }
    hr_filter_rows rows = {row, weight, 5, 5, 1, out, 4, COLUMNS};
    for (int i = 0; i < 4; i++) {
        out[i] = first[i];
    }
    base->filter_exact(&rows);
    for (int i = 0; i < 4; i++) {
        out[i] = other[i];
    }
    hr_kernels_here()->filter_exact(&rows);
    assert_memory_equal(first, other, sizeof first);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_border_on_awkward_sizes),
        cmocka_unit_test(filters_as_large_as_allowed_and_rows_longer_than_a_strip),
        cmocka_unit_test(nothing_to_do_is_done),
        cmocka_unit_test(integers_do_not_depend_on_the_vector_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_each_level(run);
}
