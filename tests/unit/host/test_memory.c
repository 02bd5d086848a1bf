/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "host/memory.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static bool all_resident(void *base, uint64_t bytes)
{
    static unsigned char pages[1 << 16];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), count = (bytes + page - 1) / page;
    assert_true(count <= sizeof pages);
    assert_int_equal(mincore(base, bytes, pages), 0);
    for (uint64_t i = 0; i < count; i++) {
        if ((pages[i] & 1) == 0) {
            return false;
        }
    }
    return true;
}

static void every_page_is_there_when_it_returns(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 4095, 4097, 2 * MIB - 1, 2 * MIB, 40 * MIB + 12345};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t threads = 0; threads <= 3; threads += 3) {
            hr_host_request request = {
                .what = "test", .bytes = sizes[i], .touch_threads = threads, .numa_node = -1};
            hr_host_memory memory;
            assert_int_equal(hr_host_memory_take(&request, &memory, NULL), HR_OK);
            assert_int_equal(memory.bytes, sizes[i]);
            assert_string_equal(memory.fallback, "");
            assert_int_equal((uintptr_t)memory.base % (sizes[i] >= 2 * MIB ? 2 * MIB : 4096), 0);
            assert_true(all_resident(memory.base, sizes[i]));
            assert_true(memory.huge_bytes <= sizes[i]);
            memset(memory.base, 1, sizes[i]);
            hr_host_memory_release(&memory);
            hr_host_memory_release(&memory); /* harmless */
        }
    }
}

static void untouched_memory_has_no_pages(void **state)
{
    (void)state;
    hr_host_request request = {
        .what = "sparse", .bytes = UINT64_C(1) << 34, .no_touch = true, .numa_node = -1};
    hr_host_memory memory;
    assert_int_equal(hr_host_memory_take(&request, &memory, NULL), HR_OK);
    assert_false(all_resident(memory.base, 16 * MIB));
    ((char *)memory.base)[memory.bytes - 1] = 1;
    hr_host_memory_release(&memory);
}

static void small_pages_on_request(void **state)
{
    (void)state;
    hr_host_request request = {.what = "small", .bytes = 16 * MIB, .no_huge_pages = true, .numa_node = -1};
    hr_host_memory memory;
    assert_int_equal(hr_host_memory_take(&request, &memory, NULL), HR_OK);
    assert_int_equal(memory.huge_bytes, 0);
    hr_host_memory_release(&memory);
}

static void the_machine_has_cores_and_memory(void **state)
{
    (void)state;
    uint64_t total = 0, available = 0;
    hr_host_memory_room(&total, &available);
    assert_true(available > 0 && available <= total);
    assert_in_range(hr_host_cores(), 1, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    hr_topology *topology = hr_topology_open();
    assert_true(hr_topology_node(topology) >= -1);
    hr_topology_close(topology);
    hr_topology_close(NULL);
    assert_int_equal(hr_topology_node(NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_page_is_there_when_it_returns),
        cmocka_unit_test(untouched_memory_has_no_pages),
        cmocka_unit_test(small_pages_on_request),
        cmocka_unit_test(the_machine_has_cores_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
