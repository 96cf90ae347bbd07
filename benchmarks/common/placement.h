/* Which cores, sockets and NUMA nodes a rank may run on, and how that is written for all ranks. */
#ifndef WYEAST_PLACEMENT_H
#define WYEAST_PLACEMENT_H

#include <stddef.h>
#include <stdio.h>

#include "disturbances.h"
#include "record_pieces.h"
#include "waiting.h"

#define MOST_SOCKETS 128
#define MOST_NUMA_NODES 256

/* What a rank tells at its end: one bit for each of what it may run on. A core has the number of the
 * first of its processors, which are its hyper-threads; so two ranks share a core where they have
 * one in common. What the kernel does not tell stays empty. It has no pointers, so that it can be sent
 * as it is. */
typedef struct {
    rank_place place;
    unsigned char cores[MOST_PROCESSORS / 8], sockets[MOST_SOCKETS / 8],
        numa_nodes[MOST_NUMA_NODES / 8];
    processor_wait waiting;
} rank_end;

/* Fill in what this rank tells. */
void find_end(rank_end *here);

/* What all ranks told, in order; none where `of` is NULL. */
typedef struct {
    rank_end *of;
    size_t ranks;
} rank_ends;

/* Write `,"placement":{…}`, and `,"waiting":{…}` where all kernels tell: nothing of no ranks. */
void print_ends(FILE *out, rank_ends all);

/* What all ranks tell, on rank 0, to be freed; none elsewhere and where memory ran out. Every rank
 * must call it. */
rank_ends ends_of_all_ranks(void);

/* Write the end record and see that all of the output got out. Returns NULL, or why it did not. */
const char *print_end_of(FILE *out, size_t results, disturbances counted, rank_ends all);

/* Write what the end record has besides results as a line of its own, for an output whose own format
 * has no place for it. */
void print_disturbances(FILE *out, disturbances counted, rank_ends all);

#endif
