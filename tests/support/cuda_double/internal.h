/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the double share. One lock guards all its state; work of streams runs without it. */
#ifndef HR_TESTS_CUDA_DOUBLE_INTERNAL_H
#define HR_TESTS_CUDA_DOUBLE_INTERNAL_H

#include "double.h"

#include <cuda.h>
#include <pthread.h>

#define DOUBLE_MAX_DEVICES 4

typedef enum block_kind {
    BLOCK_DEVICE,
    BLOCK_HOSTALLOC,
    BLOCK_REGISTERED,
    BLOCK_ARRAY,
    BLOCK_SYMBOL
} block_kind;

typedef struct block {
    struct block *next;
    char *base;
    size_t bytes;
    block_kind kind;
    int device;
    const void *shadow; /* of a symbol */
} block;

struct cudaArray {
    block memory; /* dense */
    size_t element;
    struct cudaExtent extent;
};

typedef struct work {
    struct work *next;
    void (*fn)(void *argument);
    void *argument; /* freed after the run */
    cudaEvent_t event;
    uint64_t generation;
    enum { WORK_RUN, WORK_RECORD, WORK_WAIT } kind;
} work;

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    pthread_t thread;
    pthread_cond_t wake;
    work *head, *tail;
    bool busy, closing;
    /* Being captured: work goes here instead. */
    struct CUgraph_st *graph;
};

struct CUevent_st {
    int device;
    bool timed, destroyed;
    unsigned references;
    uint64_t asked, done;
    uint64_t done_ns;
    struct CUgraph_st *graph; /* recorded in a capture */
};

struct CUgraph_st {
    work *head, *tail;
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
};

struct CUctx_st {
    int device;
};

typedef struct double_state {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    block *blocks;
    struct CUstream_st *streams;
    unsigned events, arrays;
    int devices;
    int dead[DOUBLE_MAX_DEVICES];
    hr_double_peer peer;
    bool peer_enabled[DOUBLE_MAX_DEVICES][DOUBLE_MAX_DEVICES];
    uint64_t pinned_limit, device_limit;
    unsigned delay_us;
    bool held;
    uint64_t product_rows, product_columns;
    bool reads_pageable, host_pointers;
    int capability; /* ten times the compute capability */
    unsigned fail_work_in;
    int fail_work_code;
    uint64_t default_stream_calls, pageable_calls, blocking_streams, device_waits;
} double_state;

extern double_state the_double;

/* Counts the call, and gives what it shall answer instead of working: a plan's code, or a dead device's. */
cudaError_t double_enter(const char *name);
/* Sets the thread's last error. */
cudaError_t double_answer(cudaError_t code);
#define ENTER()                                       \
    do {                                              \
        cudaError_t entered = double_enter(__func__); \
        if (entered != cudaSuccess) {                 \
            return entered;                           \
        }                                             \
    } while (0)

int double_current_device(void);
HR_DOUBLE_API void double_note_product(uint64_t rows, uint64_t columns);
/* The block that holds all of the range, or null. Locked. */
block *double_find(const void *base, size_t bytes);
void double_add_block(block_kind kind, void *base, size_t bytes, int device);
/* Any stream of the device with work? Locked. */
bool double_device_busy(int device);
void double_wait_device(int device);
void double_kill_device(int device, int code);
cudaError_t double_submit(cudaStream_t stream, void (*fn)(void *argument), const void *argument,
                          size_t bytes);
bool double_stream_idle(const struct CUstream_st *stream);

#endif
