/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a Fortran-ordered array, turned in bands that are larger than what is asked for. */
#ifndef HR_IO_BANDS_H
#define HR_IO_BANDS_H

#include "io/fortran.h"

typedef struct hr_bands hr_bands;

/* `array` must outlive it. Takes no memory for the bands yet. HR_E_HOST_MEMORY. */
hr_status hr_bands_open(const hr_fortran *array, hr_bands **bands, hr_error *error);
void hr_bands_close(hr_bands **bands);
/* As hr_fortran_read(). Any thread; threads that need the same band fill it together. */
hr_status hr_bands_read(hr_bands *bands, uint64_t first, uint64_t count, void *to, hr_error *error);

#endif
