/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the library together: the CPU backend is part of it, the others are modules. */
#include "backend/cpu/cpu.h"
#include "core/registry.h"
#include "runtime/modules.h"

hr_status hr_runtime_open(const hr_runtime_options *options, hr_runtime **runtime, hr_error *error)
{
    if (runtime == NULL || (options != NULL && options->size != sizeof *options)) {
        return hr_fail(error, HR_E_INVALID,
                       "runtime: a null argument, or size is not sizeof(hr_runtime_options)");
    }
    hr_runtime *made;
    hr_status status = hr_registry_open(&made, error);
    if (status != HR_OK) {
        return status;
    }
    status = hr_registry_add(made, hr_cpu_backend(), NULL);
    if (status != HR_OK) {
        (void)!hr_runtime_close(&made, NULL);
        return hr_fail(error, HR_E_INTERNAL, "runtime: the CPU backend was not accepted");
    }
    hr_modules_load(made, options != NULL ? options->module_path : NULL);
    *runtime = made;
    return HR_OK;
}
