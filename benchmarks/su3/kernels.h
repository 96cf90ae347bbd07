/* What is calculated at every site, in two precisions, for the vector units that there are. */
#ifndef WYEAST_KERNELS_H
#define WYEAST_KERNELS_H

#include "field.h"

/* A box of sites, borders counted as 0 and own + 1, and which links of them. */
typedef struct {
    int from[DIMENSIONS], extent[DIMENSIONS];
    unsigned links; /* A bit for each direction. */
} region;

/* What is a rank's own neighbour's where a dimension is not divided. */
typedef struct {
    region from, to;
} own_border;

typedef struct {
    const char *instructions;
    size_t number_bytes, lanes;
    /* H -= factor * (the traceless Hermitian part of -i U V), V the sum of the link's six staples;
     * over some chunks. Borders must be right. */
    void (*turn)(field *f, const chunk *chunks, size_t count, double factor);
    /* U = exp(i step H) U, and then copy borders, each within its plane and of all own planes. */
    void (*move)(field *f, double step, const own_border *borders, int count);
    /* The sum of the real traces of the six plaquettes of each site in positive directions. */
    double (*plaquettes)(const field *f);
    /* The sum of tr H^2 / 2. */
    double (*kinetic)(const field *f);
    /* Make every link unitary with determinant 1, and return by how much one was not: the largest
     * of the elements of row products minus 1 or 0, and of the third row minus the cross product. */
    double (*straighten)(field *f);
    /* Copy a region's numbers out of the links, into them, or from one place in them to another. */
    void (*pack)(const field *f, const region *from, void *to);
    void (*unpack)(field *f, const region *to, const void *from);
    void (*copy)(field *f, const region *from, const region *to);
} kernels;

/* The kernels for the widest vectors of this processor, or for those that are named: "portable",
 * "avx2", "avx512" (NULL where this processor lacks them); "best" chooses. */
const kernels *choose_kernels(int in_double, const char *instructions);

extern const char *const instruction_names[];

#endif
