/* SPDX-License-Identifier: Apache-2.0 */
/* Where traces for tests lie: some in the tree, larger ones of other people beside it. */
#ifndef HR_TESTS_SUPPORT_TRACES_H
#define HR_TESTS_SUPPORT_TRACES_H

#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef HR_TESTS_SOURCE
#define HR_TESTS_SOURCE "."
#endif

/*
 * The path of a real trace: in tests/data/traces, or in ../shared/traces beside the project (HEADRACE_TRACES
 * names another folder). Null when it is in neither. One call's answer lives until the next.
 */
static inline const char *trace_path(const char *name)
{
    static char path[1024];
    const char *elsewhere = getenv("HEADRACE_TRACES");
    snprintf(path, sizeof path, "%s/tests/data/traces/%s", HR_TESTS_SOURCE, name);
    if (access(path, R_OK) == 0)
        return path;
    snprintf(path, sizeof path, "%s/%s", elsewhere != NULL ? elsewhere : HR_TESTS_SOURCE "/../shared/traces",
             name);
    return access(path, R_OK) == 0 ? path : NULL;
}

/* The same; where the trace is absent the test is skipped, and says so. */
static inline const char *trace_path_or_skip(const char *name)
{
    const char *path = trace_path(name);
    if (path == NULL) {
        print_message("%s is not here: skipped\n", name);
        skip();
    }
    return path;
}

#endif
