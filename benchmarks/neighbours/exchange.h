/* An exchange with the neighbours of a graph, and the ways to do it. */
#ifndef WYEAST_NEIGHBOUR_EXCHANGE_H
#define WYEAST_NEIGHBOUR_EXCHANGE_H

#include <mpi.h>
#include <stddef.h>

#include "graph.h"

typedef struct exchange exchange;

typedef struct {
    const char *name;
    /* NULL: this MPI has no such call. */
    void (*run)(void *context);
    void (*open)(exchange *e); /* Before the first run; NULL: nothing is to be done. */
    void (*close)(exchange *e);
} exchange_method;

struct exchange {
    const exchange_method *method;
    int one_block; /* All neighbours get the same block (allgather). */
    MPI_Comm comm; /* With the graph, where this MPI has such. */
    neighbours of;
    unsigned char *send, *receive;
    /* Of each edge, in bytes. */
    int *to, *to_start, *from, *from_start;
    MPI_Request *requests; /* For all edges. */
};

/* The names of the methods, ended by NULL; the first needs no neighbourhood collectives. */
extern const char *const method_names[];

/* The method of a name, or NULL. */
const exchange_method *find_method(const char *name);

/* Make a communicator with a graph; without one where this MPI has no such call. Collective over
 * MPI_COMM_WORLD. */
void make_graph(const neighbours *of, MPI_Comm *made);

#endif
