/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to be preloaded into a program under test: makes the n-th of its calls to the system fail, as if
 * memory, threads or the disk had run out right there. tests/support/fail_each runs a program once for each
 * n.
 *
 *     HR_FAIL_CALLS   names, comma-separated: malloc calloc realloc aligned_alloc posix_memalign strdup mmap
 *                     pthread_create read pread write pwrite open fopen fsync rename. Variants count as their
 *                     plain names (pread64 as pread, openat as open).
 *     HR_FAIL_AT      which of these calls fails, from 1; 0 only counts them
 *     HR_FAIL_FROM    "1": that call and all after it fail
 *     HR_FAIL_ERRNO   a number, instead of the one that is usual for the call
 *     HR_FAIL_IN      calls count only when they come from an object whose path contains this (default
 *                     "headrace"; "" counts every object's)
 *     HR_FAIL_REPORT  a file: gets "failed NAME" when the call fails and "count N" when the program ends
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *calls, *inside, *report;
static long fail_at;
static int fail_errno;
static bool fail_from;
static atomic_long counted;
static atomic_int state; /* 0: not set up, 1: being set up, 2: ready */

static void set_up(void)
{
    int fresh = 0;
    if (environ == NULL) {
        return; /* so early that nobody knows yet what is wanted */
    }
    if (atomic_load(&state) == 2 || !atomic_compare_exchange_strong(&state, &fresh, 1)) {
        return;
    }
    const char *at = getenv("HR_FAIL_AT"), *code = getenv("HR_FAIL_ERRNO"), *from = getenv("HR_FAIL_FROM");
    calls = getenv("HR_FAIL_CALLS");
    inside = getenv("HR_FAIL_IN");
    report = getenv("HR_FAIL_REPORT");
    fail_at = at != NULL ? strtol(at, NULL, 10) : 0;
    fail_errno = code != NULL ? (int)strtol(code, NULL, 10) : 0;
    fail_from = from != NULL && strcmp(from, "1") == 0;
    atomic_store(&state, 2);
}

static bool is_listed(const char *name)
{
    size_t length = strlen(name);
    for (const char *at = calls; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Takes no lock and no memory, so it may be asked from within malloc. */
static bool comes_from_inside(void *caller)
{
    const char *part = inside != NULL ? inside : "headrace";
    if (*part == '\0') {
        return true;
    }
    struct dl_find_object found;
    if (_dl_find_object(caller, &found) != 0 || found.dlfo_link_map == NULL) {
        return false;
    }
    const char *path = found.dlfo_link_map->l_name;
    /* The program itself has no name there. */
    return strstr(*path != '\0' ? path : program_invocation_name, part) != NULL;
}

/* Past the interposed calls, straight to the system. */
static void append_report(const char *word, const char *text)
{
    if (report == NULL) {
        return;
    }
    long fd = syscall(SYS_openat, AT_FDCWD, report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) {
        char line[96];
        int length = snprintf(line, sizeof line, "%s %s\n", word, text);
        syscall(SYS_write, (int)fd, line, (size_t)length);
        syscall(SYS_close, (int)fd);
    }
}

static bool fails(const char *name, int code, void *caller)
{
    set_up();
    if (atomic_load(&state) != 2 || calls == NULL || !is_listed(name) || !comes_from_inside(caller)) {
        return false;
    }
    long number = atomic_fetch_add(&counted, 1) + 1;
    if (fail_at == 0 || (fail_from ? number < fail_at : number != fail_at)) {
        return false;
    }
    append_report("failed", name);
    errno = fail_errno != 0 ? fail_errno : code;
    return true;
}

__attribute__((destructor)) static void tell_count(void)
{
    char number[32];
    snprintf(number, sizeof number, "%ld", atomic_load(&counted));
    append_report("count", number);
}

#define CALLER __builtin_return_address(0)

/* The call of that name in the libraries that come after this one. */
#define NEXT(type, name, ...)                        \
    static type (*_Atomic next_##name)(__VA_ARGS__); \
    static type (*find_##name(void))(__VA_ARGS__)    \
    {                                                \
        type (*found)(__VA_ARGS__) = next_##name;    \
        if (found == NULL) {                         \
            void *symbol = dlsym(RTLD_NEXT, #name);  \
            memcpy(&found, &symbol, sizeof found);   \
            next_##name = found;                     \
        }                                            \
        return found;                                \
    }

NEXT(void *, malloc, size_t)
void *malloc(size_t bytes)
{
    return fails("malloc", ENOMEM, CALLER) ? NULL : find_malloc()(bytes);
}

NEXT(void *, calloc, size_t, size_t)
void *calloc(size_t count, size_t bytes)
{
    return fails("calloc", ENOMEM, CALLER) ? NULL : find_calloc()(count, bytes);
}

NEXT(void *, realloc, void *, size_t)
void *realloc(void *old, size_t bytes)
{
    return fails("realloc", ENOMEM, CALLER) ? NULL : find_realloc()(old, bytes);
}

NEXT(void *, aligned_alloc, size_t, size_t)
void *aligned_alloc(size_t align, size_t bytes)
{
    return fails("aligned_alloc", ENOMEM, CALLER) ? NULL : find_aligned_alloc()(align, bytes);
}

NEXT(int, posix_memalign, void **, size_t, size_t)
int posix_memalign(void **block, size_t align, size_t bytes)
{
    return fails("posix_memalign", ENOMEM, CALLER) ? errno : find_posix_memalign()(block, align, bytes);
}

NEXT(char *, strdup, const char *)
char *strdup(const char *text)
{
    return fails("strdup", ENOMEM, CALLER) ? NULL : find_strdup()(text);
}

NEXT(void *, mmap, void *, size_t, int, int, int, off_t)
void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails("mmap", ENOMEM, CALLER) ? MAP_FAILED : find_mmap()(at, bytes, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails("mmap", ENOMEM, CALLER) ? MAP_FAILED : find_mmap()(at, bytes, protection, flags, fd, offset);
}

NEXT(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    return fails("pthread_create", EAGAIN, CALLER)
               ? errno
               : find_pthread_create()(thread, attributes, body, argument);
}

NEXT(ssize_t, read, int, void *, size_t)
ssize_t read(int fd, void *buffer, size_t bytes)
{
    return fails("read", EIO, CALLER) ? -1 : find_read()(fd, buffer, bytes);
}

NEXT(ssize_t, pread, int, void *, size_t, off_t)
ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    return fails("pread", EIO, CALLER) ? -1 : find_pread()(fd, buffer, bytes, offset);
}

ssize_t pread64(int fd, void *buffer, size_t bytes, off_t offset)
{
    return fails("pread", EIO, CALLER) ? -1 : find_pread()(fd, buffer, bytes, offset);
}

NEXT(ssize_t, write, int, const void *, size_t)
ssize_t write(int fd, const void *buffer, size_t bytes)
{
    return fails("write", ENOSPC, CALLER) ? -1 : find_write()(fd, buffer, bytes);
}

NEXT(ssize_t, pwrite, int, const void *, size_t, off_t)
ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
    return fails("pwrite", ENOSPC, CALLER) ? -1 : find_pwrite()(fd, buffer, bytes, offset);
}

ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off_t offset)
{
    return fails("pwrite", ENOSPC, CALLER) ? -1 : find_pwrite()(fd, buffer, bytes, offset);
}

NEXT(int, openat, int, const char *, int, mode_t)
static int open_next(int folder, const char *path, int flags, va_list arguments)
{
    bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = makes ? va_arg(arguments, mode_t) : 0;
    return find_openat()(folder, path, flags, mode);
}

#define DEFINE_OPEN(name, folder, ...)                                                        \
    int name(__VA_ARGS__, const char *path, int flags, ...);                                  \
    int name(__VA_ARGS__, const char *path, int flags, ...)                                   \
    {                                                                                         \
        va_list arguments;                                                                    \
        va_start(arguments, flags);                                                           \
        int fd = fails("open", EIO, CALLER) ? -1 : open_next(folder, path, flags, arguments); \
        va_end(arguments);                                                                    \
        return fd;                                                                            \
    }
DEFINE_OPEN(openat, folder, int folder)
DEFINE_OPEN(openat64, folder, int folder)

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int fd = fails("open", EIO, CALLER) ? -1 : open_next(AT_FDCWD, path, flags, arguments);
    va_end(arguments);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int fd = fails("open", EIO, CALLER) ? -1 : open_next(AT_FDCWD, path, flags, arguments);
    va_end(arguments);
    return fd;
}

NEXT(FILE *, fopen, const char *, const char *)
FILE *fopen(const char *path, const char *mode)
{
    return fails("fopen", EIO, CALLER) ? NULL : find_fopen()(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fails("fopen", EIO, CALLER) ? NULL : find_fopen()(path, mode);
}

NEXT(int, fsync, int)
int fsync(int fd)
{
    return fails("fsync", EIO, CALLER) ? -1 : find_fsync()(fd);
}

NEXT(int, rename, const char *, const char *)
int rename(const char *from, const char *to)
{
    return fails("rename", EIO, CALLER) ? -1 : find_rename()(from, to);
}
