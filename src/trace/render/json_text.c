/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/render/json_text.h"

#include "trace/render/utf8.h"

#include <stddef.h>

/* The code of a character of two or three bytes. */
static unsigned code_of(const unsigned char *at, size_t length)
{
    return length == 2 ? (at[0] & 0x1fU) << 6 | (at[1] & 0x3fU)
                       : (at[0] & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
}

void hr_json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *at = text; *at != 0;) {
        size_t length = hr_utf8_length(at);
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (length == 0)
            fputs("\\ufffd", out);
        else if (*at == '<' || (length == 1 && hr_utf8_acts(at, length)))
            fprintf(out, "\\u%04x", (unsigned)*at);
        else if (hr_utf8_acts(at, length))
            fprintf(out, "\\u%04x", code_of((const unsigned char *)at, length));
        else
            fwrite(at, 1, length, out);
        at += length != 0 ? length : 1;
    }
    fputc('"', out);
}
