/* SPDX-License-Identifier: Apache-2.0 */
/* Between the entry of the matrix product and the files that hold its kernels. */
#ifndef HEADRACE_CUDA_MATMUL_CUH
#define HEADRACE_CUDA_MATMUL_CUH

#include "launch.cuh"

#include <atomic>

namespace headrace::kernel
{

struct matmul_job {
    const void *a, *b;
    void *c;
    int m, n, k;
    long long a_pitch, b_pitch, c_pitch; /* elements */
    bool accumulate;
    bool vector_store; /* C's rows start at 16-byte multiples */
    int group;         /* tiles of rows that are walked together, so that their panels stay in the L2 cache */
};

/* Which tile a block takes: down a group of tile rows, then on to the next tile column. */
__device__ inline void matmul_tile(int index, int tiles_m, int tiles_n, int group, int *row, int *column)
{
    const int per_group = group * tiles_n;
    const int first = index / per_group * group;
    const int rows = tiles_m - first < group ? tiles_m - first : group;
    *row = first + index % per_group % rows;
    *column = index % per_group / rows;
}

/* What was found out for each device: asked at each launch, so it is found out once. */
struct code_memory {
    static constexpr int unasked = 0, absent = 1, present = 2;
    std::atomic<int> of[64];
};

/*
 * Kernels for the warpgroup instructions are empty where this was compiled for another architecture than sm_90a, and an
 * empty kernel needs hardly a register. The functions below that are named for it say whether there is code for the
 * current device.
 */
template <class... Parameters> bool has_code(void (*kernel)(Parameters...), code_memory &memory)
{
    int device = 0;
    cudaFuncAttributes attributes = {};
    if (cudaGetDevice(&device) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    std::atomic<int> *const known = device < 64 ? &memory.of[device] : nullptr;
    const int before = known != nullptr ? known->load(std::memory_order_relaxed) : code_memory::unasked;
    if (before != code_memory::unasked) {
        return before == code_memory::present;
    }
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    const int found = attributes.numRegs >= 64 ? code_memory::present : code_memory::absent;
    if (known != nullptr) {
        known->store(found, std::memory_order_relaxed);
    }
    return found == code_memory::present;
}

hr_status matmul_f32(const matmul_job &, const CUtensorMap &a, const CUtensorMap &b, hr_mechanism,
                     cudaStream_t, hr_error *);

/* The same accuracy by bf16 matrix instructions, each operand split in three. On compute capability 9.0 only. */
bool matmul_f32_split_compiled();
hr_status matmul_f32_split(const matmul_job &, const CUtensorMap &a, const CUtensorMap &b, int sms,
                           cudaStream_t, hr_error *);

/* f32 operands rounded to TF32. Mechanisms sync, ldgsts and bulk; compute capability 8.0. */
hr_status matmul_tf32(const matmul_job &, hr_mechanism, cudaStream_t, hr_error *);

/* The same by tma and warpgroup instructions. On compute capability 9.0 only. */
bool matmul_tf32_wgmma_compiled();
hr_status matmul_tf32_wgmma(const matmul_job &, const CUtensorMap &a, const CUtensorMap &b, int sms,
                            cudaStream_t, hr_error *);

/* bf16 operands, result bf16 or (`wide_result`) f32. On compute capability 9.0 only. */
bool matmul_bf16_compiled();
hr_status matmul_bf16(const matmul_job &, bool wide_result, const CUtensorMap &a, const CUtensorMap &b,
                      int sms, cudaStream_t, hr_error *);

/* What a block makes of C at a time, and the boxes that the kernels' tensor maps bring. */
constexpr int matmul_f32_m = 128, matmul_f32_n = 256, matmul_f32_k = 32;
constexpr int matmul_split_m = 192, matmul_split_n = 128, matmul_split_k = 32;
constexpr int matmul_split_a_rows = 16, matmul_split_b_rows = 8;
constexpr int matmul_split_group = 11; /* 11 × 12 tiles are at work at once on 132 multiprocessors */
constexpr int matmul_tf32_m = 256, matmul_tf32_warp_n = 16, matmul_tf32_k = 32;
constexpr int matmul_bf16_m = 128, matmul_bf16_n = 256, matmul_bf16_k = 64, matmul_bf16_box_n = 64;

} // namespace headrace::kernel
#endif
