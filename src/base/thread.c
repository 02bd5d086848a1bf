/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

hr_status hr_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *argument,
                          hr_error *error)
{
    /* A new thread inherits the mask of its maker. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t made;
    int code = pthread_create(&made, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        hr_status status = hr_fail(error, HR_E_THREAD, "thread %s: %s", name, strerror(code));
        if (error != NULL) {
            error->code = code;
        }
        return status;
    }
    char kept[16];
    snprintf(kept, sizeof kept, "%s", name);
    pthread_setname_np(made, kept);
    *thread = made;
    return HR_OK;
}
