/* SPDX-License-Identifier: Apache-2.0 */
/* Which device a spec means, with made-up backends. */
#include "support/unit.h"

#include "core/registry.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static uint32_t gpus;

static hr_status gpu_probe(uint32_t *count, hr_error *error)
{
    if (gpus == 0) {
        return hr_fail(error, HR_E_NOT_FOUND, "gpu: no driver is installed");
    }
    *count = gpus;
    return HR_OK;
}

static hr_status gpu_spec_at(uint32_t index, char *spec, size_t room)
{
    snprintf(spec, room, "gpu:%u", index);
    return index < gpus ? HR_OK : HR_E_NOT_FOUND;
}

static hr_status cpu_probe(uint32_t *count, hr_error *error)
{
    (void)error;
    *count = 1;
    return HR_OK;
}

static hr_status cpu_spec_at(uint32_t index, char *spec, size_t room)
{
    snprintf(spec, room, "cpu");
    return index == 0 ? HR_OK : HR_E_NOT_FOUND;
}

static void device_close(hr_bdevice *device)
{
    (void)device;
}

static const hr_device_ops device_ops = {.close = device_close};
static char opened_rest[64];

static hr_status open_any(const char *rest, hr_bdevice **device, const hr_device_ops **ops, hr_error *error)
{
    (void)error;
    snprintf(opened_rest, sizeof opened_rest, "%s", rest);
    *device = NULL;
    *ops = &device_ops;
    return HR_OK;
}

static const hr_backend cpu = {
    .abi = HR_BACKEND_ABI, .name = "cpu", .probe = cpu_probe, .spec_at = cpu_spec_at, .open = open_any};
static const hr_backend gpu = {
    .abi = HR_BACKEND_ABI, .name = "gpu", .probe = gpu_probe, .spec_at = gpu_spec_at, .open = open_any};

static hr_runtime *runtime_with(uint32_t gpu_count)
{
    hr_runtime *runtime = NULL;
    gpus = gpu_count;
    assert_int_equal(hr_registry_open(&runtime, NULL), HR_OK);
    assert_int_equal(hr_registry_add(runtime, &cpu, NULL), HR_OK);
    assert_int_equal(hr_registry_add(runtime, &gpu, NULL), HR_OK);
    return runtime;
}

static char listed[256];

static hr_status list(void *user, const char *spec)
{
    (void)user;
    size_t used = strlen(listed);
    snprintf(listed + used, sizeof listed - used, "%s ", spec);
    return HR_OK;
}

static const char *expanded(hr_runtime *runtime, const char *spec)
{
    hr_error error = HR_ERROR_INIT;
    listed[0] = '\0';
    if (hr_device_expand(runtime, spec, list, NULL, &error) != HR_OK) {
        snprintf(listed, sizeof listed, "%.200s", error.text);
    }
    return listed;
}

static void auto_is_the_first_gpu_else_the_cpu(void **state)
{
    (void)state;
    hr_runtime *runtime = runtime_with(2);
    assert_string_equal(expanded(runtime, "auto"), "gpu:0 ");
    assert_int_equal(hr_runtime_device_count(runtime), 3);
    assert_string_equal(hr_runtime_device_spec(runtime, 2), "cpu");
    assert_null(hr_runtime_device_spec(runtime, 3));
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
    runtime = runtime_with(0);
    assert_string_equal(expanded(runtime, "auto"), "cpu ");
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

static void specs_of_several_devices_are_expanded(void **state)
{
    (void)state;
    hr_runtime *runtime = runtime_with(3);
    assert_string_equal(expanded(runtime, "gpu:all"), "gpu:0 gpu:1 gpu:2 ");
    assert_string_equal(expanded(runtime, "gpu:2,0"), "gpu:2 gpu:0 ");
    assert_string_equal(expanded(runtime, "gpu:1"), "gpu:1 ");
    assert_string_equal(expanded(runtime, "cpu:discrete,h2d=5G,d2h=5G"), "cpu:discrete,h2d=5G,d2h=5G ");
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

static hr_status stop(void *user, const char *spec)
{
    (void)spec;
    return ++*(int *)user == 2 ? HR_E_NO_SPACE : HR_OK;
}

static void expansion_stops_at_the_first_failure(void **state)
{
    (void)state;
    hr_runtime *runtime = runtime_with(3);
    int calls = 0;
    assert_int_equal(hr_device_expand(runtime, "gpu:all", stop, &calls, NULL), HR_E_NO_SPACE);
    assert_int_equal(calls, 2);
    calls = 0;
    assert_int_equal(hr_device_expand(runtime, "gpu:0,1,2", stop, &calls, NULL), HR_E_NO_SPACE);
    assert_int_equal(calls, 2);
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

static void absence_comes_with_its_reason(void **state)
{
    (void)state;
    hr_runtime *runtime = runtime_with(0);
    hr_error error = HR_ERROR_INIT;
    hr_device *device = NULL;
    assert_int_equal(hr_device_open(runtime, "gpu", &device, &error), HR_E_UNSUPPORTED);
    assert_string_equal(error.text, "device gpu: no driver is installed");
    assert_string_equal(hr_runtime_absent(runtime, 0), "gpu: no driver is installed");
    assert_null(hr_runtime_absent(runtime, 1));
    assert_int_equal(hr_device_open(runtime, "tpu:0", &device, &error), HR_E_NOT_FOUND);
    assert_non_null(strstr(error.text, "tpu:0"));
    assert_null(device);
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

static void the_backend_gets_what_follows_its_name(void **state)
{
    (void)state;
    hr_runtime *runtime = runtime_with(1);
    hr_device *device;
    assert_int_equal(hr_device_open(runtime, "cpu:discrete,h2d=1G", &device, NULL), HR_OK);
    assert_string_equal(opened_rest, ":discrete,h2d=1G");
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_runtime_close(&runtime, &error), HR_E_BUSY);
    assert_string_equal(error.text, "runtime: 1 device is still open");
    assert_int_equal(hr_device_close(&device, NULL), HR_OK);
    assert_int_equal(hr_device_open(runtime, "auto", &device, NULL), HR_OK);
    assert_string_equal(opened_rest, ":0");
    assert_int_equal(hr_device_close(&device, NULL), HR_OK);
    char longest[100];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(hr_device_open(runtime, longest, &device, NULL), HR_E_INVALID);
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

static void a_backend_of_another_version_or_name_taken_is_not_added(void **state)
{
    (void)state;
    hr_runtime *runtime = runtime_with(1);
    hr_backend other = gpu;
    assert_int_equal(hr_registry_add(runtime, &other, NULL), HR_E_BUSY);
    other.name = "other";
    other.abi = HR_BACKEND_ABI + 1;
    assert_int_equal(hr_registry_add(runtime, &other, NULL), HR_E_UNSUPPORTED);
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_is_the_first_gpu_else_the_cpu),
        cmocka_unit_test(specs_of_several_devices_are_expanded),
        cmocka_unit_test(expansion_stops_at_the_first_failure),
        cmocka_unit_test(absence_comes_with_its_reason),
        cmocka_unit_test(the_backend_gets_what_follows_its_name),
        cmocka_unit_test(a_backend_of_another_version_or_name_taken_is_not_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
