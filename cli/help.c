/* SPDX-License-Identifier: Apache-2.0 */
/* --help, the manual pages and the completion for bash, written from the table of verbs. */
#include "cli.h"

#include <string.h>

static const char exit_text[] = "0 done; 1 the work failed (I/O, device, memory, a failed check); 2 "
                                "arguments or input that cannot be used; "
                                "3 audit --fail-on found what it was told to fail on; 130 interrupted";
static const char manual_date[] = "2026-11-29"; /* when the interface last changed */
static const char size_text[] = "SIZE takes K, M and G, powers of 1024";

/* Prints text from column `indent` on, wrapped at 100; the cursor stands at `column`. */
static void print_wrapped(FILE *to, const char *text, int indent, int column)
{
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + length > 100) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', to);
            column++;
        }
        fprintf(to, "%.*s", length, text);
        column += length;
        text += length;
        if (*text == '\n') {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        }
        if (*text)
            text++;
    }
    fputc('\n', to);
}

static void print_entry(FILE *to, const char *name, const char *help)
{
    enum { COLUMN = 22 };
    int width = fprintf(to, "  %s", name);
    if (width > COLUMN - 2) {
        fprintf(to, "\n%*s", COLUMN, "");
    } else {
        fprintf(to, "%*s", COLUMN - width, "");
    }
    print_wrapped(to, help, COLUMN, COLUMN);
}

/* "-o, --out PATH" */
static void option_name(const cli_option *option, char *text, size_t room)
{
    char letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(text, room, "%s--%s%s%s", letter, option->name, option->value ? " " : "",
             option->value ? option->value : "");
}

static void parameter_help(const hr_op_param *param, char *text, size_t room)
{
    if (param->fallback && param->fallback[0])
        snprintf(text, room, "%s (%s; default %s)", param->help, param->type, param->fallback);
    else
        snprintf(text, room, "%s (%s)", param->help, param->type);
}

static void print_ops(FILE *to)
{
    const hr_op *op;
    fprintf(to, "\nOps:\n");
    for (uint32_t i = 0; (op = hr_op_at(i)) != NULL; i++) {
        print_entry(to, op->name, op->summary ? op->summary : "");
        const hr_op_param *param;
        for (uint32_t k = 0; (param = hr_op_param_at(op, k)) != NULL; k++) {
            char name[64], help[512];
            snprintf(name, sizeof name, "  --%s V", param->name);
            parameter_help(param, help, sizeof help);
            print_entry(to, name, help);
        }
    }
}

void cli_print_help(FILE *to, const cli_verb *verb)
{
    fprintf(to, "Example:\n");
    for (const char *line = verb->example; *line;) {
        int length = (int)strcspn(line, "\n");
        fprintf(to, "  %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
    fprintf(to, "\nUsage: headrace %s %s\n\n", verb->name, verb->synopsis);
    print_wrapped(to, verb->summary, 0, 0);
    if (verb->details) {
        fputc('\n', to);
        print_wrapped(to, verb->details, 0, 0);
    }
    fprintf(to, "\nOptions:\n");
    for (const cli_option *option = verb->options; option->name; option++) {
        char name[80];
        option_name(option, name, sizeof name);
        print_entry(to, name, option->help);
    }
    print_entry(to, "-h, --help", "this text");
    if (verb->op_parameters)
        print_ops(to);
    fputc('\n', to);
    print_wrapped(to, size_text, 0, 0);
    fprintf(to, "Exit status: ");
    print_wrapped(to, exit_text, 13, 13);
}

void cli_print_overview(FILE *to)
{
    fprintf(to, "Example:\n"
                "  headrace run conv2d --filter gauss5 --in photo.jpg --out soft.png --timeline\n"
                "\nUsage: headrace VERB [OPTION ...]\n\n"
                "Keeps GPUs fed: copies and computing that overlap, and that show it.\n\nVerbs:\n");
    for (const cli_verb *verb = cli_verbs; verb->name; verb++)
        print_entry(to, verb->name, verb->summary);
    fprintf(to, "\nOptions:\n");
    print_entry(to, "-h, --help", "this text; headrace VERB --help for a verb");
    print_entry(to, "--version", "the version");
    fprintf(to, "\nExit status: ");
    print_wrapped(to, exit_text, 13, 13);
}

/* Text for roff: a hyphen that may be typed, no line that starts with a control character. */
static void print_roff(FILE *to, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fprintf(to, "\\&");
        start = *text == '\n';
        if (*text == '-')
            fprintf(to, "\\-");
        else if (*text == '\\')
            fprintf(to, "\\e");
        else if (*text == '\n')
            fprintf(to, "\n.PP\n");
        else
            fputc(*text, to);
    }
}

static void print_roff_line(FILE *to, const char *before, const char *text, const char *after)
{
    fputs(before, to);
    print_roff(to, text);
    fputs(after, to);
}

static void print_man_head(FILE *to, const char *page, const char *summary)
{
    fprintf(to, ".TH ");
    for (; *page; page++)
        fputc(*page >= 'a' && *page <= 'z' ? *page - 'a' + 'A' : *page, to);
    fprintf(to, " 1 \"%s\" \"Headrace %s\" \"Headrace\"\n.SH NAME\n", manual_date, hr_version());
    fprintf(to, "%s", summary);
}

static void print_man_option(FILE *to, const cli_option *option)
{
    fprintf(to, ".TP\n");
    if (option->letter)
        fprintf(to, "\\fB\\-%c\\fR, ", option->letter);
    print_roff_line(to, "\\fB\\-\\-", option->name, "\\fR");
    if (option->value)
        print_roff_line(to, " \\fI", option->value, "\\fR");
    print_roff_line(to, "\n", option->help, ".\n");
}

static void print_man_ops(FILE *to)
{
    const hr_op *op;
    fprintf(to, ".SH OPS\n");
    for (uint32_t i = 0; (op = hr_op_at(i)) != NULL; i++) {
        print_roff_line(to, ".TP\n\\fB", op->name, "\\fR\n");
        print_roff(to, op->summary ? op->summary : "");
        fprintf(to, ".\n");
        const hr_op_param *param;
        if (hr_op_param_at(op, 0))
            fprintf(to, ".RS\n");
        for (uint32_t k = 0; (param = hr_op_param_at(op, k)) != NULL; k++) {
            char help[512];
            parameter_help(param, help, sizeof help);
            print_roff_line(to, ".TP\n\\fB\\-\\-", param->name, "\\fR\n");
            print_roff_line(to, "", help, ".\n");
        }
        if (hr_op_param_at(op, 0))
            fprintf(to, ".RE\n");
    }
}

static void print_man_verb(FILE *to, const cli_verb *verb)
{
    char page[32];
    snprintf(page, sizeof page, "headrace-%s", verb->name);
    print_man_head(to, page, "headrace\\-");
    fprintf(to, "%s \\- ", verb->name);
    print_roff_line(to, "", verb->summary, "\n.SH SYNOPSIS\n");
    fprintf(to, "\\fBheadrace %s\\fR ", verb->name);
    print_roff_line(to, "", verb->synopsis, "\n");
    if (verb->details)
        print_roff_line(to, ".SH DESCRIPTION\n", verb->details, "\n");
    fprintf(to, ".SH OPTIONS\n");
    for (const cli_option *option = verb->options; option->name; option++)
        print_man_option(to, option);
    print_roff_line(to, ".PP\n", size_text, ".\n");
    if (verb->op_parameters)
        print_man_ops(to);
    fprintf(to, ".SH EXAMPLES\n.nf\n");
    for (const char *line = verb->example; *line;) {
        char text[256];
        int length = (int)strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", length, line);
        print_roff_line(to, "", text, "\n");
        line += length + (line[length] == '\n');
    }
    fprintf(to, ".fi\n");
    print_roff_line(to, ".SH EXIT STATUS\n", exit_text, ".\n");
    fprintf(to, ".SH SEE ALSO\n\\fBheadrace\\fR(1)\n");
}

void cli_print_man(FILE *to, const cli_verb *verb)
{
    if (verb) {
        print_man_verb(to, verb);
        return;
    }
    print_man_head(to, "headrace",
                   "headrace \\- keeps GPUs fed: copies and computing that overlap, and that show it\n");
    fprintf(to, ".SH SYNOPSIS\n\\fBheadrace\\fR \\fIVERB\\fR [\\fIOPTION\\fR ...]\n.SH VERBS\n");
    for (verb = cli_verbs; verb->name; verb++) {
        fprintf(to, ".TP\n\\fBheadrace\\-%s\\fR(1)\n", verb->name);
        print_roff_line(to, "", verb->summary, ".\n");
    }
    print_roff_line(to, ".SH EXIT STATUS\n", exit_text, ".\n");
    fprintf(to, ".SH SEE ALSO\n");
    for (verb = cli_verbs; verb->name; verb++)
        fprintf(to, "\\fBheadrace\\-%s\\fR(1)%s\n", verb->name, verb[1].name ? "," : "");
}

/* The words that may follow a value of this kind. */
static void print_completion_words(FILE *to, const char *kind)
{
    if (!strcmp(kind, "op")) {
        const hr_op *op;
        for (uint32_t i = 0; (op = hr_op_at(i)) != NULL; i++)
            fprintf(to, "%s%s", i ? " " : "", op->name);
    } else if (!strcmp(kind, "device")) {
        fprintf(to, "auto cpu cpu:discrete cuda cuda:all");
    } else if (!strcmp(kind, "dtype")) {
        for (int dtype = HR_DTYPE_NONE + 1; dtype < HR_DTYPE_COUNT; dtype++)
            fprintf(to, "%s%s", dtype > 1 ? " " : "", hr_dtype_name((hr_dtype)dtype));
    } else if (strcmp(kind, "rule") != 0) {
        fprintf(to, "%s", kind);
    }
}

/* One arm of the case that completes the value of an option; `verb` and `option` are what was typed. */
static void print_completion_value(FILE *to, const cli_verb *verb, const cli_option *option)
{
    fprintf(to, "    %s:--%s", verb->name, option->name);
    if (option->letter)
        fprintf(to, "|%s:-%c", verb->name, option->letter);
    fprintf(to, ")");
    if (option->complete && !strcmp(option->complete, "file")) {
        fprintf(to, " compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")");
    } else if (option->complete && !strcmp(option->complete, "rule")) {
        fprintf(to,
                " words=$(\"${COMP_WORDS[0]}\" audit --rules 2>/dev/null | grep -oE '^[a-z]+(-[a-z]+)+')");
    } else if (option->complete) {
        fprintf(to, " words=\"");
        print_completion_words(to, option->complete);
        fprintf(to, "\"");
    }
    fprintf(to, " ;;\n");
}

/* The help of a parameter whose value is one of several names lists them: "zero, replicate or reflect (…)". */
static void print_listed_names(FILE *to, const char *help)
{
    for (size_t length; *help && *help != '('; help += length) {
        help += strspn(help, " ,");
        length = strcspn(help, " ,(");
        if (length && strncmp(help, "or ", 3) != 0)
            fprintf(to, "%.*s ", (int)length, help);
    }
}

/* The same for the parameters of ops, as options of a verb. */
static void print_completion_parameters(FILE *to, const cli_verb *verb)
{
    const hr_op *op;
    for (uint32_t i = 0; (op = hr_op_at(i)) != NULL; i++) {
        const hr_op_param *param;
        for (uint32_t k = 0; (param = hr_op_param_at(op, k)) != NULL; k++) {
            bool known = !strcmp(param->type, "file") || !strcmp(param->type, "dtype");
            const cli_option option = {.name = param->name, .complete = known ? param->type : NULL};
            if (!strstr(param->type, " name")) {
                print_completion_value(to, verb, &option);
                continue;
            }
            fprintf(to, "    %s:--%s) words=\"", verb->name, param->name);
            print_listed_names(to, param->help);
            fprintf(to, "\" ;;\n");
        }
    }
}

static void print_completion_verb(FILE *to, const cli_verb *verb)
{
    fprintf(to, "    %s)\n        words=\"", verb->name);
    for (const cli_option *option = verb->options; option->name; option++)
        fprintf(to, "--%s ", option->name);
    fprintf(to, "--help");
    const hr_op *op;
    for (uint32_t i = 0; verb->op_parameters && (op = hr_op_at(i)) != NULL; i++) {
        const hr_op_param *param;
        for (uint32_t k = 0; (param = hr_op_param_at(op, k)) != NULL; k++)
            fprintf(to, " --%s", param->name);
    }
    fprintf(to, "\"\n");
    if (verb->words && !strcmp(verb->words, "file")) {
        fprintf(
            to,
            "        [[ $word == -* ]] || { words=; compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < "
            "<(compgen -f -- \"$word\"); }\n");
    } else if (verb->words) {
        fprintf(to, "        [[ $word == -* ]] || words=\"");
        print_completion_words(to, verb->words);
        fprintf(to, "\"\n");
    }
    fprintf(to, "        ;;\n");
}

void cli_print_completion(FILE *to)
{
    fprintf(to, "# bash completion for headrace; written by headrace --completion\n"
                "_headrace()\n{\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} "
                "verb=${COMP_WORDS[1]} words=\n"
                "    # A colon parts words for bash, and devices have one in their names.\n"
                "    if declare -F _get_comp_words_by_ref >/dev/null; then\n"
                "        _get_comp_words_by_ref -n : -c word -p option\n"
                "    fi\n"
                "    COMPREPLY=()\n"
                "    if ((COMP_CWORD == 1)); then\n"
                "        mapfile -t COMPREPLY < <(compgen -W \"");
    for (const cli_verb *verb = cli_verbs; verb->name; verb++)
        fprintf(to, "%s ", verb->name);
    fprintf(to, "--help --version\" -- \"$word\")\n        return\n    fi\n    case $verb:$option in\n");
    for (const cli_verb *verb = cli_verbs; verb->name; verb++) {
        for (const cli_option *option = verb->options; option->name; option++) {
            if (option->value)
                print_completion_value(to, verb, option);
        }
        if (verb->op_parameters)
            print_completion_parameters(to, verb);
    }
    fprintf(to, "    *)\n    case $verb in\n");
    for (const cli_verb *verb = cli_verbs; verb->name; verb++)
        print_completion_verb(to, verb);
    fprintf(to, "    esac ;;\n    esac\n"
                "    [ -z \"$words\" ] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                "    if declare -F __ltrimcolonprefix >/dev/null; then __ltrimcolonprefix \"$word\"; fi\n"
                "}\ncomplete -F _headrace headrace\n");
}
