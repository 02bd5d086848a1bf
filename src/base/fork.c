/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fork.h"

#include <stddef.h>
#include <sys/mman.h>

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void hr_fork_guard_open(hr_fork_guard *guard)
{
    guard->pid = getpid();
    guard->mark = NULL;
    void *page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return;
    }
    if (madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
        munmap(page, page_bytes());
        return;
    }
    *(volatile uint32_t *)page = 1;
    guard->mark = page;
}

void hr_fork_guard_close(hr_fork_guard *guard)
{
    if (guard->mark != NULL) {
        munmap((void *)guard->mark, page_bytes());
        guard->mark = NULL;
    }
}
