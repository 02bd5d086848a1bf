/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products against plain loops in f64, on samples of the output where it is large. */
#include "harness.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the operands are like. */
typedef enum operands {
    ORDINARY, /* in [−1, 1) */
    POSITIVE, /* in [0, 1): errors in one direction add up */
    WIDE,     /* magnitudes from 2⁻¹⁹ to 2²⁰ */
    WHOLE,    /* small integers, whose sums are exact */
    TINY,     /* near the smallest normal number; the others ordinary */
    LARGE,    /* up to 2⁵⁷ */
    SPECIAL   /* infinities, NaNs, the largest and the smallest numbers among ordinary ones */
} operands;

static const char *const operand_names[] = {"",       ", positive", ", wide",   ", whole numbers",
                                            ", tiny", ", large",    ", special"};

typedef struct product {
    hr_kernel_matmul_args a;
    const float *x, *y, *before; /* the operands as f32, densely; C before, or null */
    const unsigned char *got;
    uint64_t step; /* every step-th row and column is looked at */
    double bound;  /* relative to the sum of magnitudes */
    _Bool bad;
} product;

static float from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

static uint16_t to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float special_float(harness *h, float ordinary)
{
    static const float values[] = {INFINITY, -INFINITY, NAN,     FLT_MAX, -FLT_MAX, 0x1p-149F,
                                   1e-39F,   FLT_MIN,   0x1p64F, 0.0F,    -0.0F};
    const uint64_t which = random_bits(h) >> 32;
    return which % 64 == 0 ? values[which / 64 % (sizeof values / sizeof *values)] : ordinary;
}

/* `first`: the left operand. Special numbers are in some rows only, so that some sums stay finite. */
static void fill_operand(harness *h, float *to, uint64_t rows, uint64_t columns, operands kind, bool first)
{
    random_floats(h, to, rows * columns);
    for (uint64_t i = 0; i < rows * columns; i++) {
        switch (kind) {
        case POSITIVE:
            to[i] = fabsf(to[i]);
            break;
        case WIDE:
            to[i] = ldexpf(to[i] < 0 ? to[i] - 1 : to[i] + 1, (int)(random_bits(h) >> 32) % 20);
            break;
        case WHOLE:
            to[i] = rintf(to[i] * 100);
            break;
        case TINY:
            to[i] *= first ? 0x1p-124F : 1;
            break;
        case LARGE:
            to[i] *= 0x1p57F;
            break;
        case SPECIAL:
            to[i] = i / columns % (first ? 3 : 16) == 0 ? special_float(h, to[i]) : to[i];
            break;
        default:
            break;
        }
    }
}

static bool same_kind(double got, double want)
{
    return isnan(want) ? isnan(got) : got == want;
}

/* Not finite: as plain sums of f32 are, in the order of k, or as the exact sum is. */
static bool not_finite_rightly(const product *p, uint64_t i, uint64_t j, double got, double exact)
{
    float plain = 0;
    for (uint64_t l = 0; l < p->a.k; l++) {
        plain = fmaf(p->x[i * p->a.k + l], p->y[l * p->a.n + j], plain);
    }
    plain += p->before ? p->before[i * p->a.n + j] : 0;
    return same_kind(got, plain) || same_kind(got, exact);
}

static void check_row(void *user, uint64_t index)
{
    product *p = user;
    const uint64_t i = index * p->step;
    const bool wide = p->a.c_dtype == HR_F32;
    const unsigned char *line = p->got + i * p->a.c_pitch_bytes;
    for (uint64_t j = index % p->step; j < p->a.n && !p->bad; j += p->step) {
        double sum = p->before ? p->before[i * p->a.n + j] : 0, magnitude = fabs(sum);
        for (uint64_t l = 0; l < p->a.k; l++) {
            const double v = (double)p->x[i * p->a.k + l] * p->y[l * p->a.n + j];
            sum += v;
            magnitude += fabs(v);
        }
        const double got = wide ? ((const float *)line)[j] : from_bf16(((const uint16_t *)line)[j]);
        const double least = (double)(p->a.k + 2) * 0x1p-149; /* each step may round there */
        p->bad |= isfinite(got)
                      ? !(fabs(got - sum) <= p->bound * magnitude + (wide ? least : fabs(sum) * 0.004))
                      : !not_finite_rightly(p, i, j, got, sum);
    }
    for (uint64_t b = p->a.n * (wide ? 4 : 2); b < p->a.c_pitch_bytes; b++) {
        p->bad |= line[b] != 0xff;
    }
}

/* Puts a matrix of f32 into device memory in the dtype and pitch asked for; `dense` is rounded to what was
 * put. */
static guarded put_matrix(float *dense, uint64_t rows, uint64_t columns, uint64_t pitch, hr_dtype dtype,
                          uint64_t offset)
{
    unsigned char *host = malloc(rows * pitch);
    memset(host, 0x7f, rows * pitch); /* large numbers beside the matrix, which nobody may use */
    for (uint64_t i = 0; i < rows; i++) {
        for (uint64_t j = 0; j < columns; j++) {
            float *v = &dense[i * columns + j];
            if (dtype == HR_F32) {
                memcpy(host + i * pitch + j * 4, v, 4);
            } else {
                const uint16_t bits = to_bf16(*v);
                *v = from_bf16(bits);
                memcpy(host + i * pitch + j * 2, &bits, 2);
            }
        }
    }
    guarded g = guarded_take(rows * pitch, offset);
    must(cudaMemcpy(g.data, host, rows * pitch, cudaMemcpyHostToDevice), "upload");
    free(host);
    return g;
}

typedef struct product_kind {
    const char *name;
    hr_dtype dtype, c_dtype;
    int tf32;
    double bound;
} product_kind;

static uint64_t pitched(uint64_t columns, uint64_t size, int loose)
{
    const uint64_t bytes = columns * size;
    return loose ? bytes + size : (bytes + 15) / 16 * 16 + 16;
}

/* By a mechanism, or by tma on the multiply-add units. */
static void one_way(harness *h, product *p, const guarded *c, unsigned char *got,
                    const unsigned char *poisoned, hr_mechanism mech, bool plain, const char *name)
{
    const hr_kernel_tuning tuning = {.plain = 1};
    hr_error error = HR_ERROR_INIT;
    p->bad = false;
    p->a.tuning = plain ? &tuning : NULL;
    must(cudaMemcpy(c->data, poisoned, c->bytes, cudaMemcpyHostToDevice), "poison");
    hr_status status = hr_kernel_matmul(&p->a, mech, NULL, &error);
    if (status == HR_OK) {
        must(cudaDeviceSynchronize(), name);
        must(cudaMemcpy(got, c->data, c->bytes, cudaMemcpyDeviceToHost), name);
        parallel((p->a.m + p->step - 1) / p->step, check_row, p);
    }
    verdict(h, name, mech, status, &error, !p->bad && guarded_intact(c));
}

static void one(harness *h, const product_kind *kind, const uint64_t *mnk, int loose, int accumulate,
                operands data)
{
    const uint64_t m = mnk[0], n = mnk[1], k = mnk[2], size = hr_dtype_bytes(kind->dtype);
    const uint64_t c_size = hr_dtype_bytes(kind->c_dtype), offset = loose ? size : 0;
    char name[128];
    float *x = malloc((m * k + 1) * 4), *y = malloc((k * n + 1) * 4), *before = malloc((m * n + 1) * 4);
    fill_operand(h, x, m, k, data, true);
    fill_operand(h, y, k, n, data, false);
    random_floats(h, before, m * n);
    product p = {.a = {.dtype = kind->dtype,
                       .c_dtype = kind->c_dtype,
                       .tf32 = kind->tf32,
                       .accumulate = accumulate,
                       .m = m,
                       .n = n,
                       .k = k,
                       .a_pitch_bytes = pitched(k, size, loose),
                       .b_pitch_bytes = pitched(n, size, loose),
                       .c_pitch_bytes = pitched(n, c_size, loose)},
                 .x = x,
                 .y = y,
                 .step = m * n > 200000 ? 13 : 1,
                 .bound = data == WHOLE ? 0 : kind->bound};
    guarded a = put_matrix(x, m, k, p.a.a_pitch_bytes, kind->dtype, offset);
    guarded b = put_matrix(y, k, n, p.a.b_pitch_bytes, kind->dtype, offset);
    guarded c = guarded_take(m * p.a.c_pitch_bytes, loose ? c_size : 0);
    unsigned char *got = malloc(c.bytes), *poisoned = malloc(c.bytes);
    memset(poisoned, 0xff, c.bytes);
    for (uint64_t i = 0; accumulate && i < m; i++) {
        memcpy(poisoned + i * p.a.c_pitch_bytes, before + i * n, n * 4);
    }
    p.before = accumulate ? before : NULL;
    p.a.a = a.data;
    p.a.b = b.data;
    p.a.c = c.data;
    p.got = got;
    snprintf(name, sizeof name, "matmul %s %llu × %llu × %llu, pitches %s%s%s", kind->name,
             (unsigned long long)m, (unsigned long long)n, (unsigned long long)k,
             loose ? "loose" : "of 16 bytes", accumulate ? ", accumulating" : "", operand_names[data]);
    for (hr_mechanism mech = HR_MECHANISM_AUTO; mech <= HR_MECHANISM_TMA; mech++) {
        one_way(h, &p, &c, got, poisoned, mech, false, name);
    }
    if (kind->dtype == HR_F32 && !kind->tf32) {
        strncat(name, ", plain", sizeof name - strlen(name) - 1);
        one_way(h, &p, &c, got, poisoned, HR_MECHANISM_TMA, true, name);
    }
    guarded_release(&c);
    guarded_release(&b);
    guarded_release(&a);
    free(poisoned);
    free(got);
    free(before);
    free(y);
    free(x);
}

/* What products of f32 owe to numbers that are not ordinary, and to sums that are long. */
static void check_f32(harness *h, const product_kind *f32)
{
    static const uint64_t sizes[][3] = {{64, 96, 40}, {200, 136, 300}, {193, 260, 1600}},
                          deep[3] = {70, 133, 9001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (h->small && i > 0) {
            break;
        }
        for (operands data = POSITIVE; data <= SPECIAL; data++) {
            one(h, f32, sizes[i], 0, 0, data);
            one(h, f32, sizes[i], 1, 0, data);
            if (data != WHOLE && data != TINY) { /* what is added to is ordinary */
                one(h, f32, sizes[i], 0, 1, data);
            }
        }
    }
    if (!h->small) {
        one(h, f32, deep, 0, 0, ORDINARY);
        one(h, f32, deep, 0, 1, ORDINARY);
        one(h, f32, deep, 0, 0, SPECIAL);
        one(h, f32, deep, 0, 1, SPECIAL);
    }
}

void check_matmul(harness *h)
{
    static const product_kind kinds[] = {{"f32", HR_F32, HR_F32, 0, 2e-6},
                                         {"tf32", HR_F32, HR_F32, 1, 1.5e-3},
                                         {"bf16", HR_BF16, HR_F32, 0, 2e-6},
                                         {"bf16 to bf16", HR_BF16, HR_BF16, 0, 2e-6}};
    static const uint64_t sizes[][3] = {{1, 1, 1},      {1, 5, 3},        {7, 3, 0},       {128, 256, 32},
                                        {128, 256, 64}, {129, 257, 33},   {64, 64, 1000},  {255, 130, 127},
                                        {256, 512, 96}, {513, 1031, 257}, {1024, 768, 512}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            if (h->small && sizes[k][0] * sizes[k][1] > 40000) {
                continue;
            }
            one(h, &kinds[i], sizes[k], 0, 0, ORDINARY);
            one(h, &kinds[i], sizes[k], 1, 0, ORDINARY);
            if (kinds[i].c_dtype == HR_F32) {
                one(h, &kinds[i], sizes[k], 0, 1, ORDINARY);
            }
        }
    }
    check_f32(h, &kinds[0]);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes;
         k++) { /* of ten bits at most, so that nothing is rounded */
        if (!h->small || sizes[k][0] * sizes[k][1] <= 40000) {
            one(h, &kinds[1], sizes[k], 0, 0, WHOLE);
        }
    }
    if (!h->small) {
        static const uint64_t large[3] = {2111, 4099, 2048};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            one(h, &kinds[i], large, 0, 0, ORDINARY);
        }
    }
}
