/* SPDX-License-Identifier: Apache-2.0 */
/* Which bench is which. */
#include "cuda_backend.h"

hr_status hr_cuda_bench(hr_bdevice *device, const hr_bench_options *options, hr_error *error)
{
    (void)device;
    return hr_fail(error, HR_E_UNSUPPORTED, "bench %s: not on this device", options->what);
}
