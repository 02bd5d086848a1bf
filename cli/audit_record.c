/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_record.h"

#include "cli.h"

#include <headrace/record.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: becomes the command. The parent reads errno from `report` if that fails; the pipe closes
 * itself if it works. */
static void become(char **command, const char *module, const char *folder, bool quiet_output, int report)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    if (setenv("CUDA_INJECTION64_PATH", module, 1) == 0 && setenv("HEADRACE_RECORD", folder, 1) == 0 &&
        (!quiet_output || dup2(STDERR_FILENO, STDOUT_FILENO) >= 0))
        execvp(command[0], command);
    int reason = errno;
    ssize_t written = write(report, &reason, sizeof reason);
    _exit(written == (ssize_t)sizeof reason ? 127 : 126);
}

static int start(char **command, const char *module, const char *folder, bool quiet_output, pid_t *child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return cli_fail(CLI_FAILED, command[0], "could not be started: %s", strerror(errno));
    fflush(NULL);
    *child = fork();
    if (*child == 0)
        become(command, module, folder, quiet_output, ends[1]);
    close(ends[1]);
    int reason = errno;
    bool failed = *child < 0;
    if (!failed && read(ends[0], &reason, sizeof reason) == (ssize_t)sizeof reason) {
        waitpid(*child, NULL, 0);
        failed = true;
    }
    close(ends[0]);
    if (!failed)
        return CLI_DONE;
    return cli_fail(reason == ENOENT || reason == EACCES ? CLI_UNUSABLE : CLI_FAILED, command[0],
                    "could not be started: %s", strerror(reason));
}

/* Ctrl-C goes to the command too, which is the one to decide; we wait for it and then say what became of it.
 */
static int wait_for(const char *name, pid_t child)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old_interrupt, old_quit;
    sigaction(SIGINT, &ignore, &old_interrupt);
    sigaction(SIGQUIT, &ignore, &old_quit);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    sigaction(SIGINT, &old_interrupt, NULL);
    sigaction(SIGQUIT, &old_quit, NULL);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
        return cli_fail(CLI_INTERRUPTED, name, "interrupted");
    if (WIFSIGNALED(status))
        return cli_fail(CLI_FAILED, name,
                        "ended by signal %d (%s); a program that does not end normally leaves no trace",
                        WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        cli_note("%s exited with status %d", name, WEXITSTATUS(status));
    return CLI_DONE;
}

/* Several processes may have left traces; the largest is taken, and the others are named. */
static int choose(const char *name, cli_record *record)
{
    DIR *folder = opendir(record->folder);
    off_t largest = -1;
    unsigned count = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[sizeof record->path];
        struct stat facts;
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".json") != 0)
            continue;
        int needed = snprintf(path, sizeof path, "%s/%s", record->folder, entry->d_name);
        if (needed < 0 || (size_t)needed >= sizeof path || stat(path, &facts) != 0)
            continue;
        count++;
        if (facts.st_size > largest) {
            largest = facts.st_size;
            memcpy(record->path, path, sizeof path);
        }
    }
    if (folder != NULL)
        closedir(folder);
    if (count == 0)
        return cli_fail(CLI_FAILED, name, "made no CUDA call that could be recorded");
    if (count > 1)
        cli_note("%u processes used CUDA; this is the one that did the most", count);
    return CLI_DONE;
}

int cli_record_run(char **command, bool quiet_output, cli_record *record)
{
    *record = (cli_record){0};
    char module[PATH_MAX];
    hr_error error = HR_ERROR_INIT;
    if (hr_record_module(module, sizeof module, &error) != HR_OK)
        return cli_fail_error(CLI_FAILED, &error);
    const char *temporary = getenv("TMPDIR");
    snprintf(record->folder, sizeof record->folder, "%s/headrace-XXXXXX",
             temporary != NULL && *temporary != '\0' ? temporary : "/tmp");
    if (mkdtemp(record->folder) == NULL) {
        int reason = errno;
        char folder[256];
        snprintf(folder, sizeof folder, "%.255s", record->folder);
        record->folder[0] = '\0';
        return cli_fail(CLI_FAILED, folder, "the folder for the record could not be made: %s",
                        strerror(reason));
    }
    pid_t child = 0;
    int status = start(command, module, record->folder, quiet_output, &child);
    if (status == CLI_DONE)
        status = wait_for(command[0], child);
    return status == CLI_DONE ? choose(command[0], record) : status;
}

/* From one file system to another, where rename cannot. */
static bool copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    bool done = in != NULL && out != NULL;
    char buffer[65536];
    for (size_t got; done && (got = fread(buffer, 1, sizeof buffer, in)) > 0;)
        done = fwrite(buffer, 1, got, out) == got;
    done = done && ferror(in) == 0;
    if (in != NULL)
        fclose(in);
    if (out != NULL)
        done = fclose(out) == 0 && done;
    return done;
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder != NULL)
        closedir(folder);
    rmdir(path);
}

int cli_record_end(cli_record *record, const char *keep)
{
    int status = CLI_DONE;
    struct stat about;
    /* Into a device or a pipe the trace is copied; a rename would put a file in its place. */
    bool in_place = keep != NULL && stat(keep, &about) == 0 && !S_ISREG(about.st_mode);
    if (keep != NULL && record->path[0] != '\0' && (in_place || rename(record->path, keep) != 0) &&
        !copy_file(record->path, keep))
        status = cli_fail(CLI_FAILED, keep, "the trace could not be written: %s", strerror(errno));
    if (record->folder[0] != '\0')
        remove_folder(record->folder);
    *record = (cli_record){0};
    return status;
}
