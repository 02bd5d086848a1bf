/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the verb and hands over. */
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run_verb(const cli_verb *verb, int argc, char **argv)
{
    cli_args args;
    hr_error error = HR_ERROR_INIT;
    int status;
    if (!cli_parse(verb, argc, argv, &args, error.text, sizeof error.text)) {
        status = cli_fail_error(CLI_UNUSABLE, &error);
    } else if (args.help) {
        cli_print_help(stdout, verb);
        status = cli_end_output(CLI_DONE);
    } else {
        status = verb->run(&args);
    }
    cli_args_free(&args);
    return status;
}

/* What packagers call while installing: the texts that come from the table of verbs. */
static int print_generated(const char *what, const char *name)
{
    const cli_verb *verb = name ? cli_find_verb(name) : NULL;
    if (name && !verb)
        return cli_fail(CLI_UNUSABLE, name, "no such verb; see headrace --help");
    if (!strcmp(what, "--man"))
        cli_print_man(stdout, verb);
    else
        cli_print_completion(stdout);
    return cli_end_output(CLI_DONE);
}

/*
 * A standard file that is closed would be the next file that is opened: a message would go into an output. What stands
 * in its place can be neither read nor written, as a closed one cannot.
 */
static bool fill_standard_files(void)
{
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
        if (fcntl(number, F_GETFD) >= 0)
            continue;
        /* The lowest number that is free is this one. */
        if (open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (!fill_standard_files())
        return CLI_FAILED;
    /* hwloc tells a container without /sys of itself, in lines of its own; what is missing, `headrace info` says. */
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    /* A reader that went away, or a file beyond its limit, is a failed write with a message, not a silent
     * death. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        cli_print_overview(stderr);
        return CLI_UNUSABLE;
    }
    const char *first = argv[1];
    const cli_verb *verb = cli_find_verb(first);
    if (verb)
        return run_verb(verb, argc - 2, argv + 2);
    if (!strcmp(first, "--version")) {
        printf("headrace %s\n", hr_version());
        return cli_end_output(CLI_DONE);
    }
    if (!strcmp(first, "--man") || !strcmp(first, "--completion"))
        return print_generated(first, argc > 2 ? argv[2] : NULL);
    if (!strcmp(first, "help") && argc > 2) {
        verb = cli_find_verb(argv[2]);
        if (!verb)
            return cli_fail(CLI_UNUSABLE, argv[2], "no such verb; see headrace --help");
        cli_print_help(stdout, verb);
        return cli_end_output(CLI_DONE);
    }
    if (!strcmp(first, "--help") || !strcmp(first, "-h") || !strcmp(first, "help")) {
        cli_print_overview(stdout);
        return cli_end_output(CLI_DONE);
    }
    return cli_fail(CLI_UNUSABLE, first,
                    "no such verb; there are run, audit, bench and info (headrace --help)");
}
