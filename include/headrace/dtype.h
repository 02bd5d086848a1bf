/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, shapes, and views of memory as arrays. */
#ifndef HEADRACE_DTYPE_H
#define HEADRACE_DTYPE_H

#include <headrace/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hr_dtype {
    HR_DTYPE_NONE = 0,
    HR_F16,
    HR_BF16,
    HR_F32,
    HR_F64,
    HR_I8,
    HR_I16,
    HR_I32,
    HR_I64,
    HR_U8,
    HR_U16,
    HR_U32,
    HR_U64,
    HR_DTYPE_COUNT
} hr_dtype;

#define HR_MAX_RANK 8

/* The name as the command line and the JSON write it ("f32"), or "none". Static storage; any thread. */
HR_API const char *hr_dtype_name(hr_dtype dtype);
/* Bytes of one element; 0 for HR_DTYPE_NONE or a value out of range. */
HR_API uint64_t hr_dtype_bytes(hr_dtype dtype);
/* HR_E_NOT_FOUND if no dtype has that name. */
HR_API HR_CHECKED hr_status hr_dtype_from_name(const char *name, hr_dtype *dtype);

/* A C-ordered array's shape. Rank 0 is a scalar (one element). */
typedef struct hr_shape {
    uint32_t rank;
    uint64_t extent[HR_MAX_RANK];
} hr_shape;

/* Elements of the shape; HR_E_RANGE if the product does not fit 64 bits. */
HR_API HR_CHECKED hr_status hr_shape_elements(const hr_shape *shape, uint64_t *elements);
/* Bytes of an array; HR_E_RANGE if the product does not fit in 63 bits. */
HR_API HR_CHECKED hr_status hr_shape_bytes(const hr_shape *shape, hr_dtype dtype, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
