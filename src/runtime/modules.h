/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HR_RUNTIME_MODULES_H
#define HR_RUNTIME_MODULES_H

#include "core/registry.h"

/*
 * Loads every headrace-*.so of the module folders into the runtime. One folder is searched if it is named, by
 * `module_path` or else by the environment's HEADRACE_MODULES; otherwise `headrace/` beside the library, then
 * the install folder. Of two modules for the same backend the first wins. What does not load is remembered as
 * absent.
 */
void hr_modules_load(hr_runtime *runtime, const char *module_path);

#endif
