/* A periodic cube of points on ranks in a grid, and the exchange of its border. */
#ifndef WYEAST_CUBE_H
#define WYEAST_CUBE_H

#include <mpi.h>
#include <stddef.h>

#include "benchmark.h"

enum { DIMENSIONS = 3 }; /* x, y, z; points that differ in x are next to each other. */

/* The ranks' grid; x changes fastest. */
typedef struct {
    int rank, ranks;
    int parts[DIMENSIONS], place[DIMENSIONS];
    int neighbour[DIMENSIONS][2]; /* Towards lower coordinates, and towards higher ones. */
    double *sent[2], *received[2];
} rank_grid;

/* One level of the multigrid on this rank: its own points with a border of one point all around. A
 * cube that would leave a rank too few points is whole on every rank. */
typedef struct {
    int points;          /* Of the cube, in each dimension. */
    int divided;         /* Between the ranks, or whole on each. */
    int own[DIMENSIONS]; /* Points without the border. */
    size_t row, plane, all; /* Elements from one row to the next, … and in all, with the border. */
} cube;

/* Lay one of so many ranks out for a cube; they are a power of two. Returns -1 where each rank would
 * have fewer than two points in some dimension. */
int divide_cube(rank_grid *g, int points, int rank, int ranks);
void reserve_faces(const program_description *program, rank_grid *g, int points);
void free_ranks(rank_grid *g);

/* Describe a cube of a level. */
cube make_cube(const rank_grid *g, int points, int finest);

/* Copy the border from where its points are: everything around, with edges and corners. */
void exchange_border(const rank_grid *g, const cube *c, double *values);

/* Make a whole cube on every rank of parts that the ranks have without borders, all of equal size;
 * `room` has space for all of them. */
void gather_cube(const rank_grid *g, const cube *whole, double *part, double *room, double *values);

/* What a rank of a multigrid of this cube asks for: the right side, and the solution and the residual of
 * each level. */
demand demand_of_cubes(const rank_grid *g, int points);

#endif
