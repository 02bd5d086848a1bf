/* SPDX-License-Identifier: Apache-2.0 */
/* headrace info: what there is to run on, and what limits it. */
#include "cli.h"
#include "json.h"

#include <glob.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

typedef struct host_info {
    struct utsname system;
    uint64_t memory_bytes, available_bytes;
    long cores;
    size_t numa_nodes;
    uint64_t memlock_bytes, open_files, map_bytes; /* RLIM_INFINITY: no limit */
    uint64_t cgroup_bytes;                         /* UINT64_MAX: no limit, or not known */
    char huge_pages[64];                           /* "madvise", or empty */
    bool io_uring;
} host_info;

static bool read_line(const char *path, char *line, size_t room)
{
    FILE *file = fopen(path, "re");
    bool got = file && fgets(line, (int)room, file);
    if (file)
        fclose(file);
    if (got)
        line[strcspn(line, "\n")] = 0;
    return got;
}

static uint64_t meminfo(const char *field)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        size_t length = strlen(field);
        if (!strncmp(line, field, length) && line[length] == ':') {
            const char *at = line + length + 1;
            at += strspn(at, " ");
            for (; *at >= '0' && *at <= '9'; at++)
                kib = kib * 10 + (unsigned long long)(*at - '0');
            break;
        }
    }
    if (file)
        fclose(file);
    return kib * 1024;
}

static uint64_t limit_of(int resource)
{
    struct rlimit limit;
    return getrlimit((__rlimit_resource_t)resource, &limit) ? UINT64_MAX
           : limit.rlim_cur == RLIM_INFINITY                ? UINT64_MAX
                                                            : (uint64_t)limit.rlim_cur;
}

/* "always [madvise] never" → "madvise" */
static void chosen_word(const char *line, char *word, size_t room)
{
    const char *from = strchr(line, '[');
    const char *to = from ? strchr(from, ']') : NULL;
    if (to)
        snprintf(word, room, "%.*s", (int)(to - from - 1), from + 1);
}

static void look_at_host(host_info *host)
{
    *host = (host_info){.cgroup_bytes = UINT64_MAX};
    uname(&host->system);
    host->memory_bytes = meminfo("MemTotal");
    host->available_bytes = meminfo("MemAvailable");
    host->cores = sysconf(_SC_NPROCESSORS_ONLN);
    host->memlock_bytes = limit_of(RLIMIT_MEMLOCK);
    host->open_files = limit_of(RLIMIT_NOFILE);
    host->map_bytes = limit_of(RLIMIT_AS);
    glob_t nodes;
    if (glob("/sys/devices/system/node/node[0-9]*", 0, NULL, &nodes) == 0) {
        host->numa_nodes = nodes.gl_pathc;
        globfree(&nodes);
    }
    char line[256];
    if (read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
        chosen_word(line, host->huge_pages, sizeof host->huge_pages);
    uint64_t bytes;
    if (read_line("/sys/fs/cgroup/memory.max", line, sizeof line) &&
        cli_parse_count(line, 0, UINT64_MAX, &bytes))
        host->cgroup_bytes = bytes;
    host->io_uring =
        !read_line("/proc/sys/kernel/io_uring_disabled", line, sizeof line) || !strcmp(line, "0");
}

static const char *limit_text(uint64_t bytes, char text[16])
{
    if (bytes == UINT64_MAX)
        return "no limit";
    return cli_bytes_text(bytes, text);
}

static void print_device(const hr_device_info *info)
{
    char total[16], available[16];
    printf("%-14s %s\n", info->spec, info->name);
    printf("%-14s memory %s, free %s; %u %s", "", cli_bytes_text(info->memory_bytes, total),
           cli_bytes_text(info->memory_free_bytes, available), info->compute_units,
           info->kind == HR_DEVICE_CUDA ? "SMs" : "cores");
    if (info->copy_engines)
        printf("; %u copy engines", info->copy_engines);
    if (info->capability_major)
        printf("; compute capability %u.%u", info->capability_major, info->capability_minor);
    if (info->numa_node >= 0)
        printf("; NUMA node %d", info->numa_node);
    if (info->pcie_generation)
        printf("; PCIe %u × %u", info->pcie_generation, info->pcie_width);
    printf("%s\n", info->shares_host_memory ? "; shares the host's memory, so nothing is copied" : "");
    if (info->driver[0] || info->runtime_version[0])
        printf("%-14s driver %s%s%s\n", "", info->driver[0] ? info->driver : "unknown",
               info->runtime_version[0] ? ", runtime " : "", info->runtime_version);
}

static void print_host(const host_info *host)
{
    char a[16], b[16];
    printf("%-14s %s %s; %ld cores; memory %s, available %s; %zu NUMA node%s\n", "host", host->system.sysname,
           host->system.release, host->cores, cli_bytes_text(host->memory_bytes, a),
           cli_bytes_text(host->available_bytes, b), host->numa_nodes, host->numa_nodes == 1 ? "" : "s");
    printf("%-14s lockable memory %s; address space %s", "limits", limit_text(host->memlock_bytes, a),
           limit_text(host->map_bytes, b));
    printf("; container memory %s; open files ", limit_text(host->cgroup_bytes, a));
    if (host->open_files == UINT64_MAX)
        printf("no limit\n");
    else
        printf("%llu\n", (unsigned long long)host->open_files);
    printf("%-14s huge pages %s; io_uring %s\n", "kernel", host->huge_pages[0] ? host->huge_pages : "unknown",
           host->io_uring ? "allowed" : "not allowed: files are read by threads");
    printf("%-14s headrace %s\n", "version", hr_version());
}

static void json_limit(json_writer *json, const char *key, uint64_t value)
{
    if (value == UINT64_MAX)
        json_null(json, key);
    else
        json_u64(json, key, value);
}

static void json_device(json_writer *json, const hr_device_info *info)
{
    json_open(json, NULL, '{');
    json_string(json, "device", info->spec);
    json_string(json, "device_name", info->name);
    json_string(json, "kind", info->kind == HR_DEVICE_CUDA ? "cuda" : "cpu");
    json_string(json, "driver", info->driver);
    json_string(json, "runtime", info->runtime_version);
    json_bool(json, "shares_host_memory", info->shares_host_memory);
    json_u64(json, "memory_bytes", info->memory_bytes);
    json_u64(json, "memory_free_bytes", info->memory_free_bytes);
    json_u64(json, "compute_units", info->compute_units);
    json_u64(json, "copy_engines", info->copy_engines);
    if (info->capability_major) {
        char capability[24];
        snprintf(capability, sizeof capability, "%u.%u", info->capability_major, info->capability_minor);
        json_string(json, "compute_capability", capability);
    }
    json_i64(json, "numa_node", info->numa_node);
    json_u64(json, "pcie_generation", info->pcie_generation);
    json_u64(json, "pcie_width", info->pcie_width);
    json_u64(json, "l2_bytes", info->l2_bytes);
    json_close(json, '}');
}

static void json_host(json_writer *json, const host_info *host)
{
    json_open(json, "host", '{');
    json_string(json, "system", host->system.sysname);
    json_string(json, "kernel", host->system.release);
    json_string(json, "machine", host->system.machine);
    json_i64(json, "cores", host->cores);
    json_u64(json, "numa_nodes", host->numa_nodes);
    json_u64(json, "memory_bytes", host->memory_bytes);
    json_u64(json, "memory_available_bytes", host->available_bytes);
    json_string(json, "huge_pages", host->huge_pages[0] ? host->huge_pages : NULL);
    json_bool(json, "io_uring", host->io_uring);
    json_close(json, '}');
    json_open(json, "limits", '{');
    json_limit(json, "memlock_bytes", host->memlock_bytes);
    json_limit(json, "address_space_bytes", host->map_bytes);
    json_limit(json, "container_memory_bytes", host->cgroup_bytes);
    json_limit(json, "open_files", host->open_files);
    json_close(json, '}');
}

/* One device; a device that does not open is shown with its reason, and the others follow. */
static void show_device(hr_runtime *runtime, const char *spec, json_writer *json)
{
    hr_device *device = NULL;
    hr_device_info info = HR_DEVICE_INFO_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_status status = hr_device_open(runtime, spec, &device, &error);
    if (status == HR_OK) {
        status = hr_device_get_info(device, &info, &error);
        hr_error closing = HR_ERROR_INIT;
        if (hr_device_close(&device, &closing) != HR_OK && status == HR_OK) {
            status = closing.status;
            error = closing;
        }
    }
    if (status == HR_OK && json) {
        json_device(json, &info);
    } else if (status == HR_OK) {
        print_device(&info);
    } else if (json) {
        json_open(json, NULL, '{');
        json_string(json, "device", spec);
        json_string(json, "failure", error.text);
        json_close(json, '}');
    } else {
        printf("%-14s cannot be used: %s\n", spec, error.text);
    }
}

static void show_devices(hr_runtime *runtime, json_writer *json)
{
    uint32_t count = hr_runtime_device_count(runtime);
    const char *reason;
    if (json)
        json_open(json, "devices", '[');
    for (uint32_t i = 0; i < count; i++)
        show_device(runtime, hr_runtime_device_spec(runtime, i), json);
    if (json) {
        json_close(json, ']');
        json_open(json, "absent", '[');
    }
    for (uint32_t i = 0; (reason = hr_runtime_absent(runtime, i)) != NULL; i++) {
        if (json)
            json_string(json, NULL, reason);
        else
            printf("%-14s %s\n", "absent", reason);
    }
    if (json)
        json_close(json, ']');
}

int cmd_info(const cli_args *args)
{
    if (args->word_count)
        return cli_fail(CLI_UNUSABLE, args->words[0], "info takes no words; see headrace info --help");
    hr_runtime *runtime = NULL;
    hr_error error = HR_ERROR_INIT;
    if (hr_runtime_open(NULL, &runtime, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    host_info host;
    look_at_host(&host);
    if (cli_has(args, "json")) {
        json_writer json = {.to = stdout};
        json_open(&json, NULL, '{');
        json_string(&json, "headrace", hr_version());
        json_host(&json, &host);
        show_devices(runtime, &json);
        json_close(&json, '}');
        json_end(&json);
    } else {
        show_devices(runtime, NULL);
        print_host(&host);
    }
    if (hr_runtime_close(&runtime, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    return cli_end_output(CLI_DONE);
}
