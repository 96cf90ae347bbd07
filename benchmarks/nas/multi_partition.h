/* A box that is cut into q x q x q blocks for q x q ranks, so that each rank has one block of every
 * slice in every direction: while lines are solved from one end to the other, no rank waits for long
 * (Naik 1995; RNR-94-007, section 4.4). */
#ifndef WYEAST_MULTI_PARTITION_H
#define WYEAST_MULTI_PARTITION_H

#include "flow.h"

typedef struct {
    int rank, ranks, parts;   /* parts: q. */
    int place[2];
    int neighbour[3][2];      /* In each direction, towards lower and higher coordinates. */
    flow *blocks;             /* As many as parts, in the order of their places in z. */
    double *sent[2], *received[2];
} multi_partition;

/* Lay one of so many ranks out. Returns -1 where they are no square, or would have fewer points in a
 * direction than their neighbours need of them. */
int divide_partition(multi_partition *p, const int points[3], int rank, int ranks);
/* Describe a rank's blocks, of which `blocks` has room for as many as there are parts. */
void describe_blocks(multi_partition *p, const int points[3]);
/* The most numbers that are sent to one side. */
size_t most_of_borders(const multi_partition *p, const int points[3]);
/* Reserve what the blocks have, and their borders. */
void reserve_partition(const program_description *program, multi_partition *p, const int points[3]);
void free_partition(const multi_partition *p);

/* The place of this rank's block in the order of its blocks that is at a place in a direction. */
int block_at(const multi_partition *p, int direction, int place);

/* Fetch the neighbours' points, and derive what follows from u. */
void fetch_neighbour_blocks(const multi_partition *p);

/* Send numbers to the neighbour at a side, and receive some from the other side. */
void pass_on(const multi_partition *p, int direction, int to_side, double *sent, size_t count,
             double *received, size_t awaited);

#endif
