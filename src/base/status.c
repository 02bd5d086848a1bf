/* SPDX-License-Identifier: Apache-2.0 */
#include <headrace/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *hr_version(void)
{
    return HR_VERSION_STRING;
}

const char *hr_status_text(hr_status status)
{
    switch (status) {
    case HR_OK:
        return "done";
    case HR_PENDING:
        return "not done yet";
    case HR_AGAIN:
        return "nothing can be taken now";
    case HR_END:
        return "the data ended";
    case HR_E_INVALID:
        return "invalid argument";
    case HR_E_RANGE:
        return "out of range";
    case HR_E_FORMAT:
        return "malformed data";
    case HR_E_UNSUPPORTED:
        return "not supported";
    case HR_E_NOT_FOUND:
        return "not found";
    case HR_E_IO:
        return "input or output failed";
    case HR_E_NO_SPACE:
        return "no space left";
    case HR_E_HOST_MEMORY:
        return "host memory ran out";
    case HR_E_PINNED_MEMORY:
        return "host memory could not be pinned";
    case HR_E_DEVICE_MEMORY:
        return "device memory ran out";
    case HR_E_DEVICE:
        return "the device refused";
    case HR_E_DEVICE_LOST:
        return "the device is lost";
    case HR_E_CANCELLED:
        return "cancelled";
    case HR_E_BUSY:
        return "still in use";
    case HR_E_MISMATCH:
        return "the data differs";
    case HR_E_FORKED:
        return "used in a child process after fork";
    case HR_E_THREAD:
        return "a thread could not be started";
    case HR_E_INTERNAL:
        return "internal error";
    }
    return "unknown status";
}

#undef hr_fail /* a stand-in while the file is analysed */
hr_status hr_fail(hr_error *error, hr_status status, const char *format, ...)
{
    if (error != NULL) {
        /* The text may be made from an older text in the same struct. */
        char text[HR_ERROR_TEXT_BYTES];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        memcpy(error->text, text, sizeof text);
        error->status = status;
        error->code = 0;
        error->chunk = HR_NO_CHUNK;
    }
    return status;
}
