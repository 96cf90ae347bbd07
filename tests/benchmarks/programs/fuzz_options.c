/* Parse one command line after another, each a line on stdin with its words between unit
 * separators, by a table that has every kind of option; say what came of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../benchmarks/common/options.h"

#define MOST_WORDS 64

static size_list sizes;
static choice_list choices;
static const char *choice, *text;
static long long number;
static double fraction;
static int flag;
static const char *const names[] = {"one", "two", NULL};

static const option options[] = {
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8", .help = ""},
    {.name = "number", .kind = OPTION_NUMBER, .value = &number, .initial = "5", .least = 1,
     .most = 1000, .help = ""},
    {.name = "fraction", .kind = OPTION_FRACTION, .value = &fraction, .initial = "0", .most = 10,
     .help = ""},
    {.name = "choice", .kind = OPTION_CHOICE, .value = &choice, .initial = "one", .names = names,
     .help = ""},
    {.name = "choices", .kind = OPTION_CHOICES, .value = &choices, .initial = "all",
     .names = names, .help = ""},
    {.name = "text", .kind = OPTION_TEXT, .value = &text, .initial = "", .help = ""},
    {.name = "flag", .kind = OPTION_FLAG, .value = &flag, .help = ""},
};
static const program_description program = {"fuzz", "", "", options,
                                            sizeof options / sizeof options[0]};

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
        char *words[MOST_WORDS + 1] = {"fuzz"};
        int count = 1;
        line[length - 1] = '\0';
        for (char *word = line; *line && word && count < MOST_WORDS;) {
            char *end = strchr(word, '\x1f');
            if (end)
                *end++ = '\0';
            words[count++] = word;
            word = end;
        }
        complaint about = {""};
        asked_for asked;
        if (parse_options(&program, count, words, &asked, &about)) {
            if (!about.text[0])
                fail("refused without a sentence");
            for (char *c = about.text; *c; c++)
                *c = *c == '\n' || *c == '\r' || (unsigned char)*c < 0x20 ? ' ' : *c;
            printf("refused %s\n", about.text);
        } else {
            if (number < 1 || number > 1000 || !(fraction >= 0 && fraction <= 10) ||
                !sizes.count || !choices.count || !choice)
                fail("parsed what is beyond the table's limits");
            char *parameters = parameters_of(&program);
            if (!parameters)
                fail("no memory");
            printf("parsed %zu\n", strlen(parameters));
            free(parameters);
        }
        free_options(&program);
        flag = 0;
    }
    free(line);
    return 0;
}
