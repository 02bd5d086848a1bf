/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/model/interval.h"

#include <stdlib.h>

void hr_intervals_free(hr_intervals *set)
{
    free(set->at);
    *set = (hr_intervals){0};
}

hr_status hr_intervals_add(hr_intervals *set, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns <= begin_ns)
        return HR_OK;
    if (set->count == set->capacity) {
        size_t capacity = set->capacity != 0 ? set->capacity * 2 : 64;
        hr_interval *grown = realloc(set->at, capacity * sizeof *grown);
        if (grown == NULL)
            return HR_E_HOST_MEMORY;
        set->at = grown;
        set->capacity = capacity;
    }
    set->at[set->count++] = (hr_interval){begin_ns, end_ns};
    return HR_OK;
}

static int by_begin(const void *left, const void *right)
{
    const hr_interval *a = left;
    const hr_interval *b = right;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

void hr_intervals_normalise(hr_intervals *set)
{
    if (set->count == 0)
        return;
    qsort(set->at, set->count, sizeof *set->at, by_begin);
    size_t last = 0;
    for (size_t i = 1; i < set->count; i++) {
        if (set->at[i].begin_ns > set->at[last].end_ns)
            set->at[++last] = set->at[i];
        else if (set->at[i].end_ns > set->at[last].end_ns)
            set->at[last].end_ns = set->at[i].end_ns;
    }
    set->count = last + 1;
}

int64_t hr_intervals_length(const hr_intervals *set)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->count; i++)
        sum += set->at[i].end_ns - set->at[i].begin_ns;
    return sum;
}

int64_t hr_intervals_common(const hr_intervals *a, const hr_intervals *b)
{
    int64_t sum = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const hr_interval *x = &a->at[i];
        const hr_interval *y = &b->at[j];
        int64_t begin = x->begin_ns > y->begin_ns ? x->begin_ns : y->begin_ns;
        int64_t end = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;
        if (end > begin)
            sum += end - begin;
        if (x->end_ns < y->end_ns)
            i++;
        else
            j++;
    }
    return sum;
}

int64_t hr_intervals_exposed(const hr_intervals *a, const hr_intervals *b)
{
    return hr_intervals_length(a) - hr_intervals_common(a, b);
}

int64_t hr_intervals_covered(const hr_intervals *set, int64_t begin_ns, int64_t end_ns)
{
    /* The first member that ends after `begin`. */
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->at[middle].end_ns <= begin_ns)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t sum = 0;
    for (size_t i = low; i < set->count && set->at[i].begin_ns < end_ns; i++) {
        int64_t begin = set->at[i].begin_ns > begin_ns ? set->at[i].begin_ns : begin_ns;
        int64_t end = set->at[i].end_ns < end_ns ? set->at[i].end_ns : end_ns;
        sum += end - begin;
    }
    return sum;
}

hr_status hr_intervals_union(const hr_intervals *a, const hr_intervals *b, hr_intervals *out)
{
    hr_status status = HR_OK;
    for (size_t i = 0; i < a->count && status == HR_OK; i++)
        status = hr_intervals_add(out, a->at[i].begin_ns, a->at[i].end_ns);
    for (size_t i = 0; i < b->count && status == HR_OK; i++)
        status = hr_intervals_add(out, b->at[i].begin_ns, b->at[i].end_ns);
    if (status != HR_OK)
        hr_intervals_free(out);
    else
        hr_intervals_normalise(out);
    return status;
}

hr_status hr_intervals_gaps(const hr_intervals *set, int64_t begin_ns, int64_t end_ns, hr_intervals *out)
{
    hr_status status = HR_OK;
    int64_t at = begin_ns;
    for (size_t i = 0; i < set->count && status == HR_OK && set->at[i].begin_ns < end_ns; i++) {
        if (set->at[i].begin_ns > at)
            status = hr_intervals_add(out, at, set->at[i].begin_ns);
        if (set->at[i].end_ns > at)
            at = set->at[i].end_ns;
    }
    if (status == HR_OK)
        status = hr_intervals_add(out, at, end_ns);
    if (status != HR_OK)
        hr_intervals_free(out);
    return status;
}
