/* Print the grids of rank_grid.h for 1 rank up to as many as asked for, in 1 to 4 dimensions: a line each,
 * the ranks and the sides. */
#include <stdio.h>
#include <stdlib.h>

#include "../../../benchmarks/halo/rank_grid.h"

int main(int argc, char **argv)
{
    const int most = argc == 2 ? atoi(argv[1]) : 0;
    for (int ranks = 1; ranks <= most; ranks++)
        for (int dimensions = 1; dimensions <= MOST_DIMENSIONS; dimensions++) {
            int grid[MOST_DIMENSIONS];
            arrange_ranks(ranks, dimensions, grid);
            printf("%d", ranks);
            for (int d = 0; d < dimensions; d++)
                printf(" %d", grid[d]);
            putchar('\n');
        }
    return most < 1;
}
