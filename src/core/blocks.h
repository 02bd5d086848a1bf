/* SPDX-License-Identifier: Apache-2.0 */
/* Deals out pieces of an address range. Touches none of it, so the range may be a device's. No locks. */
#ifndef HR_CORE_BLOCKS_H
#define HR_CORE_BLOCKS_H

#include <headrace/status.h>

#include <stdbool.h>
#include <stddef.h>

#define HR_BLOCK_NAME_BYTES 40

/* A piece of the range: free, or out. Pieces are linked by address and cover the range without a gap. */
typedef struct hr_block {
    uint64_t at;                     /* address */
    uint64_t span;                   /* bytes up to the next piece */
    uint64_t bytes;                  /* what was asked for, at most span; of a piece that is out */
    struct hr_block *before, *after; /* by address */
    struct hr_block *list_before,
        *list_after; /* among the free, by span; among the unused nodes, after only */
    bool out;
    char name[HR_BLOCK_NAME_BYTES];
} hr_block;

typedef struct hr_blocks {
    uint64_t base, bytes;
    uint32_t out, max_out;
    hr_block *nodes; /* all there will ever be */
    hr_block *unused;
    hr_block *first;      /* by address */
    hr_block *free_first; /* smallest first */
    hr_block **table;     /* of pieces that are out, by address; open addressing */
    uint64_t table_mask;
} hr_blocks;

/* Prepares for at most `max_out` pieces out at once; the only call that allocates. HR_E_HOST_MEMORY. */
HR_CHECKED hr_status hr_blocks_open(hr_blocks *blocks, uint64_t base, uint64_t bytes, uint32_t max_out);
void hr_blocks_close(hr_blocks *blocks);
/* Best fit. `align` is a power of two. HR_AGAIN: no room now, or max_out are out; HR_E_RANGE: never. */
HR_CHECKED hr_status hr_blocks_take(hr_blocks *blocks, uint64_t bytes, uint64_t align, const char *name,
                                    hr_block **block);
/* The piece that is out at this address, or null. */
hr_block *hr_blocks_find(const hr_blocks *blocks, uint64_t at);
void hr_blocks_give(hr_blocks *blocks, hr_block *block);

#endif
