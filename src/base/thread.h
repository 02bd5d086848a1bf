/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library's own: started one way, so that all are named and none takes the program's signals.
 */
#ifndef HR_BASE_THREAD_H
#define HR_BASE_THREAD_H

#include <headrace/status.h>

#include <pthread.h>

/*
 * Starts a thread named `name` (at most 15 bytes are kept) with every signal blocked: signals belong to the
 * program's own threads. The caller joins it. HR_E_THREAD with the system's reason.
 */
HR_CHECKED hr_status hr_thread_start(pthread_t *thread, const char *name, void *(*body)(void *),
                                     void *argument, hr_error *error);

/* Tells the processor that this is a waiting loop. */
static inline void hr_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
