/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d against plain loops in f64. */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct conv_case {
    hr_kernel_conv2d_args a;
    const unsigned char *src; /* the whole image, host */
    const unsigned char *got; /* the output rows, host */
    double *want, *magnitude; /* of each output: the answer, and the sum of what it is made of */
    double largest;           /* weight, of u8 */
    _Bool exact;              /* u8: to the bit, ties to even */
    _Bool bad;
} conv_case;

static double pixel(const conv_case *c, int64_t row, int64_t column)
{
    const int64_t rows = (int64_t)c->a.image_rows, columns = (int64_t)c->a.columns;
    int64_t at[2] = {row, column};
    const int64_t n[2] = {rows, columns};
    for (int d = 0; d < 2; d++) {
        if (at[d] >= 0 && at[d] < n[d]) {
            continue;
        }
        if (c->a.border == HR_BORDER_ZERO) {
            return 0;
        }
        if (c->a.border == HR_BORDER_REPLICATE || n[d] == 1) {
            at[d] = at[d] < 0 ? 0 : n[d] - 1;
        }
        while (at[d] < 0 || at[d] >= n[d]) { /* there and back, as often as it takes */
            at[d] = at[d] < 0 ? -at[d] : 2 * (n[d] - 1) - at[d];
        }
    }
    const unsigned char *line = c->src + (uint64_t)at[0] * c->a.src_pitch_bytes;
    return c->a.dtype == HR_U8 ? line[at[1]] : ((const float *)line)[at[1]];
}

static double weight(const conv_case *c, int k)
{
    const int e = (int)c->a.edge;
    return c->a.separable ? (double)c->a.weights[k / e] * c->a.weights[e + k % e] : c->a.weights[k];
}

static void expect_row(void *user, uint64_t i)
{
    conv_case *c = user;
    const int e = (int)c->a.edge;
    for (int64_t x = 0; x < (int64_t)c->a.columns; x++) {
        double sum = 0, magnitude = 0;
        for (int k = 0; k < e * e; k++) {
            const double p = pixel(c, (int64_t)(c->a.dst_first + i) + k / e - e / 2, x + k % e - e / 2);
            const double w = weight(c, k);
            sum += w * p;
            magnitude += c->a.dtype == HR_U8 ? c->largest * p : fabs(w * p);
        }
        c->want[i * c->a.columns + (uint64_t)x] = sum;
        c->magnitude[i * c->a.columns + (uint64_t)x] = magnitude;
    }
}

static double byte_of(double v)
{
    return v < 0 ? 0 : v > 255 ? 255 : nearbyint(v); /* ties to even */
}

static void check_row(void *user, uint64_t i)
{
    conv_case *c = user;
    const unsigned char *line = c->got + i * c->a.dst_pitch_bytes;
    for (uint64_t x = 0; x < c->a.columns && !c->bad; x++) {
        const double want = c->want[i * c->a.columns + x], magnitude = c->magnitude[i * c->a.columns + x];
        if (c->a.dtype == HR_U8) {
            const double off = c->exact ? 0 : 0x1p-22 * magnitude;
            const double low = byte_of(want - off), high = byte_of(want + off);
            c->bad |= line[x] < low || line[x] > high;
        } else {
            c->bad |= !(fabs((double)((const float *)line)[x] - want) <= 4e-6 * magnitude + 1e-37);
        }
    }
    for (uint64_t p = c->a.columns * hr_dtype_bytes(c->a.dtype); p < c->a.dst_pitch_bytes; p++) {
        c->bad |= line[p] != 0xff; /* the padding is not the kernel's */
    }
}

typedef struct geometry {
    uint64_t rows, columns, src_pad, dst_pad, offset; /* pads and offset in bytes */
    uint64_t first, count;                            /* output rows */
} geometry;

/* What the weights of bytes can be like. */
enum weight_kind {
    any_weights,     /* of different sizes, no two with the same exponent: rounded to 24 bits */
    one_digit,       /* integers of seven bits over 8: many ties */
    two_digits,      /* of fifteen */
    three_digits,    /* of 16, one of them large: sums have 24 */
    huge_weights,    /* sums far beyond 16 bits, and 32 */
    largest_weights, /* near the end of f32, both signs */
    no_weights,      /* below what can make a byte of 1 */
    weight_kinds
};

static void fill_weights(harness *h, float *weights, int count, enum weight_kind kind)
{
    for (int i = 0; i < count; i++) {
        const int bits = (int)(random_bits(h) >> 40);
        switch (kind) {
        case one_digit:
            weights[i] = (float)(bits % 255 - 127) / 8;
            break;
        case two_digits:
            weights[i] = (float)(bits % 65279 - 32639) / 16384;
            break;
        case three_digits:
            weights[i] = (float)(i == 0 ? 33000 + bits % 20000 : bits % 200) / 65536;
            break;
        case huge_weights:
            weights[i] *= 1e6F;
            break;
        case largest_weights:
            weights[i] = i % 3 == 0 ? 3e38F : i % 3 == 1 ? -2.9e38F : 1e20F;
            break;
        case no_weights:
            weights[i] *= 1e-5F;
            break;
        default:
            weights[i] = ldexpf(weights[i], -(bits % 9));
            break;
        }
    }
}

static void one(harness *h, const geometry *g, hr_dtype dtype, uint32_t edge, hr_border border, int separable,
                enum weight_kind kind)
{
    const uint64_t size = hr_dtype_bytes(dtype), radius = edge / 2;
    float weights[49];
    char name[160];
    conv_case c = {.a = {.dtype = dtype,
                         .image_rows = g->rows,
                         .columns = g->columns,
                         .src_pitch_bytes = g->columns * size + g->src_pad,
                         .dst_pitch_bytes = g->columns * size + g->dst_pad,
                         .dst_first = g->first,
                         .dst_rows = g->count,
                         .edge = edge,
                         .border = border,
                         .separable = separable,
                         .weights = weights}};
    const uint64_t end = g->first + g->count + radius < g->rows ? g->first + g->count + radius : g->rows;
    c.a.src_first = g->first > radius ? g->first - radius : 0;
    c.a.src_rows = end - c.a.src_first;
    random_floats(h, weights, 49);
    if (dtype == HR_U8) {
        fill_weights(h, weights, 49, kind);
        for (int k = 0; k < (int)(edge * edge); k++) {
            c.largest = fmax(c.largest, fabs(weight(&c, k)));
        }
        c.exact = kind == one_digit || kind == no_weights ||
                  (!separable && (kind == two_digits || kind == three_digits));
    }
    const uint64_t image_bytes = g->rows * c.a.src_pitch_bytes, out_bytes = g->count * c.a.dst_pitch_bytes;
    unsigned char *src = malloc(image_bytes), *got = malloc(out_bytes);
    if (dtype == HR_U8) {
        random_bytes(h, src, image_bytes);
    } else {
        random_floats(h, (float *)src, image_bytes / 4);
    }
    guarded from = guarded_take(c.a.src_rows * c.a.src_pitch_bytes, g->offset),
            to = guarded_take(out_bytes, g->offset);
    must(cudaMemcpy(from.data, src + c.a.src_first * c.a.src_pitch_bytes, from.bytes, cudaMemcpyHostToDevice),
         "up");
    c.a.src = from.data;
    c.a.dst = to.data;
    c.src = src;
    c.got = got;
    c.want = malloc(g->count * g->columns * sizeof(double));
    c.magnitude = malloc(g->count * g->columns * sizeof(double));
    parallel(g->count, expect_row, &c);
    snprintf(name, sizeof name,
             "conv2d %s %ux%u weights %d border %d separable %d, %llu × %llu rows %llu+%llu, pads %llu %llu, "
             "offset %llu",
             hr_dtype_name(dtype), edge, edge, (int)kind, (int)border, separable, (unsigned long long)g->rows,
             (unsigned long long)g->columns, (unsigned long long)g->first, (unsigned long long)g->count,
             (unsigned long long)g->src_pad, (unsigned long long)g->dst_pad, (unsigned long long)g->offset);
    for (hr_mechanism m = HR_MECHANISM_AUTO; m < HR_MECHANISM_COUNT; m++) {
        hr_error error = HR_ERROR_INIT;
        hr_mechanism used = HR_MECHANISM_AUTO;
        c.a.used = &used;
        c.bad = false;
        guarded_poison(&to);
        hr_status status = hr_kernel_conv2d(&c.a, m, NULL, &error);
        if (status == HR_OK) {
            must(cudaDeviceSynchronize(), name);
            must(cudaMemcpy(got, to.data, out_bytes, cudaMemcpyDeviceToHost), name);
            parallel(g->count, check_row, &c);
        }
        verdict(h, name, m, status, &error,
                !c.bad && guarded_intact(&to) && (m == HR_MECHANISM_AUTO || used == m));
    }
    guarded_release(&to);
    guarded_release(&from);
    free(c.magnitude);
    free(c.want);
    free(got);
    free(src);
}

/* Weights without a number are refused for bytes, before anything is read. */
static void not_finite(harness *h)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < 3; i++) {
        hr_error error = HR_ERROR_INIT;
        float weights[9] = {1, 1, 1, 1, 1, 1, 1, 1, bad[i]};
        unsigned char *image = NULL;
        must(cudaMalloc((void **)&image, 512), "image");
        const hr_kernel_conv2d_args a = {.dtype = HR_U8,
                                         .src = image,
                                         .dst = image + 256,
                                         .src_pitch_bytes = 16,
                                         .dst_pitch_bytes = 16,
                                         .image_rows = 16,
                                         .columns = 16,
                                         .src_rows = 16,
                                         .dst_rows = 16,
                                         .edge = 3,
                                         .weights = weights};
        const hr_status status = hr_kernel_conv2d(&a, HR_MECHANISM_AUTO, NULL, &error);
        verdict(h, "conv2d of bytes with weights that are no numbers", HR_MECHANISM_AUTO, HR_OK, &error,
                status == HR_E_INVALID);
        must(cudaFree(image), "free");
    }
}

void check_conv2d(harness *h)
{
    static const geometry cases[] = {
        {1, 1, 12, 0, 0, 0, 1},      {1, 7, 4, 0, 0, 0, 1},        {5, 1, 12, 3 * 4, 16, 0, 5},
        {2, 3, 4, 4, 0, 0, 2},       {4, 128, 0, 0, 0, 0, 4},      {17, 129, 12, 12, 0, 0, 17},
        {33, 131, 4, 4, 0, 0, 33},   {67, 512, 0, 0, 0, 0, 67},    {61, 523, 4, 4, 16, 0, 61},
        {61, 523, 0, 0, 4, 0, 61},   {100, 200, 16, 4, 0, 40, 31}, {100, 200, 0, 0, 0, 0, 50},
        {100, 200, 0, 0, 0, 60, 40}, {300, 1031, 4, 4, 0, 0, 300},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < 36; k++) {
            geometry g = cases[i];
            const hr_dtype dtype = k & 1 ? HR_U8 : HR_F32;
            if (dtype == HR_U8) { /* pitches of 16 bytes where the floats have them */
                g.src_pad = (g.columns * 4 + g.src_pad) % 16 == 0 ? (16 - g.columns % 16) % 16 : 1;
            }
            if (h->small && (g.rows > 70 || k % 5)) {
                continue;
            }
            const enum weight_kind kinds = dtype == HR_U8 ? weight_kinds : any_weights + 1;
            for (enum weight_kind kind = any_weights; kind < kinds; kind++) {
                one(h, &g, dtype, 3 + 2 * (uint32_t)(k / 2 % 3), (hr_border)(k / 6 % 3), k / 18, kind);
            }
        }
    }
    if (!h->small) {
        const geometry large = {4001, 4100, 0, 16, 0, 0, 4001}; /* larger than the L2 cache */
        one(h, &large, HR_F32, 3, HR_BORDER_REFLECT, 0, any_weights);
        one(h, &large, HR_F32, 7, HR_BORDER_ZERO, 0, any_weights);
        one(h, &large, HR_U8, 3, HR_BORDER_REFLECT, 0, one_digit);
        one(h, &large, HR_U8, 5, HR_BORDER_REPLICATE, 0, two_digits);
        one(h, &large, HR_U8, 7, HR_BORDER_ZERO, 0, any_weights);
    }
    not_finite(h);
}
