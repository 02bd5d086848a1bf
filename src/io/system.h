/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine can give this process now. */
#ifndef HR_IO_SYSTEM_H
#define HR_IO_SYSTEM_H

#include <stdint.h>

/* Bytes of memory that can be taken without swapping, page cache counted in; UINT64_MAX if the system does
 * not tell. */
uint64_t hr_memory_available(void);
/* Processors that this process may run on, at least 1. */
uint32_t hr_processors(void);

#endif
