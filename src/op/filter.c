/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The named filters. Each is an outer product of a column and a row, but for `sharpen`.
 *
 * box3, box5: the mean of the neighbourhood.
 * gauss3, gauss5, gauss7: the small Gaussian kernels that OpenCV's getGaussianKernel() gives for these sizes
 * when it chooses sigma itself (binomial 1 2 1 and 1 4 6 4 1; 2 7 14 18 14 7 2 out of 64). sobelx, sobely:
 * OpenCV's Sobel() of size 3, first derivative along the columns and along the rows; not scaled. sharpen: the
 * identity plus the four-neighbour Laplacian's opposite; the weights add up to 1.
 */
#include "op/internal.h"

#include <string.h>

typedef struct named_filter {
    const char *name;
    uint32_t edge;
    double divisor; /* of the product of the two */
    double column[7], row[7];
} named_filter;

static const named_filter filters[] = {
    {"box3", 3, 9, {1, 1, 1}, {1, 1, 1}},
    {"box5", 5, 25, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},
    {"gauss3", 3, 16, {1, 2, 1}, {1, 2, 1}},
    {"gauss5", 5, 256, {1, 4, 6, 4, 1}, {1, 4, 6, 4, 1}},
    {"gauss7", 7, 4096, {2, 7, 14, 18, 14, 7, 2}, {2, 7, 14, 18, 14, 7, 2}},
    {"sobelx", 3, 1, {1, 2, 1}, {-1, 0, 1}},
    {"sobely", 3, 1, {-1, 0, 1}, {1, 2, 1}},
};

static const double sharpen[9] = {0, -1, 0, -1, 5, -1, 0, -1, 0};

const char *hr_filter_names(void)
{
    return "box3 box5 gauss3 gauss5 gauss7 sobelx sobely sharpen";
}

hr_status hr_filter_named(const char *name, hr_conv2d_params *params)
{
    if (strcmp(name, "sharpen") == 0) {
        params->rows = 3;
        params->columns = 3;
        memcpy(params->weight, sharpen, sizeof sharpen);
        return HR_OK;
    }
    for (size_t f = 0; f < sizeof filters / sizeof filters[0]; f++) {
        const named_filter *filter = &filters[f];
        if (strcmp(name, filter->name) != 0) {
            continue;
        }
        params->rows = filter->edge;
        params->columns = filter->edge;
        for (uint32_t i = 0; i < filter->edge; i++) {
            for (uint32_t j = 0; j < filter->edge; j++) {
                params->weight[i * filter->edge + j] = filter->column[i] * filter->row[j] / filter->divisor;
            }
        }
        return HR_OK;
    }
    return HR_E_NOT_FOUND;
}
