/* SPDX-License-Identifier: Apache-2.0 */
/* A crew of threads that share out loops. */
#ifndef HR_BASE_WORKERS_H
#define HR_BASE_WORKERS_H

#include <headrace/op.h>

typedef struct hr_crew hr_crew;

/*
 * Starts `threads` − 1 helpers (at least 1 thread counts: the one that calls). HR_E_HOST_MEMORY, HR_E_THREAD;
 * then nothing is left running. The caller owns *crew.
 */
HR_CHECKED hr_status hr_crew_open(uint32_t threads, hr_crew **crew, hr_error *error);
/* Ends the helpers. No loop may be running. Clears *crew; null is accepted. */
void hr_crew_close(hr_crew **crew);
/* The crew as launchers see it; lives as long as the crew. */
const hr_workers *hr_crew_workers(const hr_crew *crew);
/*
 * Runs body(user, i) for i = 0 … count − 1, each exactly once, and returns when all are done. The caller
 * takes part, so loops inside loops and loops from several threads at once always come to an end. Any thread.
 */
void hr_crew_run(hr_crew *crew, uint64_t count, void (*body)(void *user, uint64_t index), void *user);

#endif
