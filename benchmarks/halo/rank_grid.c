#include "rank_grid.h"

#include <limits.h>
#include <string.h>

typedef struct {
    int dimensions;
    int sides[MOST_DIMENSIONS], best[MOST_DIMENSIONS];
    long long least;
} search;

/* Sides are tried from the longest on, each no longer than the one before; of two grids with the same
 * sum the later one has the shorter sides. */
static void try_sides(search *s, int dimension, int ranks, int longest, long long sum)
{
    if (dimension + 1 == s->dimensions) {
        if (ranks > longest || sum + ranks > s->least)
            return;
        s->sides[dimension] = ranks;
        s->least = sum + ranks;
        memcpy(s->best, s->sides, sizeof s->best);
        return;
    }
    for (int side = ranks < longest ? ranks : longest; side >= 1; side--)
        if (ranks % side == 0) {
            s->sides[dimension] = side;
            try_sides(s, dimension + 1, ranks / side, side, sum + side);
        }
}

void arrange_ranks(int ranks, int dimensions, int *grid)
{
    search s = {.dimensions = dimensions, .least = LLONG_MAX};
    try_sides(&s, 0, ranks, ranks, 0);
    memcpy(grid, s.best, (size_t)dimensions * sizeof *grid);
}
