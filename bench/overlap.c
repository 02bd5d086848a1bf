/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well a pipeline hides copies under computing, and how well its time is foretold: a discrete device whose link
 * and whose computing are all set to the same speed, so that nothing is hidden for free. The first run measures the
 * op, the second is foretold from that. Prints one line a run and verifies the data.
 *
 *     bench_overlap [MEBIBYTES [GIGABYTES_PER_SECOND]]
 */
#include <headrace/headrace.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct pace {
    double bytes_per_s;
    double free_at; /* when the unit that computes is done with what it was given */
} pace;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Adds one to each number, and takes as long as a unit of the given speed would. */
static hr_status paced_chunk(const hr_launch *launch, hr_error *error)
{
    (void)error;
    pace *unit = launch->user;
    uint64_t count = launch->out[0].shape.extent[0];
    double begin = now_s();
    const uint32_t *in = launch->in[0].data;
    uint32_t *out = launch->out[0].data;
    for (uint64_t i = 0; i < count; i++) {
        out[i] = in[i] + 1;
    }
    /* A sleep that was too long shortens the next one, unless there was nothing to do in between. */
    begin = unit->free_at > begin - 1e-3 ? unit->free_at : begin;
    unit->free_at = begin + (double)count * sizeof *in / unit->bytes_per_s;
    struct timespec until = {(time_t)unit->free_at,
                             (long)((unit->free_at - (double)(time_t)unit->free_at) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    return HR_OK;
}

static hr_status run_once(hr_device *device, pace *unit, uint32_t *in, uint32_t *out, uint64_t count,
                          const char *cost_file, hr_report *report, hr_error *error)
{
    hr_op op = HR_OP_INIT;
    op.name = "paced";
    op.cpu = paced_chunk;
    hr_source source = hr_source_from_memory(in, count * sizeof *in);
    hr_sink sink = hr_sink_to_memory(out, count * sizeof *out);
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = &op;
    options.user = unit;
    options.devices = &device;
    options.device_count = 1;
    options.in[0] = (hr_port){.source = &source, .dtype = HR_U32, .shape = {1, {count}}};
    options.out[0].sink = &sink;
    options.cost_file = cost_file;
    hr_pipeline *pipeline = NULL;
    hr_status status = hr_pipeline_open(&options, &pipeline, error);
    if (status == HR_OK) {
        status = hr_pipeline_run(pipeline, report, error);
    }
    hr_status closed = hr_pipeline_close(&pipeline, NULL);
    return status != HR_OK ? status : closed;
}

static int compare(const uint32_t *in, const uint32_t *out, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (out[i] != in[i] + 1) {
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t mebibytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 256;
    double gbps = argc > 2 ? strtod(argv[2], NULL) : 0.5;
    uint64_t count = mebibytes << 18;
    uint32_t *in = malloc(count * sizeof *in), *out = calloc(count, sizeof *out);
    char spec[96], costs[] = "/tmp/headrace-bench-XXXXXX";
    int file = mkstemp(costs);
    if (in == NULL || out == NULL || file < 0 || mebibytes == 0 || gbps <= 0.0) {
        fprintf(stderr, "bench_overlap: needs a size, a speed, memory and a temporary file\n");
        free(in);
        free(out);
        return 2;
    }
    for (uint64_t i = 0; i < count; i++) {
        in[i] = (uint32_t)(i * 2654435761u);
    }
    /* Touched, so that the runs do not pay for it. */
    memset(out, 1, count * sizeof *out);
    snprintf(spec, sizeof spec, "cpu:discrete,h2d=%.3fG,d2h=%.3fG,threads=1", gbps, gbps);
    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_error error = HR_ERROR_INIT;
    hr_status status = hr_runtime_open(NULL, &runtime, &error);
    if (status == HR_OK) {
        status = hr_device_open(runtime, spec, &device, &error);
    }
    pace unit = {.bytes_per_s = gbps * 1e9};
    int right = 1;
    for (int i = 0; i < 3 && status == HR_OK; i++) {
        hr_report report = HR_REPORT_INIT;
        status = run_once(device, &unit, in, out, count, costs, &report, &error);
        if (status == HR_OK) {
            right = right && compare(in, out, count);
            printf("%s: %s run: wall %.4f s, predicted %.4f s (ratio %.3f), overlap %.3f, efficiency %.3f, "
                   "chunk %.2f "
                   "MiB, %u slots, %s\n",
                   spec, i == 0 ? "first" : "later", report.wall_s, report.predicted_s,
                   report.wall_s / report.predicted_s, report.overlap, report.efficiency,
                   (double)report.chunk_bytes / 1048576.0, report.depth, right ? "verified" : "WRONG DATA");
        }
    }
    if (status != HR_OK) {
        fprintf(stderr, "bench_overlap: %s\n", error.text);
    }
    hr_status closed = hr_device_close(&device, NULL);
    closed = closed == HR_OK ? hr_runtime_close(&runtime, NULL) : closed;
    remove(costs);
    free(in);
    free(out);
    return status == HR_OK && closed == HR_OK && right ? 0 : 1;
}
