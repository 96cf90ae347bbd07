/* The records of a rank's profile; benchmarks/FORMAT.md says what they mean. */
#ifndef WYEAST_PROFILE_RECORDS_H
#define WYEAST_PROFILE_RECORDS_H

#include <stdio.h>
#include <sys/resource.h>

#include "counters.h"

/* Of the whole process, from the end of MPI_Init to the beginning of MPI_Finalize. */
typedef struct {
    int rank;
    double wall, user, system; /* In seconds. */
    size_t threads;
    /* Where it is the sum of a node's ranks: the lowest ranks of all nodes, of how many ranks it is,
     * and how long the slowest ran; `threads` is then the most of one. */
    const int *names;
    int of_ranks;
    double longest_wall;
} rank_span;

/* Write them; returns how many. `sum` may be NULL: no call was counted. */
size_t print_profile_records(FILE *out, const rank_span *span, counters *sum,
                             uint64_t receives_never_completed);

/* The name of the program, and the JSON object of its arguments, to be freed; NULL without memory. */
const char *name_of_program(void);
char *arguments_of_program(void);

#endif
