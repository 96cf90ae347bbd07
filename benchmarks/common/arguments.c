#include "arguments.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SIZES ((size_t)100000)

int complain(complaint *about, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    /* A sentence that is longer than its place is cut, which still is a sentence's beginning. */
    (void)vsnprintf(about->text, sizeof about->text, format, values);
    va_end(values);
    return -1;
}

int parse_number(const char *option, const char *text, long long least, long long most,
                 long long *number, complaint *about)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*text == '\0' || strchr(" \t\n\v\f\r", *text) || *end != '\0')
        return complain(about, "%s %.80s: not a whole number", option, text);
    if (errno == ERANGE || value < least || value > most)
        return complain(about, "%s %.80s: must be from %lld to %lld", option, text, least, most);
    *number = value;
    return 0;
}

int parse_fraction(const char *option, const char *text, double least, double most,
                   double *number, complaint *about)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (*text == '\0' || strchr(" \t\n\v\f\r", *text) || *end != '\0')
        return complain(about, "%s %.80s: not a number", option, text);
    if (errno == ERANGE || !(value > least) || !(value <= most))
        return complain(about, "%s %.80s: must be greater than %g and at most %g", option, text,
                        least, most);
    *number = value;
    return 0;
}

static int append_size(const char *option, size_list *list, size_t size, complaint *about)
{
    if (list->count >= MOST_SIZES)
        return complain(about, "%s: more than %zu values", option, MOST_SIZES);
    size_t *grown = realloc(list->sizes, (list->count + 1) * sizeof *grown);
    if (!grown)
        return complain(about, "%s: no memory for %zu values", option, list->count + 1);
    list->sizes = grown;
    list->sizes[list->count++] = size;
    return 0;
}

int parse_sizes(const char *option, const char *text, long long most, size_list *list,
                complaint *about)
{
    char *copy = strdup(text);
    if (!copy)
        return complain(about, "%s: no memory", option);
    int status = -1;
    char *parts[3] = {copy, NULL, NULL};
    size_t count = 1;
    for (char *colon = strchr(copy, ':'); colon; colon = strchr(colon + 1, ':')) {
        if (count < 3)
            parts[count] = colon + 1;
        count++;
        *colon = '\0';
    }
    long long first = 0, last = 0, step = 1;
    if (count != 1 && count != 3) {
        complain(about, "%s %.80s: write one number or FIRST:LAST:STEP", option, text);
        goto out;
    }
    if (parse_number(option, parts[0], 0, most, &first, about))
        goto out;
    last = first;
    if (count == 3 && (parse_number(option, parts[1], 0, most, &last, about) ||
                       parse_number(option, parts[2], 1, most, &step, about)))
        goto out;
    if (last < first) {
        complain(about, "%s %.80s: the range is empty, it ends before it begins", option, text);
        goto out;
    }
    for (long long size = first; size <= last; size += step)
        if (append_size(option, list, (size_t)size, about))
            goto out;
    status = 0;
out:
    free(copy);
    return status;
}

size_t largest_size(const size_list *list)
{
    size_t largest = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->sizes[i] > largest)
            largest = list->sizes[i];
    return largest;
}

void free_sizes(size_list *list)
{
    free(list->sizes);
    list->sizes = NULL;
    list->count = 0;
}
