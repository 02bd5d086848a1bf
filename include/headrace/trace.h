/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace library: reads a recorded run of a GPU program, says what keeps copies and kernels from
 * overlapping, what each cause costs, and what the run would take without it. Needs no GPU and none of the
 * rest of Headrace; link with headrace-trace.
 *
 *     hr_audit *audit = NULL;
 *     hr_error error = HR_ERROR_INIT;
 *     if (hr_audit_open("trace.json.gz", NULL, &audit, &error) != HR_OK)
 *         return complain(error.text);
 *     hr_audit_render(audit, HR_AUDIT_TEXT, stdout, &error);
 *     hr_audit_close(&audit);
 */
#ifndef HEADRACE_TRACE_H
#define HEADRACE_TRACE_H

#include <headrace/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A trace that was read and judged. Constant once opened: any number of threads may ask it. */
typedef struct hr_audit hr_audit;

typedef struct hr_audit_options {
    size_t size;         /* sizeof(hr_audit_options) */
    double min_cost_pct; /* findings under this share of the span are counted and not listed; 2 by default */
    double h2d_gbps, d2h_gbps; /* what the link can do, in 10⁹ bytes a second; 0: seen in the trace */
    const char *link_path;     /* a file of `headrace bench link --json` that says it, or null */
} hr_audit_options;
#define HR_AUDIT_OPTIONS_INIT                      \
    {                                              \
        sizeof(hr_audit_options), 2.0, 0.0, 0.0, 0 \
    }

/*
 * Reads and judges `path` ("-": standard input): Chrome JSON as PyTorch's profiler writes it (plain or gzip),
 * an SQLite export of Nsight Systems, or what `headrace run --trace` wrote. `options` may be null. Blocks
 * while it reads; on success the audit is the caller's, to be closed. HR_E_NOT_FOUND, HR_E_IO: the system
 * refused; HR_E_FORMAT: damaged, truncated, foreign, or without GPU work; HR_E_UNSUPPORTED: known, and to be
 * exported differently (the text says how); HR_E_INVALID: an option, or the link file, cannot be used;
 * HR_E_HOST_MEMORY.
 */
HR_API HR_CHECKED hr_status hr_audit_open(const char *path, const hr_audit_options *options, hr_audit **audit,
                                          hr_error *error);
/* Frees and clears *audit; null is fine. */
HR_API void hr_audit_close(hr_audit **audit);

typedef enum hr_audit_verdict {
    HR_AUDIT_FOUND = 0, /* at least one defect */
    HR_AUDIT_CLEAN,
    HR_AUDIT_CANNOT_TELL /* the trace lacks what the rules need, or something serialised it */
} hr_audit_verdict;

/* Times in nanoseconds. Strings live as long as the audit. */
typedef struct hr_audit_summary {
    size_t size; /* sizeof(hr_audit_summary), set by the caller */
    hr_audit_verdict verdict;
    const char *reason; /* of HR_AUDIT_CANNOT_TELL; "" otherwise */
    uint32_t gpus;
    uint64_t kernels, copies, calls;
    int64_t span_ns;     /* from the first to the last work on any GPU */
    int64_t replayed_ns; /* the same when the trace is run again unchanged: how good predictions can be */
    int64_t
        all_fixed_ns; /* with every finding repaired; a span_ns, as after_ns of a finding is: what replayed_ns is off
                             is taken out */
    const char *bound;  /* what binds then: "compute", "copies in", "copies out", "copies", "the host" */
    int64_t bound_ns;   /* how long that is busy */
    double overlap_pct; /* share of copies or kernels, whichever are shorter, that overlaps; 100 without
                             either */
} hr_audit_summary;
HR_API void hr_audit_get_summary(const hr_audit *audit, hr_audit_summary *summary);

typedef enum hr_audit_kind {
    HR_AUDIT_DEFECT = 0,
    HR_AUDIT_INFORMATION, /* worth knowing; fixing it gains little, and the text says why */
    HR_AUDIT_SUSPENDED    /* the trace does not show the program as it is */
} hr_audit_kind;

/* One cause. Strings live as long as the audit, and are never null. */
typedef struct hr_audit_finding {
    size_t size; /* sizeof(hr_audit_finding), set by the caller */
    const char *rule;
    hr_audit_kind kind;
    uint64_t count, bytes;
    int64_t blocked_ns; /* host time inside the calls */
    int64_t cost_ns;    /* its share of what all repairs gain together */
    int64_t after_ns;   /* the span with this one repaired */
    bool masked;        /* gains nothing alone, because another finding hides it */
    const char *text, *fix, *proof;
} hr_audit_finding;

/* Those that are listed, dearest first. */
HR_API uint32_t hr_audit_finding_count(const hr_audit *audit);
/* HR_E_RANGE: there is no such finding. */
HR_API HR_CHECKED hr_status hr_audit_get_finding(const hr_audit *audit, uint32_t index,
                                                 hr_audit_finding *finding);

typedef enum hr_audit_format {
    HR_AUDIT_TEXT = 0, /* for people; at most 100 columns */
    HR_AUDIT_JSON,     /* one object and a newline */
    HR_AUDIT_HTML,     /* one page that works offline */
    HR_AUDIT_PERFETTO  /* Chrome JSON with the findings as a track of their own */
} hr_audit_format;
/* Writes to `out`, which stays the caller's; flushes it. HR_E_IO, HR_E_NO_SPACE, HR_E_HOST_MEMORY. */
HR_API HR_CHECKED hr_status hr_audit_render(const hr_audit *audit, hr_audit_format format, FILE *out,
                                            hr_error *error);

/*
 * A condition for continuous integration: rules, separated by commas ("pageable-copy,sync-call"), or
 * "overlap<80". HR_OK: nothing of it was found. HR_END: found, and error->text says what. HR_E_UNSUPPORTED:
 * this trace cannot tell, and error->text says why. HR_E_INVALID: no such rule, or no such condition. `audit` may be null:
 * then the condition itself is checked, before there is anything to try it on.
 */
HR_API HR_CHECKED hr_status hr_audit_check(const hr_audit *audit, const char *condition, hr_error *error);

/* The rules in the order of the documentation: name, meaning and what a trace must hold for it. Static
 * storage. */
typedef struct hr_audit_rule {
    const char *name, *meaning, *needs;
} hr_audit_rule;
/* HR_E_RANGE past the last. */
HR_API HR_CHECKED hr_status hr_audit_rule_at(uint32_t index, hr_audit_rule *rule);

#ifdef __cplusplus
}
#endif
#endif
