/* SPDX-License-Identifier: Apache-2.0 */
/* What `bench pipeline` says of its data: right by a plain loop, wrong when an element is. */
#include "bench/bench_jobs.h"
#include "support/unit.h"

#include <stdlib.h>

static float *filled(const hr_bench_job *job, uint32_t input)
{
    float *values = malloc(hr_bench_job_bytes(job));
    job->fill(job, input, values);
    return values;
}

/* Right as it is; wrong with one element changed, where all are looked at. */
static void assert_told(const hr_bench_job *job, const float *const *in, float *out, uint64_t changed)
{
    assert_true(job->is_right(job, in, out));
    out[changed] += 1.0f;
    assert_false(job->is_right(job, in, out));
    out[changed] -= 1.0f;
}

static void sums_are_told(void **state)
{
    (void)state;
    hr_bench_job job = hr_bench_add(true);
    job.shape.extent[0] = 10001;
    float *in[] = {filled(&job, 0), filled(&job, 1)}, *out = malloc(hr_bench_job_bytes(&job));
    for (uint64_t i = 0; i < 10001; i++) {
        out[i] = in[0][i] + in[1][i];
    }
    assert_told(&job, (const float *const *)in, out, 0);
    assert_told(&job, (const float *const *)in, out, 10000);
    free(in[0]);
    free(in[1]);
    free(out);
}

static int64_t mirrored(int64_t at, int64_t count)
{
    return at < 0 ? -at : at >= count ? 2 * (count - 1) - at : at;
}

static void pixels_are_told(void **state)
{
    (void)state;
    const int64_t rows = 40, columns = 51;
    hr_bench_job job = hr_bench_conv2d(true, true);
    job.shape.extent[0] = (uint64_t)rows;
    job.shape.extent[1] = (uint64_t)columns;
    float *in = filled(&job, 0), *out = malloc(hr_bench_job_bytes(&job));
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t x = 0; x < columns; x++) {
            double sum = 0.0;
            for (int64_t dy = 0; dy < 5; dy++) {
                for (int64_t dx = 0; dx < 5; dx++) {
                    sum += job.params.conv2d.weight[5 * dy + dx] *
                           in[mirrored(y + dy - 2, rows) * columns + mirrored(x + dx - 2, columns)];
                }
            }
            out[y * columns + x] = (float)sum;
        }
    }
    const float *const inputs[] = {in};
    assert_told(&job, inputs, out, 0);
    assert_told(&job, inputs, out, (uint64_t)(26 * columns + 7));
    assert_told(&job, inputs, out, (uint64_t)(rows * columns - 1));
    free(in);
    free(out);
}

static void products_are_told(void **state)
{
    (void)state;
    const uint64_t edge = 128;
    hr_bench_job job = hr_bench_matmul(true, true);
    job.shape.extent[0] = job.shape.extent[1] = edge;
    float *in[] = {filled(&job, 0), filled(&job, 1)}, *out = malloc(hr_bench_job_bytes(&job));
    for (uint64_t i = 0; i < edge * edge; i++) {
        double sum = 0.0;
        for (uint64_t k = 0; k < edge; k++) {
            sum += (double)in[0][i / edge * edge + k] * (double)in[1][k * edge + i % edge];
        }
        out[i] = (float)sum;
    }
    assert_told(&job, (const float *const *)in, out, 0);
    free(in[0]);
    free(in[1]);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_told),
        cmocka_unit_test(pixels_are_told),
        cmocka_unit_test(products_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
