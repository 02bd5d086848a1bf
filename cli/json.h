/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON, value by value, with the commas where they belong. */
#ifndef HR_CLI_JSON_H
#define HR_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json_writer {
    FILE *to;
    bool comma; /* the next value needs one before it */
} json_writer;

/* Each takes the key of the member to be written, or null inside an array and at the top. */
void json_open(json_writer *json, const char *key, char bracket);        /* '{' or '[' */
void json_close(json_writer *json, char bracket);                        /* '}' or ']' */
void json_string(json_writer *json, const char *key, const char *value); /* a null value writes null */
void json_u64(json_writer *json, const char *key, uint64_t value);
void json_i64(json_writer *json, const char *key, int64_t value);
void json_bool(json_writer *json, const char *key, bool value);
void json_null(json_writer *json, const char *key);
/* With `digits` significant digits; what JSON cannot say (infinity, NaN) becomes null. */
void json_real(json_writer *json, const char *key, double value, int digits);
void json_end(json_writer *json); /* a newline */

#endif
