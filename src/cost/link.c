/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/cost.h"

#include <math.h>

/* Puts a point where its size belongs; equal sizes keep the faster. */
static void insert_point(hr_cost_link *link, double bytes, double seconds)
{
    size_t at = link->count;
    while (at > 0 && link->bytes[at - 1] >= bytes) {
        at--;
    }
    if (at < link->count && link->bytes[at] == bytes) {
        link->seconds[at] = fmin(link->seconds[at], seconds);
        return;
    }
    if (link->count == HR_COST_MAX_POINTS) {
        return;
    }
    for (size_t i = link->count; i > at; i--) {
        link->bytes[i] = link->bytes[i - 1];
        link->seconds[i] = link->seconds[i - 1];
    }
    link->bytes[at] = bytes;
    link->seconds[at] = seconds;
    link->count++;
}

/* Pools neighbours that fall until none does (least-squares isotonic regression). */
static void make_monotone(hr_cost_link *link)
{
    double mean[HR_COST_MAX_POINTS];
    size_t weight[HR_COST_MAX_POINTS];
    size_t blocks = 0;
    for (size_t i = 0; i < link->count; i++) {
        mean[blocks] = link->seconds[i];
        weight[blocks] = 1;
        blocks++;
        while (blocks > 1 && mean[blocks - 2] > mean[blocks - 1]) {
            size_t both = weight[blocks - 2] + weight[blocks - 1];
            mean[blocks - 2] = (mean[blocks - 2] * (double)weight[blocks - 2] +
                                mean[blocks - 1] * (double)weight[blocks - 1]) /
                               (double)both;
            weight[blocks - 2] = both;
            blocks--;
        }
    }
    for (size_t block = 0, i = 0; block < blocks; block++) {
        for (size_t n = 0; n < weight[block]; n++) {
            link->seconds[i++] = mean[block];
        }
    }
}

hr_status hr_cost_link_make(const double *bytes, const double *seconds, size_t count, hr_cost_link *link)
{
    hr_cost_link made = {0};
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] > 0.0 && seconds[i] > 0.0 && isfinite(bytes[i]) && isfinite(seconds[i])) {
            insert_point(&made, bytes[i], seconds[i]);
        }
    }
    if (made.count == 0) {
        return HR_E_INVALID;
    }
    make_monotone(&made);
    *link = made;
    return HR_OK;
}

double hr_cost_link_rate(const hr_cost_link *link)
{
    /* Small transfers may live in caches that a stream of data never sees. */
    double best = 0.0, least = link->count > 0 ? link->bytes[link->count - 1] / 16.0 : 0.0;
    for (size_t i = 0; i < link->count; i++) {
        best = link->bytes[i] >= least ? fmax(best, link->bytes[i] / link->seconds[i]) : best;
    }
    return best;
}

double hr_cost_link_s(const hr_cost_link *link, double bytes)
{
    size_t last = link->count - 1;
    if (bytes >= link->bytes[last]) {
        return link->seconds[last] * (bytes / link->bytes[last]);
    }
    if (bytes <= link->bytes[0]) {
        /* Below the smallest point the start-up cost rules, unless that point is all there is. */
        double start = fmin(hr_cost_link_fit(link).start_s, link->seconds[0]);
        return start + (bytes / link->bytes[0]) * (link->seconds[0] - start);
    }
    size_t right = 1;
    while (link->bytes[right] < bytes) {
        right++;
    }
    double share = (bytes - link->bytes[right - 1]) / (link->bytes[right] - link->bytes[right - 1]);
    return link->seconds[right - 1] + share * (link->seconds[right] - link->seconds[right - 1]);
}

hr_cost_stage hr_cost_link_fit(const hr_cost_link *link)
{
    /* Least squares of (a + c/b − t)/t: a small transfer counts as much as a large one. */
    double s1 = 0.0, sc = 0.0, scc = 0.0, st = 0.0, sct = 0.0;
    for (size_t i = 0; i < link->count; i++) {
        double w = 1.0 / (link->seconds[i] * link->seconds[i]);
        s1 += w;
        sc += w * link->bytes[i];
        scc += w * link->bytes[i] * link->bytes[i];
        st += w * link->seconds[i];
        sct += w * link->bytes[i] * link->seconds[i];
    }
    double divisor = s1 * scc - sc * sc;
    double slope = divisor > 0.0 ? (s1 * sct - sc * st) / divisor : 0.0;
    double start = s1 > 0.0 ? (st - slope * sc) / s1 : 0.0;
    if (start < 0.0 || slope <= 0.0 || link->count < 2) {
        start = 0.0;
        slope = sct / scc;
    }
    return (hr_cost_stage){.start_s = start, .bytes_per_s = 1.0 / slope};
}
