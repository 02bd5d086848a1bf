/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products against plain loops in f64, on samples of the output where it is large. */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        p->bad |= !(fabs(got - sum) <= p->bound * magnitude + (wide ? 1e-37 : fabs(sum) * 0.004));
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

static void one(harness *h, const product_kind *kind, const uint64_t *mnk, int loose, int accumulate)
{
    const uint64_t m = mnk[0], n = mnk[1], k = mnk[2], size = hr_dtype_bytes(kind->dtype);
    const uint64_t c_size = hr_dtype_bytes(kind->c_dtype), offset = loose ? size : 0;
    char name[128];
    float *x = malloc((m * k + 1) * 4), *y = malloc((k * n + 1) * 4), *before = malloc((m * n + 1) * 4);
    random_floats(h, x, m * k);
    random_floats(h, y, k * n);
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
                 .bound = kind->bound};
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
    snprintf(name, sizeof name, "matmul %s %llu × %llu × %llu, pitches %s%s", kind->name,
             (unsigned long long)m, (unsigned long long)n, (unsigned long long)k,
             loose ? "loose" : "of 16 bytes", accumulate ? ", accumulating" : "");
    for (hr_mechanism mech = HR_MECHANISM_AUTO; mech <= HR_MECHANISM_TMA; mech++) {
        hr_error error = HR_ERROR_INIT;
        p.bad = false;
        must(cudaMemcpy(c.data, poisoned, c.bytes, cudaMemcpyHostToDevice), "poison");
        hr_status status = hr_kernel_matmul(&p.a, mech, NULL, &error);
        if (status == HR_OK) {
            must(cudaDeviceSynchronize(), name);
            must(cudaMemcpy(got, c.data, c.bytes, cudaMemcpyDeviceToHost), name);
            parallel((m + p.step - 1) / p.step, check_row, &p);
        }
        verdict(h, name, mech, status, &error, !p.bad && guarded_intact(&c));
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
            one(h, &kinds[i], sizes[k], 0, 0);
            one(h, &kinds[i], sizes[k], 1, 0);
            if (kinds[i].c_dtype == HR_F32) {
                one(h, &kinds[i], sizes[k], 0, 1);
            }
        }
    }
    if (!h->small) {
        static const uint64_t large[3] = {2111, 4099, 2048};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            one(h, &kinds[i], large, 0, 0);
        }
    }
}
