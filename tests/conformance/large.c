/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beyond 4 GiB. The space is there, the memory mostly not: host and CPU device memory are mapped without
 * being reserved or touched, and only the pieces that are copied get pages. Where a device has no such
 * memory, and for single copies longer than 4 GiB, --thorough is needed.
 */
#include "conformance/conformance.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GIB   (UINT64_C(1) << 30)
#define SPACE (9 * GIB)
#define PIECE UINT64_C(777)

typedef struct large_space {
    char *host;
    char *device;
    hr_pool *pool;
    char *pinned; /* two pieces, to set and get device memory */
    hr_stream *stream;
} large_space;

static void space_open(fixture *fx, large_space *space)
{
    memset(space, 0, sizeof *space);
    hr_device_info info = HR_DEVICE_INFO_INIT;
    CHECK_OK(hr_device_get_info(fx->device, &info, &fx->error));
    if (fx->info.kind != HR_DEVICE_CPU && info.memory_free_bytes < SPACE + GIB) {
        fx->skipped = "the device has less than 10 GiB free";
        return;
    }
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.kind = HR_MEMORY_DEVICE;
    options.name = "large";
    options.bytes = SPACE;
    options.no_touch = true;
    hr_status status = hr_pool_open(fx->device, &options, &space->pool, &fx->error);
    if (status == HR_E_DEVICE_MEMORY || status == HR_E_HOST_MEMORY) {
        fx->skipped = "no 9 GiB of address space can be had";
        return;
    }
    CHECK_OK(status);
    void *host =
        mmap(NULL, SPACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(host != MAP_FAILED);
    space->host = host;
    CHECK_OK(hr_pool_take(space->pool, SPACE, 0, "large", (void **)&space->device));
    CHECK_OK(hr_pool_take(fx->pinned, 8 * PIECE, 0, "pieces", (void **)&space->pinned));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &space->stream, &fx->error));
}

static void space_close(fixture *fx, large_space *space)
{
    if (space->pool == NULL || space->host == NULL) {
        return;
    }
    CHECK_OK(hr_stream_close(&space->stream, &fx->error));
    CHECK_OK(hr_pool_give(space->pool, space->device));
    CHECK_OK(hr_pool_give(fx->pinned, space->pinned));
    CHECK_OK(hr_pool_close(&space->pool, &fx->error));
    CHECK(munmap(space->host, SPACE) == 0);
}

/* Device bytes at `offset`, into plain memory. */
static hr_status fetch(fixture *fx, large_space *space, uint64_t offset, void *bytes)
{
    hr_status status =
        hr_copy_to_host(space->stream, space->pinned, space->device + offset, PIECE, &fx->error);
    if (status == HR_OK) {
        status = hr_stream_wait(space->stream, &fx->error);
    }
    memcpy(bytes, space->pinned, PIECE);
    return status;
}

static void offsets(fixture *fx, large_space *space)
{
    static const uint64_t at[] = {0, 4 * GIB - 300, 4 * GIB + 1005, 8 * GIB + 123, SPACE - PIECE};
    char found[PIECE];
    for (int i = 0; i < 5; i++) {
        random_bytes(fx, space->host + at[i], PIECE);
        hr_copy copy = HR_COPY_INIT;
        copy.dst.place = HR_PLACE_DEVICE;
        copy.dst.base = space->device;
        copy.dst.offset_bytes = copy.src.offset_bytes = at[i];
        copy.src.base = space->host;
        copy.width_bytes = PIECE;
        CHECK_OK(hr_copy_async(space->stream, &copy, &fx->error));
    }
    for (int i = 0; i < 5; i++) {
        CHECK_OK(fetch(fx, space, at[i], found));
        CHECK(memcmp(found, space->host + at[i], PIECE) == 0);
    }
}

/* Rows and slices more than 4 GiB apart, one after the other and at once. */
static void pitches(fixture *fx, large_space *space)
{
    const uint64_t far = 4 * GIB + 64;
    char found[PIECE];
    for (int dims = 2; dims <= 3; dims++) {
        hr_copy copy = HR_COPY_INIT;
        copy.dst.place = HR_PLACE_DEVICE;
        copy.dst.base = space->device + 4096;
        copy.src.base = space->host;
        copy.width_bytes = PIECE;
        copy.height = dims == 2 ? 3 : 2;
        copy.depth = dims == 2 ? 1 : 2;
        copy.src.row_pitch_bytes = 1024;
        copy.dst.row_pitch_bytes = dims == 2 ? far : 1024;
        copy.dst.slice_pitch_bytes = dims == 2 ? 0 : far;
        random_bytes(fx, space->host, 4096);
        CHECK_OK(hr_copy_async(space->stream, &copy, &fx->error));
        CHECK_OK(hr_stream_wait(space->stream, &fx->error));
        for (uint64_t i = 0; i < (dims == 2 ? 2U : 4U); i++) {
            uint64_t where = dims == 2 ? i * far : i / 2 * far + i % 2 * 1024;
            CHECK_OK(fetch(fx, space, 4096 + where, found));
            CHECK(memcmp(found, space->host + i * 1024, PIECE) == 0);
        }
    }
}

static void segments(fixture *fx, large_space *space)
{
    const hr_segment list[] = {
        {8 * GIB + 1, 7, PIECE}, {3, 6 * GIB + 9, PIECE}, {4 * GIB, 4 * GIB + 1, PIECE}};
    char found[PIECE];
    hr_copy copy = HR_COPY_INIT;
    copy.dst.place = HR_PLACE_DEVICE;
    copy.dst.base = space->device;
    copy.src.base = space->host;
    copy.segments = list;
    copy.segment_count = 3;
    for (int i = 0; i < 3; i++) {
        random_bytes(fx, space->host + list[i].src_offset_bytes, PIECE);
    }
    CHECK_OK(hr_copy_async(space->stream, &copy, &fx->error));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fetch(fx, space, list[i].dst_offset_bytes, found));
        CHECK(memcmp(found, space->host + list[i].src_offset_bytes, PIECE) == 0);
    }
}

static void with_space(fixture *fx, void (*body)(fixture *, large_space *))
{
    large_space space;
    space_open(fx, &space);
    if (fx->failure[0] == '\0' && fx->skipped == NULL) {
        body(fx, &space);
    }
    if (fx->failure[0] == '\0') {
        space_close(fx, &space);
    }
}

static void offsets_beyond_4_gib(fixture *fx)
{
    with_space(fx, offsets);
}

static void pitches_beyond_4_gib(fixture *fx)
{
    with_space(fx, pitches);
}

static void segments_beyond_4_gib(fixture *fx)
{
    with_space(fx, segments);
}

/* One copy of more than 4 GiB: up from zeros with a mark at both ends, and the end's mark is found. */
static void one_long_copy(fixture *fx, large_space *space)
{
    const uint64_t bytes = 4 * GIB + 12345;
    char found[PIECE];
    random_bytes(fx, space->host, PIECE);
    random_bytes(fx, space->host + bytes - PIECE, PIECE);
    CHECK_OK(hr_copy_to_device(space->stream, space->device + 11, space->host, bytes, &fx->error));
    CHECK_OK(fetch(fx, space, 11, found));
    CHECK(memcmp(found, space->host, PIECE) == 0);
    CHECK_OK(fetch(fx, space, 11 + bytes - PIECE, found));
    CHECK(memcmp(found, space->host + bytes - PIECE, PIECE) == 0);
}

static void a_copy_longer_than_4_gib(fixture *fx)
{
    if (!fx->thorough) {
        fx->skipped = "takes 4 GiB of memory; --thorough runs it";
        return;
    }
    with_space(fx, one_long_copy);
}

const named_case large_cases[] = {
    {"large: offsets beyond 4 GiB", offsets_beyond_4_gib},
    {"large: pitches beyond 4 GiB", pitches_beyond_4_gib},
    {"large: segments beyond 4 GiB", segments_beyond_4_gib},
    {"large: a copy longer than 4 GiB", a_copy_longer_than_4_gib},
    {NULL, NULL},
};
