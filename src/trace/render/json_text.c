/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/render/json_text.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 sequence at `at`, or 0 if there is none (Unicode 15, table 3-7: no overlong forms, no
 * surrogates). */
static size_t utf8_length(const unsigned char *at)
{
    if (at[0] >= 0xc2 && at[0] <= 0xdf) {
        return (at[1] & 0xc0) == 0x80 ? 2 : 0;
    }
    if (at[0] >= 0xe0 && at[0] <= 0xef) {
        unsigned char low = at[0] == 0xe0 ? 0xa0 : 0x80, high = at[0] == 0xed ? 0x9f : 0xbf;
        return at[1] >= low && at[1] <= high && (at[2] & 0xc0) == 0x80 ? 3 : 0;
    }
    if (at[0] >= 0xf0 && at[0] <= 0xf4) {
        unsigned char low = at[0] == 0xf0 ? 0x90 : 0x80, high = at[0] == 0xf4 ? 0x8f : 0xbf;
        return at[1] >= low && at[1] <= high && (at[2] & 0xc0) == 0x80 && (at[3] & 0xc0) == 0x80 ? 4 : 0;
    }
    return 0;
}

void hr_json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
        size_t length = utf8_length(at);
        if (length > 0) {
            fwrite(at, 1, length, out);
            at += length;
            continue;
        }
        if (*at == '"' || *at == '\\') {
            fprintf(out, "\\%c", *at);
        } else if (*at < 0x20 || *at == '<' || *at == 0x7f) {
            fprintf(out, "\\u%04x", *at);
        } else if (*at >= 0x80) {
            fputs("\\ufffd", out);
        } else {
            fputc(*at, out);
        }
        at++;
    }
    fputc('"', out);
}
