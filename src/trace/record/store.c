/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/record/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One program has one recorder: it is loaded into the process, and the process is what it records. */
static _Atomic(hr_call_chunk *) calls;
static hr_work_chunk *works;
static atomic_ullong kept, lost;
static uint64_t limit = UINT64_C(8) << 20;
static _Thread_local hr_call_chunk *mine;

void hr_store_limit(uint64_t events)
{
    limit = events;
}

static bool room_for_one(void)
{
    if (atomic_fetch_add_explicit(&kept, 1, memory_order_relaxed) < limit)
        return true;
    atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
    return false;
}

hr_call_record *hr_store_call(void)
{
    if (!room_for_one())
        return NULL;
    if (mine == NULL || atomic_load_explicit(&mine->count, memory_order_relaxed) == HR_RECORD_CHUNK) {
        hr_call_chunk *chunk = malloc(sizeof *chunk);
        if (chunk == NULL) {
            atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
            return NULL;
        }
        atomic_init(&chunk->count, 0);
        chunk->thread = gettid();
        chunk->next = atomic_load(&calls);
        while (!atomic_compare_exchange_weak(&calls, &chunk->next, chunk)) {
        }
        mine = chunk;
    }
    return &mine->at[atomic_load_explicit(&mine->count, memory_order_relaxed)];
}

void hr_store_call_done(void)
{
    atomic_fetch_add_explicit(&mine->count, 1, memory_order_release);
}

hr_work_record *hr_store_work(void)
{
    if (!room_for_one())
        return NULL;
    if (works == NULL || works->count == HR_RECORD_CHUNK) {
        hr_work_chunk *chunk = malloc(sizeof *chunk);
        if (chunk == NULL) {
            atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
            return NULL;
        }
        chunk->count = 0;
        chunk->next = works;
        works = chunk;
    }
    return &works->at[works->count++];
}

/* A program has hundreds of kernels and launches them millions of times: each name is kept once. */
enum { NAME_SLOTS = 4096 };

static struct name {
    struct name *next;
    char text[];
} * names[NAME_SLOTS];

const char *hr_store_name(const char *name)
{
    uint32_t hash = 2166136261U;
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619U;
    struct name **slot = &names[hash % NAME_SLOTS];
    for (struct name *known = *slot; known != NULL; known = known->next) {
        if (strcmp(known->text, name) == 0)
            return known->text;
    }
    size_t length = strlen(name) + 1;
    struct name *added = malloc(sizeof *added + length);
    if (added == NULL)
        return "kernel";
    memcpy(added->text, name, length);
    added->next = *slot;
    *slot = added;
    return added->text;
}

hr_call_chunk *hr_store_calls(void)
{
    return atomic_load(&calls);
}

hr_work_chunk *hr_store_works(void)
{
    return works;
}

uint64_t hr_store_lost(void)
{
    return atomic_load(&lost);
}
