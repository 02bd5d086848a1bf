/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for one test's files, and small helpers around it. */
#ifndef HR_TESTS_UNIT_IO_SCRATCH_H
#define HR_TESTS_UNIT_IO_SCRATCH_H

#include "support/unit.h"

#include <headrace/io.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scratch {
    char folder[PATH_MAX];
    char path[PATH_MAX + 300]; /* what scratch_path() made last */
} scratch;

static inline int scratch_setup(void **state)
{
    scratch *s = calloc(1, sizeof *s);
    const char *base = getenv("TMPDIR");
    snprintf(s->folder, sizeof s->folder, "%s/headrace-io-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(s->folder) == NULL) {
        free(s);
        return -1;
    }
    *state = s;
    return 0;
}

static inline int scratch_teardown(void **state)
{
    scratch *s = *state;
    DIR *dir = opendir(s->folder);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            (void)unlinkat(dirfd(dir), e->d_name, 0);
            (void)unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    (void)rmdir(s->folder);
    free(s);
    return 0;
}

/* The full path of a name in the folder; valid until the next call. */
static inline const char *scratch_path(scratch *s, const char *name)
{
    snprintf(s->path, sizeof s->path, "%s/%s", s->folder, name);
    return s->path;
}

static inline void scratch_write(scratch *s, const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(scratch_path(s, name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

/* The file's bytes; the caller frees them. Null if there is no such file. */
static inline unsigned char *scratch_read(scratch *s, const char *name, size_t *bytes)
{
    FILE *f = fopen(scratch_path(s, name), "rb");
    if (f == NULL) {
        return NULL;
    }
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(f);
    rewind(f);
    unsigned char *data = malloc(*bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, f), *bytes);
    fclose(f);
    return data;
}

/* How many files are in the folder, hidden ones too. */
static inline int scratch_count(scratch *s)
{
    int count = 0;
    DIR *dir = opendir(s->folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

/* A .npy file of version 1.0 around the given header text, padded as NumPy does; returns its length. */
static inline size_t npy_around(const char *text, const void *data, size_t data_bytes, unsigned char *out)
{
    size_t used = strlen(text);
    size_t total = (10 + used + 1 + 63) / 64 * 64;
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (unsigned char)(total - 10);
    out[9] = (unsigned char)((total - 10) >> 8);
    memset(out + 10, ' ', total - 10);
    memcpy(out + 10, text, used);
    out[total - 1] = '\n';
    if (data_bytes > 0) {
        memcpy(out + total, data, data_bytes);
    }
    return total + data_bytes;
}

#endif
