/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are shared out in strips. Each is compressed by itself and ends on a byte (Z_SYNC_FLUSH), so that one after the
 * other they make a stream that any reader takes: a header before the first, a last block at the end of the last, and
 * the checksum of all, put together from the strips' own.
 */
#include "io/deflate.h"

#ifdef HR_HAVE_PNG
#include "base/checked.h"
#include "host/topology.h"
#include "io/parallel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Plain bytes of a strip: enough that what a strip costs beside (five bytes, and no memory of the rows before) is lost
 * in the rest. */
#define STRIP_BYTES (UINT64_C(512) << 10)
/* On a photograph, runs take two thirds of the time that level 1 does, and a tenth more room. */
#define LEVEL    1
#define STRATEGY Z_RLE
#define FILTER   2
/* Raw deflate: the header and the checksum are ours. */
#define WINDOW_BITS  (-15)
#define MEMORY_LEVEL 9
#define HEADER_BYTES 2
#define ADLER_BYTES  4

typedef struct job {
    const char *name;
    const unsigned char *pixels;
    uint64_t rows;
    uint64_t row_bytes;
    uint64_t sample_bytes;
    uint64_t strip_rows;
    hr_deflated *deflated;
    const atomic_bool *stop;
} job;

/* A row's bytes less those of the row above, after the filter's number. */
static void filter_row(const job *j, uint64_t row, unsigned char *to)
{
    const unsigned char *here = j->pixels + row * j->row_bytes;
    const unsigned char *above = here - j->row_bytes;
    *to++ = FILTER;
    /* PNG puts the high byte of a sample first. */
    uint64_t flip = j->sample_bytes == 2 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 0;
    if (row == 0) {
        for (uint64_t i = 0; i < j->row_bytes; i++) {
            to[i] = here[i ^ flip];
        }
    } else if (flip) {
        for (uint64_t i = 0; i < j->row_bytes; i++) {
            to[i] = (unsigned char)(here[i ^ 1] - above[i ^ 1]);
        }
    } else {
        for (uint64_t i = 0; i < j->row_bytes; i++) {
            to[i] = (unsigned char)(here[i] - above[i]);
        }
    }
}

static bool compress_strip(hr_strip *strip, unsigned char *plain, uint64_t bytes, bool first, bool last)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, STRATEGY) != Z_OK) {
        return false;
    }
    /* The bound is for a finished stream; a flush adds an empty block. */
    uint64_t room = deflateBound(&stream, bytes) + 16;
    unsigned char *out = malloc(HEADER_BYTES + room + ADLER_BYTES);
    bool done = false;
    if (out != NULL) {
        uint64_t used = 0;
        if (first) {
            out[used++] = 0x78;
            out[used++] = 0x01;
        }
        stream.next_in = plain;
        stream.avail_in = (uInt)bytes;
        stream.next_out = out + used;
        stream.avail_out = (uInt)room;
        int answer = deflate(&stream, last ? Z_FINISH : Z_SYNC_FLUSH);
        done = answer == (last ? Z_STREAM_END : Z_OK) && stream.avail_in == 0 && stream.avail_out > 0;
        *strip = (hr_strip){out, used + stream.total_out, bytes, (uint32_t)adler32(1, plain, (uInt)bytes)};
    }
    deflateEnd(&stream);
    return done;
}

static hr_status make_strip(void *user, uint64_t index, hr_error *error)
{
    const job *j = user;
    if (j->stop != NULL && atomic_load(j->stop)) {
        return hr_fail(error, HR_E_CANCELLED, "%s: cancelled", j->name);
    }
    uint64_t low = index * j->strip_rows;
    uint64_t high = hr_min_u64(low + j->strip_rows, j->rows);
    uint64_t bytes = (high - low) * (j->row_bytes + 1);
    unsigned char *plain = malloc(bytes);
    bool done = false;
    if (plain != NULL) {
        for (uint64_t row = low; row < high; row++) {
            filter_row(j, row, plain + (row - low) * (j->row_bytes + 1));
        }
        done = compress_strip(&j->deflated->strips[index], plain, bytes, low == 0, high == j->rows);
    }
    free(plain);
    return done ? HR_OK : hr_fail(error, HR_E_HOST_MEMORY, "%s: PNG: no memory to compress", j->name);
}

/* The checksum of all the plain bytes, high byte first, behind the last strip, which has the room. */
static void append_adler(hr_deflated *deflated)
{
    uLong adler = 1;
    for (uint64_t i = 0; i < deflated->count; i++) {
        adler = adler32_combine(adler, deflated->strips[i].adler, (z_off_t)deflated->strips[i].plain_bytes);
    }
    hr_strip *last = &deflated->strips[deflated->count - 1];
    for (int shift = 24; shift >= 0; shift -= 8) {
        last->data[last->bytes++] = (unsigned char)(adler >> shift);
    }
}

hr_status hr_deflate_rows(const char *name, const void *pixels, uint64_t rows, uint64_t row_bytes,
                          uint64_t sample_bytes, const atomic_bool *stop, hr_deflated *deflated,
                          hr_error *error)
{
    job j = {name, pixels, rows, row_bytes, sample_bytes, 0, deflated, stop};
    j.strip_rows = hr_max_u64(1, STRIP_BYTES / (row_bytes + 1));
    deflated->count = hr_div_up(rows, j.strip_rows);
    deflated->strips = calloc(deflated->count, sizeof *deflated->strips);
    if (deflated->strips == NULL) {
        deflated->count = 0;
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: PNG: no memory to compress", name);
    }
    hr_status status = hr_parallel(hr_host_cores(), deflated->count, make_strip, &j, error);
    if (status == HR_OK) {
        append_adler(deflated);
    }
    return status;
}

void hr_deflated_free(hr_deflated *deflated)
{
    for (uint64_t i = 0; i < deflated->count; i++) {
        free(deflated->strips[i].data);
    }
    free(deflated->strips);
    *deflated = (hr_deflated){0};
}
#endif
