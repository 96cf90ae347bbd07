/* How the sites of a four-dimensional periodic lattice are divided among the ranks. */
#ifndef WYEAST_GEOMETRY_H
#define WYEAST_GEOMETRY_H

#include "../common/arguments.h"

enum { DIMENSIONS = 4 }; /* x, y, z, t, everywhere in this order. */

typedef struct {
    int whole[DIMENSIONS]; /* Sites of the lattice. */
    int grid[DIMENSIONS];  /* Ranks. */
    int own[DIMENSIONS];   /* Sites of a rank; all have the same. */
    int place[DIMENSIONS]; /* Of this rank in the grid. */
    int rank, ranks;
    long long volume, own_volume;
} geometry;

/* Divide the lattice; `grid` is as 1x1x2x4, or empty for the grid of least surface. Returns 0, or -1
 * with a sentence. */
int divide_lattice(geometry *g, const long long *whole, const char *grid, int rank, int ranks,
                   complaint *about);

/* The rank that is `step` further in a dimension. */
int neighbour_of(const geometry *g, int dimension, int step);

void place_of_rank(const geometry *g, int rank, int *place);

/* The number that a site has whatever the grid; `own` begins at 0. */
long long site_number(const geometry *g, const int *own);

#endif
