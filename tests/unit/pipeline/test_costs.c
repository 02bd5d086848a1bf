/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of measurements, and that a bad file is no file. */
#include "pipeline/costs.h"
#include "support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/headrace-costs-XXXXXX";
static char path[sizeof folder + 32];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/a/costs.txt", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    char inner[sizeof folder + 32];
    snprintf(inner, sizeof inner, "%s/a", folder);
    return rmdir(inner) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static hr_device_info info_of(const char *spec)
{
    hr_device_info info = HR_DEVICE_INFO_INIT;
    snprintf(info.spec, sizeof info.spec, "%s", spec);
    snprintf(info.name, sizeof info.name, "Some GPU");
    snprintf(info.driver, sizeof info.driver, "1.2");
    return info;
}

static void what_was_saved_is_loaded_device_by_device(void **state)
{
    (void)state;
    hr_device_info first = info_of("x:0"), second = info_of("x:1");
    hr_costs costs;
    hr_error error = HR_ERROR_INIT;
    hr_costs_load(&first, path, &costs);
    assert_int_equal(costs.h2d.count, 0);
    const double bytes[] = {4096.0, 1e6}, seconds[] = {1e-5, 3e-5};
    assert_int_equal(hr_cost_link_make(bytes, seconds, 2, &costs.h2d), HR_OK);
    costs.h2d_with_d2h = 51e9;
    costs.d2h_with_h2d = 50e9;
    hr_costs_set_rate(&costs, "compute.add.f32", 3.5e12);
    assert_int_equal(hr_costs_save(&costs, &error), HR_OK);
    hr_costs_load(&second, path, &costs);
    assert_int_equal(costs.rate_count, 0);
    assert_true(costs.h2d_with_d2h == 0.0 && costs.d2h_with_h2d == 0.0);
    hr_costs_set_rate(&costs, "compute.add.f32", 7e12);
    assert_int_equal(hr_costs_save(&costs, &error), HR_OK);

    hr_costs_load(&first, path, &costs);
    assert_int_equal(costs.h2d.count, 2);
    assert_true(fabs(hr_cost_link_s(&costs.h2d, 1e6) - 3e-5) < 1e-12);
    assert_true(hr_costs_rate(&costs, "compute.add.f32") == 3.5e12);
    assert_true(costs.h2d_with_d2h == 51e9 && costs.d2h_with_h2d == 50e9);
    assert_true(hr_costs_rate(&costs, "compute.add") == 0.0);
    hr_costs_load(&second, path, &costs);
    assert_true(hr_costs_rate(&costs, "compute.add.f32") == 7e12);
}

static void a_rate_that_hardly_moved_leaves_the_file_alone(void **state)
{
    (void)state;
    hr_device_info info = info_of("x:0");
    hr_costs costs;
    hr_costs_load(&info, path, &costs);
    hr_costs_set_rate(&costs, "read.file", 1e9);
    assert_true(costs.changed);
    assert_int_equal(hr_costs_save(&costs, NULL), HR_OK);
    assert_false(costs.changed);
    hr_costs_set_rate(&costs, "read.file", 1.05e9);
    assert_false(costs.changed);
    hr_costs_set_rate(&costs, "read.file", 1.2e9);
    assert_true(costs.changed);
    hr_costs_set_rate(&costs, "nonsense", NAN);
    hr_costs_set_rate(&costs, "nonsense", -1.0);
    hr_costs_set_rate(&costs, "two words", 1.0);
    assert_true(hr_costs_rate(&costs, "nonsense") == 0.0);
    assert_true(hr_costs_rate(&costs, "two words") == 0.0);
}

static void a_bad_file_counts_as_empty(void **state)
{
    (void)state;
    static const char without_numbers[] =
        "headrace-costs 1\ndevice Some GPU | 1.2 | x:0\nh2d\nh2d x y\nrate\nrate a\n"
        "rate b -3\nduplex\nduplex 5\nduplex -1 4";
    static const char *const texts[] = {"", "headrace-costs 2\ndevice Some GPU | 1.2 | x:0\nrate a 5\n",
                                        "\xff\xfe\x00garbage", without_numbers};
    hr_device_info info = info_of("x:0");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(texts[i], file);
        fclose(file);
        hr_costs costs;
        hr_costs_load(&info, path, &costs);
        assert_int_equal(costs.h2d.count, 0);
        assert_int_equal(costs.rate_count, 0);
        assert_true(costs.h2d_with_d2h == 0.0);
        hr_costs_set_rate(&costs, "a", 2.0);
        assert_int_equal(hr_costs_save(&costs, NULL), HR_OK);
        hr_costs_load(&info, path, &costs);
        assert_true(hr_costs_rate(&costs, "a") == 2.0);
    }
}

static void a_place_that_cannot_be_written_is_an_error_for_whoever_asks(void **state)
{
    (void)state;
    hr_device_info info = info_of("x:0");
    hr_costs costs;
    hr_error error = HR_ERROR_INIT;
    hr_costs_load(&info, "/proc/nothing/costs.txt", &costs);
    hr_costs_set_rate(&costs, "a", 2.0);
    assert_int_equal(hr_costs_save(&costs, &error), HR_E_IO);
    assert_non_null(strstr(error.text, "/proc/nothing"));
    hr_costs_load(&info, "", &costs);
    hr_costs_set_rate(&costs, "a", 2.0);
    assert_int_equal(hr_costs_save(&costs, &error), HR_OK);
}

static void the_cache_folder_is_the_users(void **state)
{
    (void)state;
    hr_device_info info = info_of("x:0");
    hr_costs costs;
    setenv("XDG_CACHE_HOME", "/somewhere/cache", 1);
    hr_costs_load(&info, NULL, &costs);
    assert_string_equal(costs.path, "/somewhere/cache/headrace/costs-1.txt");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/somewhere", 1);
    hr_costs_load(&info, NULL, &costs);
    assert_string_equal(costs.path, "/somewhere/.cache/headrace/costs-1.txt");
    unsetenv("HOME");
    hr_costs_load(&info, NULL, &costs);
    assert_string_equal(costs.path, "");
}

/* A busy machine makes a link slower, by any amount, and never faster than it was set. */
static bool near(double rate, double set)
{
    assert_true(rate > 0.0 && rate <= 1.06 * set);
    return rate >= 0.2 * set;
}

/* So it is probed until it is found near its speed once, which a probe that measures something else never finds. */
static void the_probe_finds_the_speed_of_the_link(void **state)
{
    (void)state;
    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_error error = HR_ERROR_INIT;
    hr_costs costs;
    bool found = false;
    assert_int_equal(hr_runtime_open(NULL, &runtime, &error), HR_OK);
    assert_int_equal(hr_device_open(runtime, "cpu:discrete,h2d=1G,d2h=500M,threads=1", &device, &error),
                     HR_OK);
    for (int i = 0; i < 50 && !found; i++) {
        memset(&costs, 0, sizeof costs);
        assert_int_equal(hr_costs_probe(device, &costs, &error), HR_OK);
        bool in = near(hr_cost_link_rate(&costs.h2d), 1e9), out = near(hr_cost_link_rate(&costs.d2h), 0.5e9);
        bool in_with_out = near(costs.h2d_with_d2h, 1e9), out_with_in = near(costs.d2h_with_h2d, 0.5e9);
        found = in && out && in_with_out && out_with_in;
    }
    if (!found) {
        fail_msg("measured %.3g and %.3g bytes a second, at once %.3g and %.3g",
                 hr_cost_link_rate(&costs.h2d), hr_cost_link_rate(&costs.d2h), costs.h2d_with_d2h,
                 costs.d2h_with_h2d);
    }
    assert_int_equal(hr_device_close(&device, &error), HR_OK);
    assert_int_equal(hr_runtime_close(&runtime, &error), HR_OK);
}

static void a_small_device_is_probed_within_its_memory(void **state)
{
    (void)state;
    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_runtime_open(NULL, &runtime, &error), HR_OK);
    assert_int_equal(hr_device_open(runtime, "cpu:discrete,memory=1M,threads=1", &device, &error), HR_OK);
    hr_costs costs = {0};
    assert_int_equal(hr_costs_probe(device, &costs, &error), HR_OK);
    assert_true(costs.h2d.count > 0 && costs.h2d.bytes[costs.h2d.count - 1] <= 1 << 20);
    assert_int_equal(hr_device_close(&device, &error), HR_OK);
    assert_int_equal(hr_runtime_close(&runtime, &error), HR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_saved_is_loaded_device_by_device),
        cmocka_unit_test(a_rate_that_hardly_moved_leaves_the_file_alone),
        cmocka_unit_test(a_bad_file_counts_as_empty),
        cmocka_unit_test(a_place_that_cannot_be_written_is_an_error_for_whoever_asks),
        cmocka_unit_test(the_cache_folder_is_the_users),
        cmocka_unit_test(the_probe_finds_the_speed_of_the_link),
        cmocka_unit_test(a_small_device_is_probed_within_its_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
