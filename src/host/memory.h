/* SPDX-License-Identifier: Apache-2.0 */
/* Large pieces of host memory: huge pages where given, touched by several threads, near the right node. */
#ifndef HR_HOST_MEMORY_H
#define HR_HOST_MEMORY_H

#include "host/topology.h"

typedef struct hr_host_request {
    const char *what;       /* for messages */
    uint64_t bytes;         /* not 0 */
    uint64_t minimum_bytes; /* 0: no less than bytes */
    uint32_t touch_threads; /* 0: all cores */
    bool no_huge_pages;
    bool no_touch;               /* pages come when they are used; nothing is reserved */
    const hr_topology *topology; /* null: memory lies where the touching threads run */
    int32_t numa_node;           /* −1: spread over the nodes of this process */
} hr_host_request;

typedef struct hr_host_memory {
    void *base;          /* a multiple of 2 MiB if at least that much was taken, else of a page */
    uint64_t bytes;      /* what there is, exactly as asked for unless `fallback` says otherwise */
    uint64_t huge_bytes; /* of it on huge pages, as far as the system tells */
    void *map;
    uint64_t map_bytes;
    char fallback[192]; /* empty, or why there is less */
} hr_host_memory;

/* Blocks until all pages are there. HR_E_HOST_MEMORY with what is needed and what is free; then nothing is
 * held. */
HR_CHECKED hr_status hr_host_memory_take(const hr_host_request *request, hr_host_memory *memory,
                                         hr_error *error);
void hr_host_memory_release(hr_host_memory *memory);

#endif
