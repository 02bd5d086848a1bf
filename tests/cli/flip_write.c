/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into the command: one bit of one large write comes out wrong, so that what verifies can be verified. HR_FLIP_AT is the
 * byte within the write, HR_FLIP_BIT the mask.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t flipped(const char *name, int fd, const void *data, size_t bytes, off_t offset)
{
    static int done;
    ssize_t (*real)(int, const void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, name);
    const char *at = getenv("HR_FLIP_AT"), *bit = getenv("HR_FLIP_BIT");
    if (bytes < 4096 || !at || !bit || __atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
        return real(fd, data, bytes, offset);
    unsigned char *copy = malloc(bytes);
    if (!copy)
        return -1;
    memcpy(copy, data, bytes);
    copy[strtoul(at, NULL, 0) % bytes] ^= (unsigned char)strtoul(bit, NULL, 0);
    ssize_t written = real(fd, copy, bytes, offset);
    free(copy);
    return written;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return flipped("pwrite", fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset)
{
    return flipped("pwrite64", fd, data, bytes, offset);
}
