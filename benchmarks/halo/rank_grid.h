/* How ranks are arranged: by one rule, since MPI_Dims_create's grids differ between libraries. */
#ifndef WYEAST_RANK_GRID_H
#define WYEAST_RANK_GRID_H

#define MOST_DIMENSIONS 4

/* Arrange 1 or more ranks in 1 to MOST_DIMENSIONS dimensions so that the sides sum up to least, with
 * which the parts of a cube have the least surface; of such grids the one whose longest side is
 * shortest, then the next one. Sides do not ascend, as MPI_Dims_create's do not. */
void arrange_ranks(int ranks, int dimensions, int *grid);

#endif
