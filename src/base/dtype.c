/* SPDX-License-Identifier: Apache-2.0 */
#include <headrace/dtype.h>

#include "base/checked.h"

#include <string.h>

static const struct {
    const char *name;
    uint64_t bytes;
} dtypes[HR_DTYPE_COUNT] = {
    [HR_DTYPE_NONE] = {"none", 0}, [HR_F16] = {"f16", 2}, [HR_BF16] = {"bf16", 2}, [HR_F32] = {"f32", 4},
    [HR_F64] = {"f64", 8},         [HR_I8] = {"i8", 1},   [HR_I16] = {"i16", 2},   [HR_I32] = {"i32", 4},
    [HR_I64] = {"i64", 8},         [HR_U8] = {"u8", 1},   [HR_U16] = {"u16", 2},   [HR_U32] = {"u32", 4},
    [HR_U64] = {"u64", 8},
};

const char *hr_dtype_name(hr_dtype dtype)
{
    return (unsigned)dtype < HR_DTYPE_COUNT ? dtypes[dtype].name : "none";
}

uint64_t hr_dtype_bytes(hr_dtype dtype)
{
    return (unsigned)dtype < HR_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

hr_status hr_dtype_from_name(const char *name, hr_dtype *dtype)
{
    for (int i = HR_DTYPE_NONE + 1; i < HR_DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (hr_dtype)i;
            return HR_OK;
        }
    }
    return HR_E_NOT_FOUND;
}

hr_status hr_shape_elements(const hr_shape *shape, uint64_t *elements)
{
    if (shape->rank > HR_MAX_RANK) {
        return HR_E_RANGE;
    }
    /* An extent of zero makes the array empty, even beside extents whose product overflows. */
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->extent[i] == 0) {
            *elements = 0;
            return HR_OK;
        }
    }
    uint64_t product = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (hr_mul_overflows(product, shape->extent[i], &product)) {
            return HR_E_RANGE;
        }
    }
    *elements = product;
    return HR_OK;
}

hr_status hr_shape_bytes(const hr_shape *shape, hr_dtype dtype, uint64_t *bytes)
{
    uint64_t elements;
    hr_status status = hr_shape_elements(shape, &elements);
    if (status != HR_OK) {
        return status;
    }
    uint64_t product;
    if (hr_mul_overflows(elements, hr_dtype_bytes(dtype), &product) || product > INT64_MAX) {
        return HR_E_RANGE;
    }
    *bytes = product;
    return HR_OK;
}
