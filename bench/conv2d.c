/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_conv2d IMAGE.npy KERNEL.npy OUT.npy: filters an image from memory to memory on `cpu` each time a line
 * comes in on standard input, and prints the seconds that it took. At the end of the input it writes the last
 * result. bench/conv2d.py drives it, beside another library in the same run.
 */
#include <headrace/headrace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    hr_device *device;
    hr_array_info info;
    hr_conv2d_params params;
    void *image, *result;
} job;

static hr_status read_array(const char *path, hr_array_info *info, void **data, hr_error *error)
{
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    hr_input *input;
    hr_status status = hr_input_open(path, &options, &input, error);
    if (status != HR_OK) {
        return status;
    }
    *info = (hr_array_info)HR_ARRAY_INFO_INIT;
    hr_input_info(input, info);
    *data = malloc(info->bytes + 1);
    status = *data != NULL ? hr_input_read_all(input, *data, error)
                           : hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for it", path);
    hr_input_close(&input);
    return status;
}

static hr_status write_array(const char *path, const job *j, hr_error *error)
{
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    hr_output *output;
    hr_status status = hr_output_create(path, j->info.dtype, &j->info.shape, &options, &output, error);
    if (status != HR_OK) {
        return status;
    }
    hr_sink *sink = hr_output_sink(output);
    status = sink->write(sink->self, 0, j->result, j->info.bytes, error);
    if (status == HR_OK) {
        status = hr_output_commit(output, error);
    }
    hr_output_close(&output);
    return status;
}

static hr_status run_once(const job *j, double *seconds, hr_error *error)
{
    hr_source source = hr_source_from_memory(j->image, j->info.bytes);
    hr_sink sink = hr_sink_to_memory(j->result, j->info.bytes);
    hr_device *devices[1] = {j->device};
    hr_pipeline_options options;
    hr_pipeline_options_init(&options);
    options.op = hr_op_find("conv2d");
    options.params = &j->params;
    options.devices = devices;
    options.device_count = 1;
    options.in[0].source = &source;
    options.in[0].dtype = j->info.dtype;
    options.in[0].shape = j->info.shape;
    options.out[0].sink = &sink;
    hr_pipeline *pipeline;
    hr_status status = hr_pipeline_open(&options, &pipeline, error);
    if (status != HR_OK) {
        return status;
    }
    hr_report report = HR_REPORT_INIT;
    status = hr_pipeline_run(pipeline, &report, error);
    *seconds = report.wall_s;
    hr_error ignored = HR_ERROR_INIT;
    const hr_status closed = hr_pipeline_close(&pipeline, &ignored);
    return status != HR_OK ? status : closed;
}

static hr_status serve(job *j, const char *out, hr_error *error)
{
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        double seconds = 0.0;
        const hr_status status = run_once(j, &seconds, error);
        if (status != HR_OK) {
            return status;
        }
        printf("%.9f\n", seconds);
        fflush(stdout);
    }
    return write_array(out, j, error);
}

static hr_status prepare(char **paths, job *j, hr_error *error)
{
    hr_array_info kernel;
    void *values = NULL;
    hr_status status = read_array(paths[0], &j->info, &j->image, error);
    if (status == HR_OK) {
        status = read_array(paths[1], &kernel, &values, error);
    }
    if (status == HR_OK) {
        status = hr_conv2d_set_kernel(&j->params, values, kernel.dtype, &kernel.shape, error);
    }
    free(values);
    j->result = calloc(1, j->info.bytes + 1);
    if (status == HR_OK && j->result == NULL) {
        status = hr_fail(error, HR_E_HOST_MEMORY, "no memory for the result");
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: bench_conv2d IMAGE.npy KERNEL.npy OUT.npy\n");
        return 2;
    }
    hr_error error = HR_ERROR_INIT;
    hr_runtime *runtime = NULL;
    job j;
    memset(&j, 0, sizeof j);
    hr_status status = hr_runtime_open(NULL, &runtime, &error);
    if (status == HR_OK) {
        status = hr_device_open(runtime, "cpu", &j.device, &error);
    }
    if (status == HR_OK) {
        status = prepare(argv + 1, &j, &error);
    }
    if (status == HR_OK) {
        status = serve(&j, argv[3], &error);
    }
    if (status != HR_OK) {
        fprintf(stderr, "bench_conv2d: %s\n", error.text);
    }
    hr_error ignored = HR_ERROR_INIT;
    if (hr_device_close(&j.device, &ignored) != HR_OK || hr_runtime_close(&runtime, &ignored) != HR_OK) {
        status = HR_E_BUSY;
    }
    free(j.image);
    free(j.result);
    return status == HR_OK ? 0 : 1;
}
