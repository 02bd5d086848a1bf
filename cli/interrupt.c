/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* A process has one set of signal handlers; this is the one place of the command with state of its own. */
static _Atomic(hr_pipeline *) target;
static volatile sig_atomic_t seen;
/* Not null: nothing is there yet that could be left half done, and the process ends with this line. */
static _Atomic(const char *) last_words;

static void on_signal(int number)
{
    (void)number;
    seen = 1;
    const char *line = atomic_load(&last_words);
    if (line) {
        ssize_t written = write(STDERR_FILENO, line, strlen(line));
        (void)written;
        _exit(CLI_INTERRUPTED);
    }
    hr_pipeline *pipeline = atomic_load(&target);
    if (pipeline)
        hr_pipeline_cancel(pipeline);
}

void interrupt_watch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old, action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        /* Who started us with a signal ignored (nohup) means it. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

void interrupt_set_target(hr_pipeline *pipeline)
{
    atomic_store(&target, pipeline);
    /* A signal may have come before there was a pipeline to cancel. */
    if (pipeline && seen)
        hr_pipeline_cancel(pipeline);
}

void interrupt_at_once(const char *line)
{
    atomic_store(&last_words, line);
    if (line && seen)
        on_signal(0);
}

bool interrupted(void)
{
    return seen != 0;
}
