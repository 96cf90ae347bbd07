/* Of a world with more ranks than a profile lists one by one: what the ranks of each node have counted
 * together, and with which nodes. */
#ifndef WYEAST_PROFILE_NODES_H
#define WYEAST_PROFILE_NODES_H

#include "../common/ranks_alike.h"
#include "profile_records.h"

typedef struct {
    ranks_alike alike; /* By the name of the host. */
    int count;
    int *of_rank; /* The number of each rank's node; nodes are numbered by their lowest ranks. */
    int *lowest;  /* The lowest rank of each node. */
} world_nodes;

/* Collective over MPI_COMM_WORLD. Returns 0, or -1 on all ranks where memory ran out on one. */
int find_nodes(world_nodes *found, int ranks);
void free_nodes(world_nodes *found);

/* Sum up over the ranks of each node what they counted, `sum` being NULL where one never called MPI, and
 * how long they ran. Collective over MPI_COMM_WORLD. Returns 0, or -1 on all ranks where memory ran out
 * on one. On the lowest rank of a node `whole` is what they counted, to be freed; elsewhere NULL. */
int sum_of_node(const world_nodes *nodes, counters *sum, uint64_t never_completed,
                rank_span *span, counters **whole);

#endif
