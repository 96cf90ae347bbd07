/* The records of benchmarks/FORMAT.md, one JSON object a line on stdout of rank 0. */
#ifndef WYEAST_RECORDS_H
#define WYEAST_RECORDS_H

#include <stddef.h>
#include <stdio.h>

#include "summary.h"

#define RECORD_FORMAT "wyeast-records-1"
#define PROGRAM_VERSION "1.0.0"

/* Pieces of a record; the caller writes the punctuation between them. */
void print_string(FILE *out, const char *text);
void print_seconds(FILE *out, double seconds);
void print_summary(FILE *out, const time_summary *summary);

/* Write the header. Collective over MPI_COMM_WORLD; rank 0 prints `parameters`, which is the text
 * of a JSON object. Returns 0, or -1 when memory ran out on some rank. */
int print_header(FILE *out, const char *program, const char *parameters);

/* Write the end record and see that all of the output got out. Returns 0, or -1. */
int print_end(FILE *out, size_t results);

#endif
