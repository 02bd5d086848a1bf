/* SPDX-License-Identifier: Apache-2.0 */
/* How the command speaks: one line a failure on standard error, data on standard output. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* A text from outside (a file's name, a header's field) must not break the line or drive the terminal. */
static void print_line(const char *head, const char *text)
{
    char line[2048];
    size_t used = 0;
    for (; *text && used + 2 < sizeof line; text++) {
        unsigned char c = (unsigned char)*text;
        /* U+0080 to U+009F, which some terminals obey like the control characters of ASCII. */
        bool above = c == 0xC2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xA0;
        text += above;
        line[used++] = c < 0x20 || c == 0x7F || above ? '?' : *text;
    }
    line[used++] = '\n';
    line[used] = 0;
    fprintf(stderr, "%s%s", head, line);
}

int cli_fail(int status, const char *what, const char *format, ...)
{
    char why[1024], text[1536];
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    snprintf(text, sizeof text, "%s: %s", what[0] ? what : "\"\"", why);
    print_line("headrace: ", text);
    return status;
}

int cli_fail_error(int status, const hr_error *error)
{
    if (error->text[0])
        print_line("headrace: ", error->text);
    else
        print_line("headrace: ", hr_status_text(error->status));
    return status;
}

void cli_note(const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    print_line("note: ", text);
}

int cli_end_output(int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    int code = errno;
    return cli_fail(status == CLI_DONE ? CLI_FAILED : status, "standard output", "%s",
                    code ? strerror(code) : "could not be written");
}

const char *cli_bytes_text(uint64_t bytes, char text[16])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    snprintf(text, 16, unit && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}
