/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "needs cpu[,threads=N] or cpu:discrete[,h2d=50G][,d2h=50G][,latency=5u][,memory=1G][,threads=N], "
    "N from 1 to 4096";

/* A positive number and one letter of `letters` at most, each `step` times the one before. */
static bool parse_number(const char *text, size_t length, const char *letters, double step, double *number)
{
    char copy[32];
    if (length == 0 || length >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *end;
    double value = strtod(copy, &end);
    const char *letter = *end != '\0' ? strchr(letters, *end) : NULL;
    if (end == copy || !isfinite(value) || value <= 0 ||
        (*end != '\0' && (letter == NULL || end[1] != '\0'))) {
        return false;
    }
    for (const char *at = letters; letter != NULL && at <= letter; at++) {
        value *= step;
    }
    *number = value;
    return true;
}

/* One "key=value". */
static bool parse_option(const char *text, size_t length, hr_cpu_options *options)
{
    size_t key = strcspn(text, "=");
    if (key >= length) {
        return false;
    }
    const char *value = text + key + 1;
    size_t value_length = length - key - 1;
    double number;
    if (key == 7 && strncmp(text, "threads", key) == 0) {
        bool good =
            parse_number(value, value_length, "", 1, &number) && number == floor(number) && number <= 4096;
        options->threads = good ? (uint32_t)number : 0;
        return good;
    }
    if (!options->discrete) {
        return false;
    }
    if (key == 3 && strncmp(text, "h2d", key) == 0) {
        return parse_number(value, value_length, "KMGT", 1000, &options->h2d_bytes_per_s);
    }
    if (key == 3 && strncmp(text, "d2h", key) == 0) {
        return parse_number(value, value_length, "KMGT", 1000, &options->d2h_bytes_per_s);
    }
    if (key == 6 && strncmp(text, "memory", key) == 0) {
        bool good =
            parse_number(value, value_length, "KMGT", 1024, &number) && number >= 1 && number < 0x1p62;
        options->memory_bytes = good ? (uint64_t)number : 0;
        return good;
    }
    if (key == 7 && strncmp(text, "latency", key) == 0) {
        value_length -= value_length > 0 && value[value_length - 1] == 'n';
        bool good = parse_number(value, value_length, "um", 1000, &number) && number < 1e10;
        options->latency_ns = good ? (uint64_t)number : 0;
        return good;
    }
    return false;
}

hr_status hr_cpu_parse(const char *rest, hr_cpu_options *options, hr_error *error)
{
    static const char discrete[] = ":discrete";
    hr_cpu_options parsed = {0};
    const char *at = rest;
    if (strncmp(at, discrete, sizeof discrete - 1) == 0) {
        parsed.discrete = true;
        at += sizeof discrete - 1;
    }
    while (*at == ',') {
        at++;
        size_t length = strcspn(at, ",");
        if (!parse_option(at, length, &parsed)) {
            return hr_fail(error, HR_E_INVALID,
                           "device cpu%.100s: \"%.*s\" is no option of it, or out of range; %s", rest,
                           (int)(length < 60 ? length : 60), at, help);
        }
        at += length;
    }
    if (*at != '\0') {
        return hr_fail(error, at[0] == ':' && !parsed.discrete ? HR_E_NOT_FOUND : HR_E_INVALID,
                       "device cpu%.100s: %s", rest, help);
    }
    *options = parsed;
    return HR_OK;
}
