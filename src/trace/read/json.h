/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scanner for JSON that is read piece by piece: it walks over one value at a time without building
 * anything, and says "give me more" where a piece ends in the middle. docs/decisions/0080 says why it is not
 * a library.
 *
 * A cursor walks over [at, end); at least HR_JSON_PAD readable bytes follow `end`, and end[0] is zero. A
 * function that fails leaves `at` where it stopped: at `end` when the piece was too short, else at the byte
 * that does not belong.
 */
#ifndef HR_TRACE_READ_JSON_H
#define HR_TRACE_READ_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HR_JSON_PAD   16
#define HR_JSON_DEPTH 256

typedef struct hr_json {
    const char *at, *end;
} hr_json;

/* A piece of the text: a string without its quotes and not unescaped, or a number, or true, false, null. */
typedef struct hr_json_text {
    const char *at;
    size_t length;
    bool is_string, escaped;
} hr_json_text;

void hr_json_space(hr_json *json);
/* After white space, this one byte. */
bool hr_json_take(hr_json *json, char byte);
bool hr_json_string(hr_json *json, hr_json_text *text);
/* A string, a number or a word. */
bool hr_json_scalar(hr_json *json, hr_json_text *text);
/* Any value, passed over. Nesting deeper than HR_JSON_DEPTH is refused. */
bool hr_json_skip(hr_json *json);
/* The rest of an object or array whose opening bracket was taken, its closing bracket included. */
bool hr_json_skip_rest(hr_json *json);

/* Walks over an object: `take` gets each member whose value is a string, a number or a word; others are passed over. */
typedef void (*hr_json_member)(void *user, const hr_json_text *key, const hr_json_text *value);
bool hr_json_object(hr_json *json, hr_json_member take, void *user);

/* The number in thousandths, rounded to nearest, without going through floats: microseconds with a fraction
 * become nanoseconds. Also takes a number in quotes. False when it is none or does not fit. */
bool hr_json_thousandths(const hr_json_text *text, int64_t *value);
/* A whole number; a negative one wraps, as identifiers such as −1 do. A fraction is cut off. */
bool hr_json_whole(const hr_json_text *text, uint64_t *value);
/* Unescapes into `out` (`room` bytes, ended by zero); what does not fit is cut. Returns the length. */
size_t hr_json_unescape(const hr_json_text *text, char *out, size_t room);
/* Inline, so that the word's length is known when it is compiled: it is asked of every key. */
static inline bool hr_json_is(const hr_json_text *text, const char *word)
{
    size_t length = strlen(word);
    return text->length == length && memcmp(text->at, word, length) == 0;
}

#endif
