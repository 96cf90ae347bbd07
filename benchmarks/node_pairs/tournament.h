/* Rounds in which everybody meets somebody else, until all have met (the circle method of round-robin
 * tournaments). Needs no MPI. */
#ifndef WYEAST_TOURNAMENT_H
#define WYEAST_TOURNAMENT_H

#include <stdint.h>

/* How many rounds it takes until each of at least 2 players has met each other: one less than there
 * are of an even number, and of an odd number as many as there are. */
int tournament_rounds(int players);

/* Whom a player meets in a round; -1 where it sits out, as one does in each round of an odd number. */
int opponent(int players, int round, int player);

/* Put the numbers of all rounds into an order that only the seed decides. */
void draw_order(int *rounds, int count, uint64_t seed);

#endif
