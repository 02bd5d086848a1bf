/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether the process was forked since: threads and GPU contexts do not survive in a child. */
#ifndef HR_BASE_FORK_H
#define HR_BASE_FORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct hr_fork_guard {
    const volatile uint32_t *mark; /* a page that the kernel wipes in a child, or null */
    pid_t pid;
} hr_fork_guard;

/* Never fails: without such a page each question costs a system call. */
void hr_fork_guard_open(hr_fork_guard *guard);
void hr_fork_guard_close(hr_fork_guard *guard);

/* True in a child process of the one that opened the guard. A load, where the kernel can wipe pages. */
static inline bool hr_forked(const hr_fork_guard *guard)
{
    return guard->mark != NULL ? *guard->mark == 0 : getpid() != guard->pid;
}

#endif
