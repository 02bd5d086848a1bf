/* SPDX-License-Identifier: Apache-2.0 */
/* Which modules are found, and what is said of those that do not load. */
#include "support/unit.h"

#include <headrace/device.h>

#include <stdlib.h>
#include <string.h>

static hr_runtime *open_with(const char *folder)
{
    hr_runtime_options options = HR_RUNTIME_OPTIONS_INIT;
    hr_runtime *runtime = NULL;
    options.module_path = folder;
    assert_int_equal(hr_runtime_open(&options, &runtime, NULL), HR_OK);
    return runtime;
}

static const char *absent(hr_runtime *runtime, const char *name)
{
    const char *text;
    for (uint32_t i = 0; (text = hr_runtime_absent(runtime, i)) != NULL; i++) {
        if (strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == ':') {
            return text;
        }
    }
    return "";
}

static void a_module_brings_its_devices(void **state)
{
    (void)state;
    hr_runtime *runtime = open_with(MODULES_GOOD);
    hr_device *device;
    hr_device_info info = HR_DEVICE_INFO_INIT;
    assert_string_equal(hr_runtime_device_spec(runtime, 0), "toy:0");
    assert_int_equal(hr_device_open(runtime, "auto", &device, NULL), HR_OK);
    assert_int_equal(hr_device_get_info(device, &info, NULL), HR_OK);
    assert_string_equal(info.name, "a toy");
    assert_int_equal(hr_device_close(&device, NULL), HR_OK);
    /* What people look for and is not there is told. */
    assert_non_null(strstr(absent(runtime, "cuda"), "there is no headrace-cuda.so in " MODULES_GOOD));
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

static void the_environment_names_the_folder(void **state)
{
    (void)state;
    assert_int_equal(setenv("HEADRACE_MODULES", MODULES_GOOD, 1), 0);
    hr_runtime *runtime = open_with(NULL);
    assert_string_equal(hr_runtime_device_spec(runtime, 0), "toy:0");
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
    /* The program's own word comes before. */
    runtime = open_with(MODULES_BAD);
    assert_string_equal(hr_runtime_device_spec(runtime, 0), "cpu");
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
    assert_int_equal(unsetenv("HEADRACE_MODULES"), 0);
}

static void modules_that_do_not_load_say_why(void **state)
{
    (void)state;
    hr_runtime *runtime = open_with(MODULES_BAD);
    hr_error error = HR_ERROR_INIT;
    hr_device *device = NULL;
    assert_non_null(strstr(absent(runtime, "old"), "is of another version of Headrace"));
    assert_non_null(strstr(absent(runtime, "stranger"), "has no hr_backend_module"));
    assert_non_null(strstr(absent(runtime, "broken"), "its module does not load"));
    assert_int_equal(hr_device_open(runtime, "broken:0", &device, &error), HR_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "its module does not load"));
    assert_int_equal(hr_device_open(runtime, "cpu", &device, &error), HR_OK);
    assert_int_equal(hr_device_close(&device, NULL), HR_OK);
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

static void a_folder_that_is_not_there_is_no_failure(void **state)
{
    (void)state;
    hr_runtime *runtime = open_with("/nonexistent/[folder]");
    assert_int_equal(hr_runtime_device_count(runtime), 2);
    assert_non_null(strstr(absent(runtime, "cuda"), "/nonexistent/[folder]"));
    assert_int_equal(hr_runtime_close(&runtime, NULL), HR_OK);
}

static void two_runtimes_know_nothing_of_each_other(void **state)
{
    (void)state;
    hr_runtime *good = open_with(MODULES_GOOD), *bad = open_with(MODULES_BAD);
    assert_int_equal(hr_runtime_device_count(good), 3);
    assert_int_equal(hr_runtime_device_count(bad), 2);
    assert_int_equal(hr_runtime_close(&good, NULL), HR_OK);
    assert_int_equal(hr_runtime_device_count(bad), 2);
    assert_int_equal(hr_runtime_close(&bad, NULL), HR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_brings_its_devices),
        cmocka_unit_test(the_environment_names_the_folder),
        cmocka_unit_test(modules_that_do_not_load_say_why),
        cmocka_unit_test(a_folder_that_is_not_there_is_no_failure),
        cmocka_unit_test(two_runtimes_know_nothing_of_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
