/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the file the first axis is the fastest, in the result the last one. A piece of the result that starts
 * and ends anywhere is cut into boxes: all leading indices fixed, a range on one axis, every trailing axis
 * whole. A box is fetched in slabs of file bytes that lie together (runs along axis 0, with their neighbours
 * along axis 1 where the gap between them is not worth a call of its own), and each slab is spread over the
 * result.
 */
#include "io/fortran.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

#define STAGE_BYTES (UINT64_C(256) << 10)
/* A gap in the file that is cheaper to read over than to skip by a further call. */
#define GAP_BYTES UINT64_C(8192)

typedef struct box {
    uint32_t rank;
    uint64_t low[HR_MAX_RANK];
    uint64_t count[HR_MAX_RANK];
    uint64_t src[HR_MAX_RANK]; /* elements from one index of an axis to the next, in the file */
    uint64_t dst[HR_MAX_RANK]; /* and in the result */
} box;

/* count0 × count1 elements of `width` bytes; the strides are in elements. */
#define SPREAD(type)                                                                                        \
    static void spread_##type(const unsigned char *from, uint64_t count0, uint64_t count1, uint64_t src1,   \
                              unsigned char *to, uint64_t dst0, uint64_t dst1)                              \
    {                                                                                                       \
        enum { TILE = 64 / sizeof(type) > 16 ? 16 : 64 / sizeof(type) };                                    \
        for (uint64_t j0 = 0; j0 < count1; j0 += TILE) {                                                    \
            uint64_t j1 = hr_min_u64(count1, j0 + TILE);                                                    \
            for (uint64_t i = 0; i < count0; i++) {                                                         \
                for (uint64_t j = j0; j < j1; j++) {                                                        \
                    memcpy(to + (i * dst0 + j * dst1) * sizeof(type), from + (j * src1 + i) * sizeof(type), \
                           sizeof(type));                                                                   \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }
SPREAD(uint8_t)
SPREAD(uint16_t)
SPREAD(uint32_t)
SPREAD(uint64_t)

static void spread(uint64_t width, const unsigned char *from, uint64_t count0, uint64_t count1, uint64_t src1,
                   unsigned char *to, uint64_t dst0, uint64_t dst1)
{
    switch (width) {
    case 1:
        spread_uint8_t(from, count0, count1, src1, to, dst0, dst1);
        break;
    case 2:
        spread_uint16_t(from, count0, count1, src1, to, dst0, dst1);
        break;
    case 4:
        spread_uint32_t(from, count0, count1, src1, to, dst0, dst1);
        break;
    default:
        spread_uint64_t(from, count0, count1, src1, to, dst0, dst1);
        break;
    }
}

/* Where the elements come from: a file through a staging buffer, or memory. */
typedef struct origin {
    const hr_array_file *array; /* null: memory */
    const unsigned char *memory;
    uint64_t width;
    unsigned char *stage;
    hr_error *error;
} origin;

/* Axes 0 and 1 of a box, from file element `at` to `to`. */
static hr_status fetch_plane(const origin *from, const box *b, uint64_t at, unsigned char *to)
{
    uint64_t width = from->width;
    uint64_t count1 = b->rank > 1 ? b->count[1] : 1;
    uint64_t src1 = b->rank > 1 ? b->src[1] : b->count[0];
    uint64_t dst1 = b->rank > 1 ? b->dst[1] : 0;
    if (from->array == NULL) {
        spread(width, from->memory + at * width, b->count[0], count1, src1, to, b->dst[0], dst1);
        return HR_OK;
    }
    uint64_t stage = STAGE_BYTES / width;
    bool joined = (src1 - b->count[0]) * width <= GAP_BYTES;
    for (uint64_t i = 0; i < b->count[0];) {
        /* A part of the run along axis 0, and as many neighbours along axis 1 as the stage takes. */
        uint64_t n0 = hr_min_u64(b->count[0] - i, stage);
        uint64_t n1 = n0 == b->count[0] ? hr_max_u64(1, stage / (joined ? src1 : n0)) : 1;
        for (uint64_t j = 0; j < count1; j += n1) {
            n1 = hr_min_u64(n1, count1 - j);
            uint64_t offset = from->array->data_offset + (at + i + j * src1) * width;
            uint64_t pitch = joined && n1 > 1 ? src1 : n0;
            uint64_t calls = pitch == n0 && pitch != src1 ? n1 : 1;
            uint64_t bytes = (calls > 1 ? n0 : (n1 - 1) * pitch + n0) * width;
            for (uint64_t k = 0; k < calls; k++) {
                hr_status status = hr_file_read(from->array->file, offset + k * src1 * width,
                                                from->stage + k * n0 * width, bytes, from->error);
                if (status != HR_OK) {
                    return status;
                }
            }
            spread(width, from->stage, n0, n1, pitch, to + (i * b->dst[0] + j * dst1) * width, b->dst[0],
                   dst1);
        }
        i += n0;
    }
    return HR_OK;
}

static hr_status fetch_box(const origin *from, const box *b, unsigned char *to)
{
    uint64_t index[HR_MAX_RANK] = {0};
    uint64_t at = 0;
    for (uint32_t k = 0; k < b->rank; k++) {
        at += b->low[k] * b->src[k];
    }
    for (;;) {
        uint64_t src = at;
        uint64_t dst = 0;
        for (uint32_t k = 2; k < b->rank; k++) {
            src += index[k] * b->src[k];
            dst += index[k] * b->dst[k];
        }
        hr_status status = fetch_plane(from, b, src, to + dst * from->width);
        if (status != HR_OK) {
            return status;
        }
        uint32_t k = 2;
        while (k < b->rank && ++index[k] == b->count[k]) {
            index[k++] = 0;
        }
        if (k >= b->rank) {
            return HR_OK;
        }
    }
}

static box whole_box(const hr_shape *shape)
{
    box b = {.rank = shape->rank};
    uint64_t src = 1;
    for (uint32_t k = 0; k < shape->rank; k++) {
        b.count[k] = shape->extent[k];
        b.src[k] = src;
        src *= shape->extent[k];
    }
    uint64_t dst = 1;
    for (uint32_t k = shape->rank; k-- > 0;) {
        b.dst[k] = dst;
        dst *= shape->extent[k];
    }
    return b;
}

/* The largest box that starts at C-ordered element `first` and has at most `count` elements. */
static box box_at(const hr_shape *shape, uint64_t first, uint64_t count, uint64_t *elements)
{
    box b = whole_box(shape);
    uint32_t axis = 0;
    while (axis + 1 < shape->rank && (first % b.dst[axis] != 0 || count < b.dst[axis])) {
        axis++;
    }
    uint64_t rest = first;
    for (uint32_t k = 0; k < shape->rank; k++) {
        if (k <= axis) {
            b.low[k] = rest / b.dst[k];
            b.count[k] = 1;
        }
        rest %= b.dst[k];
    }
    b.count[axis] = hr_min_u64(shape->extent[axis] - b.low[axis], count / b.dst[axis]);
    *elements = b.count[axis] * b.dst[axis];
    return b;
}

hr_status hr_fortran_read(const hr_array_file *array, uint64_t first, uint64_t count, void *buffer,
                          hr_error *error)
{
    origin from = {array, NULL, array->width, malloc(STAGE_BYTES), error};
    if (from.stage == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to transpose in", array->name);
    }
    hr_status status = HR_OK;
    unsigned char *to = buffer;
    while (count > 0 && status == HR_OK) {
        uint64_t elements = 0;
        box b = box_at(&array->shape, first, count, &elements);
        status = fetch_box(&from, &b, to);
        first += elements;
        count -= elements;
        to += elements * array->width;
    }
    free(from.stage);
    return status;
}

void hr_fortran_to_c(const void *fortran, const hr_shape *shape, uint64_t width, void *c)
{
    origin from = {NULL, fortran, width, NULL, NULL};
    box b = whole_box(shape);
    hr_status status = fetch_box(&from, &b, c);
    (void)status; /* memory cannot fail */
}
