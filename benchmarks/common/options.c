#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "record_pieces.h"

/* getopt's codes of the options: their places in the table, and two more. */
enum { FIRST_CODE = 256, CODE_HELP = 10000, CODE_VERSION };
/* A fraction's limit where the table gives none. */
#define LARGEST_FRACTION 1e9

static int known_name(const option *option, const char *name)
{
    for (const char *const *known = option->names; *known; known++)
        if (strcmp(*known, name) == 0)
            return 1;
    return 0;
}

static int no_such_name(const option *option, const char *name, complaint *about)
{
    char known[300] = "";
    size_t used = 0;
    for (const char *const *one = option->names; *one && used < sizeof known; one++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", *one);
    return complain(about, "--%s %.80s: must be one of: %s", option->name, name, known);
}

static int add_choice(choice_list *list, const char *name, complaint *about)
{
    const char **grown = realloc(list->names, (list->count + 1) * sizeof *grown);
    if (!grown)
        return complain(about, "no memory for the options");
    list->names = grown;
    list->names[list->count++] = name;
    return 0;
}

static int add_choices(const option *option, const char *text, complaint *about)
{
    choice_list *list = option->value;
    for (const char *const *known = option->names; *known; known++)
        if ((strcmp(text, "all") == 0 || strcmp(text, *known) == 0) &&
            add_choice(list, *known, about))
            return -1;
    if (strcmp(text, "all") != 0 && !known_name(option, text))
        return no_such_name(option, text, about);
    return 0;
}

static int parse_option(const option *option, const char *text, complaint *about)
{
    char dashed[80];
    snprintf(dashed, sizeof dashed, "--%s", option->name);
    switch (option->kind) {
    case OPTION_FLAG:
        *(int *)option->value = 1;
        return 0;
    case OPTION_NUMBER:
        return parse_number(dashed, text, option->least, option->most, option->value, about);
    case OPTION_FRACTION:
        if (strcmp(text, "0") == 0) {
            *(double *)option->value = 0.0;
            return 0;
        }
        return parse_fraction(dashed, text, 0.0,
                              option->most ? (double)option->most : LARGEST_FRACTION,
                              option->value, about);
    case OPTION_SIZES:
        /* Counts are ints, and a size is a count of MPI_BYTE, unless the table says more. */
        return parse_sizes(dashed, text, option->most ? option->most : INT_MAX, option->value,
                           about);
    case OPTION_CHOICE:
        if (!known_name(option, text))
            return no_such_name(option, text, about);
        *(const char **)option->value = text;
        return 0;
    case OPTION_CHOICES:
        return add_choices(option, text, about);
    case OPTION_TEXT:
        *(const char **)option->value = text;
        return 0;
    case OPTION_TEXTS:
        return add_choice(option->value, text, about);
    }
    return -1;
}

static int is_list(const option *option)
{
    return option->kind == OPTION_SIZES || option->kind == OPTION_CHOICES ||
           option->kind == OPTION_TEXTS;
}

static int parse_initial_values(const program_description *program, int lists, complaint *about)
{
    for (size_t i = 0; i < program->option_count; i++) {
        const option *option = &program->options[i];
        if (!option->initial || is_list(option) != lists)
            continue;
        /* What is given replaces a list's initial value, so that one waits for the end. */
        if (lists && (option->kind == OPTION_SIZES ? ((size_list *)option->value)->count
                                                   : ((choice_list *)option->value)->count))
            continue;
        if (parse_option(option, option->initial, about))
            return -1;
    }
    return 0;
}

int parse_options(const program_description *program, int argc, char **argv, asked_for *asked,
                  complaint *about)
{
    struct option *known = calloc(program->option_count + 3, sizeof *known);
    int status = -1;
    *asked = ASKED_RUN;
    if (!known)
        return complain(about, "no memory for the options");
    for (size_t i = 0; i < program->option_count; i++)
        known[i] = (struct option){program->options[i].name,
                                   program->options[i].kind == OPTION_FLAG ? no_argument
                                                                           : required_argument,
                                   NULL, FIRST_CODE + (int)i};
    known[program->option_count] = (struct option){"help", no_argument, NULL, CODE_HELP};
    known[program->option_count + 1] = (struct option){"version", no_argument, NULL, CODE_VERSION};
    if (parse_initial_values(program, 0, about))
        goto out;
    opterr = 0; /* The sentence is ours, on one rank. */
    optind = 1;
    for (int code, at = 1; (code = getopt_long(argc, argv, "+", known, NULL)) != -1; at = optind) {
        if (code == CODE_HELP)
            *asked = ASKED_HELP;
        else if (code == CODE_VERSION)
            *asked = ASKED_VERSION;
        else if (code < FIRST_CODE) {
            complain(about, "%.80s: unknown option or missing value; see %s --help",
                     at < argc ? argv[at] : "?", program->name);
            goto out;
        } else if (parse_option(&program->options[code - FIRST_CODE], optarg, about))
            goto out;
    }
    if (optind < argc)
        complain(about, "%.80s: unexpected argument; see %s --help", argv[optind], program->name);
    else
        status = parse_initial_values(program, 1, about);
out:
    free(known);
    return status;
}

static const char *placeholder(const option *option)
{
    switch (option->kind) {
    case OPTION_FLAG:
        return "";
    case OPTION_NUMBER:
        return " N";
    case OPTION_FRACTION:
        return " X";
    case OPTION_SIZES:
        return " N|FIRST:LAST:STEP";
    case OPTION_CHOICE:
    case OPTION_CHOICES:
        return " NAME";
    case OPTION_TEXT:
    case OPTION_TEXTS:
        return " TEXT";
    }
    return "";
}

void print_help(FILE *out, const program_description *program)
{
    fprintf(out, "%s\nusage: mpiexec -n RANKS %s [options]\n\n", program->purpose, program->name);
    for (size_t i = 0; i < program->option_count; i++) {
        const option *option = &program->options[i];
        fprintf(out, "  --%s%s\n      %s", option->name, placeholder(option), option->help);
        if (option->names) {
            fputs(": ", out);
            for (const char *const *known = option->names; *known; known++)
                fprintf(out, "%s%s", known == option->names ? "" : ", ", *known);
            if (option->kind == OPTION_CHOICES)
                fputs(", or all; may be repeated", out);
        }
        if (option->kind == OPTION_TEXTS)
            fputs("; may be repeated", out);
        if (option->initial && option->kind != OPTION_FLAG)
            fprintf(out, " (%s)", option->initial);
        fputs("\n", out);
    }
    fprintf(out, "  --help, --version\n\nexample: %s\n", program->example);
}

static void print_value(FILE *out, const option *option)
{
    const size_list *sizes = option->value;
    const choice_list *choices = option->value;
    switch (option->kind) {
    case OPTION_FLAG:
        fputs(*(int *)option->value ? "true" : "false", out);
        break;
    case OPTION_NUMBER:
        fprintf(out, "%lld", *(long long *)option->value);
        break;
    case OPTION_FRACTION:
        fprintf(out, "%.9g", *(double *)option->value);
        break;
    case OPTION_SIZES:
        for (size_t i = 0; i < sizes->count; i++)
            fprintf(out, "%s%zu", i ? "," : "[", sizes->sizes[i]);
        fputs(sizes->count ? "]" : "[]", out);
        break;
    case OPTION_CHOICES:
    case OPTION_TEXTS:
        for (size_t i = 0; i < choices->count; i++) {
            fputs(i ? "," : "[", out);
            print_string(out, choices->names[i]);
        }
        fputs(choices->count ? "]" : "[]", out);
        break;
    case OPTION_CHOICE:
    case OPTION_TEXT:
        print_string(out, *(const char **)option->value ? *(const char **)option->value : "");
        break;
    }
}

char *parameters_of(const program_description *program)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    for (size_t i = 0; i < program->option_count; i++) {
        fputs(i ? ",\"" : "{\"", out);
        for (const char *c = program->options[i].name; *c; c++)
            fputc(*c == '-' ? '_' : *c, out);
        fputs("\":", out);
        print_value(out, &program->options[i]);
    }
    fputs(program->option_count ? "}" : "{}", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

void free_options(const program_description *program)
{
    for (size_t i = 0; i < program->option_count; i++) {
        const option *option = &program->options[i];
        if (option->kind == OPTION_SIZES)
            free_sizes(option->value);
        if (option->kind == OPTION_CHOICES || option->kind == OPTION_TEXTS) {
            free(((choice_list *)option->value)->names);
            *(choice_list *)option->value = (choice_list){NULL, 0};
        }
    }
}
