/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HR_TRACE_RENDER_SPAN_LOG_H
#define HR_TRACE_RENDER_SPAN_LOG_H

#include <headrace/span_log.h>

#include <pthread.h>

/* Names of devices and ops in one log; more than that share the last. */
#define HR_SPAN_LOG_NAMES 256

struct hr_span_log {
    hr_observer observer;
    pthread_mutex_t lock;
    hr_span *spans;
    size_t count, room;
    size_t dropped;                 /* spans for which there was no memory */
    char *names[HR_SPAN_LOG_NAMES]; /* copies: the pipeline's own go away with it */
    size_t name_count;
};

#endif
