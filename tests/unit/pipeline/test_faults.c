/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a run: which chunk is named, how the sinks end, and that everybody comes home. Each case
 * runs on the device that shares the host's memory and on one that does not; a device that closes proves that
 * nothing was left behind. */
#include "support/pipes.h"
#include "support/unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static hr_runtime *runtime;
static const char *const specs[] = {"cpu", "cpu:discrete,threads=2"};
enum { SPECS = sizeof specs / sizeof specs[0], COUNT = 6400, CHUNK = 64 };

static int open_runtime(void **state)
{
    (void)state;
    return hr_runtime_open(NULL, &runtime, NULL) == HR_OK ? 0 : -1;
}

static int close_runtime(void **state)
{
    (void)state;
    return hr_runtime_close(&runtime, NULL) == HR_OK ? 0 : -1;
}

/* c = 3a + b in chunks of 64 elements, with everything that a case may bend. */
typedef struct bench {
    uint32_t *a, *b, *c;
    pipes_source a_self, b_self;
    pipes_sink c_self;
    hr_source a_source, b_source;
    hr_sink c_sink;
    hr_op op;
    hr_observer observer;
    hr_device *device;
    hr_pipeline_options options;
    hr_pipeline *pipeline;
    hr_report report;
    hr_error error;
} bench;

static void set_up(bench *t, const char *spec)
{
    memset(t, 0, sizeof *t);
    t->error = HR_ERROR_INIT;
    t->report.size = sizeof t->report;
    t->a = pipes_numbers(COUNT, 1);
    t->b = pipes_numbers(COUNT, 2);
    t->c = calloc(COUNT, sizeof *t->c);
    t->a_source = pipes_make_source(&t->a_self, t->a, 4 * COUNT);
    t->b_source = pipes_make_source(&t->b_self, t->b, 4 * COUNT);
    t->c_sink = pipes_make_sink(&t->c_self, t->c, 4 * COUNT);
    t->op = pipes_mix_op;
    assert_int_equal(hr_device_open(runtime, spec, &t->device, &t->error), HR_OK);
    hr_pipeline_options_init(&t->options);
    t->options.op = &t->op;
    t->options.devices = &t->device;
    t->options.device_count = 1;
    t->options.in[0] = (hr_port){.source = &t->a_source, .dtype = HR_U32, .shape = {1, {COUNT}}};
    t->options.in[1] = (hr_port){.source = &t->b_source, .dtype = HR_U32, .shape = {1, {COUNT}}};
    t->options.out[0].sink = &t->c_sink;
    t->options.chunk_bytes = 4 * CHUNK;
    t->options.depth = 4;
    t->options.cost_file = pipes_cost_file();
}

static void tear_down(bench *t)
{
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_pipeline_close(&t->pipeline, &error), HR_OK);
    assert_int_equal(hr_device_close(&t->device, &error), HR_OK);
    free(t->a);
    free(t->b);
    free(t->c);
}

static hr_status run(bench *t)
{
    hr_status status = hr_pipeline_open(&t->options, &t->pipeline, &t->error);
    return status == HR_OK ? hr_pipeline_run(t->pipeline, &t->report, &t->error) : status;
}

/* Ended as a failure does: discarded once, never finished. */
static void expect_discarded(const bench *t)
{
    assert_int_equal(t->c_self.discarded, 1);
    assert_int_equal(t->c_self.finished, 0);
}

static void a_source_that_fails_names_its_chunk(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        for (int in_order = 0; in_order < 2; in_order++) {
            bench t;
            set_up(&t, specs[s]);
            t.b_source.sequential = t.b_self.ordered = in_order;
            t.b_self.fail_at = UINT64_C(4) * CHUNK * 37 + 20;
            assert_int_equal(run(&t), HR_E_IO);
            assert_int_equal(t.error.chunk, 37);
            assert_non_null(strstr(t.error.text, "chunk 37: input 2: test: no reading past byte"));
            expect_discarded(&t);
            tear_down(&t);
        }
    }
}

static void a_source_that_ends_early_is_told_in_bytes(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        t.a_self.lose_at = UINT64_C(4) * CHUNK * 5 + 8;
        assert_int_equal(run(&t), HR_E_IO);
        assert_int_equal(t.error.chunk, 5);
        assert_non_null(strstr(t.error.text, "ended at byte 1288, and 25600 are needed"));
        expect_discarded(&t);
        tear_down(&t);
    }
}

static void a_shape_that_promises_more_than_a_stream_has_is_told(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        t.a_source.bytes = HR_LENGTH_UNKNOWN;
        t.a_source.sequential = t.a_self.ordered = true;
        t.a_self.lose_at = UINT64_C(4) * CHUNK * 9 + 12;
        assert_int_equal(run(&t), HR_E_IO);
        assert_int_equal(t.error.chunk, 9);
        expect_discarded(&t);
        tear_down(&t);
    }
}

/* Fails for every chunk from the one in `user` on, so that several fail at once and the lowest must be named.
 */
static hr_status failing_mix(const hr_launch *launch, hr_error *error)
{
    const uint64_t *from = launch->user;
    if (launch->chunk >= *from) {
        /* The later ones fail sooner. */
        pipes_sleep(launch->chunk == *from ? 3000000 : 0);
        return hr_fail(error, HR_E_DEVICE, "test: no more");
    }
    return pipes_mix(launch, error);
}

static void the_lowest_chunk_that_failed_is_named(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        for (uint64_t from = 0; from < 100; from += 33) {
            bench t;
            set_up(&t, specs[s]);
            t.op.cpu = failing_mix;
            t.options.user = &from;
            assert_int_equal(run(&t), HR_E_DEVICE);
            assert_int_equal(t.error.chunk, from);
            assert_non_null(strstr(t.error.text, "test: no more"));
            assert_int_equal(t.report.done_bytes, 8 * CHUNK * from);
            expect_discarded(&t);
            tear_down(&t);
        }
    }
}

static hr_status mute_mix(const hr_launch *launch, hr_error *error)
{
    (void)launch;
    (void)error;
    return *(const hr_status *)launch->user;
}

static void an_op_that_does_not_say_why_still_gets_a_text(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        hr_status answer = HR_E_DEVICE_MEMORY;
        set_up(&t, specs[s]);
        t.op.cpu = mute_mix;
        t.options.user = &answer;
        assert_int_equal(run(&t), HR_E_DEVICE_MEMORY);
        assert_int_equal(t.error.chunk, 0);
        assert_true(strlen(t.error.text) > strlen("chunk 0: "));
        tear_down(&t);
    }
}

/* Half the data, and then an answer that a source does not have. */
static hr_status read_half(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                           hr_error *error)
{
    const pipes_source *source = self;
    return offset >= source->bytes / 2 ? HR_AGAIN : pipes_read(self, offset, buffer, bytes, got, error);
}

static void an_answer_that_sources_do_not_have_is_not_the_end_of_the_data(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        for (int known = 0; known < 2; known++) {
            bench t;
            set_up(&t, specs[s]);
            t.a_source.read = t.b_source.read = read_half;
            t.a_source.sequential = t.b_source.sequential = true;
            if (!known) {
                t.a_source.bytes = t.b_source.bytes = HR_LENGTH_UNKNOWN;
                t.options.in[0].shape.extent[0] = t.options.in[1].shape.extent[0] = HR_LENGTH_UNKNOWN;
            }
            assert_int_equal(run(&t), HR_E_INVALID);
            assert_int_equal(t.error.chunk, COUNT / CHUNK / 2);
            assert_non_null(strstr(t.error.text, "the source answered 2"));
            expect_discarded(&t);
            tear_down(&t);
        }
    }
}

static hr_status answer_of_prepare;

static hr_status mute_prepare(const hr_op *op, const void *params, void *state, hr_error *error)
{
    (void)op;
    (void)params;
    (void)state;
    (void)error;
    return answer_of_prepare;
}

static hr_status stateful_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                               const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    (void)op;
    (void)params;
    (void)error;
    plan->outputs = 1;
    plan->dtype[0] = dtypes[0];
    plan->shape[0] = shapes[0];
    plan->state_bytes = 8;
    return HR_OK;
}

static void an_op_that_cannot_be_prepared_fails_the_opening_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        hr_status answer, expected;
        const char *text;
    } cases[] = {{HR_PENDING, HR_E_INVALID, "mix answered 1"}, {HR_E_IO, HR_E_IO, "mix failed"}};
    for (int s = 0; s < SPECS; s++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            bench t;
            set_up(&t, specs[s]);
            t.op.plan = stateful_plan;
            t.op.prepare = mute_prepare;
            answer_of_prepare = cases[i].answer;
            assert_int_equal(hr_pipeline_open(&t.options, &t.pipeline, &t.error), cases[i].expected);
            assert_null(t.pipeline);
            assert_int_equal(t.error.status, cases[i].expected);
            assert_non_null(strstr(t.error.text, cases[i].text));
            tear_down(&t);
        }
    }
}

static void a_sink_that_fails_is_discarded(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        for (int in_order = 0; in_order < 2; in_order++) {
            bench t;
            set_up(&t, specs[s]);
            t.c_sink.sequential = t.c_self.ordered = in_order;
            t.c_self.fail_at = UINT64_C(4) * CHUNK * 50;
            assert_int_equal(run(&t), HR_E_NO_SPACE);
            assert_int_equal(t.error.chunk, 50);
            expect_discarded(&t);
            tear_down(&t);
        }
    }
}

static void a_finish_that_fails_is_the_failure_of_the_run(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        t.c_self.fail_finish = true;
        assert_int_equal(run(&t), HR_E_IO);
        assert_int_equal(t.error.chunk, HR_NO_CHUNK);
        assert_non_null(strstr(t.error.text, "finish refused"));
        assert_int_equal(t.c_self.finished, 1);
        assert_int_equal(t.c_self.discarded, 0);
        tear_down(&t);
    }
}

/* Cancels from inside, at the n-th span of one stage. */
typedef struct canceller {
    hr_pipeline **pipeline;
    hr_stage stage;
    _Atomic int left;
} canceller;

static void cancel_at(void *self, const hr_span *span)
{
    canceller *c = self;
    if (span->stage == c->stage && atomic_fetch_sub(&c->left, 1) == 1) {
        hr_pipeline_cancel(*c->pipeline);
    }
}

static void a_cancel_at_each_stage_ends_the_run(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        for (int stage = 0; stage < HR_STAGE_COUNT; stage++) {
            bool host_only = s == 0 && (stage == HR_STAGE_H2D || stage == HR_STAGE_D2H);
            if (host_only || stage == HR_STAGE_STAGE) {
                continue;
            }
            bench t;
            set_up(&t, specs[s]);
            canceller c = {&t.pipeline, (hr_stage)stage, 10};
            t.observer = (hr_observer){.size = sizeof t.observer, .self = &c, .span = cancel_at};
            t.options.observer = &t.observer;
            t.a_self.sleep_ns = 200000;
            assert_int_equal(run(&t), HR_E_CANCELLED);
            assert_true(t.report.done_bytes < 8 * COUNT);
            expect_discarded(&t);
            tear_down(&t);
        }
    }
}

static hr_pipeline *signalled;
static void on_alarm(int number)
{
    (void)number;
    hr_pipeline_cancel(signalled);
}

static void a_signal_handler_may_cancel(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        t.a_self.sleep_ns = 5000000;
        assert_int_equal(hr_pipeline_open(&t.options, &t.pipeline, &t.error), HR_OK);
        signalled = t.pipeline;
        struct sigaction action = {.sa_handler = on_alarm}, old;
        assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
        ualarm(30000, 0);
        assert_int_equal(hr_pipeline_run(t.pipeline, &t.report, &t.error), HR_E_CANCELLED);
        assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
        expect_discarded(&t);
        tear_down(&t);
    }
}

/* A source that blocks until it is interrupted. */
typedef struct blocker {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool interrupted;
} blocker;

static hr_status blocked_read(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                              hr_error *error)
{
    (void)buffer;
    (void)bytes;
    (void)got;
    (void)offset;
    blocker *b = self;
    pthread_mutex_lock(&b->lock);
    while (!b->interrupted) {
        pthread_cond_wait(&b->wake, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return hr_fail(error, HR_E_CANCELLED, "test: interrupted");
}

static void interrupt_blocker(void *self)
{
    blocker *b = self;
    pthread_mutex_lock(&b->lock);
    b->interrupted = true;
    pthread_cond_broadcast(&b->wake);
    pthread_mutex_unlock(&b->lock);
}

/* A sink that is cancelled while it finishes, and would wait for ever. */
typedef struct slow_finish {
    blocker blocked;
    hr_pipeline **pipeline;
} slow_finish;

static hr_status cancelled_finish(void *self, uint64_t bytes, hr_error *error)
{
    slow_finish *f = self;
    uint64_t got;
    hr_pipeline_cancel(*f->pipeline);
    return blocked_read(&f->blocked, bytes, NULL, 0, &got, error);
}

static hr_status take_anything(void *self, uint64_t offset, const void *buffer, uint64_t bytes,
                               hr_error *error)
{
    (void)self, (void)offset, (void)buffer, (void)bytes, (void)error;
    return HR_OK;
}

static void a_cancel_reaches_a_sink_that_finishes(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        slow_finish f = {{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false}, &t.pipeline};
        hr_sink sink = HR_SINK_INIT;
        sink.self = &f;
        sink.write = take_anything;
        sink.finish = cancelled_finish;
        sink.interrupt = interrupt_blocker; /* its blocker is the first member */
        t.options.out[0].sink = &sink;
        assert_int_equal(run(&t), HR_E_CANCELLED);
        tear_down(&t);
    }
}

static void a_blocked_source_is_interrupted_when_another_fails(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        blocker b = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
        t.a_source.self = &b;
        t.a_source.read = blocked_read;
        t.a_source.interrupt = interrupt_blocker;
        t.a_source.sequential = true;
        t.b_self.fail_at = 0;
        if (s == 0) {
            /* A lane reads its inputs one after the other: the failure must come first. */
            hr_port port = t.options.in[0];
            t.options.in[0] = t.options.in[1];
            t.options.in[1] = port;
        }
        assert_int_equal(run(&t), HR_E_IO);
        assert_int_equal(t.error.chunk, 0);
        tear_down(&t);
    }
}

static void a_pipeline_that_never_ran_closes(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        assert_int_equal(hr_pipeline_open(&t.options, &t.pipeline, &t.error), HR_OK);
        tear_down(&t);
        assert_int_equal(t.c_self.finished + t.c_self.discarded, 0);
    }
}

static void a_pipeline_cancelled_before_it_runs_reads_nothing_to_its_end(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        assert_int_equal(hr_pipeline_open(&t.options, &t.pipeline, &t.error), HR_OK);
        hr_pipeline_cancel(t.pipeline);
        assert_int_equal(hr_pipeline_run(t.pipeline, &t.report, &t.error), HR_E_CANCELLED);
        expect_discarded(&t);
        assert_int_equal(hr_pipeline_run(t.pipeline, &t.report, &t.error), HR_E_INVALID);
        expect_discarded(&t);
        tear_down(&t);
    }
}

/* 0 if the child of a fork is told so by every call, and none waits for threads that are not there. */
static int use_in_child(hr_pipeline **pipeline)
{
    hr_error error = HR_ERROR_INIT;
    alarm(60);
    if (hr_pipeline_run(*pipeline, NULL, &error) != HR_E_FORKED || strstr(error.text, "fork") == NULL) {
        return 1;
    }
    hr_pipeline_cancel(*pipeline);
    return hr_pipeline_close(pipeline, &error) == HR_E_FORKED && *pipeline != NULL ? 0 : 2;
}

static void a_child_is_told_that_the_pipeline_is_its_parents(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        assert_int_equal(hr_pipeline_open(&t.options, &t.pipeline, &t.error), HR_OK);
        for (int ran = 0; ran < 2; ran++) {
            pid_t child = fork();
            if (child == 0) {
                _exit(use_in_child(&t.pipeline));
            }
            int ended = -1;
            assert_int_equal(waitpid(child, &ended, 0), child);
            assert_int_equal(ended, 0);
            hr_status expected = ran ? HR_E_INVALID : HR_OK;
            assert_int_equal(hr_pipeline_run(t.pipeline, &t.report, &t.error), expected);
        }
        tear_down(&t);
    }
}

static void close_while_running(void *self, const hr_span *span)
{
    (void)span;
    bench *t = self;
    hr_pipeline *same = t->pipeline;
    hr_error error = HR_ERROR_INIT;
    if (hr_pipeline_close(&same, &error) != HR_E_BUSY || same != t->pipeline) {
        abort();
    }
}

static void a_running_pipeline_does_not_close(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        t.observer = (hr_observer){.size = sizeof t.observer, .self = &t, .span = close_while_running};
        t.options.observer = &t.observer;
        assert_int_equal(run(&t), HR_OK);
        tear_down(&t);
    }
}

/* Chunks that were read and not yet written, at most. */
typedef struct in_flight {
    pipes_source *source;
    pipes_sink *sink;
    _Atomic uint64_t most;
} in_flight;

static void watch_flight(void *self, const hr_span *span)
{
    in_flight *f = self;
    if (span->stage == HR_STAGE_WRITE) {
        uint64_t read = atomic_load(&f->source->reads), written = atomic_load(&f->sink->writes);
        uint64_t now = read > written ? read - written : 0;
        uint64_t most = atomic_load(&f->most);
        while (now > most && !atomic_compare_exchange_weak(&f->most, &most, now)) {
        }
    }
}

static void a_slow_sink_slows_the_source(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        in_flight f = {&t.a_self, &t.c_self, 0};
        t.observer = (hr_observer){.size = sizeof t.observer, .self = &f, .span = watch_flight};
        t.options.observer = &t.observer;
        t.c_sink.sequential = true;
        t.c_self.sleep_ns = 2000000;
        assert_int_equal(run(&t), HR_OK);
        assert_true(f.most <= t.options.depth);
        assert_true(t.report.pinned_bytes <= t.options.depth * 3 * 4 * CHUNK + 4096);
        tear_down(&t);
    }
}

/* The sanitizers keep what was freed for a while (up to 256 MiB), and are slow at starting threads; leaks are told by
 * the address sanitizer itself. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { MANY = 100, GROWTH_MIB = 320 };
#else
enum { MANY = 1000, GROWTH_MIB = 4 };
#endif

static uint64_t resident_bytes(void)
{
    char text[128] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    char *resident = strchr(text, ' ');
    assert_non_null(resident);
    return strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void a_thousand_pipelines_leave_memory_flat(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        bench t;
        set_up(&t, specs[s]);
        uint64_t after_some = 0;
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(run(&t), HR_OK);
            assert_int_equal(hr_pipeline_close(&t.pipeline, &t.error), HR_OK);
            if (i == MANY / 10) {
                after_some = resident_bytes();
            }
        }
        assert_true(resident_bytes() <= after_some + ((uint64_t)GROWTH_MIB << 20));
        tear_down(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_that_fails_names_its_chunk),
        cmocka_unit_test(a_source_that_ends_early_is_told_in_bytes),
        cmocka_unit_test(a_shape_that_promises_more_than_a_stream_has_is_told),
        cmocka_unit_test(the_lowest_chunk_that_failed_is_named),
        cmocka_unit_test(an_op_that_does_not_say_why_still_gets_a_text),
        cmocka_unit_test(an_answer_that_sources_do_not_have_is_not_the_end_of_the_data),
        cmocka_unit_test(an_op_that_cannot_be_prepared_fails_the_opening_with_a_reason),
        cmocka_unit_test(a_sink_that_fails_is_discarded),
        cmocka_unit_test(a_finish_that_fails_is_the_failure_of_the_run),
        cmocka_unit_test(a_cancel_at_each_stage_ends_the_run),
        cmocka_unit_test(a_signal_handler_may_cancel),
        cmocka_unit_test(a_cancel_reaches_a_sink_that_finishes),
        cmocka_unit_test(a_blocked_source_is_interrupted_when_another_fails),
        cmocka_unit_test(a_pipeline_that_never_ran_closes),
        cmocka_unit_test(a_pipeline_cancelled_before_it_runs_reads_nothing_to_its_end),
        cmocka_unit_test(a_child_is_told_that_the_pipeline_is_its_parents),
        cmocka_unit_test(a_running_pipeline_does_not_close),
        cmocka_unit_test(a_slow_sink_slows_the_source),
        cmocka_unit_test(a_thousand_pipelines_leave_memory_flat),
    };
    return cmocka_run_group_tests(tests, open_runtime, close_runtime);
}
