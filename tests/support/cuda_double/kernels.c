/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for the module's .cu files in a build without nvcc: the same entries, run by the double's
 * streams. */
#include "backend/cuda/kernels.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/op_launchers.h"
#include "internal.h"

#include <string.h>

typedef struct list_work {
    char *dst;
    const char *src;
    const hr_segment *listed;
    uint32_t count;
    hr_segment given[HR_CUDA_SEGMENTS_BY_VALUE];
} list_work;

static void run_list(void *argument)
{
    const list_work *list = argument;
    const hr_segment *segments = list->listed != NULL ? list->listed : list->given;
    for (uint32_t i = 0; i < list->count; i++) {
        memcpy(list->dst + segments[i].dst_offset_bytes, list->src + segments[i].src_offset_bytes,
               segments[i].bytes);
    }
}

cudaError_t hr_cuda_kernel_segments_by_value(cudaStream_t stream, void *dst, const void *src,
                                             const hr_segment *segments, uint32_t count, uint32_t blocks)
{
    (void)blocks;
    list_work list = {.dst = dst, .src = src, .count = count};
    memcpy(list.given, segments, count * sizeof *segments);
    return hr_double_launch(stream, run_list, &list, sizeof list);
}

cudaError_t hr_cuda_kernel_segments(cudaStream_t stream, void *dst, const void *src,
                                    const hr_segment *segments, uint32_t count, uint32_t blocks)
{
    (void)blocks;
    list_work list = {.dst = dst, .src = src, .listed = segments, .count = count};
    return hr_double_launch(stream, run_list, &list, sizeof list);
}

typedef struct product_work {
    const float *a, *b;
    float *c;
    uint64_t a_pitch, b_pitch, c_pitch; /* elements */
    uint64_t m, n, k;
    bool accumulate;
} product_work;

static void run_product(void *argument)
{
    const product_work *w = argument;
    for (uint64_t i = 0; i < w->m; i++) {
        float *row = w->c + i * w->c_pitch;
        memset(row, 0, w->accumulate ? 0 : w->n * sizeof *row);
        for (uint64_t p = 0; p < w->k; p++) {
            for (uint64_t j = 0; j < w->n; j++) {
                row[j] += w->a[i * w->a_pitch + p] * w->b[p * w->b_pitch + j];
            }
        }
    }
}

static hr_status product(const hr_launch *launch, hr_error *error)
{
    const hr_view *a = &launch->in[0], *b = &launch->in[1], *c = &launch->out[0];
    if (c->dtype != HR_F32) {
        return hr_fail(error, HR_E_UNSUPPORTED, "matmul: the double multiplies f32 only");
    }
    double_note_product(c->shape.extent[0], c->shape.extent[1]);
    product_work w = {.a = a->data,
                      .b = b->data,
                      .c = c->data,
                      .a_pitch = a->row_pitch_bytes / sizeof(float),
                      .b_pitch = b->row_pitch_bytes / sizeof(float),
                      .c_pitch = c->row_pitch_bytes / sizeof(float),
                      .m = c->shape.extent[0],
                      .n = c->shape.extent[1],
                      .k = a->shape.extent[1],
                      .accumulate = launch->accumulate};
    cudaError_t code = hr_double_launch(launch->native_stream, run_product, &w, sizeof w);
    return code == cudaSuccess ? HR_OK : hr_fail(error, HR_E_DEVICE, "matmul: code %d", (int)code);
}

/* One of the built-in ops, for what the module says of its own launchers; the others' kernels are the toolkit's to compile. */
hr_launch_fn hr_cuda_op_launcher(const char *name)
{
    return strcmp(name, "matmul") == 0 ? product : NULL;
}

void hr_cuda_op_product_block(hr_dtype dtype, uint32_t *rows, uint32_t *columns)
{
    (void)dtype;
    *rows = HR_DOUBLE_PRODUCT_ROWS;
    *columns = HR_DOUBLE_PRODUCT_COLUMNS;
}

/* Benches measure hardware. */
hr_status hr_cuda_bench(hr_bdevice *device, const hr_bench_options *options, hr_error *error)
{
    (void)device;
    return hr_fail(error, HR_E_UNSUPPORTED, "bench %s: this is a test double of a device", options->what);
}
