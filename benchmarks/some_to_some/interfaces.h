/* The messages of a sparse random exchange, and which of them are a rank's own. Needs no MPI. */
#ifndef WYEAST_INTERFACES_H
#define WYEAST_INTERFACES_H

#include <stddef.h>
#include <stdint.h>

/* What is drawn, the same on every machine. */
typedef struct {
    uint64_t seed;
    int ranks; /* At least 2. */
    size_t messages; /* That a rank sends on average. */
    size_t least_bytes, most_bytes;
    int is_double; /* Every pair also the other way, with another size. */
} drawing;

/* One message of the exchange. */
typedef struct {
    int source, destination;
    size_t number; /* Its place among those of all ranks. */
    size_t bytes, offset; /* Where it begins in the buffer that this rank has for it. */
} interface;

typedef struct {
    interface *own; /* What this rank sends or receives, in the order of all. */
    size_t count, receives;
    size_t sent, received; /* What its two buffers need, in bytes. */
    size_t of_all;         /* How many messages all ranks send, */
    unsigned long long bytes_of_all;
    size_t room;
} interfaces;

/* Draw the messages of all ranks, so that nobody has to be told of any, and keep a rank's own: a rank
 * needs no more memory in a large world than in a small one. Returns 0, or -1 where memory ran out;
 * free_interfaces frees what there is. */
int draw_interfaces(const drawing *how, int rank, interfaces *found);
void free_interfaces(interfaces *found);

#endif
