/* Which ranks of MPI_COMM_WORLD those of a communicator or a window are. */
#ifndef WYEAST_PROFILE_COMMUNICATORS_H
#define WYEAST_PROFILE_COMMUNICATORS_H

#include <stdbool.h>

#include "interface.h"

/* Kept with a communicator as an attribute until it is freed, and longer where a receive on it is
 * still under way. */
typedef struct {
    int references;
    bool between_groups;
    int size;       /* Of the group that this rank sends to: the other one, if there are two. */
    int own_size;   /* Of the group that this rank is in. */
    int own_rank;   /* In that group. */
    int neighbours; /* Of a topology; below 0 until they have been queried. */
    int *neighbour;
    int *world; /* Rank of MPI_COMM_WORLD by rank, below 0 outside of it; NULL: the same. */
} group_of_ranks;

/* Collective in no way. Return 0, or -1 where MPI refuses. */
int start_translating(void);
void stop_translating(void);

/* Return NULL where it cannot be told. */
group_of_ranks *group_of_communicator(MPI_Comm comm);
group_of_ranks *group_of_window(MPI_Win window);

/* Return the rank of MPI_COMM_WORLD, below 0 where there is none. */
int world_rank(const group_of_ranks *group, int rank);

/* Fill in the ranks that this rank has as neighbours to send to. */
void find_neighbours(group_of_ranks *group, MPI_Comm comm);

/* For who keeps it longer than a call lasts. */
group_of_ranks *keep_group(group_of_ranks *group);
void release_group(group_of_ranks *group);

#endif
