/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of arguments: the first line of the input is the verb, each further line one argument. Whatever
 * comes, it ends with arguments or with a complaint of the form WHAT: WHY, and what it took can be asked for.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void ask(const cli_args *args)
{
    uint64_t number;
    hr_shape shape;
    char why[128];
    for (size_t i = 0; i < args->given_count; i++) {
        const char *value = args->given[i].value;
        if (!cli_has(args, args->given[i].name))
            abort();
        if (cli_parse_size(value, &number) && number > INT64_MAX)
            abort();
        if (cli_parse_count(value, 1, 1024, &number) && (number < 1 || number > 1024))
            abort();
        if (cli_parse_shape(value, &shape, why, sizeof why) && (shape.rank < 1 || shape.rank > HR_MAX_RANK))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum { MAX_ARGUMENTS = 64 };
    char *argv[MAX_ARGUMENTS + 1];
    int argc = 0;
    char *text = malloc(bytes + 1);
    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;
    char *rest = text;
    const char *name = strsep(&rest, "\n");
    const cli_verb *verb = cli_find_verb(name);
    if (!verb)
        verb = &cli_verbs[bytes % 4];
    while (rest && argc < MAX_ARGUMENTS)
        argv[argc++] = strsep(&rest, "\n");
    argv[argc] = NULL;

    cli_args args;
    char why[256] = "";
    if (cli_parse(verb, argc, argv, &args, why, sizeof why))
        ask(&args);
    else if (!strstr(why, ": "))
        abort();
    cli_args_free(&args);
    free(text);
    return 0;
}
