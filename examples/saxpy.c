/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a source, a sink and an op of its own: out = 2·x + 1 over a sine that is made as it is read,
 * and a sink that keeps the largest value. Build: cc saxpy.c $(pkg-config --cflags --libs headrace) -lm */
#include <headrace/headrace.h>

#include <math.h>
#include <stdio.h>

enum { COUNT = 1 << 24 };

/* The source: fills any part of the array when it is asked for it; several threads ask at once. */
static hr_status sine_read(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                           hr_error *error)
{
    (void)self, (void)error;
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        ((float *)buffer)[i] = sinf((float)(offset / sizeof(float) + i));
    }
    *got = bytes;
    return HR_OK;
}

/* The op: one chunk of it, on the CPU. For a GPU, `cuda` would enqueue a kernel on launch->native_stream. */
static hr_status scale_chunk(const hr_launch *launch, hr_error *error)
{
    (void)error;
    const float *x = launch->in[0].data;
    float *out = launch->out[0].data;
    for (uint64_t i = 0; i < launch->out[0].shape.extent[0]; i++) {
        out[i] = 2.0f * x[i] + 1.0f;
    }
    return HR_OK;
}

/* The sink: `sequential`, so it is called by one thread at a time, in order. */
static hr_status largest_write(void *self, uint64_t offset, const void *buffer, uint64_t bytes,
                               hr_error *error)
{
    (void)offset, (void)error;
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        *(float *)self = fmaxf(*(float *)self, ((const float *)buffer)[i]);
    }
    return HR_OK;
}

int main(int argc, char **argv)
{
    float largest = -INFINITY;
    hr_source source = HR_SOURCE_INIT;
    source.read = sine_read;
    source.bytes = COUNT * sizeof(float);
    hr_sink sink = HR_SINK_INIT;
    sink.self = &largest;
    sink.write = largest_write;
    sink.sequential = true;
    hr_op op = HR_OP_INIT;
    op.name = "saxpy";
    op.cpu = scale_chunk;

    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_pipeline *pipeline = NULL;
    hr_error error = HR_ERROR_INIT;
    hr_report report = HR_REPORT_INIT;
    hr_status status = hr_runtime_open(NULL, &runtime, &error);
    if (status == HR_OK) {
        status = hr_device_open(runtime, argc > 1 ? argv[1] : "cpu", &device, &error);
    }
    if (status == HR_OK) {
        hr_pipeline_options options;
        hr_pipeline_options_init(&options);
        options.op = &op;
        options.devices = &device;
        options.device_count = 1;
        options.in[0] = (hr_port){.source = &source, .dtype = HR_F32, .shape = {1, {COUNT}}};
        options.out[0] = (hr_port){.sink = &sink, .dtype = HR_F32};
        status = hr_pipeline_open(&options, &pipeline, &error);
    }
    if (status == HR_OK) {
        status = hr_pipeline_run(pipeline, &report, &error);
    }
    if (status == HR_OK) {
        printf("largest %.6f, %.3f s, overlap %.2f\n", largest, report.wall_s, report.overlap);
    } else {
        fprintf(stderr, "saxpy: %s\n", error.text);
    }
    hr_status closed = hr_pipeline_close(&pipeline, NULL);
    closed = closed != HR_OK ? closed : hr_device_close(&device, NULL);
    closed = closed != HR_OK ? closed : hr_runtime_close(&runtime, NULL);
    return status == HR_OK && closed == HR_OK ? 0 : 1;
}
