/* SPDX-License-Identifier: Apache-2.0 */
#include "io/system.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

uint64_t hr_memory_available(void)
{
    FILE *info = fopen("/proc/meminfo", "re");
    if (info == NULL) {
        return UINT64_MAX;
    }
    char line[128];
    uint64_t kib = 0;
    uint64_t available = UINT64_MAX;
    while (fgets(line, sizeof line, info) != NULL) {
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1) {
            available = kib * 1024;
            break;
        }
    }
    fclose(info);
    return available;
}

uint32_t hr_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    int count = CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}
