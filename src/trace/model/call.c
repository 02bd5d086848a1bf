/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/model/call.h"

#include <ctype.h>
#include <string.h>

/* Names without vendor prefix, version and per-thread suffix. A '*' at the end matches any rest. */
static const struct {
    const char *name;
    hr_call call;
} known[] = {
    {"LaunchKernel*", HR_CALL_LAUNCH},
    {"LaunchCooperativeKernel*", HR_CALL_LAUNCH},
    {"Launch", HR_CALL_LAUNCH},
    {"LaunchGrid*", HR_CALL_LAUNCH},
    {"LaunchByPtr", HR_CALL_LAUNCH},
    {"ModuleLaunchKernel", HR_CALL_LAUNCH},
    {"ModuleLaunchCooperativeKernel*", HR_CALL_LAUNCH},
    {"ExtModuleLaunchKernel", HR_CALL_LAUNCH},
    {"ExtLaunchKernel", HR_CALL_LAUNCH},
    {"HccModuleLaunchKernel", HR_CALL_LAUNCH},
    {"GraphLaunch", HR_CALL_GRAPH_LAUNCH},
    {"DeviceSynchronize", HR_CALL_DEVICE_SYNC},
    {"ThreadSynchronize", HR_CALL_DEVICE_SYNC},
    {"CtxSynchronize", HR_CALL_DEVICE_SYNC},
    {"StreamSynchronize", HR_CALL_STREAM_SYNC},
    {"EventSynchronize", HR_CALL_EVENT_SYNC},
    {"EventRecord*", HR_CALL_EVENT_RECORD},
    {"StreamWaitEvent", HR_CALL_STREAM_WAIT},
    {"StreamQuery", HR_CALL_QUERY},
    {"EventQuery", HR_CALL_QUERY},
    {"Malloc", HR_CALL_DEVICE_ALLOC},
    {"MallocPitch", HR_CALL_DEVICE_ALLOC},
    {"MallocArray", HR_CALL_DEVICE_ALLOC},
    {"Malloc3D", HR_CALL_DEVICE_ALLOC},
    {"Malloc3DArray", HR_CALL_DEVICE_ALLOC},
    {"MemAlloc", HR_CALL_DEVICE_ALLOC},
    {"MemAllocPitch", HR_CALL_DEVICE_ALLOC},
    {"MemCreate", HR_CALL_DEVICE_ALLOC},
    {"Free", HR_CALL_DEVICE_FREE},
    {"FreeArray", HR_CALL_DEVICE_FREE},
    {"MemFree", HR_CALL_DEVICE_FREE},
    {"MallocAsync", HR_CALL_POOL_ALLOC},
    {"MallocFromPoolAsync", HR_CALL_POOL_ALLOC},
    {"MemAllocAsync", HR_CALL_POOL_ALLOC},
    {"MemAllocFromPoolAsync", HR_CALL_POOL_ALLOC},
    {"FreeAsync", HR_CALL_POOL_FREE},
    {"MemFreeAsync", HR_CALL_POOL_FREE},
    {"MemPoolTrimTo", HR_CALL_POOL_TRIM},
    {"HostAlloc", HR_CALL_PINNED_ALLOC},
    {"HostMalloc", HR_CALL_PINNED_ALLOC},
    {"MallocHost", HR_CALL_PINNED_ALLOC},
    {"MemHostAlloc", HR_CALL_PINNED_ALLOC},
    {"MemAllocHost", HR_CALL_PINNED_ALLOC},
    {"HostFree", HR_CALL_PINNED_FREE},
    {"FreeHost", HR_CALL_PINNED_FREE},
    {"MemFreeHost", HR_CALL_PINNED_FREE},
    {"HostRegister", HR_CALL_REGISTER},
    {"MemHostRegister", HR_CALL_REGISTER},
    {"HostUnregister", HR_CALL_UNREGISTER},
    {"MemHostUnregister", HR_CALL_UNREGISTER},
    {"MallocManaged", HR_CALL_MANAGED_ALLOC},
    {"MemAllocManaged", HR_CALL_MANAGED_ALLOC},
    {"MemPrefetchAsync*", HR_CALL_PREFETCH},
    {"StreamCreate*", HR_CALL_STREAM_CREATE},
    {"ExtStreamCreate*", HR_CALL_STREAM_CREATE},
    {"StreamDestroy", HR_CALL_STREAM_DESTROY},
    {"EventCreate*", HR_CALL_EVENT_CREATE},
    {"EventDestroy", HR_CALL_EVENT_DESTROY},
    {"ModuleLoad*", HR_CALL_MODULE_LOAD},
    {"LibraryLoad*", HR_CALL_MODULE_LOAD},
    {"LibraryGetModule", HR_CALL_MODULE_LOAD},
    {"LaunchHostFunc", HR_CALL_HOST_FUNCTION},
    {"StreamAddCallback", HR_CALL_HOST_FUNCTION},
};

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t n = strlen(end);
    return length >= n && memcmp(text + length - n, end, n) == 0;
}

/* Cuts "_v2", "_v11010", "_ptsz" and "_ptds" off, in any order. */
static size_t without_suffixes(const char *name, size_t length)
{
    for (;;) {
        if (ends_with(name, length, "_ptsz") || ends_with(name, length, "_ptds")) {
            length -= 5;
            continue;
        }
        size_t digits = length;
        while (digits > 0 && isdigit((unsigned char)name[digits - 1]))
            digits--;
        if (digits < length && digits > 2 && name[digits - 1] == 'v' && name[digits - 2] == '_') {
            length = digits - 2;
            continue;
        }
        return length;
    }
}

static size_t vendor_prefix(const char *name, size_t length)
{
    static const char *const prefixes[] = {"cuda", "hip", "cu"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t n = strlen(prefixes[i]);
        if (length > n && memcmp(name, prefixes[i], n) == 0 && isupper((unsigned char)name[n]))
            return n;
    }
    return 0;
}

static bool matches(const char *name, size_t length, const char *pattern)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*')
        return length >= n - 1 && memcmp(name, pattern, n - 1) == 0;
    return length == n && memcmp(name, pattern, n) == 0;
}

static bool contains(const char *name, size_t length, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= length; i++) {
        if (memcmp(name + i, part, n) == 0)
            return true;
    }
    return false;
}

/* Copies and fills have dozens of spellings (2D, Peer, ToSymbol, HtoD, D2D8); what counts is the stem and
 * "Async". */
static bool copy_or_fill(const char *name, size_t length, hr_call *call)
{
    bool async = contains(name, length, "Async");
    if (length >= 6 && memcmp(name, "Memcpy", 6) == 0) {
        *call = async ? HR_CALL_COPY_ASYNC : HR_CALL_COPY;
        return true;
    }
    if (length >= 6 && memcmp(name, "Memset", 6) == 0) {
        *call = async ? HR_CALL_FILL_ASYNC : HR_CALL_FILL;
        return true;
    }
    return false;
}

bool hr_call_from_name(const char *name, size_t length, hr_call *call)
{
    size_t prefix = vendor_prefix(name, length);
    if (prefix == 0)
        return false;
    length = without_suffixes(name, length) - prefix;
    name += prefix;
    if (copy_or_fill(name, length, call))
        return true;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (matches(name, length, known[i].name)) {
            *call = known[i].call;
            return true;
        }
    }
    *call = HR_CALL_OTHER;
    return true;
}

bool hr_call_submits(hr_call call)
{
    return (call >= HR_CALL_COPY && call <= HR_CALL_GRAPH_LAUNCH) || call == HR_CALL_PREFETCH;
}

bool hr_call_is_sync(hr_call call)
{
    return call >= HR_CALL_DEVICE_SYNC && call <= HR_CALL_EVENT_SYNC;
}

bool hr_call_name_is_per_thread(const char *name)
{
    size_t length = strlen(name);
    return ends_with(name, length, "_ptsz") || ends_with(name, length, "_ptds");
}
