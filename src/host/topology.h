/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine looks like to this process: cores, memory, NUMA nodes. */
#ifndef HR_HOST_TOPOLOGY_H
#define HR_HOST_TOPOLOGY_H

#include <headrace/status.h>

#include <stdbool.h>
#include <stddef.h>

/* Cores that this process may use: its affinity, and the CPU quota of its control group, rounded up. At
 * least 1. */
uint32_t hr_host_cores(void);

/* Bytes of memory in all, and what can be had now without swapping; the control group's limit counts. */
void hr_host_memory_room(uint64_t *total_bytes, uint64_t *free_bytes);

/* The processor's name as it calls itself, or "CPU". */
void hr_host_cpu_name(char *name, size_t room);

/* What hwloc found. Null where hwloc is not built in or could not read the machine: then all answers are
 * "unknown". */
typedef struct hr_topology hr_topology;

/* Takes milliseconds. Never fails: null stands for "unknown". The caller closes it; null is accepted. */
hr_topology *hr_topology_open(void);
void hr_topology_close(hr_topology *topology);
/* The node (its number in the system) that all cores of this process belong to; −1 if they span several, or
 * unknown. */
int32_t hr_topology_node(const hr_topology *topology);
/* Binds memory that was not touched yet: to `node`, or for −1 spread over the nodes of this process's cores.
 * False if nothing was done. */
bool hr_topology_bind(const hr_topology *topology, void *base, uint64_t bytes, int32_t node);
/* Bytes of the last cache level but one (L2) of a core; 0 if unknown. */
uint64_t hr_topology_l2_bytes(const hr_topology *topology);

#endif
