/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options: sizes, counts, shapes. Strict: what does not parse to its last character is refused. */
#include "cli.h"

#include <stdarg.h>
#include <string.h>

/* Digits only; stops behind them. */
static bool parse_digits(const char **at, uint64_t *number)
{
    const char *text = *at;
    uint64_t value = 0;
    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    }
    *at = text;
    *number = value;
    return true;
}

bool cli_parse_size(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    uint64_t value;
    if (!parse_digits(&text, &value))
        return false;
    if (*text) {
        const char *unit = strchr(units, *text >= 'a' ? *text - 'a' + 'A' : *text);
        if (!unit)
            return false;
        uint64_t factor = (uint64_t)1 << (10 * (unit - units + 1));
        if (__builtin_mul_overflow(value, factor, &value))
            return false;
        text++;
        if (!strcmp(text, "iB") || !strcmp(text, "B"))
            text += strlen(text);
    }
    if (*text || value > INT64_MAX)
        return false;
    *bytes = value;
    return true;
}

bool cli_parse_count(const char *text, uint64_t low, uint64_t high, uint64_t *count)
{
    uint64_t value;
    if (!parse_digits(&text, &value) || *text || value < low || value > high)
        return false;
    *count = value;
    return true;
}

static bool refuse(char *why, size_t room, const char *format, ...) HR_PRINTF(3, 4);
static bool refuse(char *why, size_t room, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, room, format, list);
    va_end(list);
    return false;
}

bool cli_parse_shape(const char *text, hr_shape *shape, char *why, size_t room)
{
    hr_shape parsed = {0};
    bool open = false;
    const char *at = text;
    for (;;) {
        uint64_t extent = 0;
        if (parsed.rank == HR_MAX_RANK)
            return refuse(why, room, "\"%s\" has more than %d extents", text, HR_MAX_RANK);
        if (*at == '?') {
            if (open)
                return refuse(why, room, "\"%s\" leaves more than one extent open", text);
            open = true;
            extent = UINT64_MAX;
            at++;
        } else if (*at == '-') {
            return refuse(why, room, "\"%s\" has a negative extent; extents are 0 or more", text);
        } else if (!parse_digits(&at, &extent) || extent > INT64_MAX) {
            return refuse(why, room,
                          extent > INT64_MAX || (*at >= '0' && *at <= '9')
                              ? "\"%s\" has an extent beyond 63 bits"
                              : "\"%s\" is no list of extents such as 480,640",
                          text);
        }
        parsed.extent[parsed.rank++] = extent;
        if (!*at)
            break;
        if (*at != ',' && *at != 'x')
            return refuse(why, room, "\"%s\" is no list of extents such as 480,640", text);
        at++;
    }
    uint64_t elements;
    if (!open && hr_shape_elements(&parsed, &elements) != HR_OK)
        return refuse(why, room, "\"%s\" has more elements than 64 bits can count", text);
    *shape = parsed;
    return true;
}
