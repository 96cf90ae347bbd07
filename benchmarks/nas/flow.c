#include "flow.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each unknown, the coefficients of 1; x, y, z; and their squares, cubes and fourth powers
 * (RNR-94-007, table 3.1). */
static const double polynomials[UNKNOWNS][13] = {
    {2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};

void describe_flow(flow *f, const int points[3], const int first[3], const int own[3])
{
    ptrdiff_t along[3];
    for (int d = 0; d < 3; d++) {
        f->points[d] = points[d];
        f->first[d] = first[d];
        f->own[d] = own[d];
        f->inner_first[d] = first[d] == 0;
        f->inner_end[d] = own[d] - (first[d] + own[d] == points[d]);
        f->by_step[d] = points[d] - 1;
        f->added_diffusion[d] = d == 2 ? 1.0 : 0.75;
        along[d] = own[d] + 2 * GHOSTS;
    }
    f->row = along[0];
    f->plane = along[1] * UNKNOWNS * f->row;
    f->derived_plane = along[1] * DERIVED * f->row;
}

static size_t planes_of(const flow *f)
{
    return (size_t)f->own[2] + 2 * GHOSTS;
}

size_t numbers_of_u(const flow *f)
{
    return planes_of(f) * (size_t)f->plane;
}

size_t numbers_of_flow(const flow *f)
{
    return 3 * numbers_of_u(f) + planes_of(f) * (size_t)f->derived_plane;
}

void reserve_flow(const program_description *program, flow *f)
{
    const size_t all = numbers_of_u(f);
    f->u = reserve(program, all, sizeof(double));
    f->residual = reserve(program, all, sizeof(double));
    f->forcing = reserve(program, all, sizeof(double));
    f->derived = reserve(program, planes_of(f) * (size_t)f->derived_plane, sizeof(double));
}

void free_flow(flow *f)
{
    free(f->u);
    free(f->residual);
    free(f->forcing);
    free(f->derived);
}

/* The steady state at a point of the box. */
static void exact_state(const flow *f, const int point[3], double state[UNKNOWNS])
{
    double at[3];
    for (int d = 0; d < 3; d++)
        at[d] = point[d] / f->by_step[d];
    for (int m = 0; m < UNKNOWNS; m++) {
        const double *p = polynomials[m];
        state[m] = p[0];
        for (int d = 0; d < 3; d++)
            state[m] += at[d] * (p[1 + d] + at[d] * (p[4 + d] + at[d] * (p[7 + d] +
                                                                         at[d] * p[10 + d])));
    }
}

/* What the steady states at the six faces give for a point between them (section 3.3.2). */
static void interpolate_faces(const flow *f, const int at[3], double state[UNKNOWNS])
{
    double along[3][UNKNOWNS];
    for (int d = 0; d < 3; d++) {
        int low[3] = {at[0], at[1], at[2]}, high[3] = {at[0], at[1], at[2]};
        low[d] = 0;
        high[d] = f->points[d] - 1;
        double from[UNKNOWNS], to[UNKNOWNS];
        exact_state(f, low, from);
        exact_state(f, high, to);
        const double share = at[d] / f->by_step[d];
        for (int m = 0; m < UNKNOWNS; m++)
            along[d][m] = (1.0 - share) * from[m] + share * to[m];
    }
    for (int m = 0; m < UNKNOWNS; m++) {
        const double a = along[0][m], b = along[1][m], c = along[2][m];
        state[m] = a + b + c - a * b - b * c - c * a + a * b * c;
    }
}

static void begin_at(const flow *f, const int at[3], double state[UNKNOWNS])
{
    int outside = 0;
    for (int d = 0; d < 3; d++)
        outside = outside || at[d] == 0 || at[d] == f->points[d] - 1;
    if (outside)
        exact_state(f, at, state);
    else
        interpolate_faces(f, at, state);
}

/* Set u at all points of the block and at its ghosts, as far as they are in the box. */
static void set_states(flow *f, void (*state_at)(const flow *, const int[3], double[UNKNOWNS]))
{
    int low[3], end[3], at[3];
    for (int d = 0; d < 3; d++) {
        low[d] = f->first[d] > GHOSTS ? f->first[d] - GHOSTS : 0;
        end[d] = f->first[d] + f->own[d] + GHOSTS;
        end[d] = end[d] < f->points[d] ? end[d] : f->points[d];
    }
    for (at[2] = low[2]; at[2] < end[2]; at[2]++)
        for (at[1] = low[1]; at[1] < end[1]; at[1]++)
            for (at[0] = low[0]; at[0] < end[0]; at[0]++) {
                double state[UNKNOWNS];
                state_at(f, at, state);
                double *u = f->u + row_of(f, at[1] - f->first[1], at[2] - f->first[2]) + at[0] -
                            f->first[0];
                for (int m = 0; m < UNKNOWNS; m++)
                    u[m * f->row] = state[m];
            }
}

void begin_flow(flow *f)
{
    set_states(f, begin_at);
}

void make_forcing(flow *f)
{
    set_states(f, exact_state);
    const size_t bytes = numbers_of_u(f) * sizeof(double);
    memset(f->forcing, 0, bytes);
    renew_derived(f);
    take_flow_residual(f);
    memcpy(f->forcing, f->residual, bytes);
}

size_t copy_border(flow *f, int d, int side, double *packed, int into_ghosts)
{
    int first[3] = {0, 0, 0}, end[3] = {f->own[0], f->own[1], f->own[2]};
    if (side == 0)
        first[d] = into_ghosts ? -GHOSTS : 0;
    else
        first[d] = into_ghosts ? f->own[d] : f->own[d] - GHOSTS;
    end[d] = first[d] + GHOSTS;
    const size_t length = (size_t)(end[0] - first[0]);
    double *at = packed;
    for (int z = first[2]; z < end[2]; z++)
        for (int y = first[1]; y < end[1]; y++)
            for (int m = 0; m < UNKNOWNS; m++, at += length) {
                double *row = f->u + row_of(f, y, z) + m * f->row + first[0];
                memcpy(into_ghosts ? row : at, into_ghosts ? at : row, length * sizeof *row);
            }
    return (size_t)(at - packed);
}

void advance(flow *f, double share)
{
    for (int z = f->inner_first[2]; z < f->inner_end[2]; z++)
        for (int y = f->inner_first[1]; y < f->inner_end[1]; y++)
            for (int m = 0; m < UNKNOWNS; m++) {
                const ptrdiff_t start = row_of(f, y, z) + m * f->row;
                for (ptrdiff_t x = f->inner_first[0]; x < f->inner_end[0]; x++)
                    f->u[start + x] += share * f->residual[start + x];
            }
}

/* Add the inner points' squares of the residual, and of u's distance from the steady state. */
static void add_squares(const flow *f, double of_residual[UNKNOWNS], double of_error[UNKNOWNS])
{
    for (int z = f->inner_first[2]; z < f->inner_end[2]; z++)
        for (int y = f->inner_first[1]; y < f->inner_end[1]; y++)
            for (int x = f->inner_first[0]; x < f->inner_end[0]; x++) {
                const int at[3] = {f->first[0] + x, f->first[1] + y, f->first[2] + z};
                const ptrdiff_t point = row_of(f, y, z) + x;
                double state[UNKNOWNS];
                exact_state(f, at, state);
                for (int m = 0; m < UNKNOWNS; m++) {
                    const double left = f->residual[point + m * f->row];
                    const double off = state[m] - f->u[point + m * f->row];
                    of_residual[m] += left * left;
                    of_error[m] += off * off;
                }
            }
}

void verify_flow(const flow *blocks, int count, const flow_reference *reference, double tolerance,
                 verification *v)
{
    enum { OF_RESIDUAL, OF_ERROR, KINDS };
    double mine[KINDS][UNKNOWNS] = {{0.0}}, all[KINDS][UNKNOWNS], inner = 1.0;
    for (int i = 0; i < count; i++)
        add_squares(&blocks[i], mine[OF_RESIDUAL], mine[OF_ERROR]);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(mine, all, KINDS * UNKNOWNS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    for (int d = 0; d < 3; d++)
        inner *= blocks->points[d] - 2;
    char what[64];
    for (int m = 0; m < UNKNOWNS; m++) {
        snprintf(what, sizeof what, "the norm of residual %d", m + 1);
        verify_real(v, what, sqrt(all[OF_RESIDUAL][m] / inner), reference->residual[m], tolerance);
        snprintf(what, sizeof what, "the norm of error %d", m + 1);
        verify_real(v, what, sqrt(all[OF_ERROR][m] / inner), reference->error[m], tolerance);
    }
}

double surface_integral(const flow *f)
{
    /* The smaller box: its first and last points. By the trapezoid rule those at an end of an edge
     * count half in that direction. */
    const int low[3] = {1, 1, 2};
    const int high[3] = {f->points[0] - 2, f->points[1] - 3, f->points[2] - 2};
    double mine = 0.0;
    for (int z = 0; z < f->own[2]; z++)
        for (int y = 0; y < f->own[1]; y++)
            for (int x = 0; x < f->own[0]; x++) {
                const int at[3] = {f->first[0] + x, f->first[1] + y, f->first[2] + z};
                double weight = 1.0;
                int at_end[3];
                for (int d = 0; d < 3; d++) {
                    at_end[d] = at[d] == low[d] || at[d] == high[d];
                    if (at[d] < low[d] || at[d] > high[d])
                        weight = 0.0;
                    else
                        weight *= at_end[d] ? 0.5 : 1.0;
                }
                if (weight == 0.0)
                    continue;
                const double *u = f->u + row_of(f, y, z) + x;
                double square = 0.0;
                for (int m = 1; m < 4; m++)
                    square += u[m * f->row] * u[m * f->row];
                const double pressure = PRESSURE * (u[4 * f->row] - 0.5 * square / u[0]);
                for (int d = 0; d < 3; d++)
                    if (at_end[d]) /* On a face that is normal to d, whose half does not apply. */
                        mine += 2.0 * weight * pressure * f->by_step[d] /
                                (f->by_step[0] * f->by_step[1] * f->by_step[2]);
            }
    return mine;
}
