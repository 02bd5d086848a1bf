/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a Fortran-ordered array as if it were C-ordered, any piece of it, without holding the whole. */
#ifndef HR_IO_FORTRAN_H
#define HR_IO_FORTRAN_H

#include "io/array_file.h"

/* Fills `buffer` with the elements [first, first + count) in C order; bytes as the file has them. Any thread.
 */
hr_status hr_fortran_read(const hr_array_file *array, uint64_t first, uint64_t count, void *buffer,
                          hr_error *error);

/* The same from an array that lies in memory in Fortran order, whole. */
void hr_fortran_to_c(const void *fortran, const hr_shape *shape, uint64_t width, void *c);

#endif
