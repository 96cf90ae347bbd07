/* Which processors of this node have something in common: a core, a cache, a NUMA node, a package. */
#ifndef WYEAST_TOPOLOGY_H
#define WYEAST_TOPOLOGY_H

#include "../common/ranks_alike.h"

/* Print a record for each node whose processors are joined in another way than those of the nodes
 * before, in order of the ranks; `sys` is where the kernel tells it. Collective over MPI_COMM_WORLD.
 * Returns how many records there are, rank 0's, or -1 where memory ran out. */
long print_topologies(const char *sys, const ranks_alike *of_host);

#endif
