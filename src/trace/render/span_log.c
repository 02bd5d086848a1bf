/* SPDX-License-Identifier: Apache-2.0 */
/* The log's memory: spans are only stored while the pipeline runs, and turned into text afterwards. */
#include "trace/render/span_log.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4096 };

/* A copy of the name that lives as long as the log; the same text gives the same copy. Null stays null. */
static const char *keep_name(hr_span_log *log, const char *name)
{
    if (!name)
        return NULL;
    for (size_t i = 0; i < log->name_count; i++) {
        if (!strcmp(log->names[i], name))
            return log->names[i];
    }
    if (log->name_count == HR_SPAN_LOG_NAMES)
        return log->names[HR_SPAN_LOG_NAMES - 1];
    char *copy = strdup(name);
    if (copy)
        log->names[log->name_count++] = copy;
    return copy;
}

static void on_span(void *self, const hr_span *span)
{
    hr_span_log *log = self;
    pthread_mutex_lock(&log->lock);
    if (log->count == log->room) {
        size_t room = log->room * 2;
        hr_span *grown = realloc(log->spans, room * sizeof *grown);
        if (grown) {
            log->spans = grown;
            log->room = room;
        }
    }
    const char *device = keep_name(log, span->device), *name = keep_name(log, span->name);
    bool kept = log->count < log->room && !device == !span->device && !name == !span->name;
    if (kept) {
        hr_span *slot = &log->spans[log->count++];
        *slot = *span;
        slot->device = device;
        slot->name = name;
    } else {
        log->dropped++;
    }
    pthread_mutex_unlock(&log->lock);
}

hr_status hr_span_log_open(hr_span_log **log, hr_error *error)
{
    hr_span_log *made = calloc(1, sizeof *made);
    hr_span *spans = made ? calloc(FIRST_ROOM, sizeof *spans) : NULL;
    if (!spans || pthread_mutex_init(&made->lock, NULL)) {
        free(spans);
        free(made);
        return hr_fail(error, HR_E_HOST_MEMORY, "span log: no memory for %d spans", FIRST_ROOM);
    }
    made->spans = spans;
    made->room = FIRST_ROOM;
    made->observer = (hr_observer)HR_OBSERVER_INIT;
    made->observer.self = made;
    made->observer.span = on_span;
    *log = made;
    return HR_OK;
}

void hr_span_log_close(hr_span_log **log)
{
    if (!log || !*log)
        return;
    pthread_mutex_destroy(&(*log)->lock);
    for (size_t i = 0; i < (*log)->name_count; i++)
        free((*log)->names[i]);
    free((*log)->spans);
    free(*log);
    *log = NULL;
}

const hr_observer *hr_span_log_observer(hr_span_log *log)
{
    return &log->observer;
}

const hr_span *hr_span_log_spans(const hr_span_log *log, size_t *count)
{
    *count = log->count;
    return log->spans;
}
