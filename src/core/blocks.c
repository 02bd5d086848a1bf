/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces lie in one list by address; the free ones in a second, smallest first, so that the first that fits
 * is the best. Giving back joins a piece with free neighbours, so two free pieces are never side by side, and
 * 2 · max_out + 1 nodes are always enough: each piece that is out has at most one free piece before it, and
 * there is one at the end.
 *
 * Pieces begin at multiples of 64 bytes: what is smaller than that between two of them is of no use to
 * anybody.
 */
#include "core/blocks.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN UINT64_C(64)

/* Fibonacci hashing: addresses differ in the middle bits, the product spreads them over the high ones. */
static uint64_t slot_of(const hr_blocks *blocks, uint64_t at)
{
    return (at * UINT64_C(0x9E3779B97F4A7C15) >> 32) & blocks->table_mask;
}

static void table_add(hr_blocks *blocks, hr_block *block)
{
    uint64_t slot = slot_of(blocks, block->at);
    while (blocks->table[slot] != NULL) {
        slot = (slot + 1) & blocks->table_mask;
    }
    blocks->table[slot] = block;
}

/* Closes the hole by moving later entries of the same run back, so that no search ends early. */
static void table_remove(hr_blocks *blocks, const hr_block *block)
{
    uint64_t hole = slot_of(blocks, block->at);
    while (blocks->table[hole] != block) {
        hole = (hole + 1) & blocks->table_mask;
    }
    uint64_t slot = hole;
    for (;;) {
        slot = (slot + 1) & blocks->table_mask;
        hr_block *other = blocks->table[slot];
        if (other == NULL) {
            break;
        }
        uint64_t home = slot_of(blocks, other->at);
        if (((slot - home) & blocks->table_mask) >= ((slot - hole) & blocks->table_mask)) {
            blocks->table[hole] = other;
            hole = slot;
        }
    }
    blocks->table[hole] = NULL;
}

static void free_list_add(hr_blocks *blocks, hr_block *block)
{
    hr_block *before = NULL, *after = blocks->free_first;
    while (after != NULL && after->span < block->span) {
        before = after;
        after = after->list_after;
    }
    block->out = false;
    block->list_before = before;
    block->list_after = after;
    if (after != NULL) {
        after->list_before = block;
    }
    *(before != NULL ? &before->list_after : &blocks->free_first) = block;
}

static void free_list_remove(hr_blocks *blocks, hr_block *block)
{
    if (block->list_after != NULL) {
        block->list_after->list_before = block->list_before;
    }
    *(block->list_before != NULL ? &block->list_before->list_after : &blocks->free_first) = block->list_after;
}

static hr_block *node_take(hr_blocks *blocks)
{
    hr_block *node = blocks->unused;
    blocks->unused = node->list_after;
    memset(node, 0, sizeof *node);
    return node;
}

static void node_give(hr_blocks *blocks, hr_block *node)
{
    node->out = false;
    node->list_after = blocks->unused;
    blocks->unused = node;
}

/* Cuts `block` in two: the new piece holds what lies from `at` on. */
static hr_block *split(hr_blocks *blocks, hr_block *block, uint64_t at)
{
    hr_block *tail = node_take(blocks);
    tail->at = at;
    tail->span = block->at + block->span - at;
    block->span = at - block->at;
    tail->before = block;
    tail->after = block->after;
    if (tail->after != NULL) {
        tail->after->before = tail;
    }
    block->after = tail;
    return tail;
}

/* Joins `block` with the piece after it. Both are off the free list. */
static void join(hr_blocks *blocks, hr_block *block)
{
    hr_block *tail = block->after;
    block->span += tail->span;
    block->after = tail->after;
    if (block->after != NULL) {
        block->after->before = block;
    }
    node_give(blocks, tail);
}

hr_status hr_blocks_open(hr_blocks *blocks, uint64_t base, uint64_t bytes, uint32_t max_out)
{
    uint64_t table = 4;
    while (table < 2 * (uint64_t)max_out) {
        table *= 2;
    }
    size_t nodes = 2 * (size_t)max_out + 1;
    hr_blocks made = {.base = base, .bytes = bytes, .max_out = max_out, .table_mask = table - 1};
    made.nodes = calloc(nodes, sizeof *made.nodes);
    made.table = calloc(table, sizeof(hr_block *));
    if (made.nodes == NULL || made.table == NULL) {
        free(made.nodes);
        free(made.table);
        return HR_E_HOST_MEMORY;
    }
    for (size_t i = nodes; i-- > 0;) {
        node_give(&made, &made.nodes[i]); /* also touches each: no page is asked for later */
    }
    made.first = node_take(&made);
    made.first->at = base;
    made.first->span = bytes;
    free_list_add(&made, made.first);
    *blocks = made;
    return HR_OK;
}

void hr_blocks_close(hr_blocks *blocks)
{
    free(blocks->nodes);
    free(blocks->table);
    *blocks = (hr_blocks){0};
}

/* Where a block would begin in a piece that starts at `at`. False if the address does not fit 64 bits. */
static bool place(uint64_t at, uint64_t align, uint64_t *begin)
{
    uint64_t raised;
    if (hr_add_overflows(at, align - 1, &raised)) {
        return false;
    }
    *begin = raised & ~(align - 1);
    return true;
}

static bool fits(uint64_t at, uint64_t span, uint64_t bytes, uint64_t align, uint64_t *begin)
{
    return place(at, align, begin) && *begin - at <= span && span - (*begin - at) >= bytes;
}

hr_status hr_blocks_take(hr_blocks *blocks, uint64_t bytes, uint64_t align, const char *name,
                         hr_block **block)
{
    align = hr_max_u64(align, GRAIN);
    uint64_t room = hr_max_u64(bytes, 1); /* a block of nothing still has an address of its own */
    uint64_t begin;
    if (!fits(blocks->base, blocks->bytes, room, align, &begin)) {
        return HR_E_RANGE;
    }
    if (blocks->out == blocks->max_out) {
        return HR_AGAIN;
    }
    hr_block *found = blocks->free_first;
    while (found != NULL && !fits(found->at, found->span, room, align, &begin)) {
        found = found->list_after;
    }
    if (found == NULL) {
        return HR_AGAIN;
    }
    free_list_remove(blocks, found);
    if (begin > found->at) {
        hr_block *gap = found;
        found = split(blocks, gap, begin);
        free_list_add(blocks, gap);
    }
    uint64_t end = hr_round_up(begin + room - blocks->base, GRAIN) + blocks->base;
    if (end < found->at + found->span) {
        free_list_add(blocks, split(blocks, found, end));
    }
    found->bytes = bytes;
    found->out = true;
    snprintf(found->name, sizeof found->name, "%s", name != NULL ? name : "unnamed");
    table_add(blocks, found);
    blocks->out++;
    *block = found;
    return HR_OK;
}

hr_block *hr_blocks_find(const hr_blocks *blocks, uint64_t at)
{
    uint64_t slot = slot_of(blocks, at);
    while (blocks->table[slot] != NULL && blocks->table[slot]->at != at) {
        slot = (slot + 1) & blocks->table_mask;
    }
    return blocks->table[slot];
}

void hr_blocks_give(hr_blocks *blocks, hr_block *block)
{
    table_remove(blocks, block);
    blocks->out--;
    hr_block *joined = block;
    if (block->before != NULL && !block->before->out) {
        joined = block->before;
        free_list_remove(blocks, joined);
        join(blocks, joined);
    }
    if (joined->after != NULL && !joined->after->out) {
        free_list_remove(blocks, joined->after);
        join(blocks, joined);
    }
    free_list_add(blocks, joined);
}
