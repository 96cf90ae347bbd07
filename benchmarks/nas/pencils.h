/* A box of complex numbers on ranks in a grid, and its transposition: while a dimension is
 * transformed, every rank has whole lines of it. */
#ifndef WYEAST_PENCILS_H
#define WYEAST_PENCILS_H

#include <mpi.h>
#include <stddef.h>

#include "benchmark.h"

/* The grid has `across` times `along` ranks. With whole lines of
 * - x: y is divided by `across`, z by `along`;
 * - y: x by `across`, z by `along`;
 * - z: x by `across`, y by `along`.
 * In all three x is next to each other, then y, then z. With one rank across (slabs) the first two
 * are the same. */
typedef struct {
    int points[3];
    int across, along, place_across, place_along;
    MPI_Comm ranks_across, ranks_along;
    double *packed;
    int *counts; /* Four lists for MPI_Alltoallv, of doubles. */
} pencils;

/* Describe the box on one of so many ranks. Returns -1 where there are more than it can be divided
 * between. */
int divide_pencils(pencils *p, const int points[3], int rank, int ranks);

/* What it asks for with FT's three fields and what is packed; `p` is divided. */
demand demand_of_pencils(const pencils *p);

/* The same on this rank, ready to exchange what it has; `p` is divided. */
void lay_out_pencils(const program_description *program, pencils *p);
void free_pencils(pencils *p);

/* A part of a dimension: from its first point to the end. */
typedef struct {
    int first, end;
} extent;

extent part_across(const pencils *p, int dimension);
extent part_along(const pencils *p, int dimension);

/* Complex numbers that a rank has at most, in any of the three. */
size_t most_numbers(const pencils *p);

/* From whole lines of x to whole lines of y, and back; `from` and `to` are not the same. */
void x_to_y(const pencils *p, double *from, double *to);
void y_to_x(const pencils *p, double *from, double *to);
void y_to_z(const pencils *p, double *from, double *to);
void z_to_y(const pencils *p, double *from, double *to);

#endif
