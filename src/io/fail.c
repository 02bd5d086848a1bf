/* SPDX-License-Identifier: Apache-2.0 */
#include "io/fail.h"

#include <errno.h>
#include <string.h>

hr_status hr_io_status_of(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
        return HR_E_NOT_FOUND;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return HR_E_NO_SPACE;
    case ENOMEM:
        return HR_E_HOST_MEMORY;
    default:
        return HR_E_IO;
    }
}

hr_status hr_io_fail(hr_error *error, int errnum, const char *name, const char *doing)
{
    char buffer[128];
    const char *reason = strerror_r(errnum, buffer, sizeof buffer);
    hr_status status = hr_fail(error, hr_io_status_of(errnum), "%s: %s: %s", name, doing, reason);
    if (error != NULL) {
        error->code = errnum;
    }
    return status;
}

const char *hr_io_input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

const char *hr_io_output_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}
