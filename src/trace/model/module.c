/* SPDX-License-Identifier: Apache-2.0 */
/* Where the recorder lies. */
#include <headrace/record.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

hr_status hr_record_module(char *path, size_t room, hr_error *error)
{
    char beside[4096] = "";
    const char *named = getenv("HEADRACE_RECORDER");
    if (named == NULL) {
        Dl_info library;
        if (dladdr((const void *)(size_t)&hr_record_module, &library) == 0 || library.dli_fname == NULL)
            return hr_fail(error, HR_E_UNSUPPORTED, "recorder: the library's own place is not known");
        const char *slash = strrchr(library.dli_fname, '/');
        snprintf(beside, sizeof beside, "%.*sheadrace/recorder.so",
                 slash != NULL ? (int)(slash + 1 - library.dli_fname) : 0, library.dli_fname);
        named = beside;
    }
    /* The driver wants a path that does not depend on where the program changes its folder to. */
    char *whole = realpath(named, NULL);
    if (whole == NULL || access(whole, R_OK) != 0) {
        free(whole);
        return hr_fail(error, HR_E_UNSUPPORTED,
                       "recorder: there is none at %.300s; it is built where the CUDA toolkit with CUPTI is",
                       named);
    }
    size_t length = strlen(whole) + 1;
    if (length <= room)
        memcpy(path, whole, length);
    free(whole);
    return length <= room ? HR_OK
                          : hr_fail(error, HR_E_RANGE, "recorder: its path needs %zu bytes of room", length);
}
