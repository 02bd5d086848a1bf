/* SPDX-License-Identifier: Apache-2.0 */
/* Small ops, sources and sinks for tests of pipelines: each does one thing that a test can count on. */
#ifndef HR_TESTS_SUPPORT_PIPES_H
#define HR_TESTS_SUPPORT_PIPES_H

#include <headrace/headrace.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* c = 3a + b on u32, wrapping. */
static inline hr_status pipes_mix(const hr_launch *launch, hr_error *error)
{
    (void)error;
    const uint32_t *a = launch->in[0].data, *b = launch->in[1].data;
    uint32_t *c = launch->out[0].data;
    for (uint64_t i = 0; i < launch->out[0].shape.extent[0]; i++) {
        c[i] = 3 * a[i] + b[i];
    }
    return HR_OK;
}

static const hr_op pipes_mix_op = {
    .size = sizeof(hr_op), .name = "mix", .inputs = 2, .rule = HR_CHUNK_ELEMENTS, .cpu = pipes_mix};

/* Each row becomes the sum of the rows within reach of `params` (a uint64_t), edges cut off, on u32. */
static inline hr_status pipes_column_sums(const hr_launch *launch, hr_error *error)
{
    (void)error;
    const hr_view *in = &launch->in[0], *out = &launch->out[0];
    uint64_t reach = *(const uint64_t *)launch->params, columns = out->shape.extent[1];
    for (uint64_t r = 0; r < out->shape.extent[0]; r++) {
        uint64_t row = out->first + r;
        uint64_t low = row > reach ? row - reach : 0;
        uint64_t high = row + reach < out->whole.extent[0] - 1 ? row + reach : out->whole.extent[0] - 1;
        for (uint64_t c = 0; c < columns; c++) {
            uint32_t sum = 0;
            for (uint64_t y = low; y <= high; y++) {
                sum += ((const uint32_t *)in->data)[(y - in->first) * columns + c];
            }
            ((uint32_t *)out->data)[r * columns + c] = sum;
        }
    }
    return HR_OK;
}

static inline hr_status pipes_rows_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                                        const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    (void)op;
    (void)error;
    plan->outputs = 1;
    plan->dtype[0] = dtypes[0];
    plan->shape[0] = shapes[0];
    plan->halo_rows = *(const uint64_t *)params;
    return HR_OK;
}

static const hr_op pipes_rows_op = {.size = sizeof(hr_op),
                                    .name = "column_sums",
                                    .inputs = 1,
                                    .rule = HR_CHUNK_ROWS,
                                    .plan = pipes_rows_plan,
                                    .cpu = pipes_column_sums};

/* A fold that is neither commutative nor associative over chunks unless they come in order: h = h·31 + x over
 * u32 elements. The partial is the fold of the chunk; combining needs the chunk's length. */
static inline hr_status pipes_fold(const hr_launch *launch, hr_error *error)
{
    (void)error;
    uint64_t h = 0;
    for (uint64_t i = 0; i < launch->in[0].shape.extent[0]; i++) {
        h = h * 31 + ((const uint32_t *)launch->in[0].data)[i];
    }
    memcpy(launch->partial, &h, sizeof h);
    return HR_OK;
}

static inline void pipes_fold_combine(const hr_op *op, const void *params, void *total, const void *partial,
                                      uint64_t elements)
{
    (void)op;
    (void)params;
    uint64_t h = *(uint64_t *)total;
    for (uint64_t i = 0; i < elements; i++) {
        h *= 31;
    }
    *(uint64_t *)total = h + *(const uint64_t *)partial;
}

static inline hr_status pipes_fold_result(const hr_op *op, const void *params, hr_dtype dtype,
                                          const void *total, hr_result *result, hr_error *error)
{
    (void)op;
    (void)params;
    (void)dtype;
    (void)error;
    result->kind = HR_RESULT_U64;
    memcpy(&result->as.u64, total, sizeof result->as.u64);
    return HR_OK;
}

static inline hr_status pipes_fold_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                                        const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    (void)op;
    (void)params;
    (void)dtypes;
    (void)shapes;
    (void)error;
    plan->outputs = 0;
    plan->partial_bytes = sizeof(uint64_t);
    return HR_OK;
}

static const hr_op pipes_fold_op = {.size = sizeof(hr_op),
                                    .name = "fold",
                                    .inputs = 1,
                                    .rule = HR_CHUNK_REDUCE,
                                    .plan = pipes_fold_plan,
                                    .cpu = pipes_fold,
                                    .combine = pipes_fold_combine,
                                    .result = pipes_fold_result};

/* A source over memory that goes through read(), and watches how it is called. */
typedef struct pipes_source {
    const unsigned char *data;
    uint64_t bytes;
    uint64_t most_a_read; /* 0: no limit; only for a length that is not known */
    bool ordered;         /* fail when a read does not begin where the last one ended */
    uint64_t fail_at;     /* offset from which reads fail; UINT64_MAX: never */
    uint64_t lose_at;     /* offset at which the data ends although more was promised */
    uint64_t sleep_ns;    /* each read */
    _Atomic uint64_t at, reads, readers;
} pipes_source;

static inline void pipes_sleep(uint64_t ns)
{
    if (ns > 0) {
        struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
        nanosleep(&pause, NULL);
    }
}

static inline hr_status pipes_read(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                                   hr_error *error)
{
    pipes_source *source = self;
    atomic_fetch_add(&source->reads, 1);
    uint64_t together = atomic_fetch_add(&source->readers, 1);
    pipes_sleep(source->sleep_ns);
    uint64_t end = source->lose_at < source->bytes ? source->lose_at : source->bytes;
    uint64_t left = offset < end ? end - offset : 0;
    uint64_t some = bytes < left ? bytes : left;
    some = source->most_a_read > 0 && some > source->most_a_read ? source->most_a_read : some;
    hr_status status = some == 0 ? HR_END : HR_OK;
    if (source->ordered && (together > 0 || offset != atomic_load(&source->at))) {
        status = hr_fail(error, HR_E_INTERNAL, "test: read out of order");
    } else if (offset + bytes > source->fail_at) {
        status =
            hr_fail(error, HR_E_IO, "test: no reading past byte %llu", (unsigned long long)source->fail_at);
    } else {
        memcpy(buffer, source->data + offset, some);
        *got = some;
        atomic_store(&source->at, offset + some);
    }
    atomic_fetch_sub(&source->readers, 1);
    return status;
}

static inline hr_source pipes_make_source(pipes_source *self, const void *data, uint64_t bytes)
{
    *self = (pipes_source){.data = data, .bytes = bytes, .fail_at = UINT64_MAX, .lose_at = UINT64_MAX};
    hr_source source = HR_SOURCE_INIT;
    source.self = self;
    source.bytes = bytes;
    source.read = pipes_read;
    return source;
}

/* A sink over memory that goes through write(), and counts how it ends. */
typedef struct pipes_sink {
    unsigned char *data;
    uint64_t bytes;
    bool ordered;
    uint64_t fail_at; /* offset from which writes fail */
    uint64_t sleep_ns;
    bool fail_finish;
    _Atomic uint64_t at, writes, writers;
    _Atomic int finished, discarded;
    uint64_t finished_bytes;
} pipes_sink;

static inline hr_status pipes_write(void *self, uint64_t offset, const void *buffer, uint64_t bytes,
                                    hr_error *error)
{
    pipes_sink *sink = self;
    atomic_fetch_add(&sink->writes, 1);
    uint64_t together = atomic_fetch_add(&sink->writers, 1);
    pipes_sleep(sink->sleep_ns);
    hr_status status = HR_OK;
    if (sink->ordered && (together > 0 || offset != atomic_load(&sink->at))) {
        status = hr_fail(error, HR_E_INTERNAL, "test: write out of order");
    } else if (offset + bytes > sink->fail_at) {
        status =
            hr_fail(error, HR_E_NO_SPACE, "test: no room past byte %llu", (unsigned long long)sink->fail_at);
    } else if (offset + bytes > sink->bytes) {
        status = hr_fail(error, HR_E_INTERNAL, "test: write past the end");
    } else {
        memcpy(sink->data + offset, buffer, bytes);
        atomic_store(&sink->at, offset + bytes);
    }
    atomic_fetch_sub(&sink->writers, 1);
    return status;
}

static inline hr_status pipes_finish(void *self, uint64_t bytes, hr_error *error)
{
    pipes_sink *sink = self;
    atomic_fetch_add(&sink->finished, 1);
    sink->finished_bytes = bytes;
    return sink->fail_finish ? hr_fail(error, HR_E_IO, "test: finish refused") : HR_OK;
}

static inline void pipes_discard(void *self)
{
    pipes_sink *sink = self;
    atomic_fetch_add(&sink->discarded, 1);
}

static inline hr_sink pipes_make_sink(pipes_sink *self, void *data, uint64_t bytes)
{
    *self = (pipes_sink){.data = data, .bytes = bytes, .fail_at = UINT64_MAX};
    hr_sink sink = HR_SINK_INIT;
    sink.self = self;
    sink.write = pipes_write;
    sink.finish = pipes_finish;
    sink.discard = pipes_discard;
    return sink;
}

/* A file for measured costs that this program's runs share, so that only the first of them measures. */
static char pipes_costs[64];
static inline void pipes_remove_costs(void)
{
    remove(pipes_costs);
}
static inline const char *pipes_cost_file(void)
{
    if (pipes_costs[0] == '\0') {
        snprintf(pipes_costs, sizeof pipes_costs, "/tmp/headrace-test-costs-%ld", (long)getpid());
        atexit(pipes_remove_costs);
    }
    return pipes_costs;
}

static inline uint32_t *pipes_numbers(uint64_t count, uint32_t seed)
{
    uint32_t *numbers = malloc((count + 1) * sizeof *numbers);
    uint32_t x = seed * 2654435761u + 1;
    for (uint64_t i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        numbers[i] = x;
    }
    return numbers;
}

#endif
