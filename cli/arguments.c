/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a command line apart by a verb's table of options. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const cli_option help_option = {.name = "help", .letter = 'h'};

/* An option as the parser sees it: of the table, or a parameter of some op. */
typedef struct found_option {
    const char *name;
    bool takes_value;
    const char *value;
    bool repeats;
} found_option;

static bool complain(char *why, size_t room, const char *format, ...) HR_PRINTF(3, 4);
static bool complain(char *why, size_t room, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, room, format, list);
    va_end(list);
    return false;
}

static bool same(const char *a, const char *b, size_t length)
{
    return strlen(a) == length && strncmp(a, b, length) == 0;
}

static bool find_parameter(const char *name, size_t length, found_option *found)
{
    const hr_op *op;
    for (uint32_t i = 0; (op = hr_op_at(i)) != NULL; i++) {
        const hr_op_param *param;
        for (uint32_t k = 0; (param = hr_op_param_at(op, k)) != NULL; k++) {
            if (same(param->name, name, length)) {
                *found = (found_option){param->name, true, param->type, false};
                return true;
            }
        }
    }
    return false;
}

static bool find_long(const cli_verb *verb, const char *name, size_t length, found_option *found)
{
    for (const cli_option *option = verb->options; option->name; option++) {
        if (same(option->name, name, length)) {
            *found = (found_option){option->name, option->value != NULL, option->value, option->repeats};
            return true;
        }
    }
    if (same(help_option.name, name, length)) {
        *found = (found_option){help_option.name, false, NULL, true};
        return true;
    }
    return verb->op_parameters && find_parameter(name, length, found);
}

static bool find_letter(const cli_verb *verb, char letter, found_option *found)
{
    for (const cli_option *option = verb->options; option->name; option++) {
        if (option->letter == letter) {
            *found = (found_option){option->name, option->value != NULL, option->value, option->repeats};
            return true;
        }
    }
    if (letter == help_option.letter) {
        *found = (found_option){help_option.name, false, NULL, true};
        return true;
    }
    return false;
}

/* How many single changes lead from a to b; counts no further than 3. */
static size_t distance(const char *a, const char *b)
{
    size_t row[32];
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a >= 32 || length_b >= 32)
        return 3;
    for (size_t j = 0; j <= length_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t drop = row[j] + 1, add = row[j - 1] + 1;
            row[j] = change < drop ? change : drop;
            row[j] = row[j] < add ? row[j] : add;
        }
    }
    return row[length_b] < 3 ? row[length_b] : 3;
}

static const char *nearest_option(const cli_verb *verb, const char *name)
{
    const char *nearest = NULL;
    size_t best = 3;
    for (const cli_option *option = verb->options; option->name; option++) {
        size_t far = distance(option->name, name);
        if (far < best) {
            best = far;
            nearest = option->name;
        }
    }
    return nearest;
}

static bool unknown(const cli_verb *verb, const char *argument, char *why, size_t room)
{
    char name[32] = "";
    if (argument[1] == '-')
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    const char *nearest = name[0] ? nearest_option(verb, name) : NULL;
    if (nearest)
        return complain(why, room, "%s: no such option of %s; did you mean --%s?", argument, verb->name,
                        nearest);
    return complain(why, room, "%s: no such option; see headrace %s --help", argument, verb->name);
}

static bool give(cli_args *args, const found_option *found, const char *value, char *why, size_t room)
{
    if (!found->repeats && cli_has(args, found->name))
        return complain(why, room, "--%s: given twice%s", found->name,
                        found->takes_value ? "; it takes one value" : "");
    if (found->name == help_option.name)
        args->help = true;
    args->given[args->given_count++] = (cli_given){found->name, value};
    return true;
}

/* One argument that starts with "-". *used: how many of argv it took. */
static bool parse_option(cli_args *args, int argc, char **argv, int *used, char *why, size_t room)
{
    const char *argument = argv[0];
    found_option found = {.name = ""};
    const char *value = NULL;
    if (argument[1] == '-') {
        size_t length = strcspn(argument + 2, "=");
        if (!find_long(args->verb, argument + 2, length, &found))
            return unknown(args->verb, argument, why, room);
        if (argument[2 + length] == '=')
            value = argument + 3 + length;
    } else {
        if (!find_letter(args->verb, argument[1], &found))
            return unknown(args->verb, argument, why, room);
        if (argument[2])
            value = argument + 2;
        if (value && !found.takes_value)
            return complain(why, room, "%s: one letter at a time", argument);
    }
    *used = 1;
    if (!found.takes_value) {
        if (value)
            return complain(why, room, "--%s: takes no value, found \"%s\"", found.name, value);
        return give(args, &found, "", why, room);
    }
    if (!value) {
        if (argc < 2)
            return complain(why, room, "--%s: needs a value: %s", found.name, found.value);
        value = argv[1];
        *used = 2;
    }
    return give(args, &found, value, why, room);
}

bool cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *args, char *why, size_t room)
{
    *args = (cli_args){.verb = verb};
    args->words = calloc((size_t)argc + 1, sizeof *args->words);
    args->given = calloc((size_t)argc + 1, sizeof *args->given);
    if (!args->words || !args->given)
        return complain(why, room, "command line: out of memory");
    for (int i = 0, used = 1; i < argc; i += used) {
        const char *argument = argv[i];
        used = 1;
        if (!strcmp(argument, "--")) {
            if (verb->command) {
                args->command = argv + i + 1;
                return true;
            }
            for (i++; i < argc; i++)
                args->words[args->word_count++] = argv[i];
            return true;
        }
        if (argument[0] != '-' || !argument[1])
            args->words[args->word_count++] = argument;
        else if (!parse_option(args, argc - i, argv + i, &used, why, room))
            return false;
    }
    return true;
}

void cli_args_free(cli_args *args)
{
    free(args->words);
    free(args->given);
    *args = (cli_args){0};
}

const char *cli_get_nth(const cli_args *args, const char *name, size_t nth)
{
    for (size_t i = 0; i < args->given_count; i++) {
        const cli_given *given = &args->given[i];
        if (given->name && !strcmp(given->name, name) && nth-- == 0)
            return given->value;
    }
    return NULL;
}

const char *cli_get(const cli_args *args, const char *name)
{
    return cli_get_nth(args, name, 0);
}

bool cli_has(const cli_args *args, const char *name)
{
    return cli_get(args, name) != NULL;
}
