/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d on the CPU. A task is a band of rows × a strip of columns × a group of channels. It turns the input
 * rows that it needs, one after the other, into rows of the type that sums are made in, with the borders
 * filled in, and keeps as many of them as the filter reaches in a ring. The inner loops then know neither
 * dtypes nor borders.
 */
#include "op/internal.h"

#include "base/checked.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* What one task keeps on its worker's stack, and the output rows made at a time. */
#define SCRATCH_BYTES (128 * 1024)
#define BATCH         4
/* Rows of the ring: the filter's and those that a batch adds. */
#define MAX_RING (HR_MAX_KERNEL_EDGE + BATCH - 1)

typedef struct conv {
    const hr_launch *launch;
    const hr_kernels *kernels;
    const hr_conv2d_params *params;
    float weight_f32[HR_MAX_KERNEL_EDGE * HR_MAX_KERNEL_EDGE];
    hr_cast_fn load, store; /* dtype ↔ the type of the sums */
    void (*filter)(const hr_filter_rows *rows);
    uint64_t columns, channels;
    uint64_t group, groups; /* channels of a task */
    uint64_t strip, strips; /* columns of a task */
    uint64_t band, bands;   /* rows of a task */
    size_t sum_bytes, element_bytes;
    size_t row_elements; /* room for one row in the scratch */
    uint32_t ring;       /* rows of the ring */
    bool direct;         /* sums are written to the output as they are */
} conv;

/* One task. */
typedef struct conv_task {
    const conv *c;
    uint64_t column, columns;   /* of the output */
    uint64_t channel, channels; /* of the group */
    unsigned char *scratch;
} conv_task;

hr_status hr_conv2d_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                         hr_op_plan *plan, hr_error *error)
{
    const hr_conv2d_params *conv2d = (const hr_conv2d_params *)params;
    char text[160];
    if (conv2d == NULL || conv2d->rows % 2 == 0 || conv2d->columns % 2 == 0 ||
        conv2d->rows > HR_MAX_KERNEL_EDGE || conv2d->columns > HR_MAX_KERNEL_EDGE) {
        return hr_fail(error, HR_E_INVALID, "%s: the filter is %u x %u, odd edges up to %d are needed",
                       op->name, conv2d != NULL ? conv2d->rows : 0, conv2d != NULL ? conv2d->columns : 0,
                       HR_MAX_KERNEL_EDGE);
    }
    if (shapes[0].rank != 2 && shapes[0].rank != 3) {
        return hr_fail(error, HR_E_INVALID,
                       "%s: the input has shape %s, rows x columns [x channels] is needed", op->name,
                       hr_op_shape_text(&shapes[0], text, sizeof text));
    }
    if (shapes[0].extent[0] == UINT64_MAX) {
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "%s: the number of rows is not known, and the border needs it", op->name);
    }
    for (uint32_t i = 0; dtypes[0] != HR_F64 && i < conv2d->rows * conv2d->columns; i++) {
        if (fabs(conv2d->weight[i]) > (double)FLT_MAX) {
            return hr_fail(
                error, HR_E_RANGE,
                "%s: value %u of the filter is %g, beyond the largest f32, 3.4e38, in which %s is computed",
                op->name, i, conv2d->weight[i], hr_dtype_name(dtypes[0]));
        }
    }
    plan->outputs = 1;
    plan->dtype[0] = dtypes[0];
    plan->shape[0] = shapes[0];
    plan->halo_rows = conv2d->rows / 2;
    return HR_OK;
}

/* The index that a border stands for, of 0 … n − 1; n for a zero. */
static uint64_t mapped(int64_t index, uint64_t n, hr_border border)
{
    const int64_t last = (int64_t)n - 1;
    if (index >= 0 && index <= last) {
        return (uint64_t)index;
    }
    if (border == HR_BORDER_ZERO) {
        return n;
    }
    if (border == HR_BORDER_REPLICATE) {
        return index < 0 ? 0 : (uint64_t)last;
    }
    while (last > 0 && (index < 0 || index > last)) {
        index = index < 0 ? -index : 2 * last - index;
    }
    return last > 0 ? (uint64_t)index : 0;
}

/* `columns` columns of one input row, of the task's channels, as sums' type. */
static void load_columns(const conv_task *t, const char *row, uint64_t column, uint64_t columns, char *to)
{
    const conv *c = t->c;
    const char *from = row + (column * c->channels + t->channel) * c->element_bytes;
    if (t->channels == c->channels) {
        c->load(from, to, columns * c->channels);
        return;
    }
    for (uint64_t i = 0; i < columns; i++) {
        c->load(from + i * c->channels * c->element_bytes, to + i * t->channels * c->sum_bytes, t->channels);
    }
}

/* Fills one row of the ring from the input row that `row` (of the whole array, maybe outside) stands for. */
static void fill_row(const conv_task *t, int64_t row, char *to)
{
    const conv *c = t->c;
    const hr_view *in = &c->launch->in[0];
    const uint64_t half = c->params->columns / 2;
    const uint64_t all = t->columns + 2 * half;
    const size_t pixel = t->channels * c->sum_bytes;
    const uint64_t source = mapped(row, in->whole.extent[0], c->params->border);
    if (source == in->whole.extent[0]) {
        memset(to, 0, all * pixel);
        return;
    }
    const char *from = (const char *)in->data + (source - in->first) * in->row_pitch_bytes;
    const uint64_t begin = t->column > half ? t->column - half : 0;
    const uint64_t end = hr_min_u64(t->column + t->columns + half, c->columns);
    /* Where in the row the first column that exists goes. */
    const uint64_t lead = begin + half - t->column;
    load_columns(t, from, begin, end - begin, to + lead * pixel);
    const uint64_t tail = lead + (end - begin);
    for (uint64_t i = lead > 0 ? 0 : tail; i < all; i = i + 1 == lead ? tail : i + 1) {
        const int64_t column = (int64_t)(t->column + i) - (int64_t)half;
        const uint64_t stands_for = mapped(column, c->columns, c->params->border);
        if (stands_for == c->columns) {
            memset(to + i * pixel, 0, pixel);
        } else {
            memcpy(to + i * pixel, to + (stands_for - begin + lead) * pixel, pixel);
        }
    }
}

/* Writes a finished row of sums to the output. */
static void store_row(const conv_task *t, const char *sums, uint64_t row)
{
    const conv *c = t->c;
    const hr_view *out = &c->launch->out[0];
    char *to = (char *)out->data + row * out->row_pitch_bytes +
               (t->column * c->channels + t->channel) * c->element_bytes;
    if (t->channels == c->channels) {
        c->store(sums, to, t->columns * c->channels);
        return;
    }
    for (uint64_t i = 0; i < t->columns; i++) {
        c->store(sums + i * t->channels * c->sum_bytes, to + i * c->channels * c->element_bytes, t->channels);
    }
}

/* Output rows `begin` … `end` − 1 of the view. */
static void run_band(const conv_task *t, uint64_t begin, uint64_t end)
{
    const conv *c = t->c;
    const hr_view *out = &c->launch->out[0];
    const uint32_t filter_rows = c->params->rows;
    const int64_t top = (int64_t)(out->first + begin) - (int64_t)(filter_rows / 2);
    const size_t row_bytes = c->row_elements * c->sum_bytes;
    char *const sums = (char *)t->scratch + c->ring * row_bytes;
    const void *row[MAX_RING];
    void *to[BATCH];
    uint64_t filled = 0; /* rows made so far, counted from `top` */
    for (uint64_t y = begin; y < end; y += BATCH) {
        const uint32_t batch = (uint32_t)hr_min_u64(BATCH, end - y);
        const uint64_t first = y - begin;
        for (; filled < first + filter_rows + batch - 1; filled++) {
            fill_row(t, top + (int64_t)filled, (char *)t->scratch + filled % c->ring * row_bytes);
        }
        for (uint32_t i = 0; i < filter_rows + batch - 1; i++) {
            row[i] = t->scratch + (first + i) % c->ring * row_bytes;
        }
        for (uint32_t r = 0; r < batch; r++) {
            to[r] = c->direct ? (char *)out->data + (y + r) * out->row_pitch_bytes +
                                    t->column * c->channels * c->element_bytes
                              : sums + r * row_bytes;
        }
        const void *weight =
            c->sum_bytes == 4 ? (const void *)c->weight_f32 : (const void *)c->params->weight;
        const hr_filter_rows rows = {row,         weight, filter_rows, c->params->columns,
                                     t->channels, to,     batch,       t->columns * t->channels};
        c->filter(&rows);
        for (uint32_t r = 0; r < batch && !c->direct; r++) {
            store_row(t, (const char *)to[r], y + r);
        }
    }
}

static void run_task(void *user, uint64_t index)
{
    const conv *c = (const conv *)user;
    _Alignas(64) unsigned char scratch[SCRATCH_BYTES];
    const uint64_t group = index % c->groups;
    const uint64_t strip = index / c->groups % c->strips;
    const uint64_t band = index / c->groups / c->strips;
    const uint64_t rows = c->launch->out[0].shape.extent[0];
    conv_task t;
    t.c = c;
    t.channel = group * c->group;
    t.channels = hr_min_u64(c->group, c->channels - t.channel);
    t.column = strip * c->strip;
    t.columns = hr_min_u64(c->strip, c->columns - t.column);
    t.scratch = scratch;
    run_band(&t, band * c->band, hr_min_u64(rows, (band + 1) * c->band));
}

/* Which loops do it, for this dtype. */
static void choose_loops(conv *c)
{
    const hr_dtype dtype = c->launch->in[0].dtype;
    const hr_kernels *k = c->kernels;
    const uint32_t taps = c->params->rows * c->params->columns;
    for (uint32_t i = 0; i < taps; i++) {
        c->weight_f32[i] = (float)c->params->weight[i];
    }
    const bool wide = dtype == HR_F64;
    c->sum_bytes = wide ? 8 : 4;
    c->element_bytes = hr_dtype_bytes(dtype);
    c->load = wide ? k->load_f64[dtype] : k->load_f32[dtype];
    c->store = k->store[wide ? HR_PIVOT_F64 : HR_PIVOT_F32][dtype];
    /* Integers must come out the same everywhere, so that no product may be fused with a sum. */
    const bool integers = hr_pivot_of(dtype) == HR_PIVOT_I32;
    c->filter = wide ? k->filter_f64 : integers ? k->filter_exact : k->filter_f32;
}

/* How the work is cut, so that a task's rows fit in its scratch. */
static void choose_tasks(conv *c)
{
    const uint64_t rows = c->launch->out[0].shape.extent[0];
    const uint64_t reach = c->params->columns - 1;
    const hr_dtype dtype = c->launch->in[0].dtype;
    const bool same = dtype == HR_F32 || dtype == HR_F64;
    c->ring = c->params->rows + BATCH - 1;
    c->row_elements = SCRATCH_BYTES / c->sum_bytes / (c->ring + BATCH) / 16 * 16;
    c->group = hr_max_u64(1, hr_min_u64(c->channels, c->row_elements / (2 * (reach + 1))));
    c->groups = hr_div_up(c->channels, c->group);
    c->strip = hr_min_u64(c->columns, c->row_elements / c->group - reach);
    c->strips = hr_div_up(c->columns, c->strip);
    c->strip = hr_div_up(c->columns, c->strips);
    c->direct = same && c->groups == 1;
    /* A band repeats the rows of the filter's reach; several a worker keep the workers equally busy. */
    const uint64_t wanted =
        hr_div_up(rows * c->strips * c->groups, (uint64_t)c->launch->workers->threads * 4);
    const uint64_t least = hr_max_u64(8, 4 * (uint64_t)c->params->rows) / BATCH * BATCH;
    c->band = hr_round_up(hr_min_u64(hr_max_u64(wanted, least), 512), BATCH);
    c->bands = hr_div_up(rows, c->band);
}

hr_status hr_conv2d_cpu(const hr_launch *launch, hr_error *error)
{
    (void)error;
    const hr_view *out = &launch->out[0];
    conv c = {.launch = launch, .kernels = hr_kernels_here()};
    c.params = (const hr_conv2d_params *)launch->params;
    c.columns = out->shape.extent[1];
    c.channels = out->shape.rank == 3 ? out->shape.extent[2] : 1;
    if (out->shape.extent[0] == 0 || c.columns == 0 || c.channels == 0) {
        return HR_OK;
    }
    choose_loops(&c);
    choose_tasks(&c);
    launch->workers->run(launch->workers->self, c.bands * c.strips * c.groups, run_task, &c);
    return HR_OK;
}
