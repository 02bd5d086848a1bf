/* SPDX-License-Identifier: Apache-2.0 */
/* headrace bench: shows the rows that the library measures. */
#include "cli.h"
#include "json.h"
#include "run.h"

#include <string.h>

static const char *const benches[] = {"link", "calls", "sync", "pipeline", "scatter", "kernels"};
enum { BENCHES = sizeof benches / sizeof *benches };

typedef struct bench_printer {
    json_writer json;
    bool as_json;
    bool quiet;
    bool wrong; /* a row's data was not right */
    uint64_t rows;
    const char *what; /* the bench that runs; in the rows of "all" */
    bool all;
} bench_printer;

static void print_json_row(bench_printer *printer, const hr_bench_row *row)
{
    json_writer *json = &printer->json;
    json_open(json, NULL, '{');
    if (printer->all)
        json_string(json, "bench", printer->what);
    json_string(json, "name", row->name);
    if (row->bytes)
        json_u64(json, "bytes", row->bytes);
    if (row->skipped) {
        json_string(json, "skipped", row->skipped);
    } else {
        if (row->unit) {
            json_real(json, row->unit, row->value, 6);
            json_real(json, "spread_pct", row->spread_pct, 3);
        }
        if (row->verified >= 0)
            json_bool(json, "verified", row->verified == 1);
        if (row->answer)
            json_string(json, "answer", row->answer);
        if (row->vs) {
            json_string(json, "vs", row->vs);
            json_real(json, "ratio", row->ratio, 5);
        }
    }
    json_close(json, '}');
    fflush(json->to);
}

static const char *unit_text(const char *unit)
{
    static const struct {
        const char *unit, *text;
    } texts[] = {{"gbps", "GB/s"}, {"us", "µs"}, {"ms", "ms"}, {"tflops", "TFLOP/s"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!strcmp(texts[i].unit, unit))
            return texts[i].text;
    }
    return unit;
}

static void print_text_row(const hr_bench_row *row)
{
    char size[16] = "";
    if (row->bytes)
        cli_bytes_text(row->bytes, size);
    printf("  %-52s %10s ", row->name, size);
    if (row->skipped) {
        printf(" skipped: %s\n", row->skipped);
        return;
    }
    if (row->unit)
        printf("%10.4g %-7s ±%4.1f %%", row->value, unit_text(row->unit), row->spread_pct / 2);
    if (row->answer)
        printf("  %s", row->answer);
    if (row->vs)
        printf("  %.3f × %s", row->ratio, row->vs);
    if (row->verified == 0)
        printf("  WRONG DATA");
    fputc('\n', stdout);
    fflush(stdout);
}

static void on_row(void *user, const hr_bench_row *row)
{
    bench_printer *printer = user;
    printer->rows++;
    if (!row->skipped && row->verified == 0)
        printer->wrong = true;
    if (printer->as_json)
        print_json_row(printer, row);
    else
        print_text_row(row);
}

static void on_note(void *user, const char *text)
{
    if (!((bench_printer *)user)->quiet)
        cli_note("%s", text);
}

static void print_head(bench_printer *printer, const char *what, const hr_device_info *info)
{
    if (!printer->as_json) {
        printf("%s on %s (%s%s%s)\n", what, info->spec, info->name, info->driver[0] ? ", driver " : "",
               info->driver);
        return;
    }
    json_writer *json = &printer->json;
    json_open(json, NULL, '{');
    json_string(json, "bench", what);
    json_string(json, "device", info->spec);
    json_string(json, "device_name", info->name);
    json_string(json, "driver", info->driver);
    json_string(json, "headrace", hr_version());
    json_open(json, "rows", '[');
}

/* A device that cannot do one bench of "all" is no failure: the others count. */
static int run_one(bench_printer *printer, hr_device *device, const char *what, bool quick)
{
    hr_bench_options options = HR_BENCH_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    options.what = printer->what = what;
    options.quick = quick;
    options.user = printer;
    options.row = on_row;
    options.note = on_note;
    hr_status status = hr_bench_run(device, &options, &error);
    if (status >= HR_OK)
        return CLI_DONE;
    if (printer->all && status == HR_E_UNSUPPORTED) {
        hr_bench_row row = HR_BENCH_ROW_INIT;
        row.name = what;
        row.skipped = error.text;
        on_row(printer, &row);
        return CLI_DONE;
    }
    return cli_fail_error(status == HR_E_NOT_FOUND || status == HR_E_UNSUPPORTED ? CLI_UNUSABLE : CLI_FAILED,
                          &error);
}

static int run_benches(bench_printer *printer, hr_device *device, const char *what, bool quick)
{
    hr_device_info info = HR_DEVICE_INFO_INIT;
    hr_error error = HR_ERROR_INIT;
    if (hr_device_get_info(device, &info, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    int exit = CLI_DONE;
    print_head(printer, what, &info);
    if (!printer->all)
        exit = run_one(printer, device, what, quick);
    for (size_t i = 0; printer->all && i < BENCHES && exit == CLI_DONE; i++) {
        if (!printer->as_json)
            printf("%s:\n", benches[i]);
        exit = run_one(printer, device, benches[i], quick);
    }
    if (printer->as_json) {
        json_close(&printer->json, ']');
        json_close(&printer->json, '}');
        json_end(&printer->json);
    }
    if (exit == CLI_DONE && printer->wrong)
        exit = cli_fail(CLI_FAILED, what, "a copy or a kernel gave wrong data; its row says so");
    return cli_end_output(exit);
}

static bool known(const char *what)
{
    for (size_t i = 0; i < BENCHES; i++) {
        if (!strcmp(benches[i], what))
            return true;
    }
    return !strcmp(what, "all");
}

int cmd_bench(const cli_args *args)
{
    if (args->word_count != 1)
        return cli_fail(CLI_UNUSABLE, "bench",
                        "needs one of link, calls, sync, pipeline, scatter, kernels, all; found %zu words",
                        args->word_count);
    const char *what = args->words[0];
    if (!known(what))
        return cli_fail(CLI_UNUSABLE, what,
                        "no such bench; there are link, calls, sync, pipeline, scatter, kernels and all");
    hr_runtime *runtime = NULL;
    hr_device *device = NULL;
    hr_error error = HR_ERROR_INIT;
    interrupt_watch();
    interrupt_at_once("headrace: interrupted: the measuring was ended\n");
    if (hr_runtime_open(NULL, &runtime, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    const char *spec = cli_has(args, "device") ? cli_get(args, "device") : "auto";
    hr_status status = hr_device_open(runtime, spec, &device, &error);
    int exit;
    if (status != HR_OK) {
        exit = cli_fail_error(status == HR_E_NOT_FOUND || status == HR_E_INVALID ? CLI_UNUSABLE : CLI_FAILED,
                              &error);
    } else {
        bench_printer printer = {.json = {.to = stdout},
                                 .as_json = cli_has(args, "json"),
                                 .quiet = cli_has(args, "quiet"),
                                 .all = !strcmp(what, "all")};
        exit = run_benches(&printer, device, what, cli_has(args, "quick"));
        if (hr_device_close(&device, &error) != HR_OK)
            exit = cli_fail_error(exit == CLI_DONE ? CLI_FAILED : exit, &error);
    }
    if (hr_runtime_close(&runtime, &error) != HR_OK && exit == CLI_DONE)
        exit = cli_fail_error(CLI_FAILED, &error);
    return exit;
}
