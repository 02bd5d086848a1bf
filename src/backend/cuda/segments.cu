// SPDX-License-Identifier: Apache-2.0
// Lists of segments: one warp a segment. Reads of pinned memory over the link are long in coming, so each
// lane asks for several pieces before it stores the first.
#include "backend/cuda/kernels.h"

#include <cstdint>

namespace
{

constexpr unsigned warp_lanes = 32;
constexpr unsigned block_threads = 512;
constexpr unsigned pieces_in_flight = 4;

struct segment_batch {
    hr_segment segment[HR_CUDA_SEGMENTS_BY_VALUE];
};

template <typename Piece>
__device__ void copy_pieces(char *dst, const char *src, uint64_t bytes, unsigned lane)
{
    Piece *to = reinterpret_cast<Piece *>(dst);
    const Piece *from = reinterpret_cast<const Piece *>(src);
    const uint64_t count = bytes / sizeof(Piece);
    uint64_t at = lane;
    for (; at + (pieces_in_flight - 1) * warp_lanes < count; at += pieces_in_flight * warp_lanes) {
        Piece held[pieces_in_flight];
#pragma unroll
        for (unsigned i = 0; i < pieces_in_flight; i++) {
            held[i] = __ldcs(from + at + i * warp_lanes);
        }
#pragma unroll
        for (unsigned i = 0; i < pieces_in_flight; i++) {
            __stcs(to + at + i * warp_lanes, held[i]);
        }
    }
    for (; at < count; at += warp_lanes) {
        __stcs(to + at, __ldcs(from + at));
    }
}

// The widest piece that both addresses allow, after a head that aligns the destination.
__device__ void copy_segment(char *dst, const char *src, uint64_t bytes, unsigned lane)
{
    const uintptr_t apart = reinterpret_cast<uintptr_t>(dst) ^ reinterpret_cast<uintptr_t>(src);
    const unsigned width = (apart & 15) == 0 ? 16 : (apart & 7) == 0 ? 8 : (apart & 3) == 0 ? 4 : 1;
    uint64_t head = (width - (reinterpret_cast<uintptr_t>(dst) & (width - 1))) & (width - 1);
    head = head < bytes ? head : bytes;
    if (lane < head) {
        dst[lane] = src[lane];
    }
    dst += head;
    src += head;
    bytes -= head;
    const uint64_t body = bytes / width * width;
    switch (width) {
    case 16:
        copy_pieces<uint4>(dst, src, body, lane);
        break;
    case 8:
        copy_pieces<uint2>(dst, src, body, lane);
        break;
    case 4:
        copy_pieces<uint32_t>(dst, src, body, lane);
        break;
    default:
        copy_pieces<unsigned char>(dst, src, body, lane);
        break;
    }
    if (lane < bytes - body) {
        dst[body + lane] = src[body + lane];
    }
}

__device__ void copy_list(char *dst, const char *src, const hr_segment *segments, uint32_t count)
{
    const unsigned lane = threadIdx.x % warp_lanes;
    const uint32_t warps = gridDim.x * (blockDim.x / warp_lanes);
    for (uint32_t i = blockIdx.x * (blockDim.x / warp_lanes) + threadIdx.x / warp_lanes; i < count;
         i += warps) {
        const hr_segment s = segments[i];
        copy_segment(dst + s.dst_offset_bytes, src + s.src_offset_bytes, s.bytes, lane);
    }
}

__global__ void __launch_bounds__(block_threads)
    copy_listed(char *dst, const char *src, const hr_segment *segments, uint32_t count)
{
    copy_list(dst, src, segments, count);
}

__global__ void __launch_bounds__(block_threads)
    copy_given(char *dst, const char *src, const __grid_constant__ segment_batch batch, uint32_t count)
{
    copy_list(dst, src, batch.segment, count);
}

} // namespace

extern "C" cudaError_t hr_cuda_kernel_segments(cudaStream_t stream, void *dst, const void *src,
                                               const hr_segment *segments, uint32_t count, uint32_t blocks)
{
    copy_listed<<<blocks, block_threads, 0, stream>>>(static_cast<char *>(dst),
                                                      static_cast<const char *>(src), segments, count);
    return cudaGetLastError();
}

extern "C" cudaError_t hr_cuda_kernel_segments_by_value(cudaStream_t stream, void *dst, const void *src,
                                                        const hr_segment *segments, uint32_t count,
                                                        uint32_t blocks)
{
    segment_batch batch; // not initialised on purpose: the kernel reads the first `count`
    for (uint32_t i = 0; i < count; i++) {
        batch.segment[i] = segments[i];
    }
    copy_given<<<blocks, block_threads, 0, stream>>>(static_cast<char *>(dst), static_cast<const char *>(src),
                                                     batch, count);
    return cudaGetLastError();
}
