/* SPDX-License-Identifier: Apache-2.0 */
#include "host/memory.h"

#include "base/checked.h"
#include "base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE UINT64_C(0x200000)
/* What one thread takes at a time: large enough that nobody queues, small enough that all end together. */
#define TOUCH_PIECE (UINT64_C(16) * HUGE_PAGE)
/* More threads than this do not touch faster on any machine we know, and would cost their start. */
#define TOUCH_THREADS_MAX 64

typedef struct touch {
    char *base;
    uint64_t bytes;
    _Atomic uint64_t next;
} touch;

static void touch_pages(char *base, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t at = 0; at < bytes; at += page) {
        *(volatile char *)(base + at) = 0;
    }
}

/*
 * By writing to each page: MADV_POPULATE_WRITE would say when there is no memory, but it keeps the address space locked
 * while it zeroes, so that threads take turns. On 16 cores it was five to eight times slower (docs/measurements). That
 * there is enough is looked up before.
 */
static void *touch_pieces(void *argument)
{
    touch *work = argument;
    for (;;) {
        uint64_t at = atomic_fetch_add(&work->next, TOUCH_PIECE);
        if (at >= work->bytes) {
            return NULL;
        }
        touch_pages(work->base + at, hr_min_u64(TOUCH_PIECE, work->bytes - at));
    }
}

static void touch_all(void *base, uint64_t bytes, uint32_t threads)
{
    touch work = {.base = base, .bytes = bytes};
    uint64_t pieces = hr_div_up(bytes, TOUCH_PIECE);
    uint64_t helpers = hr_min_u64(hr_min_u64(threads, TOUCH_THREADS_MAX), pieces) - 1;
    pthread_t helper[TOUCH_THREADS_MAX];
    uint64_t started = 0;
    /* Fewer threads only take longer, so a thread that does not start is no failure. */
    while (started < helpers &&
           hr_thread_start(&helper[started], "hr-touch", touch_pieces, &work, NULL) == HR_OK) {
        started++;
    }
    touch_pieces(&work);
    for (uint64_t i = 0; i < started; i++) {
        pthread_join(helper[i], NULL);
    }
}

/* The kernel's own count for the mappings that hold [base, base + bytes), at most `bytes`. */
static uint64_t count_huge(const void *base, uint64_t bytes)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    if (file == NULL) {
        return 0;
    }
    uintptr_t begin = (uintptr_t)base, end = begin + bytes;
    char line[512];
    bool inside = false;
    uint64_t huge = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char *rest;
        uintptr_t from = strtoull(line, &rest, 16);
        if (rest != line && *rest == '-') {
            uintptr_t to = strtoull(rest + 1, NULL, 16);
            inside = from < end && to > begin;
            if (from >= end) {
                break;
            }
        } else if (inside && strncmp(line, "AnonHugePages:", 14) == 0) {
            huge += strtoull(line + 14, NULL, 10) * 1024;
        }
    }
    fclose(file);
    return hr_min_u64(huge, bytes);
}

/* Maps address space whose first byte is a multiple of a huge page where that is of use. */
static bool map(uint64_t bytes, bool reserve, hr_host_memory *memory)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t slack = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    if (bytes > INT64_MAX - HUGE_PAGE - page) {
        return false;
    }
    uint64_t whole = hr_round_up(bytes, page) + slack;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (reserve ? 0 : MAP_NORESERVE);
    char *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (base == MAP_FAILED) {
        return false;
    }
    memory->map = base;
    memory->map_bytes = whole;
    memory->base = slack == 0 ? base : base + (hr_round_up((uintptr_t)base, HUGE_PAGE) - (uintptr_t)base);
    return true;
}

static hr_status take_exactly(const hr_host_request *request, uint64_t bytes, hr_host_memory *memory,
                              hr_error *error)
{
    hr_host_memory made = {.bytes = bytes};
    if (!map(bytes, !request->no_touch, &made)) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no %" PRIu64 " bytes of host memory: %s", request->what,
                       bytes, strerror(ENOMEM));
    }
    if (!request->no_huge_pages && bytes >= HUGE_PAGE) {
        (void)madvise(made.base, bytes, MADV_HUGEPAGE);
    } else if (request->no_huge_pages) {
        (void)madvise(made.base, bytes, MADV_NOHUGEPAGE);
    }
    hr_topology_bind(request->topology, made.base, bytes, request->numa_node);
    if (!request->no_touch) {
        uint32_t threads = request->touch_threads != 0 ? request->touch_threads : hr_host_cores();
        touch_all(made.base, bytes, threads);
        made.huge_bytes = request->no_huge_pages ? 0 : count_huge(made.base, bytes);
    }
    *memory = made;
    return HR_OK;
}

hr_status hr_host_memory_take(const hr_host_request *request, hr_host_memory *memory, hr_error *error)
{
    uint64_t minimum = request->minimum_bytes != 0 ? request->minimum_bytes : request->bytes;
    minimum = hr_min_u64(minimum, request->bytes);
    uint64_t want = request->bytes;
    uint64_t total, available;
    hr_host_memory_room(&total, &available);
    /* A system that overcommits would rather end the process than refuse, so the asking is done beforehand.
     */
    if (!request->no_touch && available > 0 && want > available) {
        want = available / 8 * 7;
        if (want < minimum) {
            return hr_fail(error, HR_E_HOST_MEMORY,
                           "%s: needs %" PRIu64 " bytes of host memory, %" PRIu64 " are free", request->what,
                           minimum, available);
        }
    }
    hr_status status;
    while ((status = take_exactly(request, want, memory, error)) != HR_OK && want > minimum) {
        want = hr_max_u64(want / 2, minimum);
    }
    if (status == HR_OK && want < request->bytes) {
        snprintf(memory->fallback, sizeof memory->fallback,
                 "took %" PRIu64 " bytes of host memory instead of %" PRIu64 ": %" PRIu64 " were free", want,
                 request->bytes, available);
    }
    return status;
}

void hr_host_memory_release(hr_host_memory *memory)
{
    if (memory->map != NULL) {
        munmap(memory->map, memory->map_bytes);
        memory->map = NULL;
    }
}
