/* SPDX-License-Identifier: Apache-2.0 */
#include "host/topology.h"

#include "base/checked.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HR_HAVE_HWLOC
#include <hwloc.h>
#endif

/* The first line of a small file of the system's, without its end. False if there is none. */
static bool read_line(const char *path, char *line, size_t room)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool got = fgets(line, (int)room, file) != NULL;
    fclose(file);
    if (got) {
        line[strcspn(line, "\n")] = '\0';
    }
    return got;
}

/* Where this process's control group lies (version 2), or the mount's root. */
static void cgroup_path(const char *leaf, char *path, size_t room)
{
    char line[512];
    const char *group = "";
    if (read_line("/proc/self/cgroup", line, sizeof line) && strncmp(line, "0::", 3) == 0 &&
        strcmp(line + 3, "/") != 0) {
        group = line + 3;
    }
    snprintf(path, room, "/sys/fs/cgroup%s/%s", group, leaf);
    if (access(path, R_OK) != 0) {
        snprintf(path, room, "/sys/fs/cgroup/%s", leaf);
    }
}

/* A number from a control group's file; false for "max" or where there is none. */
static bool cgroup_number(const char *leaf, uint64_t *number)
{
    char path[640], line[64];
    cgroup_path(leaf, path, sizeof path);
    if (!read_line(path, line, sizeof line)) {
        return false;
    }
    char *end;
    unsigned long long value = strtoull(line, &end, 10);
    if (end == line) {
        return false;
    }
    *number = value;
    return true;
}

static uint32_t allowed_by_affinity(void)
{
    /* The kernel refuses a mask smaller than its own, so try larger ones. */
    for (int cpus = 1024; cpus <= 1 << 16; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (set == NULL) {
            break;
        }
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0) {
            return (uint32_t)count;
        }
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

uint32_t hr_host_cores(void)
{
    uint32_t cores = allowed_by_affinity();
    char path[640], line[64];
    unsigned long long quota_us, period_us;
    cgroup_path("cpu.max", path, sizeof path);
    /* "max 100000" has no number in front and leaves the cores as they are. */
    if (read_line(path, line, sizeof line)) {
        char *end;
        quota_us = strtoull(line, &end, 10);
        period_us = end != line ? strtoull(end, NULL, 10) : 0;
        if (period_us > 0) {
            uint64_t quota = hr_div_up(quota_us, period_us);
            cores = (uint32_t)hr_max_u64(1, hr_min_u64(cores, quota));
        }
    }
    return cores;
}

void hr_host_memory_room(uint64_t *total_bytes, uint64_t *free_bytes)
{
    uint64_t total_kib = 0, free_kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file != NULL) {
        char line[128];
        while (fgets(line, sizeof line, file) != NULL) {
            if (strncmp(line, "MemTotal:", 9) == 0) {
                total_kib = strtoull(line + 9, NULL, 10);
            } else if (strncmp(line, "MemAvailable:", 13) == 0) {
                free_kib = strtoull(line + 13, NULL, 10);
                break;
            }
        }
        fclose(file);
    }
    uint64_t total = total_kib * 1024, available = free_kib * 1024;
    uint64_t limit, used;
    if (cgroup_number("memory.max", &limit) && limit < total) {
        total = limit;
        /* Page cache counts as used and would be given up; only the kernel knows how much of it, so half the
         * limit at least is taken to be there. */
        if (cgroup_number("memory.current", &used)) {
            uint64_t left = limit > used ? limit - used : 0;
            available = hr_min_u64(available, hr_max_u64(left, limit / 2));
        }
    }
    *total_bytes = total;
    *free_bytes = available;
}

void hr_host_cpu_name(char *name, size_t room)
{
    snprintf(name, room, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL) {
        return;
    }
    char line[256];
    while (fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && value != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(name, room, "%s", value + 1 + strspn(value + 1, " "));
            break;
        }
    }
    fclose(file);
}

#ifdef HR_HAVE_HWLOC

struct hr_topology {
    hwloc_topology_t machine;
    hwloc_bitmap_t nodes; /* of the cores that this process may use */
};

hr_topology *hr_topology_open(void)
{
    hr_topology *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    made->nodes = hwloc_bitmap_alloc();
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    bool known = false;
    if (made->nodes != NULL && cores != NULL && hwloc_topology_init(&made->machine) == 0) {
        /* Devices are not asked for: looking for them is what takes long. */
        hwloc_topology_set_io_types_filter(made->machine, HWLOC_TYPE_FILTER_KEEP_NONE);
        known = hwloc_topology_load(made->machine) == 0 &&
                hwloc_get_cpubind(made->machine, cores, HWLOC_CPUBIND_PROCESS) == 0;
        if (known) {
            hwloc_cpuset_to_nodeset(made->machine, cores, made->nodes);
        } else {
            hwloc_topology_destroy(made->machine);
        }
    }
    hwloc_bitmap_free(cores);
    if (!known) {
        hwloc_bitmap_free(made->nodes);
        free(made);
        return NULL;
    }
    return made;
}

void hr_topology_close(hr_topology *topology)
{
    if (topology != NULL) {
        hwloc_topology_destroy(topology->machine);
        hwloc_bitmap_free(topology->nodes);
        free(topology);
    }
}

int32_t hr_topology_node(const hr_topology *topology)
{
    if (topology == NULL || hwloc_bitmap_weight(topology->nodes) != 1) {
        return -1;
    }
    return hwloc_bitmap_first(topology->nodes);
}

bool hr_topology_bind(const hr_topology *topology, void *base, uint64_t bytes, int32_t node)
{
    if (topology == NULL ||
        hwloc_bitmap_weight(hwloc_topology_get_topology_nodeset(topology->machine)) <= 1) {
        return false;
    }
    if (node < 0) {
        return hwloc_set_area_membind(topology->machine, base, bytes, topology->nodes,
                                      HWLOC_MEMBIND_INTERLEAVE, HWLOC_MEMBIND_BYNODESET) == 0;
    }
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    if (one == NULL) {
        return false;
    }
    hwloc_bitmap_only(one, (unsigned)node);
    bool bound = hwloc_set_area_membind(topology->machine, base, bytes, one, HWLOC_MEMBIND_BIND,
                                        HWLOC_MEMBIND_BYNODESET) == 0;
    hwloc_bitmap_free(one);
    return bound;
}

uint64_t hr_topology_l2_bytes(const hr_topology *topology)
{
    hwloc_obj_t cache = NULL;
    if (topology != NULL) {
        cache = hwloc_get_obj_by_type(topology->machine, HWLOC_OBJ_L2CACHE, 0);
    }
    return cache != NULL ? cache->attr->cache.size : 0;
}

#else

hr_topology *hr_topology_open(void)
{
    return NULL;
}

void hr_topology_close(hr_topology *topology)
{
    (void)topology;
}

int32_t hr_topology_node(const hr_topology *topology)
{
    (void)topology;
    return -1;
}

bool hr_topology_bind(const hr_topology *topology, void *base, uint64_t bytes, int32_t node)
{
    (void)topology;
    (void)base;
    (void)bytes;
    (void)node;
    return false;
}

uint64_t hr_topology_l2_bytes(const hr_topology *topology)
{
    (void)topology;
    return 0;
}

#endif
