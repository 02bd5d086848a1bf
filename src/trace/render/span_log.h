/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HR_TRACE_RENDER_SPAN_LOG_H
#define HR_TRACE_RENDER_SPAN_LOG_H

#include <headrace/span_log.h>

#include <pthread.h>

struct hr_span_log {
    hr_observer observer;
    pthread_mutex_t lock;
    hr_span *spans;
    size_t count, room;
    size_t dropped; /* spans for which there was no memory */
};

#endif
