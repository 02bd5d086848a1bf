/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime, and the devices that it finds: things that hold memory and run work. */
#ifndef HEADRACE_DEVICE_H
#define HEADRACE_DEVICE_H

#include <headrace/status.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_runtime hr_runtime;
typedef struct hr_device hr_device;

typedef struct hr_runtime_options {
    size_t size; /* sizeof(hr_runtime_options) */
    const char
        *module_path; /* folder of the device modules; null: beside the library, then the install folder */
} hr_runtime_options;
#define HR_RUNTIME_OPTIONS_INIT       \
    {                                 \
        sizeof(hr_runtime_options), 0 \
    }

/*
 * Finds the backends: the CPU devices, and each device module that loads. A module that does not load is no
 * error; hr_runtime_absent() tells why. `options` may be null. The caller owns *runtime. Takes milliseconds,
 * does not initialise a GPU. HR_E_HOST_MEMORY.
 */
HR_API HR_CHECKED hr_status hr_runtime_open(const hr_runtime_options *options, hr_runtime **runtime,
                                            hr_error *error);
/* HR_E_BUSY, and nothing happens, while a device of it is open. Otherwise clears *runtime. Null is accepted.
 */
HR_API HR_CHECKED hr_status hr_runtime_close(hr_runtime **runtime, hr_error *error);

/* The number of device specs that hr_device_open() would accept now, and the i-th of them ("cpu", "cuda:0").
 * Asking initialises the backends; blocks until they answer. */
HR_API uint32_t hr_runtime_device_count(hr_runtime *runtime);
HR_API const char *hr_runtime_device_spec(hr_runtime *runtime, uint32_t index);
/* Why a backend that one might expect is not there ("cuda: no NVIDIA driver is installed (libcuda.so.1)"), by
 * index from 0; null past the last. Owned by the runtime. */
HR_API const char *hr_runtime_absent(hr_runtime *runtime, uint32_t index);

/*
 * Opens a device by its spec: "cpu", "cpu:discrete", "cpu:discrete,h2d=50G,d2h=50G,memory=1G", "cuda",
 * "cuda:1", or "auto" (the first GPU, else "cpu"). A spec with several devices ("cuda:0,1", "cuda:all") is
 * expanded first by hr_device_expand(). Blocks while a GPU's context is made. The caller owns *device.
 * HR_E_NOT_FOUND: no such device; HR_E_INVALID: the spec does not parse; HR_E_UNSUPPORTED: known, and its
 * module is not there; HR_E_THREAD, HR_E_HOST_MEMORY, HR_E_DEVICE.
 *
 * The CPU's specs go on with options: "threads=N" (of launchers; all cores that the process may use), and for
 * "cpu:discrete" the speed of its links in bytes a second, "h2d=50G" and "d2h=50G" (powers of 1000; as fast as
 * memory where not given), "latency=5u" of each copy over them (n, u, m), and "memory=1G" (powers of 1024).
 */
HR_API HR_CHECKED hr_status hr_device_open(hr_runtime *runtime, const char *spec, hr_device **device,
                                           hr_error *error);
/*
 * Closes the device, with the symbols that are left, and clears *device. HR_E_BUSY with a list of what is left while
 * pools, streams, events, timers or arrays of it exist; nothing is closed then. HR_E_FORKED. Null is accepted.
 */
HR_API HR_CHECKED hr_status hr_device_close(hr_device **device, hr_error *error);

/* Calls `each` with one single-device spec after the other; stops when it returns a failure, and returns
 * that. */
HR_API HR_CHECKED hr_status hr_device_expand(hr_runtime *runtime, const char *spec,
                                             hr_status (*each)(void *user, const char *spec), void *user,
                                             hr_error *error);

typedef enum hr_device_kind {
    HR_DEVICE_CPU = 1, /* runs C functions */
    HR_DEVICE_CUDA = 2 /* runs CUDA launchers */
} hr_device_kind;

typedef struct hr_device_info {
    size_t size; /* set by the caller to sizeof(hr_device_info) */
    hr_device_kind kind;
    bool shares_host_memory; /* host pointers are device pointers; no copies are needed */
    char spec[64];           /* "cuda:0" */
    char name[128];          /* "NVIDIA H200" */
    char driver[64];         /* driver or kernel version, empty if there is none */
    char runtime_version[64];
    uint64_t memory_bytes;
    uint64_t memory_free_bytes;
    uint32_t compute_units;    /* cores or SMs */
    uint32_t copy_engines;     /* 0 where the notion does not apply */
    uint32_t capability_major; /* CUDA compute capability; 0 elsewhere */
    uint32_t capability_minor;
    int32_t numa_node; /* of the host memory that is nearest, -1 if unknown */
    uint64_t pitch_align_bytes;
    uint64_t l2_bytes;
    uint32_t pcie_generation; /* 0 if unknown */
    uint32_t pcie_width;
} hr_device_info;
#define HR_DEVICE_INFO_INIT                                                                                \
    {                                                                                                      \
        sizeof(hr_device_info), HR_DEVICE_CPU, false, {0}, {0}, {0}, {0}, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0 \
    }

/* Any thread; may block for a driver query. */
HR_API HR_CHECKED hr_status hr_device_get_info(hr_device *device, hr_device_info *info, hr_error *error);

/*
 * Counts of what a device did in a way the caller should know about, by name; ends with a null name.
 * ("pageable ends staged", "host pool fell back to cudaHostAlloc"). `reason` is empty or says why.
 */
typedef struct hr_counter {
    const char *name;
    uint64_t count;
    const char *reason;
} hr_counter;
/* Copies up to `room` counters, returns how many there are. Any thread, does not block. */
HR_API size_t hr_device_counters(hr_device *device, hr_counter *counters, size_t room);

#ifdef __cplusplus
}
#endif
#endif
