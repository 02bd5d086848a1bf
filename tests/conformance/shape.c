/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every shape between every two places, against plain loops over bytes. Each end is a store: memory of one
 * kind with a model of it in plain memory. A copy runs on the stores and, byte by byte, on the models; then
 * the whole destination is read back and compared with its model, so a byte written beside the mark shows.
 */
#include "conformance/conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE_BYTES UINT64_C(24576)

/* A case that fails keeps what it holds: the run reports and ends. NOLINTBEGIN(clang-analyzer-unix.Malloc) */

enum { ARRAY_W = 24, ARRAY_H = 16, ARRAY_D = 4, ARRAY_ELEMENT = 8 };
#define ARRAY_BYTES ((uint64_t)ARRAY_W * ARRAY_H * ARRAY_D * ARRAY_ELEMENT)

typedef enum test_place { PAGEABLE, PINNED, ON_DEVICE, IN_ARRAY, IN_SYMBOL, PLACES } test_place;
static const char *const place_names[PLACES] = {"pageable", "pinned", "device", "array", "symbol"};

typedef struct copy_store {
    test_place place;
    uint64_t bytes;
    unsigned char *model;
    unsigned char *image; /* pinned, to move the whole in and out */
    void *base;
    hr_array *array;
    hr_symbol *symbol;
} copy_store;

/* An end of a copy in terms of a store. */
typedef struct copy_side {
    copy_store *store;
    uint64_t offset, row_pitch, slice_pitch; /* linear */
    uint64_t x, y, z;                        /* array: elements */
} copy_side;

static hr_end whole_end(const copy_store *store)
{
    hr_end end = {HR_PLACE_HOST, NULL, store->base, store->array, store->symbol, 0, 0, 0, 0, 0, 0};
    static const hr_place places[PLACES] = {HR_PLACE_HOST, HR_PLACE_HOST, HR_PLACE_DEVICE, HR_PLACE_ARRAY,
                                            HR_PLACE_SYMBOL};
    end.place = places[store->place];
    return end;
}

/* Moves the whole store in or out of its image, with the plainest copy there is for its place. */
static hr_status move_whole(fixture *fx, hr_stream *stream, copy_store *store, bool in)
{
    hr_copy copy = HR_COPY_INIT;
    hr_end image = {HR_PLACE_HOST, NULL, store->image, NULL, NULL, 0, 0, 0, 0, 0, 0};
    copy.dst = in ? whole_end(store) : image;
    copy.src = in ? image : whole_end(store);
    copy.width_bytes = store->bytes;
    if (store->place == IN_ARRAY) {
        copy.width_bytes = (uint64_t)ARRAY_W * ARRAY_ELEMENT;
        copy.height = ARRAY_H;
        copy.depth = ARRAY_D;
    }
    hr_status status = hr_copy_async(stream, &copy, &fx->error);
    return status == HR_OK ? hr_stream_wait(stream, &fx->error) : status;
}

static hr_status store_open(fixture *fx, copy_store *store, test_place place, const char *symbol)
{
    memset(store, 0, sizeof *store);
    store->place = place;
    store->bytes = place == IN_ARRAY ? ARRAY_BYTES : STORE_BYTES;
    store->model = malloc(store->bytes);
    hr_status status = hr_pool_take(fx->pinned, store->bytes, 0, "image", (void **)&store->image);
    hr_array_options options = HR_ARRAY_OPTIONS_INIT;
    switch (place) {
    case PAGEABLE:
        store->base = malloc(store->bytes);
        break;
    case PINNED:
        status = hr_pool_take(fx->pinned, store->bytes, 0, "store", &store->base);
        break;
    case ON_DEVICE:
        status = hr_pool_take(fx->on_device, store->bytes, 0, "store", &store->base);
        break;
    case IN_ARRAY:
        options.channels = ARRAY_ELEMENT / 4;
        options.width = ARRAY_W;
        options.height = ARRAY_H;
        options.depth = ARRAY_D;
        status = hr_array_open(fx->device, &options, &store->array, &fx->error);
        break;
    default:
        status = hr_symbol_define(fx->device, symbol, NULL, store->bytes, &store->symbol, &fx->error);
        break;
    }
    return status;
}

static void store_close(fixture *fx, copy_store *store)
{
    IGNORE(hr_pool_give(fx->pinned, store->image));
    if (store->place == PAGEABLE) {
        free(store->base);
    } else if (store->place == PINNED) {
        IGNORE(hr_pool_give(fx->pinned, store->base));
    } else if (store->place == ON_DEVICE) {
        IGNORE(hr_pool_give(fx->on_device, store->base));
    }
    IGNORE(hr_array_close(&store->array, NULL));
    IGNORE(hr_symbol_close(&store->symbol, NULL));
    free(store->model);
}

static hr_status store_randomize(fixture *fx, hr_stream *stream, copy_store *store)
{
    random_bytes(fx, store->model, store->bytes);
    memcpy(store->image, store->model, store->bytes);
    return move_whole(fx, stream, store, true);
}

/* Where byte `i` of row `y` of slice `z` lies in the model. */
static unsigned char *model_at(const copy_side *side, uint64_t i, uint64_t y, uint64_t z)
{
    if (side->store->place == IN_ARRAY) {
        uint64_t row = (side->z + z) * ARRAY_H + side->y + y;
        return side->store->model + (row * ARRAY_W + side->x) * ARRAY_ELEMENT + i;
    }
    return side->store->model + side->offset + z * side->slice_pitch + y * side->row_pitch + i;
}

/* A random place in the store for a shape that fits. */
static copy_side random_side(fixture *fx, copy_store *store, uint64_t width, uint64_t height, uint64_t depth)
{
    copy_side side = {.store = store};
    if (store->place == IN_ARRAY) {
        side.x = random_below(fx, ARRAY_W - width / ARRAY_ELEMENT + 1);
        side.y = random_below(fx, ARRAY_H - height + 1);
        side.z = random_below(fx, ARRAY_D - depth + 1);
        return side;
    }
    side.row_pitch = width + random_below(fx, 40);
    side.slice_pitch = side.row_pitch * height + random_below(fx, 60);
    uint64_t reach = (depth - 1) * side.slice_pitch + (height - 1) * side.row_pitch + width;
    side.offset = random_below(fx, store->bytes - reach + 1);
    return side;
}

static hr_end end_of(fixture *fx, const copy_side *side)
{
    hr_end end = whole_end(side->store);
    end.x = side->x;
    end.y = side->y;
    end.z = side->z;
    if (side->store->place == IN_ARRAY) {
        return end;
    }
    end.row_pitch_bytes = side->row_pitch;
    end.slice_pitch_bytes = side->slice_pitch;
    end.offset_bytes = side->offset;
    /* Both ways of saying where it begins. */
    if (end.base != NULL && random_below(fx, 2) == 0) {
        end.base = (char *)end.base + side->offset;
        end.offset_bytes = 0;
    }
    return end;
}

static bool matches_model(copy_store *store)
{
    return memcmp(store->image, store->model, store->bytes) == 0;
}

static void say_which(fixture *fx, const copy_store *dst, const copy_store *src, const hr_copy *copy)
{
    size_t used = strlen(fx->failure);
    snprintf(fx->failure + used, sizeof fx->failure - used,
             " (%s to %s, %" PRIu64 " x %" PRIu64 " x %" PRIu64 ", %" PRIu64 " segments)",
             place_names[src->place], place_names[dst->place], copy->width_bytes, copy->height, copy->depth,
             copy->segment_count);
}

static void try_copy(fixture *fx, hr_stream *stream, copy_store *dst, copy_store *src, int dims)
{
    bool array = dst->place == IN_ARRAY || src->place == IN_ARRAY;
    uint64_t width = array ? (1 + random_below(fx, ARRAY_W)) * ARRAY_ELEMENT : 1 + random_below(fx, 200);
    uint64_t height = dims >= 2 ? 1 + random_below(fx, ARRAY_H) : 1;
    uint64_t depth = dims >= 3 ? 1 + random_below(fx, ARRAY_D) : 1;
    copy_side from = random_side(fx, src, width, height, depth),
              to = random_side(fx, dst, width, height, depth);
    hr_copy copy = HR_COPY_INIT;
    copy.src = end_of(fx, &from);
    copy.dst = end_of(fx, &to);
    copy.width_bytes = width;
    copy.height = height;
    copy.depth = depth;
    CHECK_OK(hr_copy_async(stream, &copy, &fx->error));
    for (uint64_t z = 0; z < depth; z++) {
        for (uint64_t y = 0; y < height; y++) {
            for (uint64_t i = 0; i < width; i++) {
                *model_at(&to, i, y, z) = *model_at(&from, i, y, z);
            }
        }
    }
    CHECK_OK(move_whole(fx, stream, dst, false));
    CHECK(matches_model(dst));
}

static void every_pair_of_places(fixture *fx, int dims, unsigned rounds)
{
    copy_store src[PLACES], dst[PLACES];
    hr_stream *stream;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    unsigned places = 0;
    for (; places < PLACES; places++) {
        hr_status status = store_open(fx, &src[places], (test_place)places, "shape source");
        if (status == HR_OK) {
            status = store_open(fx, &dst[places], (test_place)places, "shape destination");
        }
        if (status == HR_E_INVALID && places == IN_SYMBOL) {
            break; /* the device names variables of its kernels' code only */
        }
        CHECK_OK(status);
        CHECK_OK(store_randomize(fx, stream, &src[places]));
        CHECK_OK(store_randomize(fx, stream, &dst[places]));
    }
    for (unsigned to = 0; to < places; to++) {
        for (unsigned from = 0; from < places; from++) {
            for (unsigned round = 0; round < rounds && fx->failure[0] == '\0'; round++) {
                hr_copy shape = HR_COPY_INIT;
                try_copy(fx, stream, &dst[to], &src[from], dims);
                if (fx->failure[0] != '\0') {
                    say_which(fx, &dst[to], &src[from], &shape);
                }
            }
        }
    }
    for (unsigned i = 0; i < places; i++) {
        store_close(fx, &src[i]);
        store_close(fx, &dst[i]);
    }
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

static void copies_of_one_dimension(fixture *fx)
{
    every_pair_of_places(fx, 1, 20);
}

static void copies_of_two_dimensions(fixture *fx)
{
    every_pair_of_places(fx, 2, 20);
}

static void copies_of_three_dimensions(fixture *fx)
{
    every_pair_of_places(fx, 3, 20);
}

/* Ranges that do not overlap, in random order, some of them empty. */
static uint64_t random_segments(fixture *fx, hr_segment *segments, uint64_t most, uint64_t bytes)
{
    uint64_t at_src = random_below(fx, 64), at_dst = random_below(fx, 64), count = 0;
    while (count < most) {
        uint64_t length = random_below(fx, 5) == 0 ? 0 : random_below(fx, 300);
        if (at_src + length + 64 > bytes || at_dst + length + 64 > bytes) {
            break;
        }
        segments[count++] = (hr_segment){at_dst, at_src, length};
        at_src += length + random_below(fx, 30);
        at_dst += length + random_below(fx, 30);
    }
    for (uint64_t i = count; i > 1; i--) {
        uint64_t k = random_below(fx, i);
        hr_segment other = segments[i - 1];
        segments[i - 1] = segments[k];
        segments[k] = other;
    }
    return count;
}

static void try_segments(fixture *fx, hr_stream *stream, copy_store *dst, copy_store *src)
{
    hr_segment segments[400];
    hr_copy copy = HR_COPY_INIT;
    copy.src = whole_end(src);
    copy.dst = whole_end(dst);
    copy.segments = segments;
    copy.segment_count = random_segments(fx, segments, 400, STORE_BYTES);
    CHECK_OK(hr_copy_async(stream, &copy, &fx->error));
    for (uint64_t i = 0; i < copy.segment_count; i++) {
        memcpy(dst->model + segments[i].dst_offset_bytes, src->model + segments[i].src_offset_bytes,
               segments[i].bytes);
    }
    memset(segments, 0xff, sizeof segments); /* the list is the caller's again */
    CHECK_OK(move_whole(fx, stream, dst, false));
    CHECK(matches_model(dst));
}

static void lists_of_segments(fixture *fx)
{
    static const test_place linear[] = {PAGEABLE, PINNED, ON_DEVICE};
    enum { LINEAR = sizeof linear / sizeof linear[0] };
    copy_store src[LINEAR], dst[LINEAR];
    hr_stream *stream;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    for (int i = 0; i < LINEAR; i++) {
        CHECK_OK(store_open(fx, &src[i], linear[i], NULL));
        CHECK_OK(store_open(fx, &dst[i], linear[i], NULL));
        CHECK_OK(store_randomize(fx, stream, &src[i]));
        CHECK_OK(store_randomize(fx, stream, &dst[i]));
    }
    for (int i = 0; i < LINEAR * LINEAR * 4 && fx->failure[0] == '\0'; i++) {
        try_segments(fx, stream, &dst[i % LINEAR], &src[i / LINEAR % LINEAR]);
    }
    for (int i = 0; i < LINEAR; i++) {
        store_close(fx, &src[i]);
        store_close(fx, &dst[i]);
    }
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

static void try_fill(fixture *fx, hr_stream *stream, copy_store *store)
{
    uint32_t unit = 1U << random_below(fx, 3), value = (uint32_t)random_below(fx, UINT32_MAX);
    uint64_t width = unit * (1 + random_below(fx, 60)), height = 1 + random_below(fx, 10),
             depth = 1 + random_below(fx, 4);
    copy_side to = random_side(fx, store, width, height, depth);
    to.offset = to.offset / 4 * 4;
    to.row_pitch = to.row_pitch / unit * unit;
    to.slice_pitch = to.slice_pitch / unit * unit;
    hr_fill fill = HR_FILL_INIT;
    fill.dst = end_of(fx, &to);
    fill.width_bytes = width;
    fill.height = height;
    fill.depth = depth;
    fill.value = value;
    fill.value_bytes = unit;
    CHECK_OK(hr_fill_async(stream, &fill, &fx->error));
    for (uint64_t z = 0; z < depth; z++) {
        for (uint64_t y = 0; y < height; y++) {
            for (uint64_t i = 0; i < width; i++) {
                *model_at(&to, i, y, z) = (unsigned char)(value >> (8 * (i % unit)));
            }
        }
    }
    CHECK_OK(move_whole(fx, stream, store, false));
    CHECK(matches_model(store));
}

static void fills(fixture *fx)
{
    static const test_place places[] = {PINNED, ON_DEVICE};
    hr_stream *stream;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    for (int i = 0; i < 2; i++) {
        copy_store store;
        CHECK_OK(store_open(fx, &store, places[i], NULL));
        CHECK_OK(store_randomize(fx, stream, &store));
        for (int round = 0; round < 100 && fx->failure[0] == '\0'; round++) {
            try_fill(fx, stream, &store);
        }
        store_close(fx, &store);
    }
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

/* Nothing at all, one byte, and sizes around powers of two, at odd addresses. */
static void sizes_of_nothing_one_and_odd(fixture *fx)
{
    static const uint64_t sizes[] = {0,  1,   2,   3,    7,    15,    17,      63,
                                     65, 255, 257, 4095, 4097, 65537, 1048577, 8388609};
    const uint64_t room = UINT64_C(9) << 20;
    hr_stream *stream;
    char *device, *host, *back;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, room, 0, "sizes", (void **)&device));
    CHECK_OK(hr_pool_take(fx->pinned, room, 0, "sizes", (void **)&host));
    CHECK_OK(hr_pool_take(fx->pinned, room, 0, "sizes", (void **)&back));
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t bytes = sizes[i];
        for (uint64_t at = 0; at < bytes + 16; at++) {
            host[at] = (char)(at * 31 + i);
            back[at] = 0x55;
        }
        CHECK_OK(hr_copy_to_device(stream, device + 3, host + 1, bytes, &fx->error));
        CHECK_OK(hr_copy_to_host(stream, back + 5, device + 3, bytes, &fx->error));
        CHECK_OK(hr_stream_wait(stream, &fx->error));
        CHECK(memcmp(back + 5, host + 1, bytes) == 0);
        CHECK(back[4] == 0x55 && back[5 + bytes] == 0x55);
    }
    hr_copy flat = HR_COPY_INIT;
    flat.dst.base = NULL;
    flat.src.base = NULL;
    flat.width_bytes = 5;
    flat.height = 0;
    CHECK_OK(hr_copy_async(stream, &flat, &fx->error)); /* nothing to copy, so nothing to object to */
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_pool_give(fx->pinned, host));
    CHECK_OK(hr_pool_give(fx->pinned, back));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

/* A second device of the same kind: pieces go over, come back, and what lies beside them stays. */
static void copies_between_two_devices(fixture *fx)
{
    const uint64_t bytes = UINT64_C(1) << 20, guard = 4096;
    hr_device *other;
    hr_pool *there;
    hr_stream *stream;
    char *here, *far, *host;
    CHECK_OK(hr_device_open(fx->runtime, fx->peer, &other, &fx->error));
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.kind = HR_MEMORY_DEVICE;
    options.name = "peer";
    options.bytes = UINT64_C(4) << 20;
    CHECK_OK(hr_pool_open(other, &options, &there, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, bytes, 0, "here", (void **)&here));
    CHECK_OK(hr_pool_take(there, bytes + 2 * guard, 0, "there", (void **)&far));
    CHECK_OK(hr_pool_take(fx->pinned, 2 * bytes, 0, "host", (void **)&host));
    random_bytes(fx, host, bytes);
    CHECK_OK(hr_copy_to_device(stream, here, host, bytes, &fx->error));
    hr_copy copy = HR_COPY_INIT;
    copy.src.place = copy.dst.place = HR_PLACE_DEVICE;
    copy.src.base = here;
    copy.dst.base = far;
    copy.dst.device = other;
    copy.dst.offset_bytes = guard;
    copy.width_bytes = 1000;
    copy.height = bytes / 1024;
    copy.src.row_pitch_bytes = copy.dst.row_pitch_bytes = 1024;
    CHECK_OK(hr_copy_async(stream, &copy, &fx->error));
    hr_fill fill = HR_FILL_INIT;
    fill.dst.base = here;
    fill.width_bytes = bytes;
    fill.value = 9;
    CHECK_OK(hr_fill_async(stream, &fill, &fx->error));
    hr_end end = copy.src;
    copy.src = copy.dst;
    copy.dst = end;
    CHECK_OK(hr_copy_async(stream, &copy, &fx->error));
    CHECK_OK(hr_copy_to_host(stream, host + bytes, here, bytes, &fx->error));
    CHECK_OK(hr_stream_wait(stream, &fx->error));
    for (uint64_t i = 0; i < bytes; i++) {
        CHECK(host[bytes + i] == (i % 1024 < 1000 ? host[i] : 9));
    }
    CHECK_OK(hr_pool_give(fx->on_device, here));
    CHECK_OK(hr_pool_give(there, far));
    CHECK_OK(hr_pool_give(fx->pinned, host));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
    CHECK_OK(hr_pool_close(&there, &fx->error));
    CHECK_OK(hr_device_close(&other, &fx->error));
}

/* Each device's stream waits for an event of the other's, and both copy: a block goes over in pieces and comes back in
 * pieces, each piece as soon as it has arrived. */
static void two_devices_wait_for_each_other(fixture *fx)
{
    enum { PIECES = 32 };
    const uint64_t piece = (UINT64_C(1) << 19) + 12, bytes = PIECES * piece;
    hr_device *other;
    hr_pool *there;
    hr_stream *near, *far_side;
    hr_event *arrived;
    char *here, *far, *host;
    CHECK_OK(hr_device_open(fx->runtime, fx->peer, &other, &fx->error));
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    options.kind = HR_MEMORY_DEVICE;
    options.name = "peer";
    options.bytes = bytes;
    CHECK_OK(hr_pool_open(other, &options, &there, &fx->error));
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &near, &fx->error));
    CHECK_OK(hr_stream_open(other, HR_STREAM_ANY, &far_side, &fx->error));
    CHECK_OK(hr_event_open(fx->device, &arrived, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, bytes, 0, "here", (void **)&here));
    CHECK_OK(hr_pool_take(there, bytes, 0, "there", (void **)&far));
    CHECK_OK(hr_pool_take(fx->pinned, 2 * bytes, 0, "host", (void **)&host));
    random_bytes(fx, host, bytes);
    memset(host + bytes, 0, bytes);
    for (uint64_t at = 0; at < bytes; at += piece) {
        CHECK_OK(hr_copy_to_device(near, here + at, host + at, piece, &fx->error));
        hr_copy copy = HR_COPY_INIT;
        copy.src.place = copy.dst.place = HR_PLACE_DEVICE;
        copy.src.base = here + at;
        copy.dst.base = far + at;
        copy.dst.device = other;
        copy.width_bytes = piece;
        CHECK_OK(hr_copy_async(near, &copy, &fx->error));
        CHECK_OK(hr_event_record(arrived, near, &fx->error));
        CHECK_OK(hr_stream_wait_event(far_side, arrived, &fx->error));
        CHECK_OK(hr_copy_to_host(far_side, host + bytes + at, far + at, piece, &fx->error));
    }
    CHECK_OK(hr_stream_wait(far_side, &fx->error));
    CHECK(memcmp(host, host + bytes, bytes) == 0);
    CHECK_OK(hr_stream_wait(near, &fx->error));
    CHECK_OK(hr_event_close(&arrived, &fx->error));
    CHECK_OK(hr_pool_give(fx->on_device, here));
    CHECK_OK(hr_pool_give(there, far));
    CHECK_OK(hr_pool_give(fx->pinned, host));
    CHECK_OK(hr_stream_close(&near, &fx->error));
    CHECK_OK(hr_stream_close(&far_side, &fx->error));
    CHECK_OK(hr_pool_close(&there, &fx->error));
    CHECK_OK(hr_device_close(&other, &fx->error));
}

/* Descriptions that cannot be right are refused before anything is queued. */
static void wrong_descriptions_are_refused(fixture *fx)
{
    hr_stream *stream;
    char *device, *host;
    hr_array *array;
    hr_array_options options = HR_ARRAY_OPTIONS_INIT;
    options.width = 10;
    options.height = 10;
    CHECK_OK(hr_stream_open(fx->device, HR_STREAM_ANY, &stream, &fx->error));
    CHECK_OK(hr_array_open(fx->device, &options, &array, &fx->error));
    CHECK_OK(hr_pool_take(fx->on_device, 4096, 0, "wrong", (void **)&device));
    CHECK_OK(hr_pool_take(fx->pinned, 4096, 0, "wrong", (void **)&host));
    memset(host, 0, 4096);
    hr_copy good = HR_COPY_INIT, copy;
    good.dst.place = HR_PLACE_DEVICE;
    good.dst.base = device;
    good.src.base = host;
    good.width_bytes = 16;
    good.height = 4;

    copy = good, copy.src.row_pitch_bytes = 15;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID);
    copy = good, copy.depth = 2, copy.dst.slice_pitch_bytes = 63;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID);
    copy = good, copy.src.base = NULL;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID);
    copy = good, copy.src.place = (hr_place)77;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID);
    copy = good, copy.size = 3;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID);
    copy = good, copy.height = UINT64_C(1) << 62, copy.src.row_pitch_bytes = 16;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_RANGE);
    copy = good, copy.src.offset_bytes = UINT64_MAX - 4;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_RANGE);
    copy = good, copy.dst.place = HR_PLACE_ARRAY;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID); /* which array? */
    copy.dst.array = array, copy.dst.x = 7;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_RANGE);
    copy.dst.x = 6, copy.dst.y = 7;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_RANGE);
    copy.dst.y = 6, copy.width_bytes = 14;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID);
    copy = good, copy.height = 1, copy.src.place = HR_PLACE_DEVICE, copy.src.base = device + 15;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID); /* overlap */
    copy.src.place = HR_PLACE_HOST;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID); /* by whatever name */
    hr_array *bytes;
    options.dtype = HR_U8;
    options.width = 40;
    CHECK_OK(hr_array_open(fx->device, &options, &bytes, &fx->error));
    copy = good, copy.dst.place = copy.src.place = HR_PLACE_ARRAY, copy.dst.array = array,
    copy.src.array = bytes;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_INVALID); /* elements of unlike size */
    CHECK(strstr(fx->error.text, "elements of the source have 1 bytes") != NULL);
    CHECK_OK(hr_array_close(&bytes, &fx->error));
    hr_segment segment = {0, UINT64_MAX - 3, 8};
    copy = good, copy.segments = &segment, copy.segment_count = 1;
    CHECK(hr_copy_async(stream, &copy, &fx->error) == HR_E_RANGE);
    hr_fill fill = HR_FILL_INIT;
    fill.dst.base = device;
    fill.width_bytes = 6;
    fill.value_bytes = 4;
    CHECK(hr_fill_async(stream, &fill, &fx->error) == HR_E_INVALID);
    fill.value_bytes = 3;
    CHECK(hr_fill_async(stream, &fill, &fx->error) == HR_E_INVALID);
    hr_device_info info = HR_DEVICE_INFO_INIT;
    CHECK_OK(hr_device_get_info(fx->device, &info, &fx->error));
    char pageable[16] = {0};
    fill = (hr_fill)HR_FILL_INIT, fill.dst.place = HR_PLACE_HOST, fill.dst.base = pageable,
    fill.width_bytes = 16;
    CHECK(info.shares_host_memory || hr_fill_async(stream, &fill, &fx->error) == HR_E_UNSUPPORTED);

    CHECK_OK(hr_copy_async(stream, &good, &fx->error));
    CHECK_OK(hr_stream_wait(stream, &fx->error)); /* none of the refused ones came this far */
    CHECK_OK(hr_pool_give(fx->on_device, device));
    CHECK_OK(hr_pool_give(fx->pinned, host));
    CHECK_OK(hr_array_close(&array, &fx->error));
    CHECK_OK(hr_stream_close(&stream, &fx->error));
}

const named_case shape_cases[] = {
    {"shape: copies of one dimension", copies_of_one_dimension},
    {"shape: copies of two dimensions", copies_of_two_dimensions},
    {"shape: copies of three dimensions", copies_of_three_dimensions},
    {"shape: lists of segments", lists_of_segments},
    {"shape: fills", fills},
    {"shape: sizes of nothing, one and odd", sizes_of_nothing_one_and_odd},
    {"shape: copies between two devices", copies_between_two_devices},
    {"shape: two devices wait for each other", two_devices_wait_for_each_other},
    {"shape: wrong descriptions are refused", wrong_descriptions_are_refused},
    {NULL, NULL},
};
/* NOLINTEND(clang-analyzer-unix.Malloc) */
