/* SPDX-License-Identifier: Apache-2.0 */
/* headrace audit -- COMMAND: runs the command with the recorder inside. */
#ifndef HR_CLI_AUDIT_RECORD_H
#define HR_CLI_AUDIT_RECORD_H

#include <limits.h>
#include <stdbool.h>

typedef struct cli_record {
    char folder[PATH_MAX];    /* temporary; empty: nothing to remove */
    char path[PATH_MAX + 64]; /* the trace with the most in it */
} cli_record;

/*
 * Runs `command` to its end, with its output going to standard error when `quiet_output` is set. CLI_DONE
 * with record->path, or the exit status after a line on standard error. cli_record_end() is due in both
 * cases.
 */
int cli_record_run(char **command, bool quiet_output, cli_record *record);
/* Moves the trace to `keep` (null: nowhere) and removes what is temporary. CLI_DONE, or CLI_FAILED after a
 * line on standard error. */
int cli_record_end(cli_record *record, const char *keep);

#endif
