/* SPDX-License-Identifier: Apache-2.0 */
/* A barrier in shared memory that counts arrivals and bytes, and the fences that go with it. */
#ifndef HEADRACE_DEVICE_MBARRIER_CUH
#define HEADRACE_DEVICE_MBARRIER_CUH

#include <cstdint>
#include <cuda/ptx>

namespace headrace::device
{
namespace ptx = cuda::ptx;

/* False in device code for an architecture that lacks the bulk copies (before sm_90). */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool have_bulk = false;
#else
inline constexpr bool have_bulk = true;
#endif

/*
 * Lives in shared memory. A phase ends once `arrivals` threads have arrived and all bytes that were expected
 * have come; the parity of the first phase is 0. One thread initialises it, calls publish_barriers(), and the
 * block synchronises before anyone else touches it. Expecting bytes that are never delivered is a hang.
 */
struct mbarrier {
    std::uint64_t word;

    __device__ void init(std::uint32_t arrivals)
    {
        ptx::mbarrier_init(&word, arrivals);
    }
    __device__ void arrive()
    {
        ptx::mbarrier_arrive(&word);
    }
    /* One arrival that also announces bytes to come (sm_90). */
    __device__ void arrive_and_expect(std::uint32_t bytes)
    {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &word, bytes);
    }
    /* Has the phase of this parity ended? What was delivered or written before is then visible. */
    __device__ bool ended(std::uint32_t parity)
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
        return ptx::mbarrier_test_wait_parity(&word, parity);
#else
        return ptx::mbarrier_try_wait_parity(&word, parity);
#endif
    }
    __device__ void wait(std::uint32_t parity)
    {
        while (!ended(parity)) {
        }
    }
    /* The same where the other side is another block of the cluster (sm_90). */
    __device__ void wait_cluster(std::uint32_t parity)
    {
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &word, parity)) {
        }
    }
};

/* Makes initialised barriers visible to the copy engine and to the cluster; by the thread that initialised.
 */
__device__ inline void publish_barriers()
{
    if constexpr (have_bulk) {
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
}

/*
 * Orders this thread's ordinary accesses to shared memory before copy-engine (and wgmma) accesses that follow
 * the next barrier. Each writing thread calls it, before that barrier.
 */
__device__ inline void fence_for_copy_engine()
{
    if constexpr (have_bulk) {
        ptx::fence_proxy_async(ptx::space_shared);
    }
}

/* Walks the slots of a ring and the parity of their barriers. */
template <int Slots> struct ring_turn {
    int slot = 0;
    std::uint32_t parity = 0;

    __device__ void next()
    {
        if (++slot == Slots) {
            slot = 0;
            parity ^= 1;
        }
    }
};

} // namespace headrace::device
#endif
