/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul on the CPU. A task owns a block of C. For each stretch of k it packs its parts of A and B into
 * memory that stays in the caches, as the inner block wants them, converting 16-bit floats to f32 on the way.
 * Sums of 16-bit outputs stay in f32 until the last panel of k.
 */
#include "op/internal.h"

#include "base/checked.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A block of C is at most BLOCK_ROWS × BLOCK_COLUMNS; both are multiples of every level's tile. */
#define BLOCK_ROWS    UINT64_C(240)
#define BLOCK_COLUMNS UINT64_C(512)
#define DEPTH         UINT64_C(256)

typedef struct product {
    const hr_launch *launch;
    const hr_kernels *kernels;
    const hr_gemm_kernel *gemm;
    hr_cast_fn load;
    size_t sum_bytes, element_bytes;
    uint64_t m, n, k;
    uint64_t rows, columns; /* of a task's block */
    uint64_t column_blocks;
    atomic_bool no_memory;
} product;

hr_status hr_matmul_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                         hr_op_plan *plan, hr_error *error)
{
    (void)params;
    char a[160];
    char b[160];
    if (dtypes[0] != dtypes[1]) {
        return hr_fail(error, HR_E_INVALID, "%s: input 2 is %s, input 1 is %s; they must be alike", op->name,
                       hr_dtype_name(dtypes[1]), hr_dtype_name(dtypes[0]));
    }
    if (shapes[0].rank != 2 || shapes[1].rank != 2 || shapes[0].extent[1] != shapes[1].extent[0]) {
        return hr_fail(error, HR_E_INVALID,
                       "%s: the inputs have shapes %s and %s, (m, k) and (k, n) are needed", op->name,
                       hr_op_shape_text(&shapes[0], a, sizeof a), hr_op_shape_text(&shapes[1], b, sizeof b));
    }
    if (shapes[0].extent[0] == UINT64_MAX || shapes[1].extent[0] == UINT64_MAX) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "%s: the inputs have shapes %s and %s, all of it must be known", op->name,
                       hr_op_shape_text(&shapes[0], a, sizeof a), hr_op_shape_text(&shapes[1], b, sizeof b));
    }
    plan->outputs = 1;
    plan->dtype[0] = dtypes[0];
    plan->shape[0] = (hr_shape){2, {shapes[0].extent[0], shapes[1].extent[1]}};
    plan->accumulator_bytes = hr_dtype_bytes(dtypes[0]) < 4 ? 4 : 0;
    uint64_t bytes;
    if (hr_shape_bytes(&plan->shape[0], dtypes[0], &bytes) != HR_OK) {
        return hr_fail(error, HR_E_RANGE, "%s: the result of shape %s has more than 2^63 bytes", op->name,
                       hr_op_shape_text(&plan->shape[0], a, sizeof a));
    }
    return HR_OK;
}

/* Rows row … row + rows − 1 of A, columns p … p + depth − 1, as panels of tile_rows rows, each with k running
 * slowest. Rows that are missing in the last panel are zeros. */
static void pack_a(const product *x, uint64_t row, uint64_t rows, uint64_t p, uint64_t depth, char *to)
{
    const hr_view *a = &x->launch->in[0];
    const size_t tile = x->gemm->tile_rows;
    _Alignas(64) char line[DEPTH * 8];
    for (uint64_t i = 0; i < hr_round_up(rows, tile); i++) {
        const char *from = (const char *)a->data + (row + i) * a->row_pitch_bytes + p * x->element_bytes;
        if (i < rows) {
            x->load(from, line, depth);
        } else {
            memset(line, 0, depth * x->sum_bytes);
        }
        const uint64_t base = i / tile * tile * depth + i % tile;
        for (uint64_t q = 0; q < depth; q++) {
            if (x->sum_bytes == 4) {
                ((float *)(void *)to)[base + q * tile] = ((const float *)(const void *)line)[q];
            } else {
                ((double *)(void *)to)[base + q * tile] = ((const double *)(const void *)line)[q];
            }
        }
    }
}

/* Columns column … column + columns − 1 of B, rows p … p + depth − 1, as panels of tile_columns columns. */
static void pack_b(const product *x, uint64_t column, uint64_t columns, uint64_t p, uint64_t depth, char *to)
{
    const hr_view *b = &x->launch->in[1];
    const size_t tile = x->gemm->tile_columns;
    const size_t tile_bytes = tile * x->sum_bytes;
    _Alignas(64) char line[BLOCK_COLUMNS * 8];
    const uint64_t panels = hr_div_up(columns, tile);
    memset(line, 0, panels * tile_bytes);
    for (uint64_t q = 0; q < depth; q++) {
        const char *from = (const char *)b->data + (p + q) * b->row_pitch_bytes + column * x->element_bytes;
        x->load(from, line, columns);
        for (uint64_t j = 0; j < panels; j++) {
            memcpy(to + (j * depth + q) * tile_bytes, line + j * tile_bytes, tile_bytes);
        }
    }
}

/* Where the sums of a block stand: `sums` with `pitch` elements from row to row. */
typedef struct block {
    uint64_t row, column, rows, columns;
    char *sums;
    uint64_t pitch;
} block;

/* Sums live in the output, in the launch's accumulator, or in the task's own memory. */
static void place_sums(const product *x, block *b, char *own)
{
    const hr_view *c = &x->launch->out[0];
    if (x->sum_bytes == x->element_bytes) {
        b->sums = (char *)c->data + b->row * c->row_pitch_bytes + b->column * x->element_bytes;
        b->pitch = c->row_pitch_bytes / x->element_bytes;
    } else if (x->launch->accumulator != NULL) {
        b->sums = (char *)x->launch->accumulator + (b->row * x->n + b->column) * x->sum_bytes;
        b->pitch = x->n;
    } else {
        b->sums = own;
        b->pitch = b->columns;
    }
    for (uint64_t i = 0; i < b->rows; i++) {
        char *row = b->sums + i * b->pitch * x->sum_bytes;
        if (!x->launch->accumulate) {
            memset(row, 0, b->columns * x->sum_bytes);
        } else if (b->sums == own) {
            x->load((const char *)c->data + (b->row + i) * c->row_pitch_bytes + b->column * x->element_bytes,
                    row, b->columns);
        }
    }
}

static void round_sums(const product *x, const block *b)
{
    const hr_view *c = &x->launch->out[0];
    if (x->sum_bytes == x->element_bytes || (x->launch->accumulator != NULL && !x->launch->last)) {
        return;
    }
    for (uint64_t i = 0; i < b->rows; i++) {
        char *to = (char *)c->data + (b->row + i) * c->row_pitch_bytes + b->column * x->element_bytes;
        x->kernels->store[HR_PIVOT_F32][c->dtype](b->sums + i * b->pitch * x->sum_bytes, to, b->columns);
    }
}

static void run_block(void *user, uint64_t index)
{
    product *x = (product *)user;
    block b;
    b.row = index / x->column_blocks * x->rows;
    b.column = index % x->column_blocks * x->columns;
    b.rows = hr_min_u64(x->rows, x->m - b.row);
    b.columns = hr_min_u64(x->columns, x->n - b.column);
    const size_t a_bytes = BLOCK_ROWS * DEPTH * x->sum_bytes;
    const size_t b_bytes = BLOCK_COLUMNS * DEPTH * x->sum_bytes;
    const size_t own_bytes = x->sum_bytes != x->element_bytes ? BLOCK_ROWS * BLOCK_COLUMNS * x->sum_bytes : 0;
    char *memory = (char *)aligned_alloc(64, a_bytes + b_bytes + own_bytes);
    if (memory == NULL) {
        atomic_store(&x->no_memory, true);
        return;
    }
    place_sums(x, &b, memory + a_bytes + b_bytes);
    for (uint64_t p = 0; p < x->k; p += DEPTH) {
        const uint64_t depth = hr_min_u64(DEPTH, x->k - p);
        pack_a(x, b.row, b.rows, p, depth, memory);
        pack_b(x, b.column, b.columns, p, depth, memory + a_bytes);
        const hr_gemm_block inner = {memory, memory + a_bytes, b.sums, b.rows, b.columns, depth, b.pitch};
        x->gemm->run(&inner);
    }
    round_sums(x, &b);
    free(memory);
}

hr_status hr_matmul_cpu(const hr_launch *launch, hr_error *error)
{
    const hr_dtype dtype = launch->out[0].dtype;
    product x;
    x.launch = launch;
    x.kernels = hr_kernels_here();
    x.gemm = dtype == HR_F64 ? &x.kernels->gemm_f64 : &x.kernels->gemm_f32;
    x.load = x.kernels->load[dtype];
    x.sum_bytes = dtype == HR_F64 ? 8 : 4;
    x.element_bytes = hr_dtype_bytes(dtype);
    x.m = launch->out[0].shape.extent[0];
    x.n = launch->out[0].shape.extent[1];
    x.k = launch->in[0].shape.extent[1];
    if (x.m == 0 || x.n == 0) {
        return HR_OK;
    }
    /* Smaller blocks where the large ones would leave workers without work. */
    x.rows = BLOCK_ROWS;
    x.columns = BLOCK_COLUMNS;
    while (x.columns > 64 &&
           hr_div_up(x.m, x.rows) * hr_div_up(x.n, x.columns) < 2 * (uint64_t)launch->workers->threads) {
        x.columns /= 2;
    }
    x.column_blocks = hr_div_up(x.n, x.columns);
    atomic_init(&x.no_memory, false);
    launch->workers->run(launch->workers->self, hr_div_up(x.m, x.rows) * x.column_blocks, run_block, &x);
    return atomic_load(&x.no_memory)
               ? hr_fail(error, HR_E_HOST_MEMORY, "matmul: no memory to pack a block of the matrices")
               : HR_OK;
}
