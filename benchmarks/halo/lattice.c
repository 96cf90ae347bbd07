#include "lattice.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"

static int opposite(int face)
{
    return face ^ 1;
}

void make_face(const lattice *l, int face, int of_border, MPI_Datatype *type)
{
    int sizes[MOST_DIMENSIONS], subsizes[MOST_DIMENSIONS], starts[MOST_DIMENSIONS];
    for (int d = 0; d < l->dimensions; d++) {
        sizes[d] = l->extent[d] + 2;
        subsizes[d] = l->extent[d];
        starts[d] = 1;
    }
    const int d = face / 2, high = face % 2;
    subsizes[d] = 1;
    starts[d] = high ? l->extent[d] + of_border : 1 - of_border;
    MPI_Type_create_subarray(l->dimensions, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, type);
    MPI_Type_commit(type);
}

void make_grid(const lattice *l, MPI_Comm *comm)
{
    int periods[MOST_DIMENSIONS];
    for (int d = 0; d < l->dimensions; d++)
        periods[d] = l->periodic;
    MPI_Cart_create(MPI_COMM_WORLD, l->dimensions, l->grid, periods, 0, comm);
}

int size_lattice(lattice *l, int dimensions, size_t extent, int whole, int periodic,
                 complaint *about)
{
    int ranks;
    *l = (lattice){.dimensions = dimensions, .faces = 2 * dimensions, .periodic = periodic,
                   .points = 1};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    arrange_ranks(ranks, dimensions, l->grid);
    for (int d = 0; d < dimensions; d++) {
        const size_t own = whole ? extent / (size_t)l->grid[d] : extent;
        if (own < 1 || own > INT_MAX - 2)
            return complain(about, "--extent %zu: %d ranks in dimension %d have %zu points each",
                            extent, l->grid[d], d, own);
        if (whole && extent % (size_t)l->grid[d])
            return complain(about, "--extent %zu --whole: the %d ranks in dimension %d do not "
                                   "divide it; give a multiple of %d", extent, l->grid[d], d,
                            l->grid[d]);
        l->extent[d] = (int)own;
        if (l->points > SIZE_MAX / sizeof(double) / (own + 2))
            return complain(about, "--extent %zu: too large in %d dimensions", extent, dimensions);
        l->points *= own + 2;
    }
    return 0;
}

int make_lattice(lattice *l, complaint *about)
{
    int rank, failed, any;
    make_grid(l, &l->comm);
    MPI_Comm_rank(l->comm, &rank);
    MPI_Cart_coords(l->comm, rank, l->dimensions, l->place);
    l->values = (double *)(void *)page_aligned(l->points * sizeof(double));
    failed = !l->values;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        free(l->values);
        MPI_Comm_free(&l->comm);
        return complain(about, "no memory for %zu points a rank", l->points);
    }
    for (int d = 0; d < l->dimensions; d++)
        MPI_Cart_shift(l->comm, d, 1, &l->neighbour[2 * d], &l->neighbour[2 * d + 1]);
    for (int face = 0; face < l->faces; face++) {
        make_face(l, face, 0, &l->sent[face]);
        make_face(l, face, 1, &l->received[face]);
        l->face_points[face] = 1;
        for (int d = 0; d < l->dimensions; d++)
            l->face_points[face] *= d == face / 2 ? 1 : (size_t)l->extent[d];
    }
    return 0;
}

void release_lattice(lattice *l)
{
    for (int face = 0; face < l->faces; face++) {
        MPI_Type_free(&l->sent[face]);
        MPI_Type_free(&l->received[face]);
    }
    MPI_Comm_free(&l->comm);
    free(l->values);
}

/* The value at a place of the whole lattice, which wraps where it is periodic. */
static double value_at(const lattice *l, const int *own, unsigned long long n)
{
    unsigned long long place = 0;
    for (int d = 0; d < l->dimensions; d++) {
        const long long length = (long long)l->grid[d] * l->extent[d];
        long long at = (long long)l->place[d] * l->extent[d] + own[d] - 1;
        at = (at % length + length) % length;
        place = place * 0x100000001b3ULL + (unsigned long long)at + 1;
    }
    return (double)pattern((size_t)place, n, 0) + (double)(place % 65536) * 256.0;
}

/* Go to the next point of a box in C order; returns 0 after the last. */
static int next_point(int *at, const int *low, const int *high, int dimensions)
{
    for (int d = dimensions - 1; d >= 0; d--) {
        if (++at[d] <= high[d])
            return 1;
        at[d] = low[d];
    }
    return 0;
}

static size_t index_of(const lattice *l, const int *at)
{
    size_t index = 0;
    for (int d = 0; d < l->dimensions; d++)
        index = index * (size_t)(l->extent[d] + 2) + (size_t)at[d];
    return index;
}

void fill_lattice(lattice *l, unsigned long long n)
{
    int low[MOST_DIMENSIONS], at[MOST_DIMENSIONS];
    for (size_t i = 0; i < l->points; i++)
        l->values[i] = -1.0;
    for (int d = 0; d < l->dimensions; d++)
        low[d] = at[d] = 1;
    do
        l->values[index_of(l, at)] = value_at(l, at, n);
    while (next_point(at, low, l->extent, l->dimensions));
}

long long verify_border(const lattice *l, unsigned long long n, complaint *about)
{
    long long compared = 0;
    int rank;
    MPI_Comm_rank(l->comm, &rank);
    for (int face = 0; face < l->faces; face++) {
        if (l->neighbour[face] == MPI_PROC_NULL)
            continue;
        int low[MOST_DIMENSIONS], high[MOST_DIMENSIONS], at[MOST_DIMENSIONS];
        for (int d = 0; d < l->dimensions; d++) {
            low[d] = 1;
            high[d] = l->extent[d];
        }
        low[face / 2] = high[face / 2] = face % 2 ? l->extent[face / 2] + 1 : 0;
        memcpy(at, low, sizeof at);
        do {
            const double found = l->values[index_of(l, at)], right = value_at(l, at, n);
            if (found != right)
                return complain(about, "rank %d has a wrong value in the border of dimension %d, "
                                       "%s side, from rank %d: %g, right is %g", rank, face / 2,
                                face % 2 ? "high" : "low", l->neighbour[face], found, right);
        } while (next_point(at, low, high, l->dimensions));
        if (l->neighbour[face] != rank)
            compared += (long long)(l->face_points[face] * sizeof(double));
    }
    return compared;
}

unsigned long long bytes_for_others(const lattice *l)
{
    unsigned long long bytes = 0;
    int rank;
    MPI_Comm_rank(l->comm, &rank);
    for (int face = 0; face < l->faces; face++)
        if (l->neighbour[face] != MPI_PROC_NULL && l->neighbour[face] != rank)
            bytes += l->face_points[opposite(face)] * sizeof(double);
    return bytes;
}
