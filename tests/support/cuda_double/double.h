/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test double of the CUDA runtime: host memory for devices, a thread for each stream, and whatever
 * misfortune a test asks for. What tests may ask of it stands here; the CUDA functions themselves are
 * declared in include/.
 *
 * Environment, read when first used: HR_CUDA_DOUBLE_DEVICES (2), HR_CUDA_DOUBLE_DELAY_US (0), HR_CUDA_DOUBLE_PEER
 * (works, none, drops: what copies between devices do),
 * HR_CUDA_DOUBLE_FAIL="NAME:N:CODE[,…]" fails the n-th call of NAME, counted from 1, with CODE.
 */
#ifndef HR_TESTS_CUDA_DOUBLE_H
#define HR_TESTS_CUDA_DOUBLE_H

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdint.h>

#define HR_DOUBLE_API __attribute__((visibility("default")))

/* Forgets all plans, counts, limits and the death of devices. Everything must have been closed; returns how
 * many things (allocations, streams, events, arrays) are still there. */
HR_DOUBLE_API unsigned hr_double_reset(void);

/* From now on, the n-th call (1: the next) of the function answers `code`; one that stays makes the device
 * dead. */
HR_DOUBLE_API void hr_double_fail(const char *name, unsigned n, int code);
/* The same for work: the n-th operation that a stream runs from now on makes its device dead with `code`. */
HR_DOUBLE_API void hr_double_fail_work(unsigned n, int code);

/* Calls of the function since the last mark, or of all functions (null). */
HR_DOUBLE_API uint64_t hr_double_calls(const char *name);
HR_DOUBLE_API void hr_double_mark(void);
/* Calls that used the default stream, handed pageable memory to an asynchronous copy, made a blocking stream,
 * or waited for a whole device, since the last mark. */
HR_DOUBLE_API uint64_t hr_double_default_stream_calls(void);
HR_DOUBLE_API uint64_t hr_double_pageable_calls(void);
HR_DOUBLE_API uint64_t hr_double_blocking_streams(void);
HR_DOUBLE_API uint64_t hr_double_device_waits(void);

typedef enum hr_double_peer {
    HR_DOUBLE_PEER_WORKS,
    HR_DOUBLE_PEER_NONE,
    HR_DOUBLE_PEER_DROPS
} hr_double_peer;
HR_DOUBLE_API void hr_double_set_peer(hr_double_peer peer);
/* 0: no limit. Pinned bytes of the process, device bytes of a device. */
HR_DOUBLE_API void hr_double_set_pinned_limit(uint64_t bytes);
HR_DOUBLE_API void hr_double_set_device_limit(uint64_t bytes);
/* Each operation that a stream runs takes so much longer. */
HR_DOUBLE_API void hr_double_set_delay_us(unsigned us);
/* While held, streams run no operation, whatever time passes: what is queued stays queued. */
HR_DOUBLE_API void hr_double_hold(void);
HR_DOUBLE_API void hr_double_let_go(void);
/* 0 or 1, of every device opened from now on. */
HR_DOUBLE_API void hr_double_set_reads_pageable(bool reads);
HR_DOUBLE_API void hr_double_set_host_pointers(bool same);

/* Of every device opened from now on: 90 (the start) is compute capability 9.0. */
HR_DOUBLE_API void hr_double_set_capability(int capability);

/* Runs fn(copy of argument) in the stream's order: what a kernel is. */
HR_DOUBLE_API cudaError_t hr_double_launch(cudaStream_t stream, void (*fn)(void *argument),
                                           const void *argument, size_t bytes);
/* The module's own matmul on the double, f32 only, says that a multiprocessor makes this much of C at a time. */
#define HR_DOUBLE_PRODUCT_ROWS    48
#define HR_DOUBLE_PRODUCT_COLUMNS 80
/* Rows and columns of C of its largest launch since the last reset. */
HR_DOUBLE_API void hr_double_largest_product(uint64_t *rows, uint64_t *columns);
/* Makes the address known as the shadow of a device variable. */
HR_DOUBLE_API void hr_double_add_symbol(const void *shadow, size_t bytes);

#endif
