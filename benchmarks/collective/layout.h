/* How long the blocks of a collective operation are, and where they stand in a rank's buffers. */
#ifndef WYEAST_LAYOUT_H
#define WYEAST_LAYOUT_H

#include "calls.h"

/* How many blocks a rank has in a buffer. */
size_t blocks_of(extent what, int rank, int ranks);

/* What one rank gives to another, in bytes, where `bytes` are asked for. Unequal blocks grow evenly
 * with the place of the rank that they belong to, from 2 / (ranks + 1) times as much on; their mean is
 * what was asked for, but for the rest of a division. Between two ranks as much goes either way. */
size_t block_bytes(const collective *what, size_t bytes, int ranks, int giver, int taker);

/* What a rank's buffers need, in bytes. In place the one that receives may need what the other does. */
void find_room(const collective *what, size_t bytes, int rank, int ranks, int in_place,
               size_t room[2]);

/* How much goes to another rank, or comes from it, in what the calls count in: bytes, or doubles of a
 * reduction. */
size_t count_to(const call *c, size_t other);
size_t count_from(const call *c, size_t other);

/* Where the block of another rank begins among those that go to ranks or come from them, in bytes. */
size_t start_of(const call *c, const int *starts, size_t other);

/* What the lists of unequal blocks take, in bytes: MPI has them name every rank. Equal ones have none. */
size_t layout_bytes(const collective *what, int ranks);

/* Reserve and fill what the calls with unequal blocks need. Returns 0, or -1 where memory ran out;
 * free_layout frees what there is. */
int lay_out(call *c);
void free_layout(call *c);

/* Which ranks come late in turn, for a barrier to be proved: all of a small group, and of a larger one
 * so many evenly apart, since each of them hears of all others. A group has at least 2 ranks. */
#define MOST_LATE 64
int late_ranks(int ranks);
int late_rank(int turn, int ranks);

#endif
