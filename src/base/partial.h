/* SPDX-License-Identifier: Apache-2.0 */
/* What chunks of the built-in reductions leave behind; all devices write the same bytes. */
#ifndef HR_BASE_PARTIAL_H
#define HR_BASE_PARTIAL_H

#include "base/exact_sum.h"

typedef struct hr_sum_partial {
    hr_sum128 integers;  /* 0 for floats */
    hr_exact_sum floats; /* 0 for integers; need not be carried */
} hr_sum_partial;

typedef struct hr_checksum_partial {
    uint64_t bytes;
    uint64_t crc; /* in the low 32 bits */
} hr_checksum_partial;

#endif
