/* SPDX-License-Identifier: Apache-2.0 */
/* `bench link` measures anew what plans are made from. */
#include "pipeline/costs.h"
#include "support/unit.h"

#include <headrace/bench.h>
#include <headrace/headrace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct heard {
    unsigned rows, wrong;
} heard;

static void hear(void *user, const hr_bench_row *row)
{
    heard *all = user;
    all->rows++;
    all->wrong += row->verified != 1;
}

static hr_costs kept(hr_device *device)
{
    hr_device_info info = HR_DEVICE_INFO_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_costs costs;
    assert_int_equal(hr_device_get_info(device, &info, &error), HR_OK);
    hr_costs_load(&info, NULL, &costs);
    return costs;
}

/* A stale file: a link a thousand times slower than it is, and a rate that the link has nothing to do with. */
static void keep_stale_costs(hr_device *device)
{
    hr_costs costs = kept(device);
    hr_error error = HR_ERROR_INIT;
    const double bytes[] = {4096.0, 16777216.0}, seconds[] = {1.0, 1000.0};
    assert_int_equal(hr_cost_link_make(bytes, seconds, 2, &costs.h2d), HR_OK);
    assert_int_equal(hr_cost_link_make(bytes, seconds, 2, &costs.d2h), HR_OK);
    costs.h2d_with_d2h = costs.d2h_with_h2d = 1.0;
    hr_costs_set_rate(&costs, "flow.compute.add.f32", 7e9);
    costs.changed = true;
    assert_int_equal(hr_costs_save(&costs, &error), HR_OK);
    assert_true(hr_cost_link_rate(&costs.h2d) < 1e5);
}

static void bench_link_refreshes_the_kept_costs(void **state)
{
    (void)state;
    char folder[] = "/tmp/headrace-bench-XXXXXX", path[sizeof folder + 32];
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_runtime_open(NULL, &runtime, &error), HR_OK);
    assert_int_equal(hr_device_open(runtime, "cpu:discrete,h2d=2G,d2h=2G,threads=1", &device, &error), HR_OK);
    keep_stale_costs(device);

    heard all = {0};
    hr_bench_options options = HR_BENCH_OPTIONS_INIT;
    options.what = "link";
    options.quick = true;
    options.row = hear;
    options.user = &all;
    assert_int_equal(hr_bench_run(device, &options, &error), HR_OK);
    assert_true(all.rows >= 12);
    assert_int_equal(all.wrong, 0);

    hr_costs costs = kept(device);
    double in = hr_cost_link_rate(&costs.h2d), out = hr_cost_link_rate(&costs.d2h);
    /* Nothing of the stale file. A busy machine makes a link slower, by any amount, but never faster than it was set. */
    if (in < 1e6 || in > 2.2e9 || out < 1e6 || out > 2.2e9) {
        fail_msg("kept %.3g and %.3g bytes a second", in, out);
    }
    assert_true(costs.h2d_with_d2h > 1e5 && costs.h2d_with_d2h < 2.2e9);
    assert_true(costs.d2h_with_h2d > 1e5 && costs.d2h_with_h2d < 2.2e9);
    assert_true(hr_costs_rate(&costs, "flow.compute.add.f32") == 7e9);
    assert_int_equal(hr_device_close(&device, &error), HR_OK);
    assert_int_equal(hr_runtime_close(&runtime, &error), HR_OK);
    snprintf(path, sizeof path, "%s/headrace/costs-1.txt", folder);
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_link_refreshes_the_kept_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
