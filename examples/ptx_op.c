/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An op of one's own without CUDA's compiler, headers or libraries at build time: the kernel is PTX, text that the driver
 * compiles, and the driver's functions are found in libcuda.so.1 when the program runs. y = 3·x.
 * Build: cc ptx_op.c $(pkg-config --cflags --libs headrace)
 */
#include <headrace/headrace.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1 << 24, THREADS = 256 };

static const char triple_ptx[] = ".version 7.0\n"
                                 ".target sm_70\n"
                                 ".address_size 64\n"
                                 ".visible .entry triple(.param .u64 x, .param .u64 y, .param .u64 count)\n"
                                 "{\n"
                                 "    .reg .u64 %rd<8>;\n"
                                 "    .reg .u32 %r<4>;\n"
                                 "    .reg .f32 %f<3>;\n"
                                 "    .reg .pred %p;\n"
                                 "    mov.u32 %r0, %ctaid.x;\n"
                                 "    mov.u32 %r1, %ntid.x;\n"
                                 "    mov.u32 %r2, %tid.x;\n"
                                 "    mul.wide.u32 %rd0, %r0, %r1;\n"
                                 "    cvt.u64.u32 %rd1, %r2;\n"
                                 "    add.u64 %rd0, %rd0, %rd1;\n"
                                 "    ld.param.u64 %rd2, [count];\n"
                                 "    setp.ge.u64 %p, %rd0, %rd2;\n"
                                 "    @%p ret;\n"
                                 "    ld.param.u64 %rd3, [x];\n"
                                 "    ld.param.u64 %rd4, [y];\n"
                                 "    shl.b64 %rd5, %rd0, 2;\n"
                                 "    add.u64 %rd6, %rd3, %rd5;\n"
                                 "    ld.global.f32 %f0, [%rd6];\n"
                                 "    mul.f32 %f1, %f0, 0f40400000;\n"
                                 "    add.u64 %rd7, %rd4, %rd5;\n"
                                 "    st.global.f32 [%rd7], %f1;\n"
                                 "    ret;\n"
                                 "}\n";

/* The three functions of the driver's that this takes. Handles are pointers, results numbers with 0 for success. */
static struct {
    int (*load)(void **module, const void *image);
    int (*find)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,
                  void **extra);
    void *triple;
    char failure[128];
} driver;

static int find_function(void *library, const char *name, void *slot)
{
    void *found = dlsym(library, name);
    memcpy(slot, &found, sizeof found);
    return found != NULL;
}

/* Called by the first launch, when the device's context is current. */
static void load_kernel(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *module = NULL;
    if (library == NULL || !find_function(library, "cuModuleLoadData", &driver.load) ||
        !find_function(library, "cuModuleGetFunction", &driver.find) ||
        !find_function(library, "cuLaunchKernel", &driver.launch)) {
        snprintf(driver.failure, sizeof driver.failure, "libcuda.so.1 is not there, or lacks a function");
        return;
    }
    int code = driver.load(&module, triple_ptx);
    if (code == 0) {
        code = driver.find(&driver.triple, module, "triple");
    }
    if (code != 0) {
        snprintf(driver.failure, sizeof driver.failure, "loading the kernel: CUDA error %d", code);
    }
}

static hr_status launch_triple(const hr_launch *launch, hr_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_kernel);
    if (driver.failure[0] != '\0') {
        return hr_fail(error, HR_E_DEVICE, "triple: %s", driver.failure);
    }
    void *x = launch->in[0].data;
    void *y = launch->out[0].data;
    uint64_t count = launch->out[0].shape.extent[0];
    void *arguments[] = {&x, &y, &count};
    unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
    int code =
        driver.launch(driver.triple, blocks, 1, 1, THREADS, 1, 1, 0, launch->native_stream, arguments, NULL);
    return code == 0 ? HR_OK : hr_fail(error, HR_E_DEVICE, "triple: CUDA error %d", code);
}

static hr_status run(const float *x, float *y, hr_error *error)
{
    hr_op op = HR_OP_INIT;
    op.name = "triple";
    op.cuda = launch_triple;
    hr_source source = hr_source_from_memory(x, COUNT * sizeof *x);
    hr_sink sink = hr_sink_to_memory(y, COUNT * sizeof *y);
    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_pipeline *pipeline = NULL;
    hr_report report = HR_REPORT_INIT;
    hr_status status = hr_runtime_open(NULL, &runtime, error);
    if (status == HR_OK) {
        status = hr_device_open(runtime, "cuda", &device, error);
    }
    if (status == HR_OK) {
        hr_pipeline_options options;
        hr_pipeline_options_init(&options);
        options.op = &op;
        options.devices = &device;
        options.device_count = 1;
        options.in[0] = (hr_port){.source = &source, .dtype = HR_F32, .shape = {1, {COUNT}}};
        options.out[0] = (hr_port){.sink = &sink, .dtype = HR_F32};
        status = hr_pipeline_open(&options, &pipeline, error);
    }
    if (status == HR_OK) {
        status = hr_pipeline_run(pipeline, &report, error);
    }
    if (status == HR_OK) {
        printf("%d values in %.4f s\n", COUNT, report.wall_s);
    }
    hr_status closed = hr_pipeline_close(&pipeline, NULL);
    closed = closed != HR_OK ? closed : hr_device_close(&device, NULL);
    closed = closed != HR_OK ? closed : hr_runtime_close(&runtime, NULL);
    return status != HR_OK ? status : closed;
}

int main(void)
{
    float *x = malloc(COUNT * sizeof *x);
    float *y = malloc(COUNT * sizeof *y);
    hr_error error = HR_ERROR_INIT;
    int good = x != NULL && y != NULL;
    for (int i = 0; i < COUNT && good; i++) {
        x[i] = (float)i;
    }
    if (good && run(x, y, &error) != HR_OK) {
        fprintf(stderr, "ptx_op: %s\n", error.text);
        good = 0;
    }
    for (int i = 0; i < COUNT && good; i++) {
        good = y[i] == 3.0f * x[i];
    }
    free(x);
    free(y);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
