// SPDX-License-Identifier: Apache-2.0
// An op of one's own with a kernel in CUDA C: every pixel's distance from a colour. Headrace reads, copies in, copies out
// and keeps several chunks in flight; the program brings a launcher, and looks at one number at the end.
// Build: nvcc cuda_op.cu $(pkg-config --cflags --libs headrace)
#include <headrace/headrace.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct colour {
    float red, green, blue;
};

__global__ void distance(const colour *pixels, float *out, uint64_t count, colour from)
{
    const uint64_t step = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const float r = pixels[i].red - from.red, g = pixels[i].green - from.green,
                    b = pixels[i].blue - from.blue;
        out[i] = sqrtf(r * r + g * g + b * b);
    }
}

// Gets device memory and the stream, enqueues, returns: nothing here waits.
static hr_status launch_distance(const hr_launch *launch, hr_error *error)
{
    const uint64_t count = launch->out[0].shape.extent[0];
    distance<<<1024, 256, 0, static_cast<cudaStream_t>(launch->native_stream)>>>(
        static_cast<const colour *>(launch->in[0].data), static_cast<float *>(launch->out[0].data), count,
        *static_cast<const colour *>(launch->params));
    const cudaError_t code = cudaGetLastError();
    return code == cudaSuccess ? HR_OK
                               : hr_fail(error, HR_E_DEVICE, "distance: %s", cudaGetErrorString(code));
}

// Rows of three floats in, one float a row out; a chunk is a number of rows.
static hr_status plan_distance(const hr_op *, const void *, const hr_dtype *dtypes, const hr_shape *shapes,
                               hr_op_plan *plan, hr_error *error)
{
    if (dtypes[0] != HR_F32 || shapes[0].rank != 2 || shapes[0].extent[1] != 3) {
        return hr_fail(error, HR_E_INVALID, "distance: needs rows of three f32");
    }
    plan->outputs = 1;
    plan->dtype[0] = HR_F32;
    plan->shape[0].rank = 1;
    plan->shape[0].extent[0] = shapes[0].extent[0];
    return HR_OK;
}

static hr_status run(const std::vector<colour> &pixels, std::vector<float> &out, hr_error *error)
{
    const colour from = {0.2f, 0.4f, 0.6f};
    hr_op op = HR_OP_INIT;
    op.name = "distance";
    op.rule = HR_CHUNK_ROWS;
    op.plan = plan_distance;
    op.cuda = launch_distance;
    hr_source source = hr_source_from_memory(pixels.data(), pixels.size() * sizeof(colour));
    hr_sink sink = hr_sink_to_memory(out.data(), out.size() * sizeof(float));

    hr_runtime *runtime = nullptr;
    hr_device *device = nullptr;
    hr_pipeline *pipeline = nullptr;
    hr_report report = HR_REPORT_INIT;
    hr_status status = hr_runtime_open(nullptr, &runtime, error);
    if (status == HR_OK) {
        status = hr_device_open(runtime, "cuda", &device, error);
    }
    if (status == HR_OK) {
        hr_pipeline_options options;
        hr_pipeline_options_init(&options);
        options.op = &op;
        options.params = &from;
        options.devices = &device;
        options.device_count = 1;
        options.in[0].source = &source;
        options.in[0].dtype = HR_F32;
        options.in[0].shape.rank = 2;
        options.in[0].shape.extent[0] = pixels.size();
        options.in[0].shape.extent[1] = 3;
        options.out[0].sink = &sink;
        status = hr_pipeline_open(&options, &pipeline, error);
    }
    if (status == HR_OK) {
        status = hr_pipeline_run(pipeline, &report, error);
    }
    if (status == HR_OK) {
        std::printf("%zu pixels in %.4f s, %.1f GB/s in\n", pixels.size(), report.wall_s,
                    double(pixels.size() * sizeof(colour)) / report.wall_s / 1e9);
    }
    hr_status closed = hr_pipeline_close(&pipeline, nullptr);
    closed = closed != HR_OK ? closed : hr_device_close(&device, nullptr);
    closed = closed != HR_OK ? closed : hr_runtime_close(&runtime, nullptr);
    return status != HR_OK ? status : closed;
}

int main()
{
    std::vector<colour> pixels(size_t(1) << 24);
    std::vector<float> out(pixels.size());
    for (size_t i = 0; i < pixels.size(); i++) {
        pixels[i] = {float(i % 256) / 256, float(i % 1000) / 1000, float(i % 7) / 7};
    }
    hr_error error = HR_ERROR_INIT;
    if (run(pixels, out, &error) != HR_OK) {
        std::fprintf(stderr, "cuda_op: %s\n", error.text);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < pixels.size(); i += 997) {
        const double r = pixels[i].red - 0.2, g = pixels[i].green - 0.4, b = pixels[i].blue - 0.6;
        if (std::fabs(out[i] - std::sqrt(r * r + g * g + b * b)) > 1e-6) {
            std::fprintf(stderr, "cuda_op: pixel %zu: %g\n", i, double(out[i]));
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
