/* The pieces of records that need no MPI, so that programs of other libraries write the same. */
#ifndef WYEAST_RECORD_PIECES_H
#define WYEAST_RECORD_PIECES_H

#include <stddef.h>
#include <stdio.h>

#include "summary.h"

#define RECORD_FORMAT "wyeast-records-2"
#define PROGRAM_VERSION "1.0.0"
#define LARGEST_HOST_NAME 256
#define MOST_PROCESSORS 1024
/* Of a larger world records have summaries, and say once what ranks in a row have alike. */
#ifndef MOST_RANKS_LISTED
#define MOST_RANKS_LISTED 1000
#endif

/* The caller writes the punctuation between them. */
void print_string(FILE *out, const char *text);
void print_seconds(FILE *out, double seconds);
void print_seconds_of_each(FILE *out, const double *times, size_t count);
void print_summary(FILE *out, const time_summary *summary);

/* Print a time of each rank in order, or of more than MOST_RANKS_LISTED their summary. Returns 0, or -1
 * where memory ran out. */
int print_seconds_of_ranks(FILE *out, const double *times, size_t ranks);

/* Write the numbers whose bits are set, of `most`, as text: those in a row as `first-last`. */
void print_ranges(FILE *out, const unsigned char *bits, size_t most);

/* Where a rank runs: its host, and one bit for each processor that it may run on. It has no
 * pointers, so that it can be sent as it is. */
typedef struct {
    char host[LARGEST_HOST_NAME];
    unsigned char processors[MOST_PROCESSORS / 8];
} rank_place;

/* Fill in where this process runs; what cannot be told stays "unknown" or empty. */
void find_place(rank_place *here);

typedef struct {
    const char *format;
    const char *program;
    const char *library;
    const char *mpi_standard;
    const rank_place *places; /* Of each rank. */
    size_t ranks;
    const char *clock;
    double clock_tick, clock_resolution; /* In seconds. */
    const char *mpi_wtime; /* The text of a JSON object or `null`; NULL: not in this format. */
    const char *parameters; /* The text of a JSON object. */
} header_facts;

void print_header_record(FILE *out, const header_facts *facts);

/* Write the end record and see that all of the output got out. Returns NULL, or why it did not. */
const char *print_end(FILE *out, size_t results);

#endif
