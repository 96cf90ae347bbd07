/* BT's lines: equations that couple each point's five unknowns with those of the points before and
 * after it, by Gaussian elimination of 5 x 5 blocks (RNR-94-007, section 4.2.1). */
#include "block_lines.h"

#include "flow_coupling.h"

enum { MATRIX = UNKNOWNS * UNKNOWNS };
/* The equations are alike in all directions, so one piece of code serves all: of the momenta, and of
 * the velocities, it has that along the lines first. */
static const int unknowns_along[3][UNKNOWNS] = {
    {0, 1, 2, 3, 4}, {0, 2, 3, 1, 4}, {0, 3, 1, 2, 4}};
static const int derived_along[3][DERIVED] = {
    {0, 1, 2, ENERGY_BY_MASS, HALF_SQUARE, VOLUME_BY_MASS},
    {1, 2, 0, ENERGY_BY_MASS, HALF_SQUARE, VOLUME_BY_MASS},
    {2, 0, 1, ENERGY_BY_MASS, HALF_SQUARE, VOLUME_BY_MASS}};
typedef struct {
    lanes at[UNKNOWNS][UNKNOWNS];
} matrix;

/* Whether an unknown enters an equation at all: the compiler knows. */
PART_OF_IT int enters(int equation, int unknown)
{
    if (equation == 4 || equation == 1)
        return 1;
    return unknown == equation || unknown == 1 || (unknown == 0 && equation > 0);
}

/* The block of a point's unknowns in an equation of its neighbour, or of its own. */
PART_OF_IT void make_block(matrix *m, coupling c, const lanes *derived)
{
    const lanes normal = derived[0], by_mass = derived[ENERGY_BY_MASS];
    const lanes half_square = derived[HALF_SQUARE];
    const lanes viscous = c.viscous * derived[VOLUME_BY_MASS];
    const lanes enthalpy = GAMMA * by_mass - PRESSURE * half_square;
    memset(m, 0, sizeof *m);
    m->at[0][0] += c.diffusion;
    m->at[0][1] += c.convection;
    m->at[4][0] = c.convection * normal * (PRESSURE * half_square - enthalpy) -
                  viscous * CONDUCTION * by_mass;
    m->at[4][4] = c.convection * GAMMA * normal + viscous * CONDUCTION + c.diffusion;
#pragma GCC unroll 3
    for (int k = 0; k < 3; k++) {
        const lanes velocity = derived[k];
        const double viscosity = VISCOSITY * (k == 0 ? SHEAR : 1.0);
        const lanes of_heat = viscous * (viscosity - CONDUCTION) * velocity;
        m->at[1 + k][0] = -velocity * (c.convection * normal + viscous * viscosity);
        m->at[1 + k][1 + k] += c.convection * normal + viscous * viscosity + c.diffusion;
        m->at[1 + k][1] += c.convection * velocity;
        m->at[4][0] -= of_heat * velocity;
        m->at[4][1 + k] = of_heat - c.convection * PRESSURE * velocity * normal;
    }
    m->at[4][1] += c.convection * enthalpy;
    m->at[1][0] += c.convection * PRESSURE * half_square;
#pragma GCC unroll 3
    for (int k = 0; k < 3; k++)
        m->at[1][1 + k] -= c.convection * PRESSURE * derived[k];
    m->at[1][4] += c.convection * PRESSURE;
}

/* own -= before after_it, and right -= before solved: what the point before has left. */
PART_OF_IT void take_in(matrix *own, lanes *right, const matrix *before, const lanes *after_it,
                        const lanes *solved)
{
#pragma GCC unroll 5
    for (int i = 0; i < UNKNOWNS; i++)
#pragma GCC unroll 5
        for (int k = 0; k < UNKNOWNS; k++) {
            if (!enters(i, k))
                continue;
            const lanes factor = before->at[i][k];
#pragma GCC unroll 5
            for (int j = 0; j < UNKNOWNS; j++)
                own->at[i][j] -= factor * after_it[k * UNKNOWNS + j];
            right[i] -= factor * solved[k];
        }
}

/* after and right become what own's inverse makes of them. */
PART_OF_IT void eliminate(matrix *own, matrix *after, lanes *right)
{
#pragma GCC unroll 5
    for (int p = 0; p < UNKNOWNS; p++) {
        const lanes reciprocal = 1.0 / own->at[p][p];
#pragma GCC unroll 5
        for (int j = p + 1; j < UNKNOWNS; j++)
            own->at[p][j] *= reciprocal;
#pragma GCC unroll 5
        for (int j = 0; j < UNKNOWNS; j++)
            after->at[p][j] *= reciprocal;
        right[p] *= reciprocal;
#pragma GCC unroll 5
        for (int i = 0; i < UNKNOWNS; i++) {
            if (i == p)
                continue;
            const lanes factor = own->at[i][p];
#pragma GCC unroll 5
            for (int j = p + 1; j < UNKNOWNS; j++)
                own->at[i][j] -= factor * own->at[p][j];
#pragma GCC unroll 5
            for (int j = 0; j < UNKNOWNS; j++)
                after->at[i][j] -= factor * after->at[p][j];
            right[i] -= factor * right[p];
        }
    }
}

FOR_THIS_PROCESSOR
static void forwards(const bundle *b, double time_step, lanes *kept, lanes *handed)
{
    const flow *f = b->f;
    const int d = b->direction, *order = unknowns_along[d], *of_derived = derived_along[d];
    const coupling lower = coupling_along(f, time_step, d, -1.0);
    const coupling itself = coupling_to_itself(f, time_step, d);
    const coupling upper = coupling_along(f, time_step, d, 1.0);
    const stride across = b->across;
    const ptrdiff_t row = f->row, first = f->inner_first[d], end = f->inner_end[d];
    const double *derived = f->derived + b->derived_start;
    lanes states[3][DERIVED];
    for (int i = 0; i < 2; i++)
        load_all(states[i], of_derived, DERIVED, derived + (first - 1 + i) * b->along.of_derived, row,
                 across.of_derived, b->count);
    const lanes *after_it = handed, *solved = handed + MATRIX;
    lanes right[UNKNOWNS], last[UNKNOWNS];
    for (ptrdiff_t x = first; x < end; x++) {
        load_all(states[2], of_derived, DERIVED, derived + (x + 1) * b->along.of_derived, row,
                 across.of_derived, b->count);
        double *place = f->residual + b->start + x * b->along.of_u;
        load_all(right, order, UNKNOWNS, place, row, across.of_u, b->count);
        matrix before, own, after;
        make_block(&before, lower, states[0]);
        make_block(&own, itself, states[1]);
        make_block(&after, upper, states[2]);
        for (int m = 0; m < UNKNOWNS; m++)
            own.at[m][m] += 1.0;
        take_in(&own, right, &before, after_it, solved);
        eliminate(&own, &after, right);
        store_all(right, order, UNKNOWNS, place, row, across.of_u, b->count);
        memcpy(kept, &after, sizeof after);
        memcpy(last, right, sizeof last);
        after_it = kept;
        solved = last;
        kept += MATRIX;
        memmove(states, states[1], 2 * sizeof states[0]);
    }
    memcpy(handed, after_it, MATRIX * sizeof *handed);
    memcpy(handed + MATRIX, last, sizeof last);
}

FOR_THIS_PROCESSOR
static void backwards(const bundle *b, const lanes *kept, lanes *handed)
{
    const flow *f = b->f;
    const int d = b->direction, *order = unknowns_along[d];
    const stride across = b->across;
    const ptrdiff_t first = f->inner_first[d], end = f->inner_end[d];
    for (ptrdiff_t x = end - 1; x >= first; x--) {
        const lanes *after = kept + (x - first) * MATRIX;
        double *place = f->residual + b->start + x * b->along.of_u;
        lanes solved[UNKNOWNS];
        load_all(solved, order, UNKNOWNS, place, f->row, across.of_u, b->count);
        for (int i = 0; i < UNKNOWNS; i++)
            for (int k = 0; k < UNKNOWNS; k++)
                solved[i] -= after[i * UNKNOWNS + k] * handed[k];
        store_all(solved, order, UNKNOWNS, place, f->row, across.of_u, b->count);
        memcpy(handed, solved, sizeof solved);
    }
}

const line_solver block_lines = {MATRIX + UNKNOWNS, UNKNOWNS, MATRIX, forwards, backwards};
