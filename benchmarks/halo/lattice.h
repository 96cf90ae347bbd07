/* One rank's part of a lattice of doubles with a border, and the faces that it exchanges. */
#ifndef WYEAST_LATTICE_H
#define WYEAST_LATTICE_H

#include <mpi.h>
#include <stddef.h>

#include "../common/arguments.h"
#include "rank_grid.h"

/* Each dimension has two faces: 2d towards lower coordinates, 2d+1 towards higher ones. */
#define MOST_FACES (2 * MOST_DIMENSIONS)

typedef struct {
    int dimensions, faces;
    int grid[MOST_DIMENSIONS], place[MOST_DIMENSIONS]; /* Of ranks, and this one's. */
    int extent[MOST_DIMENSIONS];                       /* Own points, without the border. */
    int periodic;
    MPI_Comm comm;
    int neighbour[MOST_FACES]; /* MPI_PROC_NULL at an end that is not periodic. */
    MPI_Datatype sent[MOST_FACES], received[MOST_FACES];
    size_t face_points[MOST_FACES], points; /* `points` with the border. */
    double *values;
} lattice;

/* Find the ranks' grid and the points of a lattice whose every rank has `extent` points in each
 * dimension or, with `whole`, that has so many in all. Nothing is made, so that all sizes can be
 * looked at before the first is measured. Returns 0, or -1 with a sentence on all ranks. */
int size_lattice(lattice *l, int dimensions, size_t extent, int whole, int periodic,
                 complaint *about);

/* Make what the exchange of a lattice with known sizes needs. Collective. Returns 0, or -1 with a
 * sentence on all ranks: there is no memory for it. */
int make_lattice(lattice *l, complaint *about);

void release_lattice(lattice *l);

/* Make and commit the datatype of a face: own points that are sent, or points of the border. */
void make_face(const lattice *l, int face, int of_border, MPI_Datatype *type);

/* Make the communicator of the ranks' grid, every rank at its place. Collective. */
void make_grid(const lattice *l, MPI_Comm *comm);

/* Give every own point a value by its place in the whole lattice and by n, and every point of the
 * border a wrong one. */
void fill_lattice(lattice *l, unsigned long long n);

/* Compare the border's faces with what the neighbours have there. Returns the bytes that came from
 * other ranks, or -1 with a sentence. */
long long verify_border(const lattice *l, unsigned long long n, complaint *about);

/* The bytes of this rank's faces that other ranks need. */
unsigned long long bytes_for_others(const lattice *l);

#endif
