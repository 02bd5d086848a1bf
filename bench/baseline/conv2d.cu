// SPDX-License-Identifier: Apache-2.0
#include "baseline.h"

#include <string.h>
#include <time.h>

namespace
{

constexpr int edge = 5;
constexpr int reach = edge / 2;

__constant__ float weights[edge * edge];

// The edge itself is not repeated: … 2 1 | 0 1 2 …
__device__ int reflected(int at, int count)
{
    at = at < 0 ? -at : at;
    return at >= count ? 2 * count - 2 - at : at;
}

// Rows first … first + rows − 1 of the result, from rows that begin with in_first. A pixel a thread.
__global__ void filter(const float *in, int in_first, float *out, int first, int rows, int columns,
                       int height)
{
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    if (x >= columns || y >= rows) {
        return;
    }
    float sum = 0.0f;
    for (int dy = -reach; dy <= reach; dy++) {
        const float *row = in + static_cast<size_t>(reflected(first + y + dy, height) - in_first) * columns;
        for (int dx = -reach; dx <= reach; dx++) {
            sum += weights[(dy + reach) * edge + dx + reach] * row[reflected(x + dx, columns)];
        }
    }
    out[static_cast<size_t>(y) * columns + x] = sum;
}

struct part {
    int first, rows;       // of the result
    int in_first, in_rows; // read for it
};

part part_of(const baseline_filter *program, int parts, int index)
{
    const int rows = program->rows;
    const int first = rows / parts * index;
    const int end = index + 1 == parts ? rows : first + rows / parts;
    const int from = first < reach ? 0 : first - reach;
    const int to = end + reach > rows ? rows : end + reach;
    return {first, end - first, from, to - from};
}

// Copy in, filter, copy out, in one stream.
cudaError_t queue_part(const baseline_filter *program, const part &p, cudaStream_t stream, const float *in,
                       float *out, float *device_in, float *device_out)
{
    const size_t columns = static_cast<size_t>(program->columns);
    cudaError_t code = cudaMemcpyAsync(device_in, in + p.in_first * columns,
                                       p.in_rows * columns * sizeof(float), cudaMemcpyHostToDevice, stream);
    if (code != cudaSuccess) {
        return code;
    }
    const dim3 block(32, 8);
    const dim3 grid((program->columns + 31) / 32, (p.rows + 7) / 8);
    filter<<<grid, block, 0, stream>>>(device_in, p.in_first, device_out, p.first, p.rows, program->columns,
                                       program->rows);
    code = cudaGetLastError();
    return code == cudaSuccess
               ? cudaMemcpyAsync(out + p.first * columns, device_out, p.rows * columns * sizeof(float),
                                 cudaMemcpyDeviceToHost, stream)
               : code;
}

double now_ms()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

} // namespace

cudaError_t baseline_filter_open(baseline_filter *program, int rows, int columns, const float *values)
{
    memset(program, 0, sizeof *program);
    program->rows = rows;
    program->columns = columns;
    const size_t bytes = static_cast<size_t>(rows + 8 * reach) * columns * sizeof(float);
    cudaError_t code = cudaMemcpyToSymbol(weights, values, sizeof weights);
    code = code == cudaSuccess ? cudaMalloc(reinterpret_cast<void **>(&program->in), bytes) : code;
    code = code == cudaSuccess ? cudaMalloc(reinterpret_cast<void **>(&program->out), bytes) : code;
    for (int i = 0; i < 4 && code == cudaSuccess; i++) {
        code = cudaStreamCreate(&program->stream[i]);
    }
    return code;
}

void baseline_filter_close(baseline_filter *program)
{
    (void)cudaFree(program->in);
    (void)cudaFree(program->out);
    for (cudaStream_t stream : program->stream) {
        if (stream != nullptr) {
            (void)cudaStreamDestroy(stream);
        }
    }
}

cudaError_t baseline_filter_run(baseline_filter *program, int streams, const float *in, float *out,
                                double *ms)
{
    const double begin = now_ms();
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < streams && code == cudaSuccess; i++) {
        const part p = part_of(program, streams, i);
        // The rows that two parts share lie on the device twice.
        const size_t at = static_cast<size_t>(p.in_first + 2 * reach * i) * program->columns;
        code = queue_part(program, p, program->stream[i], in, out, program->in + at, program->out + at);
    }
    for (int i = 0; i < streams && code == cudaSuccess; i++) {
        code = cudaStreamSynchronize(program->stream[i]);
    }
    *ms = now_ms() - begin;
    return code;
}
