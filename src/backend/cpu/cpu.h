/* SPDX-License-Identifier: Apache-2.0 */
/* The one entry of the CPU backend. */
#ifndef HR_BACKEND_CPU_CPU_H
#define HR_BACKEND_CPU_CPU_H

#include "core/backend.h"

/* "cpu" and "cpu:discrete". Static storage. */
const hr_backend *hr_cpu_backend(void);

#endif
