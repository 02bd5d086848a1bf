/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: pools that are taken once and handed out in blocks, arrays with an opaque layout, named symbols. */
#ifndef HEADRACE_MEMORY_H
#define HEADRACE_MEMORY_H

#include <headrace/device.h>
#include <headrace/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hr_memory_kind {
    HR_MEMORY_UNKNOWN = 0,
    HR_MEMORY_PAGEABLE, /* ordinary host memory */
    HR_MEMORY_PINNED,   /* host memory that the device can reach by DMA */
    HR_MEMORY_DEVICE,
    HR_MEMORY_MANAGED,
    HR_MEMORY_MIXED /* a range of which only a part is pinned */
} hr_memory_kind;

typedef struct hr_pool hr_pool;

typedef struct hr_pool_options {
    size_t size;         /* sizeof(hr_pool_options) */
    const char *name;    /* for messages; copied */
    hr_memory_kind kind; /* HR_MEMORY_PAGEABLE, HR_MEMORY_PINNED or HR_MEMORY_DEVICE */
    uint64_t bytes;      /* taken in full when the pool is made; never grows */
    uint64_t
        minimum_bytes; /* where `bytes` cannot be had, go down to this and say so; 0: no less than `bytes` */
    uint32_t touch_threads; /* threads of the first touch; 0: all cores */
    bool no_huge_pages;
    bool no_touch;       /* host pages come when they are first used, and nothing is reserved (sparse use) */
    uint32_t max_blocks; /* out at once, more give HR_AGAIN; 0: 4096. Their books are made with the pool */
} hr_pool_options;
#define HR_POOL_OPTIONS_INIT                                                   \
    {                                                                          \
        sizeof(hr_pool_options), 0, HR_MEMORY_PINNED, 0, 0, 0, false, false, 0 \
    }

typedef struct hr_pool_stats {
    size_t size;
    uint64_t bytes;      /* what the pool holds */
    uint64_t used_bytes; /* sum of the blocks' exact sizes */
    uint64_t peak_bytes;
    uint64_t blocks; /* now out */
    uint64_t taken;  /* ever */
    uint64_t setup_ns;
    uint64_t huge_bytes;  /* of it on huge pages, as far as the system tells */
    const char *fallback; /* null, or why less or other memory than asked for was taken; owned by the pool */
} hr_pool_stats;
#define HR_POOL_STATS_INIT                            \
    {                                                 \
        sizeof(hr_pool_stats), 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/*
 * Takes the memory, touches it by several threads and, for pinned memory, registers it with the device.
 * `device` may be null for pageable memory. Blocks (0.05 to 1 s a GiB). The caller owns *pool.
 * HR_E_HOST_MEMORY, HR_E_PINNED_MEMORY, HR_E_DEVICE_MEMORY, HR_E_INVALID (kind, zero bytes), HR_E_RANGE.
 */
HR_API HR_CHECKED hr_status hr_pool_open(hr_device *device, const hr_pool_options *options, hr_pool **pool,
                                         hr_error *error);
/*
 * Releases the memory and clears *pool. While blocks are out nothing is released: HR_E_BUSY, and the text
 * lists each block by name and size. Null is accepted. Waits for the device where its driver does.
 */
HR_API HR_CHECKED hr_status hr_pool_close(hr_pool **pool, hr_error *error);
/*
 * Takes a block of exactly `bytes`, at an address that is a multiple of `align` (a power of two, at most 2
 * MiB; 0 means 256). Zero bytes give a valid, distinct address. Never blocks, never asks the system for
 * memory. Any thread. `name` is for messages; 39 bytes of it are copied. HR_AGAIN: full now; HR_E_RANGE:
 * larger than the pool can ever give.
 */
HR_API HR_CHECKED hr_status hr_pool_take(hr_pool *pool, uint64_t bytes, uint64_t align, const char *name,
                                         void **block);
/* Gives a block back. HR_E_INVALID if it is not a block of this pool, or was given back already. Any thread.
 */
HR_API HR_CHECKED hr_status hr_pool_give(hr_pool *pool, void *block);
HR_API HR_CHECKED hr_status hr_pool_get_stats(hr_pool *pool, hr_pool_stats *stats);
/* Calls `each` for every block that is out. Any thread; `each` must not use the pool. */
HR_API void hr_pool_each(hr_pool *pool,
                         void (*each)(void *user, const char *name, const void *block, uint64_t bytes),
                         void *user);

/* What kind of memory the range is, as the device sees it; does not block long. Any thread. */
HR_API HR_CHECKED hr_status hr_memory_kind_of(hr_device *device, const void *base, uint64_t bytes,
                                              hr_memory_kind *kind);

/* An array whose layout only the device knows (a CUDA array; on the CPU, tiled). 1-D: height and depth 0;
 * 2-D: depth 0. */
typedef struct hr_array hr_array;
typedef struct hr_array_options {
    size_t size; /* sizeof(hr_array_options) */
    hr_dtype dtype;
    uint32_t channels; /* 1, 2 or 4 */
    uint64_t width;    /* elements */
    uint64_t height;
    uint64_t depth; /* or the number of layers */
    bool layered;
} hr_array_options;
#define HR_ARRAY_OPTIONS_INIT                               \
    {                                                       \
        sizeof(hr_array_options), HR_F32, 1, 0, 0, 0, false \
    }

/* The caller owns *array. HR_E_DEVICE_MEMORY, HR_E_INVALID, HR_E_UNSUPPORTED (dtype or channels). */
HR_API HR_CHECKED hr_status hr_array_open(hr_device *device, const hr_array_options *options,
                                          hr_array **array, hr_error *error);
/* May wait for the device. Copies that use the array must be done. Clears *array. Null is accepted. */
HR_API HR_CHECKED hr_status hr_array_close(hr_array **array, hr_error *error);

/*
 * A named device variable; names are unique on a device. The CPU devices make one of their own, zeroed, whatever
 * `address` is. On CUDA it names a __device__ variable: `address` is what C sees of it (the shadow, as for
 * cudaMemcpyToSymbol), or, where the program has its own copy of the CUDA runtime, what cudaGetSymbolAddress()
 * gives. Null makes a variable on every device.
 */
typedef struct hr_symbol hr_symbol;
/* The caller may close *symbol; what is left goes with the device. HR_E_INVALID (no name, 0 bytes, the name is taken),
 * HR_E_DEVICE_MEMORY, HR_E_HOST_MEMORY, HR_E_UNSUPPORTED, HR_E_FORKED. Any thread. */
HR_API HR_CHECKED hr_status hr_symbol_define(hr_device *device, const char *name, const void *address,
                                             uint64_t bytes, hr_symbol **symbol, hr_error *error);
/* The same handle that hr_symbol_define() gave. HR_E_NOT_FOUND. Any thread. */
HR_API HR_CHECKED hr_status hr_symbol_find(hr_device *device, const char *name, hr_symbol **symbol,
                                           hr_error *error);
/* Bytes of the variable. */
HR_API uint64_t hr_symbol_bytes(const hr_symbol *symbol);
/* Clears *symbol; the variable of a CUDA module lives on. */
HR_API HR_CHECKED hr_status hr_symbol_close(hr_symbol **symbol, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
