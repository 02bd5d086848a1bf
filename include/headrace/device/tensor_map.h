/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes tensor maps for the tensor copy unit (sm_90 and later), on the host, in C. Every rule that the
 * hardware has is checked first, so that the answer names the one that is broken; the driver itself says only
 * "invalid value". Nothing links libcuda: the encoder is found through the runtime.
 */
#ifndef HEADRACE_DEVICE_TENSOR_MAP_H
#define HEADRACE_DEVICE_TENSOR_MAP_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A tensor in global memory and the box that one copy moves. Entry 0 is the innermost dimension. */
typedef struct hr_tensor {
    CUtensorMapDataType type;
    uint32_t rank; /* 1 to 5 */
    const void *base;
    uint64_t extent[5];       /* elements */
    uint64_t stride_bytes[5]; /* of dimensions 1 and up; entry 0 is not read */
    uint32_t box[5];          /* elements, at most 256 each */
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
} hr_tensor;

#define HR_TENSOR_REASON_BYTES 160

static inline uint32_t hr_tensor_element_bytes(CUtensorMapDataType type)
{
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
        return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
        return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
        return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
        return 8;
    default:
        return 0;
    }
}

static inline int hr_tensor_refuse(char *reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (reason) {
        vsnprintf(reason, HR_TENSOR_REASON_BYTES, format, arguments);
    }
    va_end(arguments);
    return 0;
}

static inline uint32_t hr_tensor_swizzle_bytes(CUtensorMapSwizzle swizzle)
{
    switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
        return 0;
    case CU_TENSOR_MAP_SWIZZLE_32B:
        return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
        return 64;
    default:
        return 128;
    }
}

/* The rules that do not need a device. 1, or 0 with the broken rule in `reason` (HR_TENSOR_REASON_BYTES, may
 * be null). Any thread. */
static inline int hr_tensor_check(const hr_tensor *t, char *reason)
{
    const uint32_t bytes = hr_tensor_element_bytes(t->type);
    const uint32_t span = hr_tensor_swizzle_bytes(t->swizzle);
    if (bytes == 0) {
        return hr_tensor_refuse(reason, "tensor map: element type %d is not one that is handled",
                                (int)t->type);
    }
    if (t->rank < 1 || t->rank > 5) {
        return hr_tensor_refuse(reason, "tensor map: rank is %u, needs 1 to 5", t->rank);
    }
    if ((uintptr_t)t->base % 16 != 0) {
        return hr_tensor_refuse(reason, "tensor map: base address ends in %u, needs a multiple of 16 bytes",
                                (unsigned)((uintptr_t)t->base % 16));
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        if (t->extent[d] < 1 || t->extent[d] > UINT64_C(1) << 32) {
            return hr_tensor_refuse(reason, "tensor map: extent %u is %llu, needs 1 to 4294967296", d,
                                    (unsigned long long)t->extent[d]);
        }
        if (t->box[d] < 1 || t->box[d] > 256) {
            return hr_tensor_refuse(reason, "tensor map: box edge %u is %u elements, needs 1 to 256", d,
                                    t->box[d]);
        }
        if (d > 0 && (t->stride_bytes[d] % 16 != 0 || t->stride_bytes[d] >= UINT64_C(1) << 40)) {
            return hr_tensor_refuse(reason,
                                    "tensor map: stride %u is %llu bytes, needs a multiple of 16 below 2^40",
                                    d, (unsigned long long)t->stride_bytes[d]);
        }
    }
    if (t->box[0] * bytes % 16 != 0) {
        return hr_tensor_refuse(reason,
                                "tensor map: the box's inner edge is %u bytes, needs a multiple of 16",
                                t->box[0] * bytes);
    }
    if (span != 0 && t->box[0] * bytes > span) {
        return hr_tensor_refuse(reason,
                                "tensor map: the box's inner edge is %u bytes, a swizzle of %u bounds it",
                                t->box[0] * bytes, span);
    }
    return 1;
}

/*
 * Encodes *map (64-byte aligned, to be passed to the kernel as `const __grid_constant__ CUtensorMap`). 1, or
 * 0 with the reason; *map is set only on success. Boxes that reach outside read zeros. Any thread; needs a
 * device of compute capability 9.0 or later when the kernel runs.
 */
static inline int hr_tensor_map_make(const hr_tensor *t, CUtensorMap *map, char *reason)
{
    typedef CUresult (*encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                  const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                                  CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                  CUtensorMapFloatOOBfill);
    void *address = NULL;
    encode_fn encode;
    cudaError_t found;
    CUresult result;
    cuuint64_t extent[5], strides[5];
    cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    CUtensorMap made;
    enum cudaDriverEntryPointQueryResult query = cudaDriverEntryPointSymbolNotFound;

    if (!hr_tensor_check(t, reason)) {
        return 0;
    }
    found = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address, 12000, cudaEnableDefault,
                                             &query);
    if (found != cudaSuccess || query != cudaDriverEntryPointSuccess || address == NULL) {
        return hr_tensor_refuse(reason, "tensor map: this driver has no cuTensorMapEncodeTiled (%s)",
                                cudaGetErrorString(found));
    }
    memcpy(&encode, &address, sizeof encode);
    for (uint32_t d = 0; d < t->rank; d++) {
        extent[d] = t->extent[d];
        if (d > 0) {
            strides[d - 1] = t->stride_bytes[d];
        }
    }
    result =
        encode(&made, t->type, t->rank, (void *)(uintptr_t)t->base, extent, strides, t->box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, t->swizzle, t->promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) {
        return hr_tensor_refuse(reason, "tensor map: the driver refused it with code %d", (int)result);
    }
    *map = made;
    return 1;
}

#endif
