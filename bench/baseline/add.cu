// SPDX-License-Identifier: Apache-2.0
#include "baseline.h"

#include <string.h>
#include <time.h>

__global__ static void add(const float *a, const float *b, float *c, size_t count)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        c[i] = a[i] + b[i];
    }
}

static cudaError_t launch_add(cudaStream_t stream, const float *a, const float *b, float *c, size_t count)
{
    add<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>(a, b, c, count);
    return cudaGetLastError();
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

cudaError_t baseline_streams_open(baseline_streams *program, size_t chunk)
{
    memset(program, 0, sizeof *program);
    program->chunk = chunk;
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < 4 && code == cudaSuccess; i++) {
        code = cudaStreamCreate(&program->stream[i]);
        code = code == cudaSuccess ? cudaMalloc((void **)&program->a[i], chunk * sizeof(float)) : code;
        code = code == cudaSuccess ? cudaMalloc((void **)&program->b[i], chunk * sizeof(float)) : code;
        code = code == cudaSuccess ? cudaMalloc((void **)&program->c[i], chunk * sizeof(float)) : code;
    }
    return code;
}

void baseline_streams_close(baseline_streams *program)
{
    for (int i = 0; i < 4; i++) {
        (void)cudaFree(program->a[i]);
        (void)cudaFree(program->b[i]);
        (void)cudaFree(program->c[i]);
        if (program->stream[i] != NULL) {
            (void)cudaStreamDestroy(program->stream[i]);
        }
    }
}

cudaError_t baseline_streams_add(baseline_streams *program, const float *a, const float *b, float *c,
                                 size_t count, double *ms)
{
    double begin = now_ms();
    cudaError_t code = cudaSuccess;
    int turn = 0;
    for (size_t at = 0; at < count && code == cudaSuccess; at += program->chunk, turn = (turn + 1) % 4) {
        size_t elements = count - at < program->chunk ? count - at : program->chunk;
        size_t bytes = elements * sizeof(float);
        cudaStream_t stream = program->stream[turn];
        code = cudaMemcpyAsync(program->a[turn], a + at, bytes, cudaMemcpyHostToDevice, stream);
        code = code == cudaSuccess
                   ? cudaMemcpyAsync(program->b[turn], b + at, bytes, cudaMemcpyHostToDevice, stream)
                   : code;
        code = code == cudaSuccess
                   ? launch_add(stream, program->a[turn], program->b[turn], program->c[turn], elements)
                   : code;
        code = code == cudaSuccess
                   ? cudaMemcpyAsync(c + at, program->c[turn], bytes, cudaMemcpyDeviceToHost, stream)
                   : code;
    }
    for (int i = 0; i < 4 && code == cudaSuccess; i++) {
        code = cudaStreamSynchronize(program->stream[i]);
    }
    *ms = now_ms() - begin;
    return code;
}

cudaError_t baseline_pageable_add(const float *a, const float *b, float *c, size_t count, float *device_a,
                                  float *device_b, float *device_c, double *ms)
{
    size_t bytes = count * sizeof(float);
    double begin = now_ms();
    cudaError_t code = cudaMemcpy(device_a, a, bytes, cudaMemcpyHostToDevice);
    code = code == cudaSuccess ? cudaMemcpy(device_b, b, bytes, cudaMemcpyHostToDevice) : code;
    code = code == cudaSuccess ? launch_add(NULL, device_a, device_b, device_c, count) : code;
    code = code == cudaSuccess ? cudaMemcpy(c, device_c, bytes, cudaMemcpyDeviceToHost) : code;
    *ms = now_ms() - begin;
    return code;
}
