/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every device must do, tried on any of them. A new backend's test is a call of conformance_run() with
 * its device spec. Each case prints one line: "ok NAME", "skipped NAME: WHY" or "FAILED NAME: WHERE: WHAT".
 */
#ifndef HR_TESTS_CONFORMANCE_H
#define HR_TESTS_CONFORMANCE_H

#include <headrace/copy.h>
#include <headrace/device.h>
#include <headrace/memory.h>
#include <headrace/op.h>
#include <headrace/stream.h>

#include "core/registry.h"

/*
 * Runs all cases whose name contains `only` (null: all) on a device; `peer` is the other one where a case needs two (null:
 * the same once more). `module_path` may be null. `thorough`
 * adds those that take seconds and gigabytes. Returns what a test program should exit with: 0, 1 if a case
 * failed, 77 if there is no such device.
 */
int conformance_run(const char *spec, const char *peer, const char *module_path, const char *only,
                    bool thorough);

/* What a case works with. The pools and the device are shared by all cases; a case gives back what it takes.
 */
typedef struct fixture {
    hr_runtime *runtime;
    hr_device *device;
    hr_device_info info;
    const char *spec, *peer;
    bool thorough;
    hr_pool *on_device, *pinned;
    hr_error error;      /* for the calls of the case */
    char failure[1024];  /* empty: good so far */
    const char *skipped; /* null, or why */
    uint64_t random;
} fixture;

typedef void (*conformance_case)(fixture *fx);
typedef struct named_case {
    const char *name;
    conformance_case run;
} named_case;

/* Ends with a case without a name. */
extern const named_case order_cases[], failure_cases[], shape_cases[], large_cases[], thread_cases[];

void fixture_fail(fixture *fx, const char *file, int line, const char *what, hr_status status);

/* End the case, with where and what, unless it holds. */
#define CHECK(condition)                                             \
    do {                                                             \
        if (!(condition)) {                                          \
            fixture_fail(fx, __FILE__, __LINE__, #condition, HR_OK); \
            return;                                                  \
        }                                                            \
    } while (0)
#define CHECK_OK(call)                                            \
    do {                                                          \
        hr_status status_ = (call);                               \
        if (status_ != HR_OK) {                                   \
            fixture_fail(fx, __FILE__, __LINE__, #call, status_); \
            return;                                               \
        }                                                         \
    } while (0)
/* For calls whose answer is not what the case is about. */
#define IGNORE(call)                 \
    do {                             \
        hr_status ignored_ = (call); \
        (void)ignored_;              \
    } while (0)

uint64_t random_below(fixture *fx, uint64_t bound);
void random_bytes(fixture *fx, void *bytes, uint64_t count);

/* Work for streams: a gate holds its stream up until it is opened. Only where launchers run on the device's
 * own threads; `gate_works` says so, else the case should be skipped. */
typedef struct stream_gate {
    void *lock; /* opaque */
} stream_gate;
bool gate_works(const fixture *fx);
hr_status gate_close_in(fixture *fx, stream_gate *gate, hr_stream *stream);
/* Waits until the stream has come to the gate. */
void gate_reached(stream_gate *gate);
void gate_open(stream_gate *gate);
/* After the stream is idle. */
void gate_free(stream_gate *gate);

/* Launches `fn` with a user pointer and no views. */
hr_status launch(fixture *fx, hr_stream *stream, hr_launch_fn fn, void *user);

#endif
