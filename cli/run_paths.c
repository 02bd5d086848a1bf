/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths a run can be given together: what is read once, what is written, and what standard output carries. */
#include "run.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that is open already, named by its number: any, or the one of standard input or output. */
static bool names_open_file(const char *path, int number)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    char digit[8];
    snprintf(digit, sizeof digit, "%d", number);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t length = strlen(folders[i]);
        if (!strncmp(path, folders[i], length))
            return number < 0 || !strcmp(path + length, digit);
    }
    return false;
}

static bool is_standard_input(const char *path)
{
    return !strcmp(path, "-") || !strcmp(path, "/dev/stdin") || names_open_file(path, STDIN_FILENO);
}

static bool is_standard_output(const char *path)
{
    return !strcmp(path, "-") || !strcmp(path, "/dev/stdout") || names_open_file(path, STDOUT_FILENO);
}

static bool is_empty(const char *path)
{
    return path && !path[0];
}

/* Can what was read from there, or written to it, be read again? What is not there yet will be a file. */
static bool reads_again(const char *path)
{
    struct stat st;
    return stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
}

/* Two readers of one pipe would each get a part of it. */
static bool same_pipe(const char *a, const char *b)
{
    struct stat sa, sb;
    if (is_standard_input(a) && is_standard_input(b))
        return true;
    bool there = (strcmp(a, "-") != 0 ? stat(a, &sa) : fstat(STDIN_FILENO, &sa)) == 0 &&
                 (strcmp(b, "-") != 0 ? stat(b, &sb) : fstat(STDIN_FILENO, &sb)) == 0;
    return there && (S_ISFIFO(sa.st_mode) || S_ISSOCK(sa.st_mode)) && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

static int check_readable_again(const run_job *job, const char *path)
{
    if (cli_has(job->args, "verify") && (is_standard_input(path) || !reads_again(path)))
        return cli_fail(CLI_UNUSABLE, "--verify", "reads the inputs again, which %s does not allow",
                        is_standard_input(path) ? "standard input" : path);
    return CLI_DONE;
}

int run_check_inputs(const run_job *job)
{
    for (uint32_t i = 0; i < job->op->inputs; i++) {
        const char *path = cli_get_nth(job->args, "in", i);
        if (is_empty(path))
            return cli_fail(CLI_UNUSABLE, "--in", "needs the name of a file, found an empty one");
        const char *kernel = cli_get(job->args, "kernel");
        if (kernel && same_pipe(kernel, path))
            return cli_fail(CLI_UNUSABLE, "--in", "%s can be read once, and is given as the kernel too",
                            is_standard_input(path) ? "standard input" : path);
        for (uint32_t k = 0; k < i; k++) {
            if (same_pipe(cli_get_nth(job->args, "in", k), path))
                return cli_fail(CLI_UNUSABLE, "--in", "%s can be read once, and is given twice",
                                is_standard_input(path) ? "standard input" : path);
        }
        int exit = check_readable_again(job, path);
        if (exit != CLI_DONE)
            return exit;
    }
    return CLI_DONE;
}

/* Will they be the same file, though neither is there yet? */
static bool same_new_file(const char *a, const char *b)
{
    const char *paths[2] = {a, b}, *name[2];
    struct stat folder[2];
    for (int i = 0; i < 2; i++) {
        const char *slash = strrchr(paths[i], '/');
        char text[PATH_MAX];
        name[i] = slash ? slash + 1 : paths[i];
        int length = slash ? (int)(slash - paths[i] + 1) : 1;
        if (length >= PATH_MAX)
            return false;
        snprintf(text, sizeof text, "%.*s", length, slash ? paths[i] : ".");
        if (stat(text, &folder[i]) != 0)
            return false;
    }
    return folder[0].st_dev == folder[1].st_dev && folder[0].st_ino == folder[1].st_ino &&
           !strcmp(name[0], name[1]);
}

static int same_file(const char *output, const char *what, const char *input)
{
    return cli_fail(CLI_UNUSABLE, strcmp(output, "-") ? output : "standard output",
                    "is the same file as the %s %s; give the result another name", what,
                    strcmp(input, "-") ? input : "from standard input");
}

/* No file may be read and replaced by the same run. */
static int check_distinct(const run_job *job)
{
    const char *outputs[] = {job->out_path, cli_get(job->args, "trace")};
    const char *kernel = cli_get(job->args, "kernel");
    for (size_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; outputs[k] && i < job->in_count; i++) {
            if (hr_same_file(job->in_path[i], outputs[k]))
                return same_file(outputs[k], "input", job->in_path[i]);
        }
        if (outputs[k] && kernel && hr_same_file(kernel, outputs[k]))
            return same_file(outputs[k], "kernel", kernel);
    }
    if (outputs[1] && (is_standard_output(outputs[1]) || is_empty(outputs[1])))
        return cli_fail(CLI_UNUSABLE, "--trace", "needs the name of a file, found %s",
                        outputs[1][0] ? outputs[1] : "an empty one");
    if (outputs[0] && outputs[1] &&
        (same_new_file(outputs[0], outputs[1]) || hr_same_file(outputs[0], outputs[1])))
        return cli_fail(CLI_UNUSABLE, outputs[1], "is given as the output and as the trace");
    return CLI_DONE;
}

static int check_standard_output(const run_job *job)
{
    if (cli_has(job->args, "json"))
        return cli_fail(CLI_UNUSABLE, "--json",
                        "standard output carries the array already; give --out a file");
    if (cli_has(job->args, "verify"))
        return cli_fail(CLI_UNUSABLE, "--verify",
                        "reads the output again, which standard output does not allow");
    if (isatty(STDOUT_FILENO))
        return cli_fail(CLI_UNUSABLE, "standard output",
                        "is a terminal, and the array is binary; give --out a file, or a pipe");
    return CLI_DONE;
}

int run_check_outputs(const run_job *job)
{
    if (job->plan.outputs == 0)
        return job->out_path ? cli_fail(CLI_UNUSABLE, "--out",
                                        "%s gives a result and no array; leave --out away", job->op->name)
                             : check_distinct(job);
    if (!job->out_path)
        return cli_fail(CLI_UNUSABLE, "run", "%s needs an output (--out PATH)", job->op->name);
    if (is_empty(job->out_path))
        return cli_fail(CLI_UNUSABLE, "--out", "needs the name of a file, found an empty one");
    int exit = is_standard_output(job->out_path) ? check_standard_output(job) : CLI_DONE;
    if (exit == CLI_DONE && cli_has(job->args, "verify") &&
        (names_open_file(job->out_path, -1) || !reads_again(job->out_path)))
        exit = cli_fail(CLI_UNUSABLE, "--verify", "reads the output again, which %s does not allow",
                        job->out_path);
    return exit == CLI_DONE ? check_distinct(job) : exit;
}
