/* SPDX-License-Identifier: Apache-2.0 */
/* One description for every asynchronous copy and fill. */
#ifndef HEADRACE_COPY_H
#define HEADRACE_COPY_H

#include <headrace/memory.h>
#include <headrace/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hr_place {
    HR_PLACE_HOST = 1, /* pageable or pinned, the device tells which */
    HR_PLACE_DEVICE,   /* memory of `device`, or of the stream's device where that is null */
    HR_PLACE_ARRAY,
    HR_PLACE_SYMBOL
} hr_place;

/* One end of a copy. For arrays x, y, z is the first element; for symbols `offset_bytes` counts from its
 * start. */
typedef struct hr_end {
    hr_place place;
    hr_device *device; /* of HR_PLACE_DEVICE memory; another device than the stream's makes a peer copy */
    void *base;        /* host or device memory; the source is never written */
    hr_array *array;
    hr_symbol *symbol;
    uint64_t offset_bytes;
    uint64_t row_pitch_bytes;   /* from one row to the next; 0: width_bytes */
    uint64_t slice_pitch_bytes; /* from one slice to the next; 0: row pitch × height */
    uint64_t x, y, z;           /* array: elements, rows, slices or layers */
} hr_end;

/* One piece of a list: `bytes` from source offset to destination offset, both from the ends' base. */
typedef struct hr_segment {
    uint64_t dst_offset_bytes;
    uint64_t src_offset_bytes;
    uint64_t bytes;
} hr_segment;

/*
 * A copy. 1-D: height = depth = 1. 2-D: depth = 1. 3-D: all three. A list of segments (segment_count > 0)
 * replaces the shape; memory and symbols have segments, arrays have none. Two arrays must have elements of the
 * same size. Zero in any extent copies nothing and is no error. Ends must not overlap (of plain rows this is
 * checked, whatever the places).
 */
typedef struct hr_copy {
    size_t size; /* sizeof(hr_copy) */
    hr_end dst;
    hr_end src;
    uint64_t width_bytes;
    uint64_t height;
    uint64_t depth;
    const hr_segment *segments; /* read before the call returns */
    uint64_t segment_count;
} hr_copy;
#define HR_COPY_INIT                                                     \
    {                                                                    \
        sizeof(hr_copy), {HR_PLACE_HOST, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},  \
            {HR_PLACE_HOST, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 1, 1, 0, 0 \
    }

/*
 * Queues the copy and returns at once; what the description says is checked first and nothing is queued on
 * failure. Both ends stay the caller's and must live until the copy is done. Pageable host memory is staged
 * by the device, never handed to a driver call that would block; its source may be reused once the copy is
 * done. Any thread. HR_E_INVALID (pitch smaller than the width, wrong place), HR_E_RANGE (past an array's or
 * symbol's end, overflow), HR_E_UNSUPPORTED (refused in this state, with the reason), HR_E_DEVICE_LOST,
 * HR_E_FORKED.
 */
HR_API HR_CHECKED hr_status hr_copy_async(hr_stream *stream, const hr_copy *copy, hr_error *error);

/* Fills device or pinned memory (1-D to 3-D, by dst's pitches) with a value of 1, 2 or 4 bytes. */
typedef struct hr_fill {
    size_t size; /* sizeof(hr_fill) */
    hr_end dst;
    uint64_t width_bytes; /* a multiple of value_bytes */
    uint64_t height;
    uint64_t depth;
    uint32_t value;
    uint32_t value_bytes; /* 1, 2 or 4; address and pitches are multiples of it */
} hr_fill;
#define HR_FILL_INIT                                                                    \
    {                                                                                   \
        sizeof(hr_fill), {HR_PLACE_DEVICE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 1, 1, 0, 1 \
    }

/* Queues the fill and returns at once; the rules and failures of hr_copy_async(). HR_E_UNSUPPORTED: pageable memory,
 * on a device with memory of its own. */
HR_API HR_CHECKED hr_status hr_fill_async(hr_stream *stream, const hr_fill *fill, hr_error *error);

/* The plain 1-D copies, in one line. */
HR_API HR_CHECKED hr_status hr_copy_to_device(hr_stream *stream, void *device_dst, const void *host_src,
                                              uint64_t bytes, hr_error *error);
HR_API HR_CHECKED hr_status hr_copy_to_host(hr_stream *stream, void *host_dst, const void *device_src,
                                            uint64_t bytes, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
