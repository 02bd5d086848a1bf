/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <headrace/memory.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)

static hr_pool *open_pool(uint64_t bytes, uint32_t max_blocks)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_pool *pool = NULL;
    options.name = "test";
    options.kind = HR_MEMORY_PAGEABLE;
    options.bytes = bytes;
    options.max_blocks = max_blocks;
    if (hr_pool_open(NULL, &options, &pool, &error) != HR_OK) {
        fail_msg("%s", error.text);
    }
    return pool;
}

static void *take(hr_pool *pool, uint64_t bytes, uint64_t align)
{
    void *block = NULL;
    assert_int_equal(hr_pool_take(pool, bytes, align, "block", &block), HR_OK);
    return block;
}

static void close_pool(hr_pool *pool)
{
    hr_error error = HR_ERROR_INIT;
    if (hr_pool_close(&pool, &error) != HR_OK) {
        fail_msg("%s", error.text);
    }
    assert_null(pool);
}

static hr_pool_stats stats_of(hr_pool *pool)
{
    hr_pool_stats stats = HR_POOL_STATS_INIT;
    assert_int_equal(hr_pool_get_stats(pool, &stats), HR_OK);
    return stats;
}

/* A pool of 129.5 KiB gives a block of 129.5 KiB, and counts what was asked for and nothing else. */
static void sizes_are_exact(void **state)
{
    (void)state;
    uint64_t odd = 129 * KIB + 512;
    hr_pool *pool = open_pool(odd, 0);
    assert_int_equal(stats_of(pool).bytes, odd);
    char *whole = take(pool, odd, 0);
    memset(whole, 1, odd);
    assert_int_equal(stats_of(pool).used_bytes, odd);
    assert_int_equal(hr_pool_give(pool, whole), HR_OK);
    void *one = take(pool, 1, 0), *odd_one = take(pool, 333, 0);
    assert_int_equal(stats_of(pool).used_bytes, 334);
    assert_int_equal(stats_of(pool).peak_bytes, odd);
    assert_int_equal(stats_of(pool).blocks, 2);
    assert_int_equal(stats_of(pool).taken, 3);
    assert_int_equal(hr_pool_give(pool, one), HR_OK);
    assert_int_equal(hr_pool_give(pool, odd_one), HR_OK);
    close_pool(pool);
}

static void addresses_are_aligned_and_apart(void **state)
{
    (void)state;
    hr_pool *pool = open_pool(8192 * KIB, 0);
    static const uint64_t aligns[] = {0, 1, 64, 256, 4096, 65536, 2048 * KIB};
    char *blocks[7];
    for (int i = 0; i < 7; i++) {
        blocks[i] = take(pool, 1000, aligns[i]);
        assert_int_equal((uintptr_t)blocks[i] % (aligns[i] != 0 ? aligns[i] : 256), 0);
        memset(blocks[i], i, 1000);
    }
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < 1000; k++) {
            assert_int_equal(blocks[i][k], i);
        }
        assert_int_equal(hr_pool_give(pool, blocks[i]), HR_OK);
    }
    void *block;
    assert_int_equal(hr_pool_take(pool, 8, 3, "bad", &block), HR_E_INVALID);
    assert_int_equal(hr_pool_take(pool, 8, 4096 * KIB, "bad", &block), HR_E_INVALID);
    close_pool(pool);
}

static void blocks_of_nothing_are_distinct(void **state)
{
    (void)state;
    hr_pool *pool = open_pool(4096, 0);
    void *a = take(pool, 0, 0), *b = take(pool, 0, 0);
    assert_non_null(a);
    assert_ptr_not_equal(a, b);
    assert_int_equal(stats_of(pool).used_bytes, 0);
    assert_int_equal(hr_pool_give(pool, a), HR_OK);
    assert_int_equal(hr_pool_give(pool, b), HR_OK);
    close_pool(pool);
}

/* Full now is not the same as never; after giving back it fits again. */
static void a_full_pool_says_again_and_a_small_one_never(void **state)
{
    (void)state;
    hr_pool *pool = open_pool(64 * KIB, 0);
    void *a = take(pool, 40 * KIB, 0), *b = &b;
    assert_int_equal(hr_pool_take(pool, 40 * KIB, 0, "later", &b), HR_AGAIN);
    assert_int_equal(hr_pool_take(pool, 64 * KIB + 1, 0, "never", &b), HR_E_RANGE);
    assert_int_equal(hr_pool_take(pool, UINT64_MAX, 0, "never", &b), HR_E_RANGE);
    assert_ptr_equal(b, &b); /* outputs are set on success only */
    assert_int_equal(hr_pool_give(pool, a), HR_OK);
    b = take(pool, 64 * KIB, 0);
    assert_int_equal(hr_pool_give(pool, b), HR_OK);
    close_pool(pool);
}

static void more_blocks_than_agreed_say_again(void **state)
{
    (void)state;
    hr_pool *pool = open_pool(64 * KIB, 3);
    void *blocks[3], *fourth;
    for (int i = 0; i < 3; i++) {
        blocks[i] = take(pool, 10, 0);
    }
    assert_int_equal(hr_pool_take(pool, 10, 0, "fourth", &fourth), HR_AGAIN);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hr_pool_give(pool, blocks[i]), HR_OK);
    }
    close_pool(pool);
}

static void what_is_not_out_cannot_be_given(void **state)
{
    (void)state;
    hr_pool *pool = open_pool(64 * KIB, 0);
    char *a = take(pool, 100, 0);
    assert_int_equal(hr_pool_give(pool, a + 1), HR_E_INVALID);
    assert_int_equal(hr_pool_give(pool, &a), HR_E_INVALID);
    assert_int_equal(hr_pool_give(pool, NULL), HR_E_INVALID);
    assert_int_equal(hr_pool_give(pool, a), HR_OK);
    assert_int_equal(hr_pool_give(pool, a), HR_E_INVALID); /* twice */
    assert_int_equal(stats_of(pool).used_bytes, 0);
    close_pool(pool);
}

typedef struct listed {
    unsigned count;
    uint64_t bytes;
    bool named;
} listed;

static void add_to_list(void *user, const char *name, const void *block, uint64_t bytes)
{
    listed *list = user;
    assert_non_null(block);
    list->count++;
    list->bytes += bytes;
    list->named = list->named || strcmp(name, "slot 7") == 0;
}

static void a_refused_close_lists_each_block(void **state)
{
    (void)state;
    hr_pool *pool = open_pool(64 * KIB, 0);
    void *slot, *other;
    assert_int_equal(hr_pool_take(pool, 1234, 0, "slot 7", &slot), HR_OK);
    assert_int_equal(hr_pool_take(pool, 55, 0, "filter", &other), HR_OK);
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_pool_close(&pool, &error), HR_E_BUSY);
    assert_string_equal(error.text,
                        "pool test: 2 blocks are still out: slot 7 (1234 bytes), filter (55 bytes)");
    listed list = {0};
    hr_pool_each(pool, add_to_list, &list);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.bytes, 1289);
    assert_true(list.named);
    assert_int_equal(hr_pool_give(pool, slot), HR_OK);
    assert_int_equal(hr_pool_give(pool, other), HR_OK);
    close_pool(pool);
}

/* More blocks than the text has room for: the rest is counted. */
static void a_long_list_ends_with_how_many_more(void **state)
{
    (void)state;
    enum { BLOCKS = 60 };
    hr_pool *pool = open_pool(64 * KIB, 0);
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(pool, 100, 0);
    }
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_pool_close(&pool, &error), HR_E_BUSY);
    unsigned named = 0, more = 0;
    for (const char *at = error.text; (at = strstr(at, "block (100 bytes)")) != NULL; at++) {
        named++;
    }
    const char *and = strstr(error.text, " and ");
    assert_non_null(and);
    char *end;
    more = (unsigned)strtoul(and+strlen(" and "), &end, 10);
    assert_string_equal(end, " more");
    assert_int_equal(named + more, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(hr_pool_give(pool, blocks[i]), HR_OK);
    }
    close_pool(pool);
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_pool *pool = NULL;
    options.kind = HR_MEMORY_PAGEABLE;
    options.name = "wrong";
    assert_int_equal(hr_pool_open(NULL, &options, &pool, &error), HR_E_INVALID); /* 0 bytes */
    options.bytes = 100;
    options.minimum_bytes = 101;
    assert_int_equal(hr_pool_open(NULL, &options, &pool, &error), HR_E_RANGE);
    options.minimum_bytes = 0;
    options.kind = HR_MEMORY_MANAGED;
    assert_int_equal(hr_pool_open(NULL, &options, &pool, &error), HR_E_INVALID);
    options.kind = HR_MEMORY_PINNED;
    assert_int_equal(hr_pool_open(NULL, &options, &pool, &error), HR_E_INVALID); /* no device */
    assert_string_equal(error.text, "pool wrong: pinned and device memory need a device");
    options.kind = HR_MEMORY_PAGEABLE;
    options.size = 1;
    assert_int_equal(hr_pool_open(NULL, &options, &pool, &error), HR_E_INVALID);
    assert_null(pool);
}

/* Far more than any machine has: refused with what is needed and what is free, or less is taken and said. */
static void too_much_is_refused_or_reduced_with_a_reason(void **state)
{
    (void)state;
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_pool *pool = NULL;
    options.kind = HR_MEMORY_PAGEABLE;
    options.name = "huge";
    options.bytes = UINT64_C(1) << 50;
    assert_int_equal(hr_pool_open(NULL, &options, &pool, &error), HR_E_HOST_MEMORY);
    assert_non_null(strstr(error.text, "1125899906842624"));
    assert_non_null(strstr(error.text, "host memory"));
    assert_null(pool);
}

enum { THREADS = 4 };

/* Blocks that overlap, or are given to two at once, show in the pattern. */
static void *take_mark_check_give(void *argument)
{
    hr_pool *pool = argument;
    unsigned char mark = (unsigned char)(uintptr_t)&mark;
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t bytes = (i * 7919) % 3000 + 1;
        unsigned char *block;
        if (hr_pool_take(pool, bytes, i % 2 == 0 ? 0 : 64, "thread", (void **)&block) != HR_OK) {
            continue;
        }
        memset(block, mark ^ (unsigned char)i, bytes);
        for (uint64_t k = 0; k < bytes; k++) {
            if (block[k] != (mark ^ (unsigned char)i)) {
                return block;
            }
        }
        if (hr_pool_give(pool, block) != HR_OK) {
            return block;
        }
    }
    return NULL;
}

static void threads_never_share_a_block(void **state)
{
    (void)state;
    hr_pool *pool = open_pool(16 * KIB, 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_mark_check_give, pool), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    assert_int_equal(stats_of(pool).blocks, 0);
    close_pool(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_exact),
        cmocka_unit_test(addresses_are_aligned_and_apart),
        cmocka_unit_test(blocks_of_nothing_are_distinct),
        cmocka_unit_test(a_full_pool_says_again_and_a_small_one_never),
        cmocka_unit_test(more_blocks_than_agreed_say_again),
        cmocka_unit_test(what_is_not_out_cannot_be_given),
        cmocka_unit_test(a_refused_close_lists_each_block),
        cmocka_unit_test(a_long_list_ends_with_how_many_more),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(too_much_is_refused_or_reduced_with_a_reason),
        cmocka_unit_test(threads_never_share_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
