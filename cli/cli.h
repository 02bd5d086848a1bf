/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs share: their description, the parsed command line, and how the command speaks and ends. */
#ifndef HR_CLI_CLI_H
#define HR_CLI_CLI_H

#include <headrace/headrace.h>
#include <stdbool.h>
#include <stdio.h>

/* Exit statuses; scripts depend on them. */
typedef enum cli_exit {
    CLI_DONE = 0,
    CLI_FAILED = 1,   /* the work failed: I/O, device, memory, a failed check */
    CLI_UNUSABLE = 2, /* arguments or input that cannot be used */
    CLI_FOUND = 3,    /* audit --fail-on found what it was told to fail on */
    CLI_INTERRUPTED = 130
} cli_exit;

/* One option of a verb. The table of them is the only source of --help, manual pages and completion. */
typedef struct cli_option {
    const char *name;     /* "chunk" */
    char letter;          /* 'o', or 0 */
    const char *value;    /* what the value is called ("SIZE"), or null for a flag */
    const char *help;     /* one sentence without its full stop */
    const char *complete; /* "file", "device", "op", "rule", or null */
    bool repeats;
} cli_option;

typedef struct cli_args cli_args;

typedef struct cli_verb {
    const char *name;
    const char *synopsis;      /* what follows "headrace NAME" */
    const char *summary;       /* one sentence without its full stop */
    const char *example;       /* command lines, one a line */
    const char *details;       /* paragraphs, or null */
    const cli_option *options; /* ends with a null name */
    const char *words;  /* how the first word is completed: "op", "file", or words with a blank between */
    bool op_parameters; /* also takes the parameters of the built-in ops as options */
    bool command;       /* what follows "--" is a command to run */
    int (*run)(const cli_args *args);
} cli_verb;

/* The verbs, ending with a null name. */
extern const cli_verb cli_verbs[];
const cli_verb *cli_find_verb(const char *name);

typedef struct cli_given {
    const char *name;
    const char *value; /* "" for a flag */
} cli_given;

struct cli_args {
    const cli_verb *verb;
    const char **words; /* what is no option, in order */
    size_t word_count;
    cli_given *given; /* options, in order */
    size_t given_count;
    char **command; /* what follows "--", ending with null; or null */
    bool help;
};

/*
 * Takes argv[0 … argc − 1], which stand behind the verb, apart. False: `why` holds the complaint as "WHAT:
 * WHY". In both cases cli_args_free() is due. Strings stay argv's.
 */
bool cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *args, char *why, size_t room);
void cli_args_free(cli_args *args);

bool cli_has(const cli_args *args, const char *name);
/* The value, or null if it was not given. */
const char *cli_get(const cli_args *args, const char *name);
/* The value of the i-th time that a repeated option was given, or null. */
const char *cli_get_nth(const cli_args *args, const char *name, size_t nth);

/* Values. False: not of that form, or out of range. Outputs are set only on success. */
bool cli_parse_size(const char *text, uint64_t *bytes); /* "8M"; K, M and G are powers of 1024 */
bool cli_parse_count(const char *text, uint64_t low, uint64_t high, uint64_t *count);
/* "4,7" or "4x7", with "?" for the one extent that comes from the file's length (UINT64_MAX). On failure says
 * why. */
bool cli_parse_shape(const char *text, hr_shape *shape, char *why, size_t room);

/* Says `headrace: WHAT: WHY` in one line on standard error, and returns `status`. */
int cli_fail(int status, const char *what, const char *format, ...) HR_PRINTF(3, 4);
/* The same for a failure of the library's. */
int cli_fail_error(int status, const hr_error *error);
/* A remark in one line on standard error. */
void cli_note(const char *format, ...) HR_PRINTF(1, 2);
/* Flushes standard output; a pipe that was closed or a full disk is a failure with its line. Returns `status`
 * or CLI_FAILED. */
int cli_end_output(int status);

/* Help, manual page and completion, all from the table. */
void cli_print_help(FILE *to, const cli_verb *verb);
void cli_print_overview(FILE *to);
void cli_print_man(FILE *to, const cli_verb *verb); /* null: the overview */
void cli_print_completion(FILE *to);

/* "1.5 GiB"; `text` has room for 16. */
const char *cli_bytes_text(uint64_t bytes, char text[16]);

int cmd_run(const cli_args *args);
int cmd_audit(const cli_args *args);
int cmd_bench(const cli_args *args);
int cmd_info(const cli_args *args);

#endif
