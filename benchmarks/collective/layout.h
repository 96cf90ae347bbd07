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

/* Where the block of another rank begins among those that go to ranks or come from them, in bytes. */
size_t start_of(const call *c, const int *starts, size_t other);

/* Reserve and fill what the calls with unequal blocks need. Returns 0, or -1 where memory ran out;
 * free_layout frees what there is. */
int lay_out(call *c);
void free_layout(call *c);

#endif
