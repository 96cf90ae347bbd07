/* Strict parsing of command lines: a bad argument is one sentence, never a guess. */
#ifndef WYEAST_ARGUMENTS_H
#define WYEAST_ARGUMENTS_H

#include <stddef.h>

/* Where the sentence about a bad argument goes. */
typedef struct {
    char text[512];
} complaint;

/* Write a sentence; always returns -1 so that a caller can return it. */
int complain(complaint *about, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Parse a decimal whole number between least and most. Returns 0, or -1 with a sentence. */
int parse_number(const char *option, const char *text, long long least, long long most,
                 long long *number, complaint *about);

/* Parse a decimal fraction greater than least and at most most. Returns 0 or -1. */
int parse_fraction(const char *option, const char *text, double least, double most,
                   double *number, complaint *about);

/* Message sizes in bytes, or other whole numbers, in the order given. */
typedef struct {
    size_t *sizes;
    size_t count;
} size_list;

/* Append FIRST, or FIRST:LAST:STEP, to a list: of message sizes, or of other whole numbers. Returns
 * 0, or -1 with a sentence, as for one above `most`. */
int parse_sizes(const char *option, const char *text, long long most, size_list *list,
                complaint *about);

/* The largest value of a list; 0 of an empty one. */
size_t largest_size(const size_list *list);

void free_sizes(size_list *list);

#endif
