/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The length of a union of intervals that arrive roughly in order, in fixed memory. Not thread-safe. Exact as
 * long as no interval begins before the HR_COVER_ROOM latest disjoint pieces; what is older is settled and
 * only its length is kept.
 */
#ifndef HR_COST_COVER_H
#define HR_COST_COVER_H

#include <stddef.h>
#include <stdint.h>

#define HR_COVER_ROOM 64

typedef struct hr_cover {
    uint64_t settled_ns;   /* length of the pieces that were given up */
    uint64_t settled_till; /* where the last of them ends */
    size_t count;
    struct {
        uint64_t begin, end;
    } piece[HR_COVER_ROOM]; /* disjoint, growing */
} hr_cover;

/* Adds [begin, end). An empty interval changes nothing. A zeroed struct is an empty cover. */
void hr_cover_add(hr_cover *cover, uint64_t begin, uint64_t end);
uint64_t hr_cover_length(const hr_cover *cover);

#endif
