/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that copy while they compute, one C entry each. Every entry enqueues on `stream`, with the stream's
 * device current, and returns at once; pointers are device memory and stay the caller's until the work is
 * done. It uses the mechanism that was asked for or refuses with the reason (HR_E_UNSUPPORTED): nothing falls
 * back in silence. With HR_MECHANISM_AUTO it takes the fastest measured one that fits, and says which through
 * `used`. Any thread. Zero elements launch nothing. Errors beside that: HR_E_INVALID (an argument),
 * HR_E_RANGE (a size), HR_E_DEVICE (the launch failed, with the runtime's code).
 */
#ifndef HEADRACE_CUDA_KERNEL_H
#define HEADRACE_CUDA_KERNEL_H

#include <cuda_runtime_api.h>
#include <headrace/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hr_mechanism {
    HR_MECHANISM_AUTO = 0,
    HR_MECHANISM_SYNC,    /* plain loads and stores */
    HR_MECHANISM_LDGSTS,  /* cuda::pipeline */
    HR_MECHANISM_GROUP,   /* cooperative_groups::memcpy_async */
    HR_MECHANISM_BARRIER, /* cuda::memcpy_async on a cuda::barrier */
    HR_MECHANISM_BULK,    /* cp.async.bulk */
    HR_MECHANISM_TMA,     /* cp.async.bulk.tensor */
    HR_MECHANISM_STAS,    /* st.async and remote atomics between the blocks of a cluster */
    HR_MECHANISM_CLUSTER, /* bulk copies between the blocks of a cluster */
    HR_MECHANISM_COUNT
} hr_mechanism;

/* "auto", "sync", …; static storage. */
const char *hr_mechanism_name(hr_mechanism mechanism);

/* Knobs for the bench; null or zeros mean what was measured to be best. */
typedef struct hr_kernel_tuning {
    uint32_t blocks_per_sm; /* at most so many at once */
    uint32_t rows;          /* stencil3d: the planes that a block walks */
    uint32_t variant;       /* matmul: the tile rows that are walked together */
    uint32_t plain;         /* matmul f32 by tma: 1 keeps to the multiply-add units */
} hr_kernel_tuning;

/* dst[i] = src[i], bytes. Mechanisms: sync (any alignment), ldgsts, group, barrier, bulk, tma (both ends
 * 16-byte aligned). The ranges must not overlap. */
typedef struct hr_kernel_copy_args {
    void *dst;
    const void *src;
    uint64_t bytes;
    const hr_kernel_tuning *tuning;
    hr_mechanism *used;
} hr_kernel_copy_args;
hr_status hr_kernel_copy(const hr_kernel_copy_args *args, hr_mechanism mechanism, cudaStream_t stream,
                         hr_error *error);

/* dst[i] = src[i] · by + plus, f32, fused; repeated `steps` times on the value (1 for a plain scale; more is
 * the sweep of arithmetic intensity). dst may be src. Mechanisms as copy. */
typedef struct hr_kernel_scale_args {
    float *dst;
    const float *src;
    uint64_t elements;
    float by, plus;
    uint32_t steps;
    const hr_kernel_tuning *tuning;
    hr_mechanism *used;
} hr_kernel_scale_args;
hr_status hr_kernel_scale(const hr_kernel_scale_args *args, hr_mechanism mechanism, cudaStream_t stream,
                          hr_error *error);

/*
 * 2-D correlation of one channel, f32 or u8, kernel 3×3, 5×5 or 7×7. f32 is accumulated in f32. For u8 the weights
 * (of a separable kernel, their products) are taken as multiples of a power of two, exactly where 22 bits do, else each
 * rounded to 2^-23 of the largest; their sum is exact but for two roundings to f32, and then goes to nearest even and
 * saturates. Before that it is within 2^-22 · the largest weight · the sum of the pixels of the true one; where weights
 * are exact and sums have 24 bits, it is exact. The source holds rows src_first … src_first + src_rows − 1 of an image
 * of image_rows × columns; output rows dst_first … dst_first + dst_rows − 1 are written, and the source must hold what
 * they reach, as far as the image has it. With `separable`, weights holds the column factor (edge values), then the row
 * factor. Mechanisms: sync (any alignment), ldgsts, group, barrier, bulk, tma (source base and pitch 16-byte multiples),
 * stas and cluster (halo exchange between blocks; f32, not separable).
 * HR_E_INVALID also for weights of u8 that are not finite.
 */
typedef struct hr_kernel_conv2d_args {
    hr_dtype dtype;
    const void *src;
    void *dst;
    uint64_t src_pitch_bytes, dst_pitch_bytes;
    uint64_t image_rows, columns;
    uint64_t src_first, src_rows;
    uint64_t dst_first, dst_rows;
    uint32_t edge; /* 3, 5, 7 */
    hr_border border;
    int separable;
    const float *weights; /* host memory: edge × edge values, row by row; read before the return */
    const hr_kernel_tuning *tuning;
    hr_mechanism *used;
} hr_kernel_conv2d_args;
hr_status hr_kernel_conv2d(const hr_kernel_conv2d_args *args, hr_mechanism mechanism, cudaStream_t stream,
                           hr_error *error);

/* dst (columns × rows) = transpose of src (rows × columns), elements of 4 bytes. Mechanisms: sync (any
 * alignment), ldgsts, group, barrier, bulk, tma (source base and pitch 16-byte multiples). */
typedef struct hr_kernel_transpose_args {
    const void *src;
    void *dst;
    uint64_t src_pitch_bytes, dst_pitch_bytes;
    uint64_t rows, columns; /* of the source */
    const hr_kernel_tuning *tuning;
    hr_mechanism *used;
} hr_kernel_transpose_args;
hr_status hr_kernel_transpose(const hr_kernel_transpose_args *args, hr_mechanism mechanism,
                              cudaStream_t stream, hr_error *error);

/*
 * 7-point stencil of a block of nx × ny × nz f32 (x innermost), zero outside:
 * dst = w[0]·centre + w[1]·x⁻ + w[2]·x⁺ + w[3]·y⁻ + w[4]·y⁺ + w[5]·z⁻ + w[6]·z⁺.
 * Mechanisms: sync (any alignment), ldgsts, group, barrier, bulk, tma (source base and pitches 16-byte
 * multiples).
 */
typedef struct hr_kernel_stencil3d_args {
    const float *src;
    float *dst;
    uint64_t nx, ny, nz;
    uint64_t src_row_pitch_bytes, src_slice_pitch_bytes;
    uint64_t dst_row_pitch_bytes, dst_slice_pitch_bytes;
    float weights[7];
    const hr_kernel_tuning *tuning;
    hr_mechanism *used;
} hr_kernel_stencil3d_args;
hr_status hr_kernel_stencil3d(const hr_kernel_stencil3d_args *args, hr_mechanism mechanism,
                              cudaStream_t stream, hr_error *error);

/*
 * C (m × n) = A (m × k) · B (k × n), row by row, or C += with `accumulate`; sums in f32. dtype HR_F32: a, b,
 * c are f32, and with `tf32` the operands are rounded to TF32 first (10 bits of mantissa). dtype HR_BF16: a,
 * b are bf16, c is c_dtype (HR_BF16 or HR_F32). Mechanisms: f32 takes sync (any alignment), ldgsts, bulk, tma; tf32
 * takes sync, ldgsts, bulk, by the warp's own tensor instruction, and tma on compute capability 9.0 (wgmma), as does
 * bf16, which takes no other.
 * All but sync need bases and pitches of A and B in multiples of 16 bytes. k = 0 writes zeros (or leaves C, with
 * `accumulate`).
 * f32 by tma runs on the matrix units of compute capability 9.0 from k = 32 on, each operand as three bf16 numbers:
 * as exact as plain sums for all finite operands (docs/decisions/0075 has the figures), and infinities and NaNs come
 * out as there. Results from 2^96 on, and those of operands from 2^112 on, are made by a slow loop.
 */
typedef struct hr_kernel_matmul_args {
    hr_dtype dtype, c_dtype;
    int tf32;
    int accumulate;
    const void *a, *b;
    void *c;
    uint64_t m, n, k;
    uint64_t a_pitch_bytes, b_pitch_bytes, c_pitch_bytes;
    const hr_kernel_tuning *tuning;
    hr_mechanism *used;
} hr_kernel_matmul_args;
hr_status hr_kernel_matmul(const hr_kernel_matmul_args *args, hr_mechanism mechanism, cudaStream_t stream,
                           hr_error *error);
/* Rows and columns of C that a multiprocessor of the current device makes at a time in a product of k ≥ 32 by HR_MECHANISM_AUTO.
 * False: there is no product of this dtype here, and nothing is set. */
bool hr_kernel_matmul_block(hr_dtype dtype, uint32_t *rows, uint32_t *columns);

/*
 * bins[v] = how often value v occurs in src, v of 8 bits (256 bins) or 16 bits (65536 bins). Mechanisms: sync (atomics
 * in a block's shared memory, or in global memory for 16 bits), stas (the bins spread over the blocks of a cluster,
 * which add to each other's shared memory).
 */
typedef struct hr_kernel_histogram_args {
    hr_dtype dtype; /* HR_U8, HR_U16 */
    const void *src;
    uint64_t elements;
    uint64_t *bins; /* overwritten */
    const hr_kernel_tuning *tuning;
    hr_mechanism *used;
} hr_kernel_histogram_args;
hr_status hr_kernel_histogram(const hr_kernel_histogram_args *args, hr_mechanism mechanism,
                              cudaStream_t stream, hr_error *error);

/*
 * *result = the sum of src: an f64 for f32 (summed in f64, in an order that depends on the number of elements alone),
 * a u64 for u32 (modulo 2^64, exact below). `workspace` holds HR_KERNEL_REDUCE_BYTES. Mechanisms: sync (a block's
 * partial sums through global memory), stas (a cluster's through its first block: st.async, and red.async for u32).
 */
#define HR_KERNEL_REDUCE_BYTES 8192
typedef struct hr_kernel_reduce_args {
    hr_dtype dtype; /* HR_F32, HR_U32 */
    const void *src;
    uint64_t elements;
    void *result;
    void *workspace;
    const hr_kernel_tuning *tuning;
    hr_mechanism *used;
} hr_kernel_reduce_args;
hr_status hr_kernel_reduce(const hr_kernel_reduce_args *args, hr_mechanism mechanism, cudaStream_t stream,
                           hr_error *error);

/*
 * A probe: one warp brings `steps` pieces of 512 bytes, one after the other, each waited for, from all over `bytes` of
 * src (16-byte aligned; beyond the L2 cache's size it is the memory that answers). Its time over `steps` is the latency
 * of the mechanism. By stas and cluster: 512 bytes go from one block of a cluster to another and back, half a step each.
 * `sink` takes one float.
 */
typedef struct hr_kernel_latency_args {
    const void *src;
    uint64_t bytes;
    uint32_t steps;
    float *sink;
} hr_kernel_latency_args;
hr_status hr_kernel_latency(const hr_kernel_latency_args *args, hr_mechanism mechanism, cudaStream_t stream,
                            hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
