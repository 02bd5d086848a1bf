/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was measured on this machine, kept between runs: the link of each device, and the speed at which
 * stages and ops were seen to run. A text file in the user's cache folder, one section a device. Nothing here
 * fails a run: a file that is missing, torn or foreign counts as empty.
 *
 *     headrace-costs 1
 *     device NVIDIA H200 | 580.159 | cuda:0
 *     h2d 65536 1.02e-05
 *     duplex 5.1e+10 5.1e+10
 *     rate compute.add.f32 3.1e+12
 */
#ifndef HR_PIPELINE_COSTS_H
#define HR_PIPELINE_COSTS_H

#include <headrace/device.h>

#include "cost/cost.h"

#include <limits.h>
#include <stdbool.h>

#define HR_COSTS_MAX_RATES 64
#define HR_COSTS_NAME      48

typedef struct hr_costs {
    char path[PATH_MAX];   /* empty: kept nowhere */
    char key[320];         /* device name | driver | spec */
    hr_cost_link h2d, d2h; /* count 0: not measured */
    /* Bytes per second of each direction while both are busy; 0: not measured. */
    double h2d_with_d2h, d2h_with_h2d;
    uint32_t rate_count;
    struct {
        char name[HR_COSTS_NAME];
        double value; /* bytes or operations per second */
    } rates[HR_COSTS_MAX_RATES];
    bool changed;
} hr_costs;

/* Reads what is known of a device. `cost_file`: null for the user's cache folder, "" for none. */
void hr_costs_load(const hr_device_info *info, const char *cost_file, hr_costs *costs);
/* Writes the device's section if it has changed, whole or not at all. HR_E_IO with the reason. */
HR_CHECKED hr_status hr_costs_save(hr_costs *costs, hr_error *error);

/* A rate by name, or 0. */
double hr_costs_rate(const hr_costs *costs, const char *name);
/* Remembers a rate. One that is within a tenth of the old counts as the same, so that files stay at rest. */
void hr_costs_set_rate(hr_costs *costs, const char *name, double value);

/* Measures the device's link each way and both ways at once, in well under a second. Changes *costs on success only. */
HR_CHECKED hr_status hr_costs_probe(hr_device *device, hr_costs *costs, hr_error *error);

#endif
