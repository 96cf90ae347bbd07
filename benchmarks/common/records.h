/* The records of benchmarks/FORMAT.md, one JSON object a line on stdout of rank 0. */
#ifndef WYEAST_RECORDS_H
#define WYEAST_RECORDS_H

#include "record_pieces.h"

/* Write the header. Collective over MPI_COMM_WORLD; rank 0 prints `parameters`, which is the text
 * of a JSON object. Returns 0, or -1 when memory ran out on some rank. */
int print_header(FILE *out, const char *program, const char *parameters);

/* The same in another format, and with another clock if it has one. */
typedef struct {
    const char *format, *clock;
    double clock_tick; /* In seconds. */
    double (*read_clock)(void);
    const char *mpi_wtime; /* As in header_facts. */
} output_kind;

int print_header_of(const output_kind *kind, FILE *out, const char *program,
                    const char *parameters);

#endif
