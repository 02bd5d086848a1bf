/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy for data that the copying core will not read again: stores that pass the caches by. Staging through
 * it leaves memory bandwidth to the DMA engine, since a line that is written whole need not be read first.
 */
#ifndef HR_BASE_NT_COPY_H
#define HR_BASE_NT_COPY_H

#include <stddef.h>

/* As memcpy; below some hundred KiB it is memcpy. The data is visible to other threads and to devices on
 * return. */
void hr_copy_nontemporal(void *dst, const void *src, size_t bytes);

#endif
