/* SPDX-License-Identifier: Apache-2.0 */
#include "base/samples.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
}

double hr_samples_median(double *values, size_t count)
{
    if (count == 0) {
        return 0.0;
    }
    sort(values, count);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2.0;
}

/* Between the two nearest ranks. */
static double percentile(const double *sorted, size_t count, double share)
{
    double rank = share * (double)(count - 1);
    size_t below = (size_t)rank;
    size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (rank - (double)below) * (sorted[above] - sorted[below]);
}

double hr_samples_spread_pct(double *values, size_t count)
{
    double median = hr_samples_median(values, count);
    if (count < 2 || median == 0.0) {
        return 0.0;
    }
    return (percentile(values, count, 0.9) - percentile(values, count, 0.1)) / median * 100.0;
}
