/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/words.h"

#include <string.h>
#include <strings.h>

static const char *find(const char *words, size_t length, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= length; i++) {
        if (strncasecmp(words + i, part, n) == 0)
            return words + i;
    }
    return NULL;
}

hr_memory hr_words_memory(const char *words, size_t length)
{
    static const struct {
        const char *word;
        hr_memory memory;
    } kinds[] = {
        {"pageable", HR_MEMORY_PAGEABLE}, {"pinned", HR_MEMORY_PINNED}, {"managed", HR_MEMORY_MANAGED},
        {"unified", HR_MEMORY_MANAGED},   {"array", HR_MEMORY_ARRAY},   {"device", HR_MEMORY_DEVICE},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (find(words, length, kinds[i].word) != NULL)
            return kinds[i].memory;
    }
    return HR_MEMORY_UNKNOWN;
}

static hr_direction direction_of(const char *words, size_t length)
{
    static const struct {
        const char *word;
        hr_direction direction;
    } directions[] = {
        {"htod", HR_DIRECTION_H2D},           {"host-to-device", HR_DIRECTION_H2D},
        {"hosttodevice", HR_DIRECTION_H2D},   {"htoa", HR_DIRECTION_H2D},
        {"host-to-array", HR_DIRECTION_H2D},  {"dtoh", HR_DIRECTION_D2H},
        {"device-to-host", HR_DIRECTION_D2H}, {"devicetohost", HR_DIRECTION_D2H},
        {"atoh", HR_DIRECTION_D2H},           {"array-to-host", HR_DIRECTION_D2H},
        {"ptop", HR_DIRECTION_PEER},          {"peer", HR_DIRECTION_PEER},
        {"dtod", HR_DIRECTION_D2D},           {"device-to-device", HR_DIRECTION_D2D},
        {"devicetodevice", HR_DIRECTION_D2D}, {"atoa", HR_DIRECTION_D2D},
        {"atod", HR_DIRECTION_D2D},           {"dtoa", HR_DIRECTION_D2D},
        {"array", HR_DIRECTION_D2D},          {"htoh", HR_DIRECTION_H2H},
        {"host-to-host", HR_DIRECTION_H2H},   {"hosttohost", HR_DIRECTION_H2H},
    };
    for (size_t i = 0; i < sizeof directions / sizeof directions[0]; i++) {
        if (find(words, length, directions[i].word) != NULL)
            return directions[i].direction;
    }
    return HR_DIRECTION_UNKNOWN;
}

void hr_words_copy(const char *words, size_t length, hr_event *event)
{
    const char *brackets = memchr(words, '(', length);
    size_t head = brackets != NULL ? (size_t)(brackets - words) : length;
    hr_direction direction = direction_of(words, head);
    if (direction != HR_DIRECTION_UNKNOWN)
        event->direction = (uint8_t)direction;
    const char *arrow = find(words, length, "->");
    if (brackets == NULL || arrow == NULL || arrow < brackets)
        return;
    event->source = (uint8_t)hr_words_memory(brackets, (size_t)(arrow - brackets));
    event->sink = (uint8_t)hr_words_memory(arrow, (size_t)(words + length - arrow));
    bool managed = event->source == HR_MEMORY_MANAGED || event->sink == HR_MEMORY_MANAGED;
    if (find(words, head, "unified") != NULL && managed)
        event->direction =
            direction == HR_DIRECTION_D2H ? HR_DIRECTION_MIGRATE_D2H : HR_DIRECTION_MIGRATE_H2D;
}
