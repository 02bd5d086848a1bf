/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a Fortran-ordered array as if it were C-ordered, any piece of it, without holding the whole. */
#ifndef HR_IO_FORTRAN_H
#define HR_IO_FORTRAN_H

#include <headrace/dtype.h>

#include "io/file.h"

/* An array in a file, the first axis fastest. */
typedef struct hr_fortran {
    const char *name;
    hr_file *file;
    uint64_t data_offset;
    uint64_t width; /* bytes of an element */
    hr_shape shape;
} hr_fortran;

/* A part of an array: on each axis, where it starts and how many there are; and where its elements go. */
typedef struct hr_box {
    uint32_t rank;
    uint64_t low[HR_MAX_RANK];
    uint64_t count[HR_MAX_RANK];
    uint64_t dst[HR_MAX_RANK]; /* elements in the result from one index of an axis to the next */
} hr_box;

/* The whole array, to a C-ordered result of the same shape. */
hr_box hr_box_whole(const hr_shape *shape);
/*
 * The largest box among the `count` elements from C-ordered element `first` on: leading indices fixed, a
 * range on one axis, all of each trailing axis. *elements tells how many it has.
 */
hr_box hr_box_at(const hr_shape *shape, uint64_t first, uint64_t count, uint64_t *elements);

/* Fills `to` with a box; bytes as the file has them. Any thread. */
hr_status hr_fortran_read_box(const hr_fortran *array, const hr_box *box, void *to, hr_error *error);
/* Fills `to` with `count` elements in C order. Any thread. */
hr_status hr_fortran_read(const hr_fortran *array, uint64_t first, uint64_t count, void *to, hr_error *error);

/* The same from an array that lies in memory in Fortran order, whole. */
void hr_fortran_to_c(const void *fortran, const hr_shape *shape, uint64_t width, void *c);

#endif
