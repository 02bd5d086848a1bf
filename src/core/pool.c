/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: memory taken once, dealt out in blocks, with a list of who has what. */
#include "base/checked.h"
#include "base/clock.h"
#include "core/blocks.h"
#include "core/internal.h"
#include "host/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN_DEFAULT   256
#define ALIGN_MAX       (UINT64_C(2) << 20)
#define BLOCKS_DEFAULT  4096
#define POOL_NAME_BYTES 64

struct hr_pool {
    hr_device *device; /* null: the host's */
    hr_pool *next;     /* on the device's list */
    hr_fork_guard guard;
    pthread_mutex_t lock;
    hr_blocks blocks;
    hr_bmemory memory;   /* of a device's pool */
    hr_host_memory host; /* of a pool without a device */
    hr_pool_stats stats;
    char name[POOL_NAME_BYTES];
};

const char *hr_pool_name(const hr_pool *pool)
{
    return pool->name;
}

hr_pool *hr_pool_next(const hr_pool *pool)
{
    return pool->next;
}

static void list_add(hr_pool *pool)
{
    hr_device *device = pool->device;
    if (device == NULL) {
        return;
    }
    pthread_mutex_lock(&device->lock);
    pool->next = device->pools;
    device->pools = pool;
    pthread_mutex_unlock(&device->lock);
    hr_device_hold(device, HR_HELD_POOL);
}

static void list_remove(hr_pool *pool)
{
    hr_device *device = pool->device;
    if (device == NULL) {
        return;
    }
    pthread_mutex_lock(&device->lock);
    hr_pool **link = &device->pools;
    while (*link != pool) {
        link = &(*link)->next;
    }
    *link = pool->next;
    pthread_mutex_unlock(&device->lock);
    hr_device_release(device, HR_HELD_POOL);
}

static hr_status check_options(hr_device *device, const hr_pool_options *options, hr_error *error)
{
    if (options->size != sizeof *options) {
        return hr_fail(error, HR_E_INVALID, "pool: options.size is %zu, needs %zu", options->size,
                       sizeof *options);
    }
    const char *name = options->name != NULL ? options->name : "unnamed";
    if (options->kind != HR_MEMORY_PAGEABLE && options->kind != HR_MEMORY_PINNED &&
        options->kind != HR_MEMORY_DEVICE) {
        return hr_fail(error, HR_E_INVALID, "pool %s: kind %d; needs pageable, pinned or device memory", name,
                       (int)options->kind);
    }
    if (device == NULL && options->kind != HR_MEMORY_PAGEABLE) {
        return hr_fail(error, HR_E_INVALID, "pool %s: pinned and device memory need a device", name);
    }
    if (options->bytes == 0) {
        return hr_fail(error, HR_E_INVALID, "pool %s: 0 bytes", name);
    }
    if (options->bytes > INT64_MAX || options->minimum_bytes > options->bytes) {
        return hr_fail(error, HR_E_RANGE,
                       "pool %s: %" PRIu64 " bytes, at least %" PRIu64
                       "; the first must not be the smaller, nor above 2^63",
                       name, options->bytes, options->minimum_bytes);
    }
    return HR_OK;
}

/* Memory from the device, or straight from the system. */
static hr_status take_memory(hr_pool *pool, const hr_pool_options *options, hr_error *error)
{
    if (pool->device == NULL) {
        hr_host_request request = {.what = pool->name,
                                   .bytes = options->bytes,
                                   .minimum_bytes = options->minimum_bytes,
                                   .touch_threads = options->touch_threads,
                                   .no_huge_pages = options->no_huge_pages,
                                   .no_touch = options->no_touch,
                                   .numa_node = -1};
        hr_status status = hr_host_memory_take(&request, &pool->host, error);
        pool->memory.base = pool->host.base;
        pool->memory.got_bytes = pool->host.bytes;
        pool->memory.huge_bytes = pool->host.huge_bytes;
        memcpy(pool->memory.fallback, pool->host.fallback, sizeof pool->memory.fallback);
        return status;
    }
    pool->memory = (hr_bmemory){.kind = options->kind,
                                .bytes = options->bytes,
                                .minimum_bytes = options->minimum_bytes,
                                .touch_threads = options->touch_threads,
                                .no_huge_pages = options->no_huge_pages,
                                .no_touch = options->no_touch};
    hr_status status = pool->device->ops->memory_take(pool->device->impl, &pool->memory, error);
    if (status != HR_OK && error != NULL) {
        int32_t code = error->code;
        hr_fail(error, status, "pool %s: %.440s", pool->name, error->text);
        error->code = code;
    }
    return status;
}

static void release_memory(hr_pool *pool)
{
    if (pool->device == NULL) {
        hr_host_memory_release(&pool->host);
    } else {
        pool->device->ops->memory_release(pool->device->impl, &pool->memory);
    }
}

hr_status hr_pool_open(hr_device *device, const hr_pool_options *options, hr_pool **pool, hr_error *error)
{
    if (options == NULL || pool == NULL) {
        return hr_fail(error, HR_E_INVALID, "pool: a null argument");
    }
    if (device != NULL && hr_device_forked(device)) {
        return hr_fail_forked(device, error, "pool");
    }
    hr_status status = check_options(device, options, error);
    if (status != HR_OK) {
        return status;
    }
    uint64_t begin_ns = hr_now_ns();
    hr_pool *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "pool: no memory for its books");
    }
    made->device = device;
    snprintf(made->name, sizeof made->name, "%s", options->name != NULL ? options->name : "unnamed");
    status = take_memory(made, options, error);
    if (status != HR_OK) {
        goto free_pool;
    }
    status = hr_blocks_open(&made->blocks, (uintptr_t)made->memory.base, made->memory.got_bytes,
                            options->max_blocks != 0 ? options->max_blocks : BLOCKS_DEFAULT);
    if (status != HR_OK) {
        hr_fail(error, status, "pool %s: no memory for its books", made->name);
        goto release;
    }
    pthread_mutex_init(&made->lock, NULL);
    hr_fork_guard_open(&made->guard);
    made->stats = (hr_pool_stats){.size = sizeof made->stats,
                                  .bytes = made->memory.got_bytes,
                                  .huge_bytes = made->memory.huge_bytes,
                                  .setup_ns = hr_now_ns() - begin_ns};
    list_add(made);
    *pool = made;
    return HR_OK;

release:
    release_memory(made);
free_pool:
    free(made);
    return status;
}

/* A device's pool is of no use where its device is not; a pool of plain memory may have been forked under its
 * lock. */
static bool forked(const hr_pool *pool)
{
    return pool->device != NULL ? hr_device_forked(pool->device) : hr_forked(&pool->guard);
}

/* Under the lock. The text of a refused close. */
static hr_status fail_blocks_out(const hr_pool *pool, hr_error *error)
{
    char list[HR_ERROR_TEXT_BYTES - 128];
    size_t used = 0;
    uint32_t named = 0;
    list[0] = '\0';
    for (const hr_block *block = pool->blocks.first; block != NULL; block = block->after) {
        if (!block->out) {
            continue;
        }
        char one[HR_BLOCK_NAME_BYTES + 32];
        size_t length = (size_t)snprintf(one, sizeof one, "%s%s (%" PRIu64 " bytes)", used > 0 ? ", " : "",
                                         block->name, block->bytes);
        if (used + length >= sizeof list) {
            break;
        }
        memcpy(list + used, one, length + 1);
        used += length;
        named++;
    }
    uint32_t more = pool->blocks.out - named;
    char rest[32] = "";
    if (more > 0) {
        snprintf(rest, sizeof rest, " and %" PRIu32 " more", more);
    }
    return hr_fail(error, HR_E_BUSY, "pool %s: %" PRIu32 " block%s still out: %s%s", pool->name,
                   pool->blocks.out, pool->blocks.out == 1 ? " is" : "s are", list, rest);
}

hr_status hr_pool_close(hr_pool **pool, hr_error *error)
{
    hr_pool *closed = pool != NULL ? *pool : NULL;
    if (closed == NULL) {
        return HR_OK;
    }
    if (forked(closed)) {
        return hr_fail(error, HR_E_FORKED, "pool %s: it was opened before fork()", closed->name);
    }
    pthread_mutex_lock(&closed->lock);
    hr_status status = closed->blocks.out > 0 ? fail_blocks_out(closed, error) : HR_OK;
    pthread_mutex_unlock(&closed->lock);
    if (status != HR_OK) {
        return status;
    }
    release_memory(closed);
    list_remove(closed);
    hr_blocks_close(&closed->blocks);
    hr_fork_guard_close(&closed->guard);
    pthread_mutex_destroy(&closed->lock);
    free(closed);
    *pool = NULL;
    return HR_OK;
}

hr_status hr_pool_take(hr_pool *pool, uint64_t bytes, uint64_t align, const char *name, void **block)
{
    if (pool == NULL || block == NULL || (align & (align - 1)) != 0 || align > ALIGN_MAX) {
        return HR_E_INVALID;
    }
    if (forked(pool)) {
        return HR_E_FORKED;
    }
    hr_block *taken;
    pthread_mutex_lock(&pool->lock);
    hr_status status = hr_blocks_take(&pool->blocks, bytes, align != 0 ? align : ALIGN_DEFAULT, name, &taken);
    if (status == HR_OK) {
        pool->stats.used_bytes += bytes;
        pool->stats.peak_bytes = hr_max_u64(pool->stats.peak_bytes, pool->stats.used_bytes);
        pool->stats.taken++;
        *block = (void *)(uintptr_t)taken->at;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

hr_status hr_pool_give(hr_pool *pool, void *block)
{
    if (pool == NULL || block == NULL) {
        return HR_E_INVALID;
    }
    if (forked(pool)) {
        return HR_E_FORKED;
    }
    pthread_mutex_lock(&pool->lock);
    hr_block *given = hr_blocks_find(&pool->blocks, (uintptr_t)block);
    if (given != NULL) {
        pool->stats.used_bytes -= given->bytes;
        hr_blocks_give(&pool->blocks, given);
    }
    pthread_mutex_unlock(&pool->lock);
    return given != NULL ? HR_OK : HR_E_INVALID;
}

hr_status hr_pool_get_stats(hr_pool *pool, hr_pool_stats *stats)
{
    if (pool == NULL || stats == NULL || stats->size != sizeof *stats) {
        return HR_E_INVALID;
    }
    if (forked(pool)) {
        return HR_E_FORKED;
    }
    pthread_mutex_lock(&pool->lock);
    *stats = pool->stats;
    stats->blocks = pool->blocks.out;
    pthread_mutex_unlock(&pool->lock);
    stats->fallback = pool->memory.fallback[0] != '\0' ? pool->memory.fallback : NULL;
    return HR_OK;
}

void hr_pool_each(hr_pool *pool,
                  void (*each)(void *user, const char *name, const void *block, uint64_t bytes), void *user)
{
    if (pool == NULL || each == NULL || forked(pool)) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    for (const hr_block *block = pool->blocks.first; block != NULL; block = block->after) {
        if (block->out) {
            each(user, block->name, (const void *)(uintptr_t)block->at, block->bytes);
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

hr_status hr_memory_kind_of(hr_device *device, const void *base, uint64_t bytes, hr_memory_kind *kind)
{
    if (device == NULL || kind == NULL) {
        return HR_E_INVALID;
    }
    if (hr_device_forked(device)) {
        return HR_E_FORKED;
    }
    return device->ops->memory_kind(device->impl, base, bytes, kind);
}
