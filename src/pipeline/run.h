/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline from the inside: what every executor shares.
 *
 * The life of a run. open: planned, memory taken, threads started and waiting at the gate. run: the executor begins, the
 * gate opens; each thread works until there is nothing left for it or the run has stopped, then leaves; the caller
 * of hr_pipeline_run() is the supervisor, who sleeps on a semaphore and wakes for progress, for a cancel and
 * for the last thread. Then the executor settles (nothing of the run is still moving on a device), and each
 * sink is finished or discarded, once.
 *
 * Stopping. `stop_at` is the first chunk that is not to be completed: UINT64_MAX while all is well, k after
 * chunk k has failed, 0 after a cancel. It only falls. A thread that waits for its turn with chunk j gives up
 * when j ≥ stop_at; chunks below it go on, because one of them may fail too and the lowest failure is the one
 * to be named. No wait of an executor lacks this way out, and whoever lowers stop_at wakes all waits.
 */
#ifndef HR_PIPELINE_RUN_H
#define HR_PIPELINE_RUN_H

#include <headrace/pipeline.h>

#include "base/fork.h"
#include "core/registry.h"
#include "cost/cost.h"
#include "pipeline/costs.h"
#include "pipeline/cut.h"
#include "pipeline/gauge.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

typedef enum hr_run_phase {
    HR_RUN_OPENED,
    HR_RUN_STARTING, /* the executor begins; threads still wait at the gate */
    HR_RUN_RUNNING,
    HR_RUN_OVER,
    HR_RUN_CLOSING /* closed without having run: threads leave at the gate */
} hr_run_phase;

/* A place that chunks pass one after the other, in order. Guarded by the pipeline's lock. */
typedef struct hr_turn {
    uint64_t next;
    pthread_cond_t moved;
} hr_turn;

/* How chunks are moved. One instance a pipeline; `state` is its own. */
typedef struct hr_executor {
    const char *name;
    /* Takes all memory and spawns all threads. On failure `close` is called. */
    hr_status (*open)(hr_pipeline *pipeline, hr_error *error);
    /* Queues on the caller's thread what needs no waiting, so that devices have work while threads wake up. Before any
     * thread runs. Null if there is nothing. */
    void (*begin)(hr_pipeline *pipeline);
    /* Wakes every wait of the executor's, with the lock held. */
    void (*wake_all)(hr_pipeline *pipeline);
    /* The run was cancelled: drops what is queued on devices. Null if there is nothing. */
    void (*cancel)(hr_pipeline *pipeline);
    /* All threads have left: waits until no device touches the run's memory. Null if none does. */
    void (*settle)(hr_pipeline *pipeline);
    /* Releases everything; threads have been joined. Also after a failed open. */
    hr_status (*close)(hr_pipeline *pipeline, hr_error *error);
} hr_executor;

typedef struct hr_run_thread {
    pthread_t thread;
    hr_pipeline *pipeline;
    void (*body)(hr_pipeline *pipeline, void *argument);
    void *argument;
} hr_run_thread;

#define HR_RUN_MAX_THREADS 256

struct hr_pipeline {
    hr_pipeline_options options;
    hr_op_plan plan;
    hr_cut cut;
    hr_dtype in_dtype[HR_MAX_PORTS];
    hr_device_info info; /* of the first device */
    const hr_executor *executor;
    void *state;
    hr_fork_guard guard; /* its threads are not in a child */

    pthread_mutex_t lock;
    pthread_cond_t gate;
    hr_run_phase phase;
    uint32_t thread_count, active;
    hr_run_thread threads[HR_RUN_MAX_THREADS];
    sem_t wake; /* for the supervisor */

    atomic_bool cancelled;
    _Atomic uint64_t stop_at;
    _Atomic uint64_t chunks; /* in all; falls from UINT64_MAX to the number when the end is found */
    uint64_t next_chunk;     /* to be begun */
    bool failed;
    hr_error failure;

    void *total; /* of a reduction */
    _Atomic uint64_t done_bytes, written_bytes[HR_MAX_PORTS];
    uint64_t total_bytes; /* 0: not known */
    hr_gauge gauge[HR_STAGE_COUNT];
    hr_cost_stage
        cost[HR_STAGE_COUNT];       /* of one device, by the stage's own bytes; what the plan is made from */
    hr_costs costs;                 /* of the first device */
    double flops_per_s;             /* of HR_CHUNK_TILES; 0: not known */
    double ceiling[HR_STAGE_COUNT]; /* bytes/s as measured before the run; 0: not known */
    double h2d_with_d2h, d2h_with_h2d; /* the same, of each direction while both are busy */
    uint32_t width[HR_STAGE_COUNT];    /* how many spans of the stage run at once at most; 0: no such stage */
    uint32_t depth;
    uint64_t chunk_bytes; /* where the cut does not tell: of a tile of C */
    uint64_t pinned_bytes, device_bytes;
    double setup_s, predicted_s;
    /* Multiplications and additions of a product on one device (the mean of several), as hr_tile_plan_work() counts. */
    double device_work;
    uint64_t begin_ns;
};

extern const hr_executor hr_lane_executor; /* devices that share the host's memory */
extern const hr_executor hr_flow_executor; /* devices with memory of their own */
extern const hr_executor hr_tile_executor; /* matrix products */
extern const hr_executor hr_band_executor; /* matrix products in memory that the device shares */

/* Starts a thread that waits at the gate and then runs body(pipeline, argument). Called from open only. */
HR_CHECKED hr_status hr_run_spawn(hr_pipeline *pipeline, const char *name,
                                  void (*body)(hr_pipeline *pipeline, void *argument), void *argument,
                                  hr_error *error);

/* Is chunk `chunk` not to be completed any more, or past the end? */
bool hr_run_stopped(const hr_pipeline *pipeline, uint64_t chunk);
/* Records a failure of a chunk (HR_NO_CHUNK: of none) and stops the run from there. Without the lock. */
void hr_run_fail(hr_pipeline *pipeline, uint64_t chunk, const hr_error *error);
/* The data turned out to end: there are `chunks` chunks. Without the lock. */
void hr_run_end(hr_pipeline *pipeline, uint64_t chunks);

/* A chunk of so many units is through. */
void hr_run_done(hr_pipeline *pipeline, uint64_t chunk, uint64_t units);
/* The run is to end as cancelled. Called by the supervisor. */
void hr_run_stop(hr_pipeline *pipeline);

/* Makes a failure of what a user's function answered: a positive status is none of its answers, and a failure
 * without a text gets one. `who`: "the op". */
HR_CHECKED hr_status hr_run_refused(hr_status status, const char *who, hr_error *error);

/* Lets the op fill its state, of plan.state_bytes of host memory. */
HR_CHECKED hr_status hr_run_prepare(const hr_pipeline *pipeline, void *state, hr_error *error);

hr_status hr_turn_init(hr_turn *turn);
void hr_turn_destroy(hr_turn *turn);
/* Waits until it is the chunk's turn; false if the chunk is stopped. Then hr_turn_pass() lets the next one.
 */
bool hr_turn_wait(hr_pipeline *pipeline, hr_turn *turn, uint64_t chunk);
void hr_turn_pass(hr_pipeline *pipeline, hr_turn *turn, uint64_t chunk);

/* A span's place; times and bytes are given with it. */
typedef struct hr_place_in_run {
    hr_stage stage;
    uint64_t chunk;
    uint32_t port, lane;
    const char *device;
} hr_place_in_run;
/* A span of the calling thread: enter before, leave after. One of no bytes is not told. */
hr_mark hr_run_enter(hr_pipeline *pipeline, hr_stage stage);
void hr_run_leave(hr_pipeline *pipeline, hr_place_in_run place, hr_mark mark, uint64_t bytes);
/* A span that happened elsewhere. */
void hr_run_span(hr_pipeline *pipeline, hr_place_in_run place, uint64_t begin_ns, uint64_t end_ns,
                 uint64_t bytes);
/* A sink's finish: the write stage's, and it has no bytes. */
void hr_run_finished(hr_pipeline *pipeline, hr_place_in_run place, uint64_t begin_ns, uint64_t end_ns);
void hr_run_note(hr_pipeline *pipeline, const char *format, ...) HR_PRINTF(2, 3);

/* Fills a launch with what is the same for all chunks. */
hr_launch hr_run_launch(const hr_pipeline *pipeline, uint64_t chunk);

#endif
