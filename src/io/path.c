/* SPDX-License-Identifier: Apache-2.0 */
#include <headrace/io.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool stat_of(const char *path, int standard, struct stat *st)
{
    return strcmp(path, "-") == 0 ? fstat(standard, st) == 0 : stat(path, st) == 0;
}

bool hr_same_file(const char *input, const char *output)
{
    struct stat sa;
    struct stat sb;
    if (input == NULL || output == NULL) {
        return false;
    }
    if (!stat_of(input, STDIN_FILENO, &sa) || !stat_of(output, STDOUT_FILENO, &sb)) {
        return false;
    }
    /* The same pipe, terminal or /dev/null on both ends destroys nothing. */
    if (!S_ISREG(sa.st_mode) && !S_ISBLK(sa.st_mode)) {
        return false;
    }
    return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}
