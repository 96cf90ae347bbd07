#include "tournament.h"

#include "../common/split_mix.h"

int tournament_rounds(int players)
{
    return players % 2 ? players : players - 1;
}

/* The last of an even number stays in the middle; the others stand on a circle, and those meet whose
 * places add up to twice the round's. Of an odd number nobody is in the middle. */
int opponent(int players, int round, int player)
{
    const int circle = tournament_rounds(players), middle = players % 2 ? -1 : players - 1;
    if (player == middle)
        return round;
    const int other = (int)((2LL * round - player + circle) % circle);
    return other == player ? middle : other;
}

void draw_order(int *rounds, int count, uint64_t seed)
{
    for (int i = 0; i < count; i++)
        rounds[i] = i;
    for (int i = count - 1; i > 0; i--) {
        /* That small remainders are likelier by count / 2^64 does not matter. */
        const int j = (int)(next_number(&seed) % (uint64_t)(i + 1));
        const int kept = rounds[i];
        rounds[i] = rounds[j];
        rounds[j] = kept;
    }
}
