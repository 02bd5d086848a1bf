/* SPDX-License-Identifier: Apache-2.0 */
/* Finds who measures: the device's own bench where it has one. */
#include "core/registry.h"

#include <string.h>

hr_status hr_bench_run(hr_device *device, const hr_bench_options *options, hr_error *error)
{
    static const char *const known[] = {"link", "calls", "sync", "pipeline", "scatter", "kernels"};
    size_t at = 0;
    while (at < sizeof known / sizeof *known && strcmp(known[at], options->what) != 0)
        at++;
    if (at == sizeof known / sizeof *known)
        return hr_fail(error, HR_E_NOT_FOUND,
                       "bench %s: there are link, calls, sync, pipeline, scatter and kernels", options->what);
    return hr_device_bench(device, options, error);
}
