/* The two triangular systems of a step of LU (RNR-94-007, section 4.2.3), solved plane by plane:
 * ranks wait for those before them in x and y, so that each plane is a wave over the ranks, in
 * messages of a few kilobytes. */
#ifndef WYEAST_FLOW_SWEEPS_H
#define WYEAST_FLOW_SWEEPS_H

#include "flow.h"

/* A grid of ranks over x and y; each has all points in z. */
typedef struct {
    int rank, ranks, parts[2], place[2];
    int neighbour[2][2]; /* In x and y, towards lower and higher coordinates. */
    double time_step;
    double *sent[2], *received[2]; /* Towards lower and higher coordinates, and from there. */
    double *line;                  /* Room for what a row needs of each of its points. */
} wave;

/* Lay one of so many ranks out, and describe its block. Returns -1 where a rank would have fewer points
 * in x or y than its neighbours need of it. */
int divide_wave(wave *w, flow *f, const int points[3], int rank, int ranks);
/* What it asks for. */
demand demand_of_wave(const flow *f);
void reserve_wave(const program_description *program, wave *w, flow *f);
void free_wave(wave *w);

/* Fetch the neighbours' points, and derive what follows from u. */
void fetch_neighbours(const wave *w, flow *f);

/* A step of symmetric successive over-relaxation: of the change that they make of the residual, u
 * takes OVER_RELAXED_SHARE. */
#define RELAXATION 1.2
#define OVER_RELAXED_SHARE (1.0 / (RELAXATION * (2.0 - RELAXATION)))
void sweep_up(const wave *w, flow *f);
void sweep_down(const wave *w, flow *f);
#endif
