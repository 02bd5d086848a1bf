/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at `text`, or 0. */
static size_t sequence_length(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } kinds[] = {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    for (size_t kind = 0; kind < 4; kind++) {
        if ((text[0] & kinds[kind].mask) != kinds[kind].lead)
            continue;
        uint32_t code = text[0] & (unsigned char)~kinds[kind].mask;
        for (size_t i = 1; i <= kind; i++) {
            if ((text[i] & 0xC0) != 0x80)
                return 0;
            code = code << 6 | (text[i] & 0x3F);
        }
        bool surrogate = code >= 0xD800 && code <= 0xDFFF;
        return code >= kinds[kind].least && code <= 0x10FFFF && !surrogate ? kind + 1 : 0;
    }
    return 0;
}

/* Names of files are bytes; what is no UTF-8 in them is shown as U+FFFD, so that the JSON is always well
 * formed. */
static void put_string(FILE *to, const char *value)
{
    fputc('"', to);
    for (const unsigned char *text = (const unsigned char *)value; *text;) {
        size_t length = sequence_length(text);
        if (!length)
            fputs("\\ufffd", to);
        else if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else if (*text < 0x20 || *text == 0x7F)
            fprintf(to, "\\u%04x", *text);
        else
            fwrite(text, 1, length, to);
        text += length ? length : 1;
    }
    fputc('"', to);
}

static void begin(json_writer *json, const char *key)
{
    if (json->comma)
        fputc(',', json->to);
    json->comma = true;
    if (key) {
        put_string(json->to, key);
        fputc(':', json->to);
    }
}

void json_open(json_writer *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->to);
    json->comma = false;
}

void json_close(json_writer *json, char bracket)
{
    fputc(bracket, json->to);
    json->comma = true;
}

void json_string(json_writer *json, const char *key, const char *value)
{
    begin(json, key);
    if (value)
        put_string(json->to, value);
    else
        fputs("null", json->to);
}

void json_u64(json_writer *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->to, "%" PRIu64, value);
}

void json_i64(json_writer *json, const char *key, int64_t value)
{
    begin(json, key);
    fprintf(json->to, "%" PRId64, value);
}

void json_bool(json_writer *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->to);
}

void json_null(json_writer *json, const char *key)
{
    begin(json, key);
    fputs("null", json->to);
}

void json_real(json_writer *json, const char *key, double value, int digits)
{
    begin(json, key);
    if (isfinite(value))
        fprintf(json->to, "%.*g", digits, value);
    else
        fputs("null", json->to);
}

void json_end(json_writer *json)
{
    fputc('\n', json->to);
    json->comma = false;
}
