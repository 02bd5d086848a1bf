/* SPDX-License-Identifier: Apache-2.0 */
/* Files made or checked by a Python script, and the list that goes with them. */
#ifndef HR_TESTS_UNIT_IO_ORACLE_H
#define HR_TESTS_UNIT_IO_ORACLE_H

#include "unit/io/scratch.h"

#include <sys/wait.h>

/* Runs a script of this folder with the first Python that has NumPy; false where there is none. */
static inline bool run_oracle(const char *script, const char *verb, const char *folder, int *result)
{
    const char *wish = getenv("HEADRACE_PYTHON");
    const char *pythons[] = {wish != NULL ? wish : "/usr/bin/python3", "python3"};
    for (size_t i = 0; i < sizeof pythons / sizeof pythons[0]; i++) {
        char command[2 * PATH_MAX];
        snprintf(command, sizeof command, "%s '%s/tests/unit/io/%s' %s '%s'", pythons[i], HR_TESTS_SOURCE,
                 script, verb, folder);
        int status = system(command);
        if (WIFEXITED(status) && WEXITSTATUS(status) != 77 && WEXITSTATUS(status) != 127) {
            *result = WEXITSTATUS(status);
            return true;
        }
    }
    return false;
}

typedef struct entry {
    char npy[32];
    char raw[32];
    hr_dtype dtype;
    hr_shape shape;
} entry;

/* The next line of list.txt. */
static inline bool next_entry(FILE *list, entry *e)
{
    char line[512];
    if (fgets(line, sizeof line, list) == NULL) {
        return false;
    }
    char *rest = NULL;
    snprintf(e->npy, sizeof e->npy, "%s", strtok_r(line, " \n", &rest));
    snprintf(e->raw, sizeof e->raw, "%s", strtok_r(NULL, " \n", &rest));
    assert_int_equal(hr_dtype_from_name(strtok_r(NULL, " \n", &rest), &e->dtype), HR_OK);
    e->shape = (hr_shape){0, {0}};
    for (char *extent = strtok_r(NULL, " \n", &rest); extent != NULL; extent = strtok_r(NULL, " \n", &rest)) {
        e->shape.extent[e->shape.rank++] = strtoull(extent, NULL, 10);
    }
    return true;
}

#endif
