/* The ranks of the world that say the same text, such as the name of their host. They find each other by
 * messages in groups, so that no rank ever has a list of what all say. */
#ifndef WYEAST_RANKS_ALIKE_H
#define WYEAST_RANKS_ALIKE_H

#include <mpi.h>

/* Of a text, with its end. */
#define LONGEST_SAID 1024

typedef struct {
    MPI_Comm sharing; /* The ranks that say what this one says, in order; the lowest leads them. */
    MPI_Comm leaders; /* In order; MPI_COMM_NULL on ranks that do not lead. */
    int texts;        /* How many different texts there are, on every rank. */
} ranks_alike;

/* Both are collective over MPI_COMM_WORLD. What is longer than LONGEST_SAID is cut. */
void find_alike(ranks_alike *found, const char *text);
void free_alike(ranks_alike *found);

#endif
