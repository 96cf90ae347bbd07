/* Who sends to whom in a neighbourhood collective: a graph that is the same with every MPI. */
#ifndef WYEAST_NEIGHBOUR_GRAPH_H
#define WYEAST_NEIGHBOUR_GRAPH_H

#include <stddef.h>

/* A rank's edges, each rank once, in ascending order. */
typedef struct {
    int *from, *to;
    int *weights; /* 1 for each edge: MPI_UNWEIGHTED looks to a compiler like an array of nothing. */
    int in, out;
} neighbours;

/* The names of the graphs, ended by NULL. `ring`: the ranks on either side; `complete`: all others;
 * `drawn`: random others, `degree` of each rank, so that an edge need not go both ways. */
extern const char *const graph_names[];

/* Find a rank's edges. Returns 0, or -1 if memory ran out; free_neighbours frees what there is. */
int find_neighbours(const char *graph, int rank, int ranks, int degree, unsigned long long seed,
                    neighbours *found);
void free_neighbours(neighbours *of);

#endif
