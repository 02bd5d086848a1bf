/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of tensor maps, one broken at a time: the answer names it. No device is needed. */
#include <headrace/device/tensor_map.h>

#include "support/unit.h"

static hr_tensor good(void)
{
    hr_tensor t = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                   .rank = 3,
                   .base = (const void *)(uintptr_t)0x10000,
                   .extent = {100, 50, 20},
                   .stride_bytes = {0, 400, 400 * 50},
                   .box = {32, 8, 1}};
    return t;
}

static void refused(const hr_tensor *t, const char *with)
{
    char reason[HR_TENSOR_REASON_BYTES] = "";
    assert_false(hr_tensor_check(t, reason));
    if (strstr(reason, with) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", reason, with);
    }
    assert_false(hr_tensor_check(t, NULL)); /* the reason may be left out */
}

static void accepts_what_the_hardware_takes(void **state)
{
    (void)state;
    hr_tensor t = good();
    assert_true(hr_tensor_check(&t, NULL));
    t.swizzle = CU_TENSOR_MAP_SWIZZLE_128B; /* 32 floats are its whole span */
    assert_true(hr_tensor_check(&t, NULL));
    t.type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
    t.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    t.box[0] = 256;
    assert_true(hr_tensor_check(&t, NULL));
    t.rank = 1;
    t.stride_bytes[1] = 7; /* of a dimension that is not there */
    assert_true(hr_tensor_check(&t, NULL));
}

static void names_the_broken_rule(void **state)
{
    (void)state;
    hr_tensor t = good();
    t.rank = 0;
    refused(&t, "rank is 0");
    t.rank = 6;
    refused(&t, "rank is 6");
    t = good();
    t.base = (const void *)(uintptr_t)0x10004;
    refused(&t, "base address ends in 4");
    t = good();
    t.stride_bytes[1] = 404;
    refused(&t, "stride 1 is 404 bytes");
    t = good();
    t.stride_bytes[2] = UINT64_C(1) << 40;
    refused(&t, "below 2^40");
    t = good();
    t.extent[2] = 0;
    refused(&t, "extent 2 is 0");
    t = good();
    t.extent[0] = (UINT64_C(1) << 32) + 1;
    refused(&t, "extent 0 is 4294967297");
    t = good();
    t.box[1] = 257;
    refused(&t, "box edge 1 is 257");
    t = good();
    t.box[0] = 30;
    refused(&t, "inner edge is 120 bytes");
    t = good();
    t.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    refused(&t, "a swizzle of 64 bounds it");
    t = good();
    t.type = (CUtensorMapDataType)99;
    refused(&t, "element type 99");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(accepts_what_the_hardware_takes),
                                       cmocka_unit_test(names_the_broken_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
