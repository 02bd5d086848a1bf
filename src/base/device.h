/* SPDX-License-Identifier: Apache-2.0 */
/* Small functions that host and device share, so that both give the same bits. */
#ifndef HR_BASE_DEVICE_H
#define HR_BASE_DEVICE_H

#ifdef __CUDACC__
#define HR_SHARED_INLINE static __host__ __device__ inline
#else
#define HR_SHARED_INLINE static inline
#endif

#endif
