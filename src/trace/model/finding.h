/* SPDX-License-Identifier: Apache-2.0 */
/* What a rule says, and what the replay can do about it: the two meet here and nowhere else. */
#ifndef HR_TRACE_MODEL_FINDING_H
#define HR_TRACE_MODEL_FINDING_H

#include "trace/model/trace.h"

#include <headrace/status.h>

typedef enum hr_finding_kind {
    HR_FINDING_DEFECT = 0,  /* something to fix */
    HR_FINDING_INFORMATION, /* worth knowing; fixing it gains little, and the text says why */
    HR_FINDING_SUSPENDED    /* the trace does not show the program as it is; verdicts rest */
} hr_finding_kind;

/* What the replay changes to foresee the run without the fault. */
typedef enum hr_repair_kind {
    HR_REPAIR_NONE = 0,
    /* copies: host memory pinned; the copy runs at link speed and an upload's call returns at once. Calls in
     * the list (a wait right behind the copy) vanish with it. */
    HR_REPAIR_PIN,
    HR_REPAIR_DROP_CALL, /* calls: gone, with the wait inside (an allocation kept, a needless wait) */
    /* Calls: they still submit their work, and no longer wait for it. Downloads: as of HR_REPAIR_READ_LATER. */
    HR_REPAIR_UNBLOCK,
    HR_REPAIR_OWN_STREAM, /* copies: on streams of their own, with `buffers` steps in flight */
    HR_REPAIR_BATCH,      /* copies: neighbours in the list become one copy */
    HR_REPAIR_READ_LATER, /* downloads: the host that waits for one waits for that of `buffers` steps before instead */
    HR_REPAIR_FREE_STREAM /* work: on the default stream today, on a non-blocking stream tomorrow */
} hr_repair_kind;

typedef struct hr_repair {
    hr_repair_kind kind;
    uint32_t buffers;
    uint32_t *events; /* indices into trace->events, ascending */
    uint32_t count, capacity;
} hr_repair;

typedef struct hr_where {
    uint32_t name; /* the call, as the trace spells it; HR_NONE: the work itself */
    uint32_t thread, stream;
    uint64_t count, bytes;
    int64_t first_ns, blocked_ns;
} hr_where;

typedef struct hr_finding {
    const char *rule;
    hr_finding_kind kind;
    uint32_t device; /* index of the GPU that it is about; HR_NONE: of no one in particular */
    uint64_t count, bytes;
    int64_t blocked_ns; /* host time inside the calls */
    /* Filled from the replay by whoever runs the audit: */
    int64_t after_ns; /* the span with this finding alone repaired */
    int64_t cost_ns;  /* its share of what all repairs together gain */
    int64_t most_ns;  /* of an information: no repair can gain more than this; 0: not bounded */
    bool masked;      /* gains nothing alone, something with the others */
    int64_t
        together_ns; /* what the other repairs gain only together with this one, and its own cost; 0: no more than that */

    hr_where *where; /* by blocked time, then by count; the first is the place to look at */
    uint32_t where_count;
    uint32_t *evidence; /* events to highlight, ascending; the repair's where there are none */
    uint32_t evidence_count;
    char text[512];  /* what was seen, with figures, in one or two sentences */
    char fix[512];   /* what to do, in the program's own API */
    char proof[256]; /* what would prove the prediction wrong, or must be checked first */
    hr_repair repair;
    /* A repair that gains less than this share of the span makes a defect into … */
    double little;
    /* … nothing, or an information whose text becomes `bound_text`. */
    char bound_text[256];
} hr_finding;

typedef struct hr_findings {
    hr_finding *at;
    uint32_t count, capacity;
} hr_findings;

void hr_findings_free(hr_findings *findings);
/* A new finding, zeroed but for the rule and the device, which is none. Null: out of memory. Lives until the next one. */
hr_finding *hr_findings_add(hr_findings *findings, const char *rule);
/* Takes the last finding back: it turned out to be too little to speak of. There must be one. */
void hr_findings_drop_last(hr_findings *findings);
/* Adds an event to the repair. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_repair_add(hr_repair *repair, uint32_t event);
/*
 * Counts an event into the place (its call's name, thread, stream) where it happened, `blocked_ns` of host
 * time with it. HR_E_HOST_MEMORY.
 */
HR_CHECKED hr_status hr_finding_count(hr_finding *finding, const hr_trace *trace, uint32_t event,
                                      int64_t blocked_ns);
/* Sorts places and events; to be called once a finding is complete. */
void hr_finding_finish(hr_finding *finding);

/* A rule: one file each. */
typedef struct hr_rule {
    const char *name;
    const char *meaning; /* one line for --rules */
    const char *needs;   /* what the trace must hold, in words */
    /* Null when the rule can judge this trace; otherwise what is missing, static storage. */
    const char *(*lacks)(const hr_trace *trace);
    /* Adds what it finds. HR_OK when it finds nothing. */
    hr_status (*check)(const hr_trace *trace, hr_findings *findings, hr_error *error);
} hr_rule;

#endif
