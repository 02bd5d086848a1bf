/* SPDX-License-Identifier: Apache-2.0 */
/* Finds who measures: the device's own bench where it has one, else the one for every device. */
#include "bench/bench_internal.h"

#include "base/samples.h"
#include "pipeline/costs.h"

#include <string.h>

void hr_bench_tell(const hr_bench_options *options, const char *name, uint64_t bytes, const char *unit,
                   double *samples, size_t count, int verified, const char *vs, double ratio)
{
    hr_bench_row row = HR_BENCH_ROW_INIT;
    row.name = name;
    row.bytes = bytes;
    row.unit = unit;
    row.value = hr_samples_median(samples, count);
    row.spread_pct = hr_samples_spread_pct(samples, count);
    row.verified = verified;
    row.vs = vs;
    row.ratio = ratio;
    options->row(options->user, &row);
}

void hr_bench_pattern(void *base, uint64_t bytes, uint64_t seed)
{
    unsigned char *at = base;
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (uint64_t i = 0; i < bytes; i += sizeof state) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(at + i, &state, bytes - i < sizeof state ? bytes - i : sizeof state);
    }
}

/* What the plan of pipelines goes by is measured anew with the link. A cache that cannot be written is no failure of the
 * bench: it is said. */
static hr_status refresh_costs(hr_device *device, const hr_bench_options *options, hr_error *error)
{
    hr_device_info info = HR_DEVICE_INFO_INIT;
    hr_costs costs;
    hr_status status = hr_device_get_info(device, &info, error);
    if (status != HR_OK) {
        return status;
    }
    hr_costs_load(&info, NULL, &costs);
    status = hr_costs_probe(device, &costs, error);
    if (status != HR_OK) {
        return status;
    }
    hr_error why = HR_ERROR_INIT;
    if (hr_costs_save(&costs, &why) != HR_OK && options->note != NULL) {
        options->note(options->user, why.text);
    }
    return HR_OK;
}

hr_status hr_bench_run(hr_device *device, const hr_bench_options *options, hr_error *error)
{
    static const struct {
        const char *what;
        hr_status (*any)(hr_device *device, const hr_bench_options *options, hr_error *error);
    } known[] = {{"link", hr_bench_link},         {"calls", hr_bench_calls}, {"sync", NULL},
                 {"pipeline", hr_bench_pipeline}, {"scatter", NULL},         {"kernels", NULL}};
    if (device == NULL || options == NULL || options->size != sizeof *options || options->what == NULL ||
        options->row == NULL) {
        return hr_fail(error, HR_E_INVALID,
                       "bench: needs a device, and options with their size, what and row");
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].what, options->what) == 0) {
            hr_status status = hr_device_bench(device, options, error);
            if (status == HR_E_UNSUPPORTED && known[i].any != NULL) {
                status = known[i].any(device, options, error);
            }
            return status == HR_OK && i == 0 ? refresh_costs(device, options, error) : status;
        }
    }
    return hr_fail(error, HR_E_NOT_FOUND,
                   "bench %s: there are link, calls, sync, pipeline, scatter and kernels", options->what);
}
