/* The links and momenta of one rank's sites with a border of one site, laid out for vectors.
 *
 * Sites of equal z and t are a plane: its x and y, borders included, run in one row of numbers, and
 * each real and imaginary part of each matrix element of each direction has such a row of its own.
 * So a vector is as many neighbouring sites as it has lanes, and a neighbour in x or y is the same
 * vector a fixed distance on. The lanes at borders are calculated for nothing.
 *
 * Planes are found through a table. Where z or t is not divided, a border's plane is the plane at
 * the other end itself, and nothing is copied. */
#ifndef WYEAST_FIELD_H
#define WYEAST_FIELD_H

#include <stddef.h>

#include "geometry.h"

enum {
    MATRIX = 18,   /* Numbers of a link: element (i, j) has its real part at 6i + 2j. */
    MOMENTUM = 9,  /* The Hermitian traceless H of a momentum iH: three of the diagonal, then real
                    * and imaginary parts of the elements 01, 02 and 12. */
    MOST_LANES = 16,
};

/* One vector of sites. */
typedef struct {
    int z, t;  /* From 1. */
    size_t at; /* Of its first lane in a row. */
} chunk;

typedef struct {
    const geometry *geometry;
    size_t number_bytes; /* 8 or 4. */
    size_t lanes;
    size_t length; /* Of a row. */
    size_t stride; /* Between neighbours in y. */
    size_t origin; /* Where x = y = 0 of the border is in a row. */
    size_t *plane; /* Of (t, z), from 0 to own + 1. */
    size_t planes;
    void *links, *momenta, *saved;
    void *mask; /* A row: 1 for the rank's own sites, 0 for others. */
    chunk *chunks; /* First those that need no other rank's sites. */
    size_t inner_chunks, all_chunks;
} field;

/* Returns 0, or -1 where memory ran out. */
int make_field(field *f, const geometry *g, size_t number_bytes, size_t lanes);

void free_field(field *f);

/* Where a row of links begins; z and t from 0, the border. */
static inline size_t row_of(const field *f, int z, int t, int direction)
{
    return (f->plane[t * (f->geometry->own[2] + 2) + z] * DIMENSIONS + (size_t)direction) * MATRIX *
           f->length;
}

/* One link or momentum, of a site that is counted from 1, with its border from 0. */
void get_link(const field *f, const int *site, int direction, double *matrix);
void set_link(field *f, const int *site, int direction, const double *matrix);
void get_momentum(const field *f, const int *site, int direction, double *momentum);
void set_momentum(field *f, const int *site, int direction, const double *momentum);

/* Go to the next of the rank's own sites, x first, from 1; returns 0 after the last. */
int next_site(const geometry *g, int *site);

/* Make all links 0, borders too. */
void forget_links(field *f);

/* Keep the links, ask whether they are still the same, and take them back. */
void save_links(field *f);
int links_are_saved(const field *f);
void restore_links(field *f);
void negate_momenta(field *f);

#endif
