/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few rows of a Fortran-ordered matrix are a few elements of each column: a read each, and each of a page
 * that holds hundreds of rows. So whole bands of rows are turned at once, high enough that a column's share
 * is worth its read, and the readers, who come for one chunk after the other, copy out of them.
 *
 * The life of a slot: empty → filling → ready or failed → empty. A thread that needs a band takes a free slot
 * (nobody uses it, the one used longest ago), and every thread that needs a band in the filling takes tasks
 * from it until none is left, then waits for the others'. A thread holds one slot at a time, so that two
 * slots are enough to never lock up.
 */
#include "io/bands.h"

#include "base/checked.h"
#include "host/topology.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 2
/* What a column should give at once. */
#define RUN_BYTES (UINT64_C(16) << 10)
/* A band's memory: at most a sixteenth of what is free, within these bounds. */
#define BAND_BYTES_LEAST (UINT64_C(64) << 20)
#define BAND_BYTES_MOST  (UINT64_C(1) << 30)
#define TASKS_MOST       64

typedef enum slot_state { SLOT_EMPTY = 0, SLOT_FILLING, SLOT_READY, SLOT_FAILED } slot_state;

typedef struct slot {
    slot_state state;
    uint64_t band;
    uint32_t users;
    uint64_t used_at; /* a count of uses, to find the slot that rested longest */
    uint64_t next;    /* tasks handed out, and done */
    uint64_t done;
    hr_status status;
    hr_error error;
    unsigned char *data;
} slot;

struct hr_bands {
    const hr_fortran *array;
    uint64_t row_elements;
    uint64_t rows; /* of a band; 0: bands do not fit in memory, or gain nothing */
    uint32_t split_axis;
    uint64_t tasks;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t uses;
    slot slots[SLOTS];
};

hr_status hr_bands_open(const hr_fortran *array, hr_bands **bands, hr_error *error)
{
    hr_bands *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to transpose in", array->name);
    }
    const hr_shape *shape = &array->shape;
    b->array = array;
    b->row_elements = 1;
    b->split_axis = 1;
    for (uint32_t k = 1; k < shape->rank; k++) {
        b->row_elements *= shape->extent[k];
        if (shape->extent[k] > shape->extent[b->split_axis]) {
            b->split_axis = k;
        }
    }
    b->tasks = hr_min_u64(shape->extent[b->split_axis], TASKS_MOST);
    uint64_t total_bytes;
    uint64_t free_bytes;
    hr_host_memory_room(&total_bytes, &free_bytes);
    uint64_t room = hr_min_u64(hr_max_u64(free_bytes / 16, BAND_BYTES_LEAST), BAND_BYTES_MOST);
    uint64_t rows =
        hr_min_u64(hr_max_u64(RUN_BYTES / array->width, 1), room / (b->row_elements * array->width));
    b->rows = hr_min_u64(rows, shape->extent[0]);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    *bands = b;
    return HR_OK;
}

void hr_bands_close(hr_bands **bands)
{
    hr_bands *b = *bands;
    if (b == NULL) {
        return;
    }
    for (int i = 0; i < SLOTS; i++) {
        free(b->slots[i].data);
    }
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    free(b);
    *bands = NULL;
}

/* One share of a band: a range of the longest trailing axis. Without the lock. */
static hr_status fill_task(const hr_bands *bands, const slot *s, uint64_t task, hr_error *error)
{
    const hr_shape *shape = &bands->array->shape;
    hr_box box = hr_box_whole(shape);
    box.low[0] = s->band * bands->rows;
    box.count[0] = hr_min_u64(bands->rows, shape->extent[0] - box.low[0]);
    uint32_t axis = bands->split_axis;
    uint64_t extent = shape->extent[axis];
    uint64_t share = hr_div_up(extent, bands->tasks);
    uint64_t low = hr_min_u64(task * share, extent);
    box.low[axis] = low;
    box.count[axis] = hr_min_u64(share, extent - low);
    if (box.count[axis] == 0) {
        return HR_OK;
    }
    return hr_fortran_read_box(bands->array, &box, s->data + low * box.dst[axis] * bands->array->width,
                               error);
}

/* Takes tasks until there are none, waits for those of others. With the lock. */
static void fill(hr_bands *bands, slot *s)
{
    while (s->next < bands->tasks && s->status == HR_OK) {
        uint64_t task = s->next++;
        pthread_mutex_unlock(&bands->lock);
        hr_error error = HR_ERROR_INIT;
        hr_status status = fill_task(bands, s, task, &error);
        pthread_mutex_lock(&bands->lock);
        s->done++;
        if (status != HR_OK && s->status == HR_OK) {
            s->status = status;
            s->error = error;
        }
    }
    if (s->status != HR_OK) {
        /* What was not handed out will not be. */
        s->done += bands->tasks - s->next;
        s->next = bands->tasks;
    }
    if (s->state == SLOT_FILLING && s->done == bands->tasks) {
        s->state = s->status == HR_OK ? SLOT_READY : SLOT_FAILED;
        pthread_cond_broadcast(&bands->changed);
    }
    while (s->state == SLOT_FILLING) {
        pthread_cond_wait(&bands->changed, &bands->lock);
    }
}

/* The slot that has the band or is to get it; null when both are in use for others. With the lock. */
static slot *find_slot(hr_bands *bands, uint64_t band)
{
    slot *oldest = NULL;
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &bands->slots[i];
        if (s->state != SLOT_EMPTY && s->state != SLOT_FAILED && s->band == band) {
            return s;
        }
        if (s->users == 0 && (oldest == NULL || s->used_at < oldest->used_at)) {
            oldest = s;
        }
    }
    if (oldest != NULL) {
        oldest->state = SLOT_FILLING;
        oldest->band = band;
        oldest->next = 0;
        oldest->done = 0;
        oldest->status = HR_OK;
    }
    return oldest;
}

static hr_status take_band(hr_bands *bands, uint64_t band, slot **taken, hr_error *error)
{
    pthread_mutex_lock(&bands->lock);
    slot *s;
    while ((s = find_slot(bands, band)) == NULL) {
        pthread_cond_wait(&bands->changed, &bands->lock);
    }
    s->users++;
    s->used_at = ++bands->uses;
    if (s->data == NULL) {
        s->data = malloc(bands->rows * bands->row_elements * bands->array->width);
        if (s->data == NULL && s->status == HR_OK) {
            s->status =
                hr_fail(&s->error, HR_E_HOST_MEMORY, "%s: no memory to transpose in", bands->array->name);
        }
    }
    if (s->state == SLOT_FILLING) {
        fill(bands, s);
    }
    hr_status status = s->status;
    if (status != HR_OK) {
        if (error != NULL) {
            *error = s->error;
        }
        s->users--;
        pthread_cond_broadcast(&bands->changed);
    }
    pthread_mutex_unlock(&bands->lock);
    *taken = s;
    return status;
}

static void give_band(hr_bands *bands, slot *s)
{
    pthread_mutex_lock(&bands->lock);
    s->users--;
    if (s->users == 0) {
        pthread_cond_broadcast(&bands->changed);
    }
    pthread_mutex_unlock(&bands->lock);
}

hr_status hr_bands_read(hr_bands *bands, uint64_t first, uint64_t count, void *to, hr_error *error)
{
    uint64_t band_elements = bands->rows * bands->row_elements;
    /* A piece as high as a band needs none. */
    if (bands->rows == 0 || count >= band_elements) {
        return hr_fortran_read(bands->array, first, count, to, error);
    }
    unsigned char *at = to;
    while (count > 0) {
        uint64_t skip = first % band_elements;
        uint64_t n = hr_min_u64(count, band_elements - skip);
        slot *s;
        hr_status status = take_band(bands, first / band_elements, &s, error);
        if (status != HR_OK) {
            return status;
        }
        memcpy(at, s->data + skip * bands->array->width, n * bands->array->width);
        give_band(bands, s);
        first += n;
        count -= n;
        at += n * bands->array->width;
    }
    return HR_OK;
}
