/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the blocks of a cluster (sm_90): addresses in another block's shared memory, and what can be sent there.
 * Everything that is sent completes on a barrier of the *destination*, by bytes, which that block waits for with
 * mbarrier::wait_cluster(). Before the first send all blocks must have started and initialised their barriers, and
 * none may leave while others can still reach into it: cluster_sync() at the start and at the end.
 */
#ifndef HEADRACE_DEVICE_CLUSTER_CUH
#define HEADRACE_DEVICE_CLUSTER_CUH

#include <headrace/device/mbarrier.cuh>

namespace headrace::device
{

__device__ inline unsigned cluster_rank()
{
    return ptx::get_sreg_cluster_ctarank();
}
__device__ inline unsigned cluster_blocks()
{
    return ptx::get_sreg_cluster_nctarank();
}

/* A barrier for all threads of the cluster; what was written before is visible after. */
__device__ inline void cluster_sync()
{
    ptx::barrier_cluster_arrive(ptx::sem_release);
    ptx::barrier_cluster_wait(ptx::sem_acquire);
}

/* The same variable in the shared memory of block `rank` of the cluster. */
template <class T> __device__ T *in_block(T *own, unsigned rank)
{
    return static_cast<T *>(__cluster_map_shared_rank(own, rank));
}

/* 16 bytes out of registers (st.async); dst and barrier are the destination's, from in_block(). */
__device__ inline void send_piece(void *dst, const uint4 &v, mbarrier *barrier)
{
    const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
    ptx::st_async(static_cast<std::uint32_t *>(dst), words, &barrier->word);
}

/* One 64-bit word, likewise. */
__device__ inline void send_word(std::uint64_t *dst, std::uint64_t value, mbarrier *barrier)
{
    ptx::st_async(dst, value, &barrier->word);
}

/* Bytes (×16) out of this block's shared memory by the copy engine. The source must stay as it is until they have
 * arrived; ordinary stores to it need fence_for_copy_engine() and a barrier before. */
__device__ inline void send_bytes(void *dst, const void *src, std::uint32_t bytes, mbarrier *barrier)
{
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, dst, src, bytes, &barrier->word);
}

/* An addition in another block's shared memory that completes on its barrier (red.async), 8 bytes. */
__device__ inline void send_add(std::uint64_t *dst, std::uint64_t value, mbarrier *barrier)
{
    ptx::red_async(ptx::op_add, dst, value, &barrier->word);
}

/* An addition in any block's shared memory without a barrier: visible after cluster_sync(). */
__device__ inline void remote_add(std::uint32_t *dst, std::uint32_t value)
{
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(dst));
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

} // namespace headrace::device
#endif
