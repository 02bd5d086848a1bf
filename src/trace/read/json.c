/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/json.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

void hr_json_space(hr_json *json)
{
    const char *at = json->at;
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
        at++;
    json->at = at;
}

bool hr_json_take(hr_json *json, char byte)
{
    hr_json_space(json);
    if (*json->at != byte || json->at == json->end)
        return false;
    json->at++;
    return true;
}

#if defined(__SSE2__)
/* Which of 16 bytes are one of these; bit i for byte i. */
static inline unsigned equal_bytes(__m128i bytes, char wanted)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted)));
}

/* The next quote, backslash or zero byte. Sixteen at a time: strings are most of a trace. */
static inline const char *to_string_mark(const char *at)
{
    for (;; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        unsigned hit = equal_bytes(bytes, '"') | equal_bytes(bytes, '\\') | equal_bytes(bytes, '\0');
        if (hit != 0)
            return at + __builtin_ctz(hit);
    }
}

/* The next quote, bracket or zero byte; '[' and ']' become '{' and '}' by one bit. */
static inline const char *to_structure(const char *at)
{
    for (;; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i braces = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        unsigned hit = equal_bytes(bytes, '"') | equal_bytes(bytes, '\0') | equal_bytes(braces, '{') |
                       equal_bytes(braces, '}');
        if (hit != 0)
            return at + __builtin_ctz(hit);
    }
}
#else
static inline const char *to_string_mark(const char *at)
{
    while (*at != '"' && *at != '\\' && *at != '\0')
        at++;
    return at;
}

static inline const char *to_structure(const char *at)
{
    while (*at != '"' && *at != '\0' && (*at | 0x20) != '{' && (*at | 0x20) != '}')
        at++;
    return at;
}
#endif

bool hr_json_string(hr_json *json, hr_json_text *text)
{
    if (!hr_json_take(json, '"'))
        return false;
    const char *begin = json->at;
    const char *at = begin;
    bool escaped = false;
    for (;;) {
        at = to_string_mark(at);
        if (*at == '"')
            break;
        if (*at == '\0') {
            /* The end of the piece, or a byte that JSON forbids. */
            json->at = at < json->end ? at : json->end;
            return false;
        }
        escaped = true;
        if (at + 1 >= json->end) {
            json->at = json->end;
            return false;
        }
        at += 2;
    }
    *text = (hr_json_text){begin, (size_t)(at - begin), true, escaped};
    json->at = at + 1;
    return true;
}

static bool in_word(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           byte == '-' || byte == '+' || byte == '.';
}

bool hr_json_scalar(hr_json *json, hr_json_text *text)
{
    hr_json_space(json);
    if (*json->at == '"')
        return hr_json_string(json, text);
    const char *at = json->at;
    while (in_word(*at))
        at++;
    if (at == json->at)
        return false;
    if (at >= json->end) {
        /* The word may go on in the next piece. */
        json->at = json->end;
        return false;
    }
    *text = (hr_json_text){json->at, (size_t)(at - json->at), false, false};
    json->at = at;
    return true;
}

static bool skip_open(hr_json *json, unsigned depth)
{
    const char *at = json->at;
    for (;;) {
        at = to_structure(at);
        if (*at == '"') {
            hr_json_text text;
            json->at = at;
            if (!hr_json_string(json, &text))
                return false;
            at = json->at;
        } else if (*at == '\0') {
            json->at = at < json->end ? at : json->end;
            return false;
        } else if (*at == '{' || *at == '[') {
            if (++depth > HR_JSON_DEPTH) {
                json->at = at;
                return false;
            }
            at++;
        } else {
            at++;
            if (--depth == 0) {
                json->at = at;
                return true;
            }
        }
    }
}

bool hr_json_skip_rest(hr_json *json)
{
    return skip_open(json, 1);
}

bool hr_json_skip(hr_json *json)
{
    hr_json_text text;
    hr_json_space(json);
    if (*json->at != '{' && *json->at != '[')
        return hr_json_scalar(json, &text);
    json->at++;
    return skip_open(json, 1);
}

bool hr_json_object(hr_json *json, hr_json_member take, void *user)
{
    if (!hr_json_take(json, '{'))
        return false;
    while (!hr_json_take(json, '}')) {
        hr_json_text key;
        hr_json_text value;
        hr_json_take(json, ',');
        if (!hr_json_string(json, &key) || !hr_json_take(json, ':'))
            return false;
        hr_json_space(json);
        if (*json->at == '{' || *json->at == '[') {
            if (!hr_json_skip(json))
                return false;
        } else {
            if (!hr_json_scalar(json, &value))
                return false;
            take(user, &key, &value);
        }
    }
    return true;
}

/* Decimal exponents are rare enough in times to go the slow way: shift the point by hand. */
static bool exponent_of(const char *at, const char *end, int *exponent)
{
    bool minus = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (at == end)
        return false;
    int value = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9' || value > 100)
            return false;
        value = value * 10 + (*at - '0');
    }
    *exponent = minus ? -value : value;
    return true;
}

/* Digits before and behind the point as one number, and how many stand behind it. */
static bool digits_of(const hr_json_text *text, bool *minus, uint64_t *digits, int *behind, int *extra)
{
    const char *at = text->at;
    const char *end = at + text->length;
    *minus = at < end && *at == '-';
    if (*minus)
        at++;
    bool any = false;
    bool point = false;
    *digits = 0;
    *behind = 0;
    *extra = 0;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (*at < '0' || *at > '9')
            return false;
        any = true;
        unsigned digit = (unsigned)(*at - '0');
        if (point && (*behind >= 4 || *digits > UINT64_MAX / 100))
            continue; /* finer than a nanosecond needs */
        if (*digits > (UINT64_MAX - digit) / 10)
            return false;
        *digits = *digits * 10 + digit;
        *behind += point;
    }
    if (any && at < end && !exponent_of(at + 1, end, extra))
        return false;
    return any;
}

bool hr_json_thousandths(const hr_json_text *text, int64_t *value)
{
    bool minus;
    uint64_t digits;
    int behind;
    int extra;
    if (!digits_of(text, &minus, &digits, &behind, &extra))
        return false;
    int shift = 3 - behind + extra;
    for (; shift > 0; shift--) {
        if (digits > UINT64_MAX / 10)
            return false;
        digits *= 10;
    }
    for (; shift < 0; shift++) {
        bool last = shift == -1;
        digits = last ? digits / 10 + (digits % 10 >= 5) : digits / 10;
    }
    if (digits > INT64_MAX)
        return false;
    *value = minus ? -(int64_t)digits : (int64_t)digits;
    return true;
}

bool hr_json_whole(const hr_json_text *text, uint64_t *value)
{
    bool minus;
    uint64_t digits;
    int behind;
    int extra;
    if (!digits_of(text, &minus, &digits, &behind, &extra))
        return false;
    for (int shift = extra - behind; shift < 0; shift++)
        digits /= 10;
    for (int shift = extra - behind; shift > 0; shift--) {
        if (digits > UINT64_MAX / 10)
            return false;
        digits *= 10;
    }
    *value = minus ? 0 - digits : digits;
    return true;
}

static int hex(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}

/* The code of "XXXX", or a question mark where that is no hexadecimal number. */
static unsigned code_unit(const char *at, const char *end)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        if (at + i >= end || hex(at[i]) < 0)
            return '?';
        code = code * 16 + (unsigned)hex(at[i]);
    }
    return code;
}

static size_t put_utf8(unsigned code, char *out, size_t room)
{
    char bytes[4];
    size_t count = 0;
    if (code < 0x80) {
        bytes[count++] = (char)code;
    } else if (code < 0x800) {
        bytes[count++] = (char)(0xC0 | (code >> 6));
        bytes[count++] = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        bytes[count++] = (char)(0xE0 | (code >> 12));
        bytes[count++] = (char)(0x80 | ((code >> 6) & 0x3F));
        bytes[count++] = (char)(0x80 | (code & 0x3F));
    } else {
        bytes[count++] = (char)(0xF0 | (code >> 18));
        bytes[count++] = (char)(0x80 | ((code >> 12) & 0x3F));
        bytes[count++] = (char)(0x80 | ((code >> 6) & 0x3F));
        bytes[count++] = (char)(0x80 | (code & 0x3F));
    }
    if (count > room)
        return 0;
    memcpy(out, bytes, count);
    return count;
}

/* "uXXXX", perhaps the first of a pair; returns the byte behind it. */
static const char *unescape_unicode(const char *at, const char *end, char *out, size_t room, size_t *length)
{
    unsigned code = code_unit(at, end);
    at = end - at > 4 ? at + 4 : end;
    if (code >= 0xD800 && code < 0xDC00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        unsigned low = code_unit(at + 2, end);
        if (low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            at += 6;
        }
    }
    if ((code >= 0xD800 && code < 0xE000) || code == 0)
        code = '?';
    *length += put_utf8(code, out + *length, room - *length);
    return at;
}

size_t hr_json_unescape(const hr_json_text *text, char *out, size_t room)
{
    static const char from[] = "nrtbf";
    static const char to[] = "\n\r\t\b\f";
    const char *at = text->at;
    const char *end = at + text->length;
    size_t length = 0;
    if (room == 0)
        return 0;
    room--;
    while (at < end && length < room) {
        if (*at != '\\' || at + 1 == end) {
            out[length++] = *at++;
            continue;
        }
        char kind = at[1];
        at += 2;
        if (kind == 'u') {
            at = unescape_unicode(at, end, out, room, &length);
            continue;
        }
        const char *known = strchr(from, kind);
        out[length++] = known != NULL && kind != '\0' ? to[known - from] : kind;
    }
    out[length] = '\0';
    return length;
}
