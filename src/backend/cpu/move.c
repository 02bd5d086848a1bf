/* SPDX-License-Identifier: Apache-2.0 */
/* Moving and filling bytes of every shape. An array lies in tiles, so its rows are runs of a few elements. */
#include "backend/cpu/internal.h"

#include "base/checked.h"

#include <string.h>

/* Elements a tile edge: 8 × 8 of 4 bytes are four cache lines. */
#define TILE UINT64_C(8)
/* From this size on a copy is shared out, in pieces of PIECE. */
#define SHARED_BYTES (UINT64_C(4) << 20)
#define PIECE        (UINT64_C(1) << 20)

static char *linear_base(const hr_bend *end)
{
    return end->place == HR_PLACE_SYMBOL ? (char *)end->symbol->memory + end->offset_bytes : end->base;
}

/* Where a row goes on at `offset` bytes from its start, and for how many bytes it lies in one piece there. */
static char *run_at(const hr_bend *end, uint64_t row, uint64_t slice, uint64_t offset, uint64_t *bytes)
{
    if (end->place != HR_PLACE_ARRAY) {
        *bytes = UINT64_MAX;
        return linear_base(end) + slice * end->slice_pitch_bytes + row * end->row_pitch_bytes + offset;
    }
    const hr_barray *array = end->array;
    uint64_t x = end->x + offset / array->element_bytes, inside = offset % array->element_bytes;
    uint64_t y = end->y + row, z = end->z + slice;
    uint64_t tile = (z * array->tiles_y + y / TILE) * array->tiles_x + x / TILE;
    uint64_t element = (tile * TILE + y % TILE) * TILE + x % TILE;
    *bytes = (TILE - x % TILE) * array->element_bytes - inside;
    return array->tiles + element * array->element_bytes + inside;
}

static void move_row(const hr_bcopy *copy, uint64_t row, uint64_t slice)
{
    uint64_t bytes;
    for (uint64_t at = 0; at < copy->width_bytes; at += bytes) {
        uint64_t dst_bytes, src_bytes;
        char *dst = run_at(&copy->dst, row, slice, at, &dst_bytes);
        const char *src = run_at(&copy->src, row, slice, at, &src_bytes);
        bytes = hr_min_u64(hr_min_u64(dst_bytes, src_bytes), copy->width_bytes - at);
        memcpy(dst, src, bytes);
    }
}

static bool is_linear(const hr_bend *end)
{
    return end->place != HR_PLACE_ARRAY;
}

/* Rows that follow each other without a gap at both ends are one long row. */
static hr_bcopy flatten(const hr_bcopy *copy)
{
    hr_bcopy flat = *copy;
    if (!is_linear(&flat.dst) || !is_linear(&flat.src)) {
        return flat;
    }
    if (flat.height > 1 && flat.dst.row_pitch_bytes == flat.width_bytes &&
        flat.src.row_pitch_bytes == flat.width_bytes) {
        flat.width_bytes *= flat.height;
        flat.height = 1;
    }
    if (flat.depth > 1 && flat.height == 1 && flat.dst.slice_pitch_bytes == flat.width_bytes &&
        flat.src.slice_pitch_bytes == flat.width_bytes) {
        flat.width_bytes *= flat.depth;
        flat.depth = 1;
    }
    return flat;
}

typedef struct shared {
    const hr_bcopy *copy;
    uint64_t rows_per_piece;
} shared;

static void move_piece_of_row(void *user, uint64_t index)
{
    const hr_bcopy *copy = ((const shared *)user)->copy;
    uint64_t at = index * PIECE;
    memcpy(linear_base(&copy->dst) + at, linear_base(&copy->src) + at,
           hr_min_u64(PIECE, copy->width_bytes - at));
}

static void move_rows(void *user, uint64_t index)
{
    const shared *work = user;
    uint64_t rows = work->copy->height * work->copy->depth;
    uint64_t begin = index * work->rows_per_piece;
    uint64_t end = hr_min_u64(begin + work->rows_per_piece, rows);
    for (uint64_t row = begin; row < end; row++) {
        move_row(work->copy, row % work->copy->height, row / work->copy->height);
    }
}

static void move_segments(const hr_bcopy *copy)
{
    char *dst = linear_base(&copy->dst);
    const char *src = linear_base(&copy->src);
    for (uint64_t i = 0; i < copy->segment_count; i++) {
        const hr_segment *segment = &copy->segments[i];
        memcpy(dst + segment->dst_offset_bytes, src + segment->src_offset_bytes, segment->bytes);
    }
}

uint64_t hr_cpu_copy_bytes(const hr_bcopy *copy)
{
    if (copy->segment_count == 0) {
        return copy->width_bytes * copy->height * copy->depth;
    }
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < copy->segment_count; i++) {
        bytes += copy->segments[i].bytes;
    }
    return bytes;
}

void hr_cpu_move(const hr_bcopy *copy, hr_crew *crew)
{
    if (copy->segment_count > 0) {
        move_segments(copy);
        return;
    }
    hr_bcopy flat = flatten(copy);
    shared work = {&flat, 0};
    uint64_t rows = flat.height * flat.depth;
    bool share = crew != NULL && hr_cpu_copy_bytes(&flat) >= SHARED_BYTES;
    if (rows == 1 && share && is_linear(&flat.dst) && is_linear(&flat.src)) {
        hr_crew_run(crew, hr_div_up(flat.width_bytes, PIECE), move_piece_of_row, &work);
        return;
    }
    work.rows_per_piece = share ? hr_max_u64(1, PIECE / flat.width_bytes) : rows;
    if (share) {
        hr_crew_run(crew, hr_div_up(rows, work.rows_per_piece), move_rows, &work);
    } else {
        move_rows(&work, 0);
    }
}

static void fill_row(char *row, const hr_bfill *fill)
{
    if (fill->value_bytes == 1) {
        memset(row, (int)(fill->value & 0xff), fill->width_bytes);
        return;
    }
    const uint16_t half = (uint16_t)fill->value;
    const void *value = fill->value_bytes == 2 ? (const void *)&half : &fill->value;
    for (uint64_t at = 0; at < fill->width_bytes; at += fill->value_bytes) {
        memcpy(row + at, value, fill->value_bytes);
    }
}

void hr_cpu_fill(const hr_bfill *fill)
{
    for (uint64_t slice = 0; slice < fill->depth; slice++) {
        for (uint64_t row = 0; row < fill->height; row++) {
            fill_row((char *)fill->dst.base + slice * fill->dst.slice_pitch_bytes +
                         row * fill->dst.row_pitch_bytes,
                     fill);
        }
    }
}

/* The geometry that run_at() walks. */
hr_status hr_cpu_array_open(hr_bdevice *device, const hr_array_options *options, hr_barray **array,
                            hr_error *error)
{
    hr_barray made = {.element_bytes = hr_dtype_bytes(options->dtype) * options->channels,
                      .tiles_x = hr_div_up(options->width, TILE),
                      .tiles_y = hr_div_up(hr_max_u64(options->height, 1), TILE)};
    /* The core made sure that the elements fit 63 bits; rounding up to tiles may add a factor of 64. */
    bool fits = !hr_mul_overflows(made.tiles_x, made.tiles_y, &made.bytes) &&
                !hr_mul_overflows(made.bytes, hr_max_u64(options->depth, 1), &made.bytes) &&
                !hr_mul_overflows(made.bytes, TILE * TILE * made.element_bytes, &made.bytes);
    if (!fits) {
        return hr_fail(error, HR_E_DEVICE_MEMORY, "array: its tiles do not fit 64 bits");
    }
    return hr_cpu_array_allocate(device, &made, array, error);
}
