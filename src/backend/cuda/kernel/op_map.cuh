// SPDX-License-Identifier: Apache-2.0
// Kernels that apply a function element by element: 16 bytes at a time where all ends allow it.
#ifndef HR_BACKEND_CUDA_KERNEL_OP_MAP_CUH
#define HR_BACKEND_CUDA_KERNEL_OP_MAP_CUH

#include "backend/cuda/kernel/op_device.cuh"

namespace headrace::op
{

// c[i] = f(a[i], i). The first `packs` × V elements are taken V at a time.
template <int V, class S, class D, class F>
__global__ void __launch_bounds__(block_threads)
    map_one(const S *__restrict__ a, D *__restrict__ c, uint64_t packs, uint64_t n, F f)
{
    for (uint64_t g = first_index(); g < packs; g += index_stride()) {
        const pack<S, V> x = reinterpret_cast<const pack<S, V> *>(a)[g];
        pack<D, V> y;
#pragma unroll
        for (int k = 0; k < V; k++) {
            y.at[k] = f(x.at[k], g * V + k);
        }
        reinterpret_cast<pack<D, V> *>(c)[g] = y;
    }
    for (uint64_t i = packs * V + first_index(); i < n; i += index_stride()) {
        c[i] = f(a[i], i);
    }
}

// c[i] = f(a[i], b[i]).
template <int V, class T, class F>
__global__ void __launch_bounds__(block_threads) map_two(const T *__restrict__ a, const T *__restrict__ b,
                                                         T *__restrict__ c, uint64_t packs, uint64_t n, F f)
{
    for (uint64_t g = first_index(); g < packs; g += index_stride()) {
        const pack<T, V> x = reinterpret_cast<const pack<T, V> *>(a)[g];
        const pack<T, V> y = reinterpret_cast<const pack<T, V> *>(b)[g];
        pack<T, V> z;
#pragma unroll
        for (int k = 0; k < V; k++) {
            z.at[k] = f(x.at[k], y.at[k]);
        }
        reinterpret_cast<pack<T, V> *>(c)[g] = z;
    }
    for (uint64_t i = packs * V + first_index(); i < n; i += index_stride()) {
        c[i] = f(a[i], b[i]);
    }
}

// Packs of V that n elements make, and threads that they are worth; no packs where an end is not aligned.
inline uint64_t packs_of(uint64_t n, int V, bool vector)
{
    return vector ? n / static_cast<uint64_t>(V) : 0;
}

template <class S, class D, class F>
hr_status launch_one(const char *name, const hr_launch *launch, F f, hr_error *error)
{
    const S *a = static_cast<const S *>(launch->in[0].data);
    D *c = static_cast<D *>(launch->out[0].data);
    uint64_t n;
    hr_status status = elements_of(launch->out[0], &n);
    if (status != HR_OK || n == 0) {
        return status;
    }
    constexpr int V = 16 / (sizeof(S) > sizeof(D) ? sizeof(S) : sizeof(D));
    const bool vector = aligned(a, sizeof(pack<S, V>)) && aligned(c, sizeof(pack<D, V>));
    const uint64_t packs = packs_of(n, V, vector);
    map_one<V><<<grid_for(vector ? packs + 1 : n), block_threads, 0, stream_of(launch)>>>(a, c, packs, n, f);
    return hr_cuda_op_launched(name, error);
}

template <class T, class F>
hr_status launch_two(const char *name, const hr_launch *launch, F f, hr_error *error)
{
    const T *a = static_cast<const T *>(launch->in[0].data);
    const T *b = static_cast<const T *>(launch->in[1].data);
    T *c = static_cast<T *>(launch->out[0].data);
    uint64_t n;
    hr_status status = elements_of(launch->out[0], &n);
    if (status != HR_OK || n == 0) {
        return status;
    }
    constexpr int V = 16 / sizeof(T);
    const bool vector = aligned(a, 16) && aligned(b, 16) && aligned(c, 16);
    const uint64_t packs = packs_of(n, V, vector);
    map_two<V>
        <<<grid_for(vector ? packs + 1 : n), block_threads, 0, stream_of(launch)>>>(a, b, c, packs, n, f);
    return hr_cuda_op_launched(name, error);
}

} // namespace headrace::op
#endif
