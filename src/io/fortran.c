/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the file the first axis is the fastest, in the result the last one. A piece of the result that starts
 * and ends anywhere is cut into boxes. A box is fetched plane by plane: runs along the fastest axis of the
 * file that the box has, with their neighbours along the next one. Runs whose gap is not worth a call of its
 * own are read together with it; what was read is then spread over the result.
 */
#include "io/fortran.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

#define STAGE_BYTES (UINT64_C(256) << 10)
/* A gap in the file that is cheaper to read over than to skip by a further call. */
#define GAP_BYTES UINT64_C(8192)

/* count0 × count1 elements; the strides are in elements. Tiles keep the lines that are written in the cache.
 */
#define SPREAD(type)                                                                                        \
    static void spread_##type(const unsigned char *from, uint64_t count0, uint64_t count1, uint64_t src1,   \
                              unsigned char *to, uint64_t dst0, uint64_t dst1)                              \
    {                                                                                                       \
        enum { TILE = 16 };                                                                                 \
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
    const hr_fortran *array; /* null: memory */
    const unsigned char *memory;
    uint64_t width;
    unsigned char *stage;
    hr_error *error;
} origin;

/* A box with the strides that it has in the file, and without the axes on which it has one index. */
typedef struct plan {
    uint32_t rank; /* at least 2; axis 0 is the file's fastest, even where it has one index */
    uint64_t at;   /* the first element in the file */
    uint64_t count[HR_MAX_RANK];
    uint64_t src[HR_MAX_RANK];
    uint64_t dst[HR_MAX_RANK];
} plan;

static plan make_plan(const hr_shape *shape, const hr_box *box)
{
    plan p = {.rank = 1, .count = {1}, .src = {1}};
    uint64_t stride = 1;
    for (uint32_t k = 0; k < box->rank; k++) {
        p.at += box->low[k] * stride;
        if (k == 0) {
            p.count[0] = box->count[0];
            p.dst[0] = box->dst[0];
        } else if (box->count[k] > 1) {
            p.count[p.rank] = box->count[k];
            p.src[p.rank] = stride;
            p.dst[p.rank] = box->dst[k];
            p.rank++;
        }
        stride *= shape->extent[k];
    }
    if (p.rank == 1) {
        p.count[1] = 1;
        p.src[1] = p.count[0];
        p.rank = 2;
    }
    return p;
}

/* `n1` runs of n0 elements, src1 apart in the file, into the stage. Returns how far apart they are there. */
static hr_status fill_stage(const origin *from, uint64_t at, uint64_t n0, uint64_t n1, uint64_t src1,
                            uint64_t *pitch)
{
    uint64_t width = from->width;
    uint64_t offset = from->array->data_offset + at * width;
    if (n1 == 1 || (src1 - n0) * width <= GAP_BYTES) {
        *pitch = n1 == 1 ? n0 : src1;
        return hr_file_read(from->array->file, offset, from->stage, ((n1 - 1) * src1 + n0) * width,
                            from->error);
    }
    *pitch = n0;
    for (uint64_t j = 0; j < n1; j++) {
        hr_status status = hr_file_read(from->array->file, offset + j * src1 * width,
                                        from->stage + j * n0 * width, n0 * width, from->error);
        if (status != HR_OK) {
            return status;
        }
    }
    return HR_OK;
}

/* Axes 0 and 1, from file element `at` to `to`. */
static hr_status fetch_plane(const origin *from, const plan *p, uint64_t at, unsigned char *to)
{
    uint64_t width = from->width;
    uint64_t src1 = p->src[1];
    if (from->array == NULL) {
        spread(width, from->memory + at * width, p->count[0], p->count[1], src1, to, p->dst[0], p->dst[1]);
        return HR_OK;
    }
    uint64_t room = STAGE_BYTES / width;
    bool joined = (src1 - p->count[0]) * width <= GAP_BYTES;
    for (uint64_t i = 0; i < p->count[0];) {
        uint64_t n0 = hr_min_u64(p->count[0] - i, room);
        /* As many whole runs as the stage takes; parts of a run one by one. */
        uint64_t fit = n0 == p->count[0] ? hr_max_u64(1, room / (joined ? src1 : n0)) : 1;
        for (uint64_t j = 0; j < p->count[1]; j += fit) {
            uint64_t n1 = hr_min_u64(fit, p->count[1] - j);
            uint64_t pitch = 0;
            hr_status status = fill_stage(from, at + i + j * src1, n0, n1, src1, &pitch);
            if (status != HR_OK) {
                return status;
            }
            spread(width, from->stage, n0, n1, pitch, to + (i * p->dst[0] + j * p->dst[1]) * width, p->dst[0],
                   p->dst[1]);
        }
        i += n0;
    }
    return HR_OK;
}

static hr_status fetch(const origin *from, const plan *p, unsigned char *to)
{
    uint64_t index[HR_MAX_RANK] = {0};
    for (;;) {
        uint64_t src = p->at;
        uint64_t dst = 0;
        for (uint32_t k = 2; k < p->rank; k++) {
            src += index[k] * p->src[k];
            dst += index[k] * p->dst[k];
        }
        hr_status status = fetch_plane(from, p, src, to + dst * from->width);
        if (status != HR_OK) {
            return status;
        }
        uint32_t k = 2;
        while (k < p->rank && ++index[k] == p->count[k]) {
            index[k++] = 0;
        }
        if (k >= p->rank) {
            return HR_OK;
        }
    }
}

hr_box hr_box_whole(const hr_shape *shape)
{
    hr_box b = {.rank = shape->rank};
    uint64_t dst = 1;
    for (uint32_t k = shape->rank; k-- > 0;) {
        b.count[k] = shape->extent[k];
        b.dst[k] = dst;
        dst *= shape->extent[k];
    }
    return b;
}

hr_box hr_box_at(const hr_shape *shape, uint64_t first, uint64_t count, uint64_t *elements)
{
    hr_box b = hr_box_whole(shape);
    uint32_t axis = 0;
    while (axis + 1 < shape->rank && (first % b.dst[axis] != 0 || count < b.dst[axis])) {
        axis++;
    }
    uint64_t rest = first;
    for (uint32_t k = 0; k <= axis; k++) {
        b.low[k] = rest / b.dst[k];
        b.count[k] = 1;
        rest %= b.dst[k];
    }
    b.count[axis] = hr_min_u64(shape->extent[axis] - b.low[axis], count / b.dst[axis]);
    *elements = b.count[axis] * b.dst[axis];
    return b;
}

hr_status hr_fortran_read_box(const hr_fortran *array, const hr_box *box, void *to, hr_error *error)
{
    origin from = {array, NULL, array->width, malloc(STAGE_BYTES), error};
    if (from.stage == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to transpose in", array->name);
    }
    plan p = make_plan(&array->shape, box);
    hr_status status = fetch(&from, &p, to);
    free(from.stage);
    return status;
}

hr_status hr_fortran_read(const hr_fortran *array, uint64_t first, uint64_t count, void *to, hr_error *error)
{
    unsigned char *at = to;
    while (count > 0) {
        uint64_t elements = 0;
        hr_box box = hr_box_at(&array->shape, first, count, &elements);
        hr_status status = hr_fortran_read_box(array, &box, at, error);
        if (status != HR_OK) {
            return status;
        }
        first += elements;
        count -= elements;
        at += elements * array->width;
    }
    return HR_OK;
}

void hr_fortran_to_c(const void *fortran, const hr_shape *shape, uint64_t width, void *c)
{
    origin from = {NULL, fortran, width, NULL, NULL};
    hr_box box = hr_box_whole(shape);
    plan p = make_plan(shape, &box);
    hr_status status = fetch(&from, &p, c);
    (void)status; /* memory cannot fail */
}
