/* The equations that LU, SP and BT solve (RNR-94-007, section 3): the compressible Navier-Stokes
 * equations with a forcing that makes a polynomial their steady state, on a box of points with fixed
 * values at its surface. Here is one block of the box's points; nothing of it communicates. */
#ifndef WYEAST_FLOW_H
#define WYEAST_FLOW_H

#include <stddef.h>

#include "benchmark.h"

/* Of each point: density, momentum in x, y and z, and energy, by volume. */
enum { UNKNOWNS = 5 };
/* What follows from them: velocities, energy by mass, half the squared velocity, 1 / density. */
enum { ENERGY_BY_MASS = 3, HALF_SQUARE, VOLUME_BY_MASS, DERIVED };
/* Points around a block that belong to its neighbours. */
enum { GHOSTS = 2 };

#define GAMMA 1.4        /* Ratio of the specific heats: C1 of the specification. */
#define PRESSURE 0.4     /* C2. */
#define VISCOSITY 0.1    /* C3 C4. */
#define CONDUCTION 0.196 /* C1 C3 C4 C5. */
#define SHEAR (4.0 / 3.0)
/* Of the fourth differences: a quarter of the largest added diffusion. */
#define DAMPING 0.25

typedef struct {
    int points[3];          /* Of the box, in x, y, z. */
    int first[3], own[3];   /* This block's first point, and how many it has. */
    int inner_first[3], inner_end[3]; /* Of these, counted from 0, what is not at the surface. */
    double by_step[3];      /* 1 / the distance of two points. */
    double added_diffusion[3];
    /* A row has all x of one unknown; then come the other unknowns, the next y, and the next z. */
    ptrdiff_t row, plane, derived_plane;
    double *u, *residual, *forcing, *derived;
} flow;

/* Describe a block; reserve its memory. */
void describe_flow(flow *f, const int points[3], const int first[3], const int own[3]);
void reserve_flow(const program_description *program, flow *f);
/* The numbers that this is, and those of u alone. */
size_t numbers_of_flow(const flow *f);
size_t numbers_of_u(const flow *f);
void free_flow(flow *f);

/* Where a row of the first unknown begins: its point 0 in x. */
static inline ptrdiff_t row_of(const flow *f, int y, int z)
{
    return (z + GHOSTS) * f->plane + (y + GHOSTS) * UNKNOWNS * f->row + GHOSTS;
}

/* The same of what is derived. */
static inline ptrdiff_t derived_row_of(const flow *f, int y, int z)
{
    return (z + GHOSTS) * f->derived_plane + (y + GHOSTS) * DERIVED * f->row + GHOSTS;
}

/* How far the next point in a direction is: in u, and in what is derived from it. */
typedef struct {
    ptrdiff_t of_u, of_derived;
} stride;

static inline stride stride_along(const flow *f, int d)
{
    const stride strides[3] = {
        {1, 1}, {UNKNOWNS * f->row, DERIVED * f->row}, {f->plane, f->derived_plane}};
    return strides[d];
}

/* Make the forcing of the steady state; what u was is lost. */
void make_forcing(flow *f);
/* Set u: the steady state at the box's surface, interpolated between the faces within. */
void begin_flow(flow *f);
/* Copy GHOSTS layers of own points next to a neighbour (side 0: at lower coordinates of direction d)
 * to where they are sent from, or from where they were received into the ghosts there. Returns how
 * many numbers that are. */
size_t copy_border(flow *f, int d, int side, double *packed, int into_ghosts);
/* Derive what follows from u, ghosts included. */
void renew_derived(flow *f);
/* residual = operator(u) - forcing, of the inner points; it stays 0 at the surface. */
void take_flow_residual(flow *f);

/* This block's part of the integral of the pressure over a smaller box's surface (section 3.4). */
double surface_integral(const flow *f);

/* u += a share of the residual. */
void advance(flow *f, double share);

/* Compare the root mean squares over the box's inner points, of all ranks' blocks, with NPB's. */
void verify_flow(const flow *blocks, int count, const flow_reference *reference, double tolerance,
                 verification *v);

#endif
