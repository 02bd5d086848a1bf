/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime tells about itself while it runs; a trace writer, a progress line and a test are listeners
 * alike. */
#ifndef HEADRACE_OBSERVE_H
#define HEADRACE_OBSERVE_H

#include <headrace/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hr_stage {
    HR_STAGE_READ = 0,
    HR_STAGE_STAGE, /* host to host: pageable memory to a pinned slot */
    HR_STAGE_H2D,
    HR_STAGE_COMPUTE,
    HR_STAGE_D2H,
    HR_STAGE_WRITE,
    HR_STAGE_COUNT
} hr_stage;

/* "read", "stage", "h2d", "compute", "d2h", "write". Static storage. */
HR_API const char *hr_stage_name(hr_stage stage);

/* One span of work. Times are nanoseconds of CLOCK_MONOTONIC; device spans are placed on that clock by the
 * device. */
typedef struct hr_span {
    size_t size; /* sizeof(hr_span) */
    hr_stage stage;
    uint64_t chunk;
    uint32_t port; /* which input or output */
    uint32_t lane; /* which thread or engine of the stage, from 0 */
    uint64_t begin_ns, end_ns;
    uint64_t bytes;
    const char *device; /* spec of the device, or null for host work */
    const char *name;   /* the op's or call's name; lives until the pipeline is closed */
} hr_span;

/* Both may be null. Called from the pipeline's threads, several at once: listeners lock for themselves, must
 * not block long, must not call the pipeline. */
typedef struct hr_observer {
    size_t size; /* sizeof(hr_observer) */
    void *self;
    void (*span)(void *self, const hr_span *span);
    /* At most ten times a second; `total` is 0 when it is not known. */
    void (*progress)(void *self, uint64_t done_bytes, uint64_t total_bytes, uint64_t elapsed_ns);
    /* Something that the user should know and that is no failure: a fallback and its reason, in one line. */
    void (*note)(void *self, const char *text);
} hr_observer;
#define HR_OBSERVER_INIT                \
    {                                   \
        sizeof(hr_observer), 0, 0, 0, 0 \
    }

#ifdef __cplusplus
}
#endif
#endif
