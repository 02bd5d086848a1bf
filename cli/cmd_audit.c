/* SPDX-License-Identifier: Apache-2.0 */
/* headrace audit. */
#include "audit_record.h"
#include "cli.h"

#include <errno.h>
#include <headrace/trace.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int list_rules(void)
{
    hr_audit_rule rule;
    for (uint32_t i = 0; hr_audit_rule_at(i, &rule) == HR_OK; i++)
        printf("%s\n    %s\n    needs: %s\n", rule.name, rule.meaning, rule.needs);
    return cli_end_output(CLI_DONE);
}

/* What the system refused is the work's failure; what the file holds is unusable input. */
static int exit_of(hr_status status)
{
    switch (status) {
    case HR_E_IO:
    case HR_E_NO_SPACE:
    case HR_E_HOST_MEMORY:
    case HR_E_INTERNAL:
        return CLI_FAILED;
    default:
        return CLI_UNUSABLE;
    }
}

/* A device, a pipe, or a file that is open already under a number: written as it is. A rename would put a file in its place. */
static bool is_written_in_place(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 &&
           (!S_ISREG(about.st_mode) || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0);
}

static int render_in_place(const hr_audit *audit, hr_audit_format format, const char *path)
{
    hr_error error = HR_ERROR_INIT;
    FILE *out = fopen(path, "we");
    if (out == NULL)
        return cli_fail(CLI_FAILED, path, "%s", strerror(errno));
    hr_status status = hr_audit_render(audit, format, out, &error);
    if (fclose(out) != 0 && status == HR_OK)
        return cli_fail(CLI_FAILED, path, "%s", strerror(errno));
    return status == HR_OK ? CLI_DONE : cli_fail(CLI_FAILED, path, "%s", error.text);
}

/* Writes beside the name and renames, so that a report is whole or absent. */
static int render_whole(const hr_audit *audit, hr_audit_format format, const char *path)
{
    hr_error error = HR_ERROR_INIT;
    size_t room = strlen(path) + 32;
    char *beside = malloc(room);
    if (beside == NULL)
        return cli_fail(CLI_FAILED, path, "no memory");
    snprintf(beside, room, "%s.%ld.part", path, (long)getpid());
    FILE *out = fopen(beside, "w");
    if (out == NULL) {
        int code = errno;
        free(beside);
        return cli_fail(CLI_FAILED, path, "%s", strerror(code));
    }
    hr_status status = hr_audit_render(audit, format, out, &error);
    int exit = CLI_DONE;
    if (status != HR_OK) {
        fclose(out);
        exit = cli_fail(CLI_FAILED, path, "%s", error.text);
    } else if (fsync(fileno(out)) != 0 || fclose(out) != 0 || rename(beside, path) != 0) {
        exit = cli_fail(CLI_FAILED, path, "%s", strerror(errno));
    }
    if (exit != CLI_DONE)
        unlink(beside);
    free(beside);
    return exit;
}

static int render_file(const hr_audit *audit, hr_audit_format format, const char *path)
{
    if (is_written_in_place(path))
        return render_in_place(audit, format, path);
    /* A link stays one: what it points to is written. */
    char *real = realpath(path, NULL);
    int exit = render_whole(audit, format, real != NULL ? real : path);
    free(real);
    return exit;
}

static int render(const hr_audit *audit, const cli_args *args)
{
    static const struct {
        const char *option;
        hr_audit_format format;
    } files[] = {{"html", HR_AUDIT_HTML}, {"perfetto", HR_AUDIT_PERFETTO}};
    hr_error error = HR_ERROR_INIT;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = cli_get(args, files[i].option);
        int exit = path != NULL ? render_file(audit, files[i].format, path) : CLI_DONE;
        if (exit != CLI_DONE)
            return exit;
    }
    hr_audit_format format = cli_has(args, "json") ? HR_AUDIT_JSON : HR_AUDIT_TEXT;
    if (hr_audit_render(audit, format, stdout, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    return CLI_DONE;
}

static int check(const hr_audit *audit, const cli_args *args)
{
    hr_error error = HR_ERROR_INIT;
    const char *condition = cli_get(args, "fail-on");
    if (condition == NULL)
        return CLI_DONE;
    switch (hr_audit_check(audit, condition, &error)) {
    case HR_OK:
        return CLI_DONE;
    case HR_END:
        return cli_fail(CLI_FOUND, "--fail-on", "%s", error.text);
    default:
        return cli_fail(CLI_UNUSABLE, "--fail-on", "%s", error.text);
    }
}

/* Before anything is read or, with a command, run for hours. */
static int read_options(const cli_args *args, hr_audit_options *options)
{
    const char *least = cli_get(args, "min-cost");
    const char *condition = cli_get(args, "fail-on");
    hr_error error = HR_ERROR_INIT;
    static const char *const files[] = {"html", "perfetto"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = cli_get(args, files[i]);
        if (path != NULL && strcmp(path, "-") == 0)
            return cli_fail(CLI_UNUSABLE, "audit",
                            "--%s - would go where the report goes; a file's name is needed", files[i]);
    }
    options->link_path = cli_get(args, "link");
    if (condition != NULL && hr_audit_check(NULL, condition, &error) != HR_OK)
        return cli_fail(CLI_UNUSABLE, "--fail-on", "%s", error.text);
    if (options->link_path != NULL && strcmp(options->link_path, "-") != 0 &&
        access(options->link_path, R_OK) != 0)
        return cli_fail(CLI_UNUSABLE, options->link_path, "%s", strerror(errno));
    if (least != NULL) {
        char *end;
        options->min_cost_pct = strtod(least, &end);
        if (end == least || *end != '\0' || !(options->min_cost_pct >= 0.0 && options->min_cost_pct <= 100.0))
            return cli_fail(CLI_UNUSABLE, "--min-cost", "\"%s\" is no per cent from 0 to 100", least);
    }
    return CLI_DONE;
}

static int audit_file(const char *path, const hr_audit_options *options, const cli_args *args)
{
    hr_error error = HR_ERROR_INIT;
    hr_audit *audit = NULL;
    hr_status status = hr_audit_open(path, options, &audit, &error);
    if (status != HR_OK)
        return cli_fail_error(exit_of(status), &error);
    int exit = render(audit, args);
    if (exit == CLI_DONE)
        exit = check(audit, args);
    hr_audit_close(&audit);
    return cli_end_output(exit);
}

static int audit_command(const hr_audit_options *options, const cli_args *args)
{
    cli_record record;
    int exit = cli_record_run(args->command, cli_has(args, "json"), &record);
    if (exit == CLI_DONE)
        exit = audit_file(record.path, options, args);
    int ended = cli_record_end(&record, cli_get(args, "trace"));
    return exit != CLI_DONE ? exit : ended;
}

int cmd_audit(const cli_args *args)
{
    if (cli_has(args, "rules"))
        return list_rules();
    hr_audit_options options = HR_AUDIT_OPTIONS_INIT;
    int exit = read_options(args, &options);
    if (exit != CLI_DONE)
        return exit;
    if (args->command != NULL && args->command[0] == NULL)
        return cli_fail(CLI_UNUSABLE, "audit", "nothing stands behind --; a command is needed there");
    if (args->command != NULL && args->word_count == 0)
        return audit_command(&options, args);
    if (args->word_count != 1 || args->command != NULL)
        return cli_fail(CLI_UNUSABLE, "audit",
                        "%zu traces were given%s; one trace, or a command behind --, is needed",
                        args->word_count, args->command != NULL ? " and a command" : "");
    return audit_file(args->words[0], &options, args);
}
