/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/cover.h"

#include <string.h>

static void remove_pieces(hr_cover *cover, size_t at, size_t count)
{
    memmove(&cover->piece[at], &cover->piece[at + count],
            (cover->count - at - count) * sizeof cover->piece[0]);
    cover->count -= count;
}

void hr_cover_add(hr_cover *cover, uint64_t begin, uint64_t end)
{
    if (begin < cover->settled_till) {
        begin = cover->settled_till;
    }
    if (begin >= end) {
        return;
    }
    /* From the back, because almost every interval belongs there. */
    size_t after = cover->count;
    while (after > 0 && cover->piece[after - 1].begin > end) {
        after--;
    }
    size_t first = after;
    while (first > 0 && cover->piece[first - 1].end >= begin) {
        first--;
        begin = cover->piece[first].begin < begin ? cover->piece[first].begin : begin;
        end = cover->piece[first].end > end ? cover->piece[first].end : end;
    }
    remove_pieces(cover, first, after - first);
    if (cover->count == HR_COVER_ROOM) {
        if (first == 0) {
            /* Older than all that there is room for: counts as the piece given up. */
            cover->settled_ns += end - begin;
            cover->settled_till = end;
            return;
        }
        cover->settled_ns += cover->piece[0].end - cover->piece[0].begin;
        cover->settled_till = cover->piece[0].end;
        remove_pieces(cover, 0, 1);
        first--;
    }
    memmove(&cover->piece[first + 1], &cover->piece[first], (cover->count - first) * sizeof cover->piece[0]);
    cover->piece[first].begin = begin;
    cover->piece[first].end = end;
    cover->count++;
}

uint64_t hr_cover_length(const hr_cover *cover)
{
    uint64_t length = cover->settled_ns;
    for (size_t i = 0; i < cover->count; i++) {
        length += cover->piece[i].end - cover->piece[i].begin;
    }
    return length;
}
