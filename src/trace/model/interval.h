/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of half-open time intervals [begin, end), exact in integer nanoseconds. */
#ifndef HR_TRACE_MODEL_INTERVAL_H
#define HR_TRACE_MODEL_INTERVAL_H

#include <headrace/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hr_interval {
    int64_t begin_ns, end_ns;
} hr_interval;

/*
 * A growing list. After hr_intervals_normalise() it is a set: sorted, disjoint, without empty members; the
 * other functions below expect sets and yield sets. Zeroed memory is the empty set.
 */
typedef struct hr_intervals {
    hr_interval *at;
    size_t count, capacity;
} hr_intervals;

void hr_intervals_free(hr_intervals *set);
/* Appends; an interval that ends before it begins, or is empty, is left out. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_intervals_add(hr_intervals *set, int64_t begin_ns, int64_t end_ns);
/* Sorts, and joins what overlaps or touches. */
void hr_intervals_normalise(hr_intervals *set);
/* Sum of the lengths. */
int64_t hr_intervals_length(const hr_intervals *set);
/* Length of what both sets cover. */
int64_t hr_intervals_common(const hr_intervals *a, const hr_intervals *b);
/* Length of what `a` covers and `b` does not. */
int64_t hr_intervals_exposed(const hr_intervals *a, const hr_intervals *b);
/* How much of [begin, end) the set covers. */
int64_t hr_intervals_covered(const hr_intervals *set, int64_t begin_ns, int64_t end_ns);
/* *out (empty before) becomes the union. HR_E_HOST_MEMORY, with *out empty. */
HR_CHECKED hr_status hr_intervals_union(const hr_intervals *a, const hr_intervals *b, hr_intervals *out);
/* *out (empty before) becomes the gaps of the set within [begin, end): when nothing ran. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_intervals_gaps(const hr_intervals *set, int64_t begin_ns, int64_t end_ns,
                                       hr_intervals *out);

#endif
